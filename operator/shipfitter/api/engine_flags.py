"""The engine's flags that matter to us: those that decide sizes, and those that are ours to write.

Source: vLLM 0.33.0 and 0.24.0, vllm/engine/arg_utils.py and vllm/utils/argparse_utils.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Takes(StrEnum):
    """What follows a flag."""

    INTEGER = "a whole number (1k is 1000, 1K is 1024)"
    FRACTION = "a number above 0 and up to 1"
    WORD = "one word"
    SIZES = "whole numbers"
    NOTHING = "no value"  # a switch: --x or --no-x


@dataclass(frozen=True, slots=True)
class SizingFlag:
    """A flag that the planner solves around when the user gives it."""

    setting: str  # the field of EngineSettings or of its layout
    takes: Takes
    may_be_auto: bool = False  # auto or -1: the engine chooses, so the planner does


SIZING_FLAGS: Mapping[str, SizingFlag] = {
    "--max-model-len": SizingFlag("max_model_len", Takes.INTEGER, may_be_auto=True),
    "--max-num-seqs": SizingFlag("max_num_seqs", Takes.INTEGER),
    "--max-num-batched-tokens": SizingFlag("max_num_batched_tokens", Takes.INTEGER),
    "--gpu-memory-utilization": SizingFlag("gpu_memory_utilization", Takes.FRACTION),
    "--tensor-parallel-size": SizingFlag("tensor_parallel_size", Takes.INTEGER),
    "--pipeline-parallel-size": SizingFlag("pipeline_parallel_size", Takes.INTEGER),
    "--data-parallel-size": SizingFlag("data_parallel_size", Takes.INTEGER),
    "--decode-context-parallel-size": SizingFlag("decode_context_parallel_size", Takes.INTEGER),
    "--enable-expert-parallel": SizingFlag("enable_expert_parallel", Takes.NOTHING),
    "--kv-cache-dtype": SizingFlag("kv_cache_dtype", Takes.WORD),
    "--block-size": SizingFlag("block_size", Takes.INTEGER),
    "--kv-cache-memory-bytes": SizingFlag("kv_cache_memory_bytes", Takes.INTEGER),
    "--num-gpu-blocks-override": SizingFlag("num_gpu_blocks_override", Takes.INTEGER),
    "--enforce-eager": SizingFlag("enforce_eager", Takes.NOTHING),
    "--enable-prefix-caching": SizingFlag("enable_prefix_caching", Takes.NOTHING),
    "--enable-chunked-prefill": SizingFlag("enable_chunked_prefill", Takes.NOTHING),
    "--async-scheduling": SizingFlag("async_scheduling", Takes.NOTHING),
    "--disable-hybrid-kv-cache-manager": SizingFlag(
        "disable_hybrid_kv_cache_manager", Takes.NOTHING
    ),
    "--language-model-only": SizingFlag("language_model_only", Takes.NOTHING),
    "--max-cudagraph-capture-size": SizingFlag("max_cudagraph_capture_size", Takes.INTEGER),
    "--cudagraph-capture-sizes": SizingFlag("cudagraph_capture_sizes", Takes.SIZES),
}

OTHER_NAMES: Mapping[str, str] = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-dcp": "--decode-context-parallel-size",
    "-ep": "--enable-expert-parallel",
    "-n": "--nnodes",
    "-r": "--node-rank",
    "-dpa": "--data-parallel-address",
    "-dpb": "--data-parallel-backend",
    "-dpe": "--data-parallel-external-lb",
    "-dph": "--data-parallel-hybrid-lb",
    "-dpl": "--data-parallel-size-local",
    "-dpm": "--data-parallel-multi-port-external-lb",
    "-dpn": "--data-parallel-rank",
    "-dpp": "--data-parallel-rpc-port",
    "-dpr": "--data-parallel-start-rank",
    "-pcp": "--prefill-context-parallel-size",
    "-q": "--quantization",
    "-ac": "--attention-config",
    "-asc": "--api-server-count",
    "-cc": "--compilation-config",
    "-dc": "--diffusion-config",
    "-sc": "--speculative-config",
    "-h": "--help",
    "--device-memory-utilization": "--gpu-memory-utilization",
    "--cuda-graph-sizes": "--cudagraph-capture-sizes",
    "--kv-cache-memory": "--kv-cache-memory-bytes",  # the spelling of the engine's own advice
}

_SERVICE = "the Service, the probes and the metrics count on it: remove it"
_NODES = "the plan lays out a replica's nodes: remove it"

# What Shipfitter writes itself, and what to do instead.
RESERVED_FLAGS: Mapping[str, str] = {
    "--model": "set spec.model.uri",
    "--revision": "set spec.model.revision",
    "--served-model-name": "clients find the model under the name in spec.model.uri "
    "and under metadata.name: remove it",
    "--host": _SERVICE,
    "--port": _SERVICE,
    "--uds": _SERVICE,
    "--ssl-keyfile": "the probes and the metrics speak HTTP: end TLS in front of the Service",
    "--ssl-certfile": "the probes and the metrics speak HTTP: end TLS in front of the Service",
    "--config": "a file hides sizes from the plan: write its flags in spec.engine.args",
    "--hf-token": "it would be readable in every pod: set spec.model.tokenSecretRef",
    "--api-key": "it would be readable in every pod: "
    "set VLLM_API_KEY from a Secret in spec.engine.env",
    "--headless": _NODES,
    "--nnodes": _NODES,
    "--node-rank": _NODES,
    "--master-addr": _NODES,
    "--master-port": _NODES,
    "--data-parallel-address": _NODES,
    "--data-parallel-rpc-port": _NODES,
}
