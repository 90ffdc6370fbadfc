"""A question's layers as the cache specs of the release that is installed here."""

import dataclasses
import importlib
from typing import Any

from oracle.questions import Layer, Question


class Specs:
    """Builds what the engine's attention layers would hand to its planner."""

    def __init__(self, release: tuple[int, ...]) -> None:
        self.torch = importlib.import_module("torch")
        self.specs = importlib.import_module("vllm.v1.kv_cache_interface")
        self.keeps_states_in_blocks = release >= (0, 15)  # --mamba-cache-mode align

    def stages(self, asked: Question) -> list[dict[str, Any]]:
        """Layer name to spec, for each pipeline stage."""
        stages: list[dict[str, Any]] = []
        first = 0
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
        cached = asked["caches_prefixes"] and self.keeps_states_in_blocks
        facts = {
            "block_size": _block(asked) if cached else asked["max_model_len"],
            "shapes": ((layer["bytes"] // 2,),),
            "dtypes": (self.torch.bfloat16,),
            "page_size_padded": padded,
            "mamba_cache_mode": "align" if cached else "none",
            "num_speculative_blocks": asked["drafts"],
        }
        return _made(self.specs.MambaSpec, facts)


def _block(asked: Question) -> int:
    return int(asked.get("aligned_block_tokens", asked["block_tokens"]))


def _made(spec: Any, facts: dict[str, Any], **more: Any) -> Any:
    """A spec of whatever fields the release has; a figure that it cannot hold is an error."""
    known = {field.name for field in dataclasses.fields(spec) if field.init}
    lost = sorted(set(more) - known)
    if lost:
        raise NotImplementedError(f"{spec.__name__} has no {', '.join(lost)}")
    return spec(**{name: value for name, value in facts.items() if name in known}, **more)
