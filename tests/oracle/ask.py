"""Put the questions to the engine's own cache planner and write down its answers.

Runs inside an environment that holds one release of the engine (`make oracle` builds it), with
nothing but that release and the standard library: `python -m oracle.ask FILE`. Nothing of the
planner is imitated: specs, grouping, page sizes, checks and the reported figures are the engine's.
What is given to it is a configuration of plain attributes instead of a served model.
"""

import dataclasses
import gzip
import importlib
import json
import os
import re
import sys
from types import SimpleNamespace
from typing import Any

from oracle.questions import COUNT, SEED, Layer, Question, digest, questions

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
        self.torch = importlib.import_module("torch")
        self.specs = importlib.import_module("vllm.v1.kv_cache_interface")
        self.core = importlib.import_module("vllm.v1.core.kv_cache_utils")
        self.config_class = importlib.import_module("vllm.config").VllmConfig
        self.release = importlib.import_module("vllm.version").__version__.split("+")[0]
        self.reported: list[tuple[int, float]] = []
        self._listen()

    def answer(self, asked: Question) -> Answer | str:
        """The figures, or the reason why the planner has none."""
        config = self._config(asked)
        if asked["auto_fit"] and not hasattr(self.core, "_auto_fit_max_model_len"):
            return "this release does not fit the length to the memory"
        stages = self._stages(asked)
        self.reported.clear()
        try:
            blocks, tokens, concurrency = self._figures(config, stages, asked["available_bytes"])
        except ValueError as error:
            return _refused(str(error), asked["max_model_len"])
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

    def _stages(self, asked: Question) -> list[dict[str, Any]]:
        stages, first = [], 0
        for count in asked["stages"]:
            specs: dict[str, Any] = {}
            for index, layer in enumerate(asked["layers"][first:][:count], start=first):
                specs[f"layers.{index}.attn"] = self._spec(layer, asked)
                if "indexer" in layer:
                    specs[f"layers.{index}.indexer"] = self._latent(
                        asked, layer["indexer"], self.torch.uint8
                    )
            stages.append(specs)
            first += count
        for module in range(asked["draft_modules"]):  # each one more layer of the last kind
            stages[-1][f"mtp.{module}.attn"] = self._spec(asked["layers"][-1], asked)
        return stages

    def _spec(self, layer: Layer, asked: Question) -> Any:
        dtype = self.torch.bfloat16 if asked["cache_dtype"] == "auto" else self.torch.uint8
        kind = layer["kind"]
        if kind == "mla":
            return self._latent(asked, layer["latent"], dtype, cache_dtype=asked["cache_dtype"])
        if kind == "state":
            return self._state(layer, asked)
        facts = {
            "block_size": _block(asked),
            "num_kv_heads": layer["heads"],
            "head_size": layer["dim"],
            "dtype": dtype,
            "use_mla": False,
        }
        if kind == "sliding":
            return _made(self.specs.SlidingWindowSpec, facts, sliding_window=layer["window"])
        if kind == "chunked":
            chunked = self.specs.ChunkedLocalAttentionSpec
            return _made(chunked, facts, attention_chunk_size=layer["window"])
        if "v_dim" in layer:
            return _made(self.specs.FullAttentionSpec, facts, head_size_v=layer["v_dim"])
        return _made(self.specs.FullAttentionSpec, facts)

    def _latent(
        self, asked: Question, width: int, dtype: Any, cache_dtype: str | None = None
    ) -> Any:
        facts = {
            "block_size": _block(asked),
            "num_kv_heads": 1,
            "head_size": width,
            "dtype": dtype,
            "cache_dtype_str": cache_dtype,
            "use_mla": True,
        }
        made = getattr(self.specs, "MLAAttentionSpec", self.specs.FullAttentionSpec)
        return _made(made, facts)

    def _state(self, layer: Layer, asked: Question) -> Any:
        aligned = asked.get("aligned_block_tokens")
        padded = aligned * layer["page_tokens_bytes"] if aligned else None
        cached = asked["caches_prefixes"] and self.release_number() >= (0, 15)
        facts = {
            "block_size": _block(asked) if cached else asked["max_model_len"],
            "shapes": ((layer["bytes"] // 2,),),
            "dtypes": (self.torch.bfloat16,),
            "page_size_padded": padded,
            "mamba_cache_mode": "align" if cached else "none",
            "num_speculative_blocks": asked["drafts"],
        }
        return _made(self.specs.MambaSpec, facts)

    def release_number(self) -> tuple[int, ...]:
        """Major and minor number of the release."""
        return tuple(int(part) for part in self.release.split(".")[:2])

    def _optional(self, module: str) -> Any:
        try:
            return importlib.import_module(module)
        except ImportError:
            return None


def _block(asked: Question) -> int:
    return int(asked.get("aligned_block_tokens", asked["block_tokens"]))


def _made(spec: Any, facts: dict[str, Any], **more: Any) -> Any:
    """A spec of whatever fields the release has; a figure that it cannot hold is an error."""
    known = {field.name for field in dataclasses.fields(spec) if field.init}
    lost = sorted(set(more) - known)
    if lost:
        raise NotImplementedError(f"{spec.__name__} has no {', '.join(lost)}")
    return spec(**{name: value for name, value in facts.items() if name in known}, **more)


def _refused(text: str, length: int) -> Answer | str:
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
        try:
            answer = planner.answer(question)
        except NotImplementedError as error:
            answer = f"NotImplementedError: {error}"
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
