"""vLLM's command line as a table: what it takes in which release.

Source: vLLM 0.33 vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py; renamings and
removals as its release notes give them.
"""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from world.engine.flag_values import (
    fraction,
    json_value,
    length_or_auto,
    normalised,
    suffixed_int,
)
from world.engine.versions import Version

SWITCH = "switch"  # --name and --no-name
WORDS = "words"  # one or more values

Kind = Callable[[str], Any] | str
FOREVER: Version = (99, 0, 0)

_FLAGS: dict[Kind, str] = {
    str: """
        model tokenizer tokenizer-mode dtype revision code-revision tokenizer-revision hf-token
        hf-config-path download-dir load-format config-format generation-config quantization,q
        kv-cache-dtype distributed-executor-backend host uvicorn-log-level chat-template
        chat-template-content-format tool-call-parser reasoning-parser root-path response-role
        ssl-keyfile ssl-certfile ssl-ca-certs data-parallel-address,dpa data-parallel-backend,dpb
        scheduling-policy scheduler-cls runner convert model-impl attention-backend moe-backend
        mamba-cache-dtype mamba-ssm-cache-dtype mamba-cache-mode gdn-prefill-backend
        mamba-backend mm-encoder-tp-mode performance-mode lora-dtype spec-method spec-model
        offload-backend kv-offloading-backend master-addr otlp-traces-endpoint
        all2all-backend worker-cls guided-decoding-backend prefix-caching-hash-algo
        show-hidden-metrics-for-version tool-parser-plugin logits-processor-pattern api-key
        """,
    int: """
        seed tensor-parallel-size,tp pipeline-parallel-size,pp data-parallel-size,dp
        data-parallel-size-local,dpl data-parallel-rank,dpn data-parallel-start-rank,dpr
        data-parallel-rpc-port,dpp decode-context-parallel-size,dcp
        prefill-context-parallel-size,pcp max-num-seqs block-size num-gpu-blocks-override port
        max-logprobs max-loras max-lora-rank max-cpu-loras max-num-active-seqs
        max-num-queued-reqs long-prefill-token-threshold max-cudagraph-capture-size
        optimization-level mamba-block-size nnodes,n node-rank,r master-port
        max-parallel-loading-workers offload-group-size offload-num-in-group
        offload-prefetch-step spec-tokens api-server-count,asc shutdown-timeout
        stream-interval max-long-partial-prefills prefix-match-unit
        prefix-cache-retention-interval
        """,
    suffixed_int: "max-num-batched-tokens kv-cache-memory-bytes max-num-scheduled-tokens",
    length_or_auto: "max-model-len",
    fraction: """
        gpu-memory-utilization,device-memory-utilization cpu-offload-gb kv-offloading-size
        mm-ipc-gpu-memory-gb watermark mm-processor-cache-gb
        """,
    json_value: """
        hf-overrides speculative-config compilation-config,cc kv-transfer-config
        kv-events-config override-generation-config limit-mm-per-prompt mm-processor-kwargs
        media-io-kwargs additional-config eplb-config structured-outputs-config
        model-loader-extra-config ec-transfer-config profiler-config attention-config
        default-chat-template-kwargs pooler-config weight-transfer-config kernel-config
        """,
    WORDS: """
        served-model-name kv-cache-dtype-skip-layers cudagraph-capture-sizes lora-modules
        allowed-origins allowed-methods allowed-headers middleware logits-processors
        cpu-offload-params ignore-patterns
        """,
    SWITCH: """
        trust-remote-code enforce-eager enable-prefix-caching enable-chunked-prefill
        async-scheduling disable-hybrid-kv-cache-manager disable-sliding-window
        enable-expert-parallel,ep enable-eplb enable-dbo enable-lora fully-sharded-loras
        enable-sleep-mode enable-cumem-allocator enable-auto-tool-choice
        enable-log-requests disable-log-stats enable-prompt-tokens-details
        enable-server-load-tracking enable-request-id-headers disable-custom-all-reduce
        language-model-only skip-mm-profiling skip-tokenizer-init disable-uvicorn-access-log
        headless data-parallel-hybrid-lb,dph data-parallel-external-lb,dpe
        return-tokens-as-token-ids allow-credentials disable-fastapi-docs
        enable-force-include-usage enable-log-outputs enable-tokenizer-info-endpoint
        scheduler-reserve-full-isl swa-bounded-replay disable-cascade-attn
        use-tqdm-on-load disable-chunked-mm-input enable-mm-embeds interleave-mm-strings
        enable-prompt-embeds kv-sharing-fast-prefill enable-return-routed-experts
        enable-auto-tool-choice-strict log-error-stack
        """,
}

# What a release does not know yet, or no longer.
_SINCE: dict[str, Version] = {
    "device-memory-utilization": (0, 31, 0),
    "max-num-active-seqs": (0, 31, 0),
    "max-num-queued-reqs": (0, 29, 0),
    "performance-mode": (0, 17, 0),
    "offload-group-size": (0, 17, 0),
    "mamba-cache-mode": (0, 15, 0),
    "shutdown-timeout": (0, 18, 0),
}
_REMOVED: tuple[tuple[str, Kind, Version], ...] = (
    ("swap-space", fraction, (0, 18, 0)),
    ("max-num-partial-prefills", int, (0, 27, 0)),
    ("calculate-kv-scales", SWITCH, (0, 28, 0)),
)


class Parser(argparse.ArgumentParser):
    """argparse with vLLM's program names: the sub-parser reads, the main parser complains."""

    def error(self, message: str) -> NoReturn:
        program = self.prog
        if message.startswith("unrecognized arguments") and program == "vllm serve":
            program = "vllm"  # left over from the sub-parser: the main one reports it
        self.print_usage_line()
        self.exit(2, f"{program}: error: {message}\n")

    def print_usage_line(self) -> None:
        options = "[model_tag] [options]" if self.prog == "vllm serve" else "[options]"
        self._print_message(f"usage: {self.prog} {options}\n", None)


def parser(version: Version, *, program: str) -> Parser:
    """The parser of `vllm serve`, or of the module that takes --model."""
    built = Parser(prog=program, argument_default=argparse.SUPPRESS)
    if program == "vllm serve":
        built.add_argument("model_tag", nargs="?")
    for kind, names in _FLAGS.items():
        for spelled in names.split():
            _add(built, spelled.split(","), kind, version)
    for name, kind, until in _REMOVED:
        if version < until:
            _add(built, [name], kind, version)
    return built


def _add(built: Parser, spelled: list[str], kind: Kind, version: Version) -> None:
    known = [name for name in spelled if version >= _SINCE.get(name, (0, 0, 0))]
    if not known or known[0] != spelled[0]:
        return
    options = [f"--{known[0]}"]
    options += [f"--{name}" if len(name) > 3 else f"-{name}" for name in known[1:]]
    if kind is SWITCH:
        built.add_argument(*options, action=argparse.BooleanOptionalAction)
    elif kind is WORDS:
        built.add_argument(*options, nargs="+")
    elif callable(kind):
        built.add_argument(*options, type=kind)


def parse(arguments: list[str], version: Version, *, program: str) -> dict[str, Any]:
    """The flags that were given, by their Python names; leaves with code 2 on an unknown one."""
    given = vars(parser(version, program=program).parse_args(normalised(arguments)))
    tag = given.get("model_tag")
    if tag is not None:
        given["model"] = tag
    return given
