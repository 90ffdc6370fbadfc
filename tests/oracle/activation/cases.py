"""Models and settings whose activation peak the engine is asked for."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).parents[2]
# Where configs are: those of all tests, those of observed runs, those that the package carries.
_FOLDERS = (
    _TESTS / "data" / "models",
    _TESTS / "accuracy" / "models",
    _TESTS.parent / "operator" / "shipfitter" / "known_models",
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question: a model under settings."""

    model: str  # its file's name
    tp: int = 1
    tokens: int = 8192  # max_num_batched_tokens
    sequences: int = 1024  # max_num_seqs
    length: int | None = None  # max_model_len; None: the model's own
    eager: bool = False
    embeds: bool = False  # rows are fed instead of token ids, as the runners do with towers
    expert_parallel: bool = False
    moe_backend: str = "auto"  # kernels of the experts; cards before Hopper take Marlin's for MXFP4
    layers: int = 4  # that are built: every kind, and two of the commonest in a row

    @property
    def without_towers(self) -> bool:
        """Token ids are fed to a model with towers only where it is told to leave them."""
        has_towers = bool(
            {"vision_config", "audio_config"} & model_file(self.model)["config"].keys()
        )
        return has_towers and not self.embeds

    @property
    def name(self) -> str:
        """A sentence for a test's id."""
        flags = ("eager", "embeds", "expert_parallel")
        more = "".join(f", {flag.replace('_', ' ')}" for flag in flags if getattr(self, flag))
        more += "" if self.moe_backend == "auto" else f", {self.moe_backend}"
        return f"{self.model}, tp {self.tp}, {self.tokens} tokens, {self.sequences} sequences{more}"


def model_file(name: str) -> dict[str, Any]:
    """Config and stored bytes of a model."""
    paths = (folder / f"{name}.json" for folder in _FOLDERS)
    found: dict[str, Any] = json.loads(next(path for path in paths if path.exists()).read_text())
    return found


CASES: tuple[Case, ...] = (
    # Dense.
    Case(model="Llama-3.1-8B-Instruct", tokens=2048, sequences=256),
    Case(model="Llama-3.1-8B-Instruct"),
    Case(model="Llama-3.1-8B-Instruct", tokens=16384, sequences=64),
    Case(model="Llama-3.1-8B-Instruct", tp=2),
    Case(model="Llama-3.1-8B-Instruct", tp=4),
    Case(model="Llama-3.1-8B-Instruct", tokens=2048, sequences=256, eager=True),
    Case(model="Llama-3.2-3B-Instruct", tokens=2048, sequences=192),
    Case(model="CodeLlama-7b-hf"),
    Case(model="Qwen2.5-7B-Instruct", tokens=2048, sequences=256),
    Case(model="Qwen2.5-7B-Instruct", tokens=2048, sequences=256, eager=True),
    Case(model="Qwen2.5-72B-Instruct", tp=2),
    Case(model="Kimi-Dev-72B", tp=4),
    Case(model="Qwen3-0.6B", tokens=2048, sequences=256),
    Case(model="Qwen3-8B"),
    Case(model="Qwen3-14B"),
    Case(model="Qwen3-32B", tp=2),
    Case(model="Qwen3-32B", tp=4, tokens=2048, sequences=256),
    Case(model="Qwen3-32B", tp=8, tokens=16384),
    Case(model="Qwen3-32B", tp=2, tokens=2048, sequences=256, eager=True),
    Case(model="Mistral-Nemo-Instruct-2407", sequences=256),
    Case(model="Mistral-Small-3.1-24B-Instruct-2503", embeds=True),
    Case(model="gemma-7b", tokens=2048, sequences=256),
    Case(model="gemma-2-2b-it"),
    Case(model="gemma-2-9b-it"),
    Case(model="gemma-2-27b-it"),
    Case(model="gemma-2-27b-it", tp=2, tokens=2048, sequences=256),
    Case(model="phi-4"),
    # Recurrent layers between attention, and beside it.
    Case(model="Qwen3.x-27B-hybrid-4bit-unspecified", tokens=2048, sequences=256, embeds=True),
    Case(model="Qwen3.x-27B-hybrid-4bit-unspecified", sequences=256),
    Case(model="Qwen3.x-27B-hybrid-4bit-unspecified", tokens=2048, sequences=256, eager=True),
    Case(model="Qwen3.6-27B-AWQ", tokens=2048, sequences=64, embeds=True),
    Case(model="Qwen3-Next-80B-A3B-Instruct", tp=2),
    Case(model="Qwen3-Next-80B-A3B-Instruct", tp=2, tokens=2048, sequences=256, eager=True),
    Case(model="Qwen3.5-35B-A3B", tp=4, tokens=40000, embeds=True),
    # Experts.
    Case(model="Qwen3-30B-A3B"),
    Case(model="Qwen3-30B-A3B", tp=2, sequences=256),
    Case(model="Qwen3-30B-A3B", tokens=2048, sequences=256, eager=True),
    Case(model="Qwen3-30B-A3B", tp=2, tokens=2048, sequences=256, eager=True),
    Case(model="Qwen3-30B-A3B-FP8", sequences=256),
    Case(model="Qwen3-30B-A3B-FP8", tp=4, tokens=2048, sequences=256),
    Case(model="gpt-oss-20b", moe_backend="marlin"),
    Case(model="gpt-oss-20b", tokens=2048, sequences=256, moe_backend="marlin"),
    Case(model="gpt-oss-20b", tp=2, moe_backend="marlin"),
    Case(model="Mixtral-8x7B-Instruct-v0.1", tp=2),
    Case(model="Llama-4-Scout-17B-16E-Instruct", tp=4, embeds=True),
    Case(model="Qwen1.5-MoE-A2.7B", tokens=2048, sequences=256),
    Case(model="Qwen1.5-MoE-A2.7B", tp=2, sequences=256),
    # Latent attention: the first layers of the larger ones are dense.
    Case(model="DeepSeek-V2-Lite-Chat", sequences=256),
    Case(model="DeepSeek-V2-Lite-Chat", tokens=2048, sequences=256, length=4096, eager=True),
    Case(model="DeepSeek-V3", tp=8, tokens=2048, sequences=256, layers=5),
    Case(model="DeepSeek-V3", tp=8, layers=5),
    # Quantised.
    Case(model="Qwen2.5-32B-Instruct-AWQ", tokens=2048, sequences=256),
    Case(model="Mistral-7B-Instruct-v0.2-GPTQ", tokens=2048, sequences=256),
    Case(model="Qwen1.5-7B-Chat-GPTQ-Int4", tokens=2048, sequences=256),
    Case(model="Qwen3-8B-FP8", tokens=2048, sequences=256, length=1024),
)
