"""Put the questions to the engine's own cache planner and write down its answers.

Runs inside an environment that holds one release of the engine (`make oracle` builds it), with
nothing but that release and the standard library: `python -m oracle.ask FILE`. Nothing of the
planner is imitated: specs, grouping, page sizes, checks and the reported figures are the engine's.
What is given to it is a configuration of plain attributes instead of a served model.
"""

import gzip
import importlib
import json
import os
import re
import sys
from types import SimpleNamespace
from typing import Any

from oracle.layer_specs import Specs
from oracle.questions import COUNT, SEED, Question, digest, questions

# One tuple for each question: outcome, blocks, tokens, concurrency, length, needed GiB as printed,
# estimated length.
Answer = list[Any]

_NEEDED = re.compile(r"\(([\d.]+) GiB KV\s+cache\s+is\s+needed")
_LENGTH = re.compile(r"max seq len\s+\((\d+)\)")
_ESTIMATED = re.compile(r"estimated maximum model length is (\d+)")
_LAYOUT = "LBHNC"  # pages of one layer side by side: what attention backends of the engine prefer


class Planner:
    """The planner of the release that is installed here."""

    def __init__(self) -> None:
        os.environ.update(VLLM_LOGGING_LEVEL="ERROR", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1")
        self.core = importlib.import_module("vllm.v1.core.kv_cache_utils")
        self.config_class = importlib.import_module("vllm.config").VllmConfig
        self.release = importlib.import_module("vllm.version").__version__.split("+")[0]
        self.specs = Specs(tuple(int(part) for part in self.release.split(".")[:2]))
        self.reported: list[tuple[int, float]] = []
        self._listen()

    def answer(self, asked: Question) -> Answer | str:
        """The figures, or the reason why the planner has none."""
        config = self._config(asked)
        if asked["auto_fit"] and not hasattr(self.core, "_auto_fit_max_model_len"):
            return "this release does not fit the length to the memory"
        self.reported.clear()
        try:
            stages = self.specs.stages(asked)
            blocks, tokens, concurrency = self._figures(config, stages, asked["available_bytes"])
        except ValueError as error:
            return refusal(str(error), asked["max_model_len"])
        except (AssertionError, NotImplementedError) as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
        length = config.model_config.max_model_len
        return ["Fits", blocks, tokens, round(concurrency, 4), length, None, None]

    def _figures(self, config: Any, stages: list[Any], memory: list[int]) -> tuple[int, int, float]:
        core = self.core
        if not hasattr(core, "get_kv_cache_configs"):  # until 0.10: each worker for itself
            configs = [
                core.get_kv_cache_config(config, specs, available)
                for specs, available in zip(stages, memory, strict=True)
            ]
            core.unify_kv_cache_configs(configs)
            each = {core.get_max_concurrency_for_kv_cache_config(config, it) for it in configs}
            groups = {len(it.kv_cache_groups) for it in configs}
            if len(each) > 1 or len(groups) > 1:
                raise NotImplementedError("stages group their layers differently: no one figure")
        else:
            configs = core.get_kv_cache_configs(config, stages, memory)
        blocks = configs[0].num_blocks
        if hasattr(core, "get_kv_cache_capacity"):
            scheduler = core.generate_scheduler_kv_cache_config(configs)
            return (blocks, *core.get_kv_cache_capacity(config, scheduler))
        return (blocks, *min(self.reported))

    def _listen(self) -> None:
        """Releases without a function for the reported figures only log them."""
        tokens: list[int] = []

        def info(message: str, *values: Any, **_: Any) -> None:
            if message.startswith("GPU KV cache size"):
                tokens.append(int(values[0].replace(",", "")))
            elif message.startswith("Maximum concurrency"):
                self.reported.append((tokens.pop(), float(values[1])))

        silent = {name: lambda *_, **__: None for name in ("warning", "warning_once", "debug")}
        self.core.logger = SimpleNamespace(info=info, info_once=info, **silent)

    def _config(self, asked: Question) -> Any:
        speculative = self._drafter(asked) if asked["drafts"] else None
        stages, length = len(asked["stages"]), asked["max_model_len"]
        layout = getattr(self._optional("vllm.v1.kv_cache_layout"), "KVCacheLayout", None)
        config = self._with_engine_properties()
        config.model_config = SimpleNamespace(
            max_model_len=length, original_max_model_len=-1 if asked["auto_fit"] else length
        )
        config.cache_config = SimpleNamespace(
            block_size=asked["block_tokens"],
            num_gpu_blocks_override=asked["override"],
            enable_prefix_caching=asked["caches_prefixes"],
            mamba_cache_mode="align" if asked["caches_prefixes"] else "none",
            prefix_cache_retention_interval=None,
            get_resolved_kv_cache_layout=lambda: layout[_LAYOUT] if layout else None,
        )
        config.parallel_config = SimpleNamespace(
            tensor_parallel_size=asked["dcp"],
            pipeline_parallel_size=stages,
            decode_context_parallel_size=asked["dcp"],
            prefill_context_parallel_size=1,
        )
        config.scheduler_config = SimpleNamespace(
            max_num_batched_tokens=asked["max_num_batched_tokens"],
            disable_hybrid_kv_cache_manager=not asked["hybrid_manager"],
            async_scheduling=asked["async_scheduling"],
        )
        config.attention_config = SimpleNamespace(hisparse_config=None)
        config.device_config = SimpleNamespace(device_type="cuda")
        config.speculative_config = speculative
        config.kv_transfer_config = config.diffusion_config = None
        config.use_v2_model_runner = asked["model_runner"] == "V2"
        return config

    def _drafter(self, asked: Question) -> Any:
        """The checkpoint's own modules, or a small model that reads nothing ahead."""
        modules = asked["draft_modules"]
        drafter = SimpleNamespace(
            method="mtp" if modules else "draft_model",
            num_speculative_tokens=asked["drafts"],
            draft_model_config=SimpleNamespace(
                hf_config=SimpleNamespace(num_nextn_predict_layers=modules)
            ),
            use_eagle=lambda: bool(modules),
            use_eagle_block_drop=lambda: False,
        )
        engine = self._optional("vllm.config.speculative")
        several = getattr(getattr(engine, "SpeculativeConfig", None), "use_multi_module_mtp", None)
        drafter.use_multi_module_mtp = lambda: several(drafter)
        return drafter

    def _with_engine_properties(self) -> Any:
        """An empty configuration with the engine's own derived figures."""
        names = ("max_concurrent_batches", "max_in_flight_tokens", "num_speculative_tokens")
        names += ("num_prefill_lookahead_tokens",)
        own = {name: vars(self.config_class).get(name) for name in names}
        return type("Config", (SimpleNamespace,), {k: v for k, v in own.items() if v})()

    def _optional(self, module: str) -> Any:
        try:
            return importlib.import_module(module)
        except ImportError:
            return None


def refusal(text: str, length: int) -> Answer | str:
    """The engine's refusal as a tuple like the others; any other error by its text."""
    needed, estimated, said = (find.search(text) for find in (_NEEDED, _ESTIMATED, _LENGTH))
    if needed:
        longest = int(estimated[1]) if estimated else None
        length = int(said[1]) if said else length
        return ["KVCacheTooSmall", None, None, None, length, float(needed[1]), longest]
    if text.startswith("No available memory"):
        return ["NoCacheBlocks", None, None, None, length, None, None]
    if text.startswith("Cannot auto-fit"):
        return ["NoLengthFits", None, None, None, None, None, None]
    return f"ValueError: {' '.join(text.split())}"


def main(path: str) -> None:
    """Ask everything and write the file."""
    planner = Planner()
    asked = questions()
    answers, refused = [], {}
    for index, question in enumerate(asked):
        answer = planner.answer(question)
        answers.append(None if isinstance(answer, str) else answer)
        if isinstance(answer, str):
            refused[index] = answer
    known = {
        "release": planner.release,
        "seed": SEED,
        "count": COUNT,
        "questions": digest(asked),
        "answers": answers,
        "refused": refused,
    }
    text = json.dumps(known, separators=(",", ":"))
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        packed.write(text.encode())
    told = f"vLLM {planner.release}: {len(asked)} questions, {len(refused)} refused"
    print(f"{told}; {os.path.getsize(path):,} bytes in {path}")


if __name__ == "__main__":
    main(sys.argv[1])
