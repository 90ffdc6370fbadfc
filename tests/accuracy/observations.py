"""What real engines reported, row by row, and each row as a question to the core.

A row states what its source states. `unfair` lists the quantities that no predictor can be asked
for (flags that the text does not give, figures of different ranks): they are left out and counted.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from builders_models import MODELS
from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu
from shipfitter.core.gpus import resolve_product
from shipfitter.core.loading import loaded_as
from shipfitter.core.model import ModelFacts, model_facts
from shipfitter.core.weights import ParallelLayout
from shipfitter.units import GIB

ROWS = Path(__file__).parent / "observations.jsonl"
OWN_MODELS = Path(__file__).parent / "models"  # beside those that other tests use
NVML_OF_CUDA_TOTAL = 1.012  # what a card without a catalogue row is sold as


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One run."""

    id: str
    source: str
    gpus: int
    outcome: str  # Started, or the refusal
    model: str | None = None  # its file's name; None: nobody published its config
    version: str | None = None
    version_guessed: bool = False  # by the date or the era of the log
    gpu: str | None = None  # a product of the catalogue
    card: str = ""  # what the text calls a card that is not in it
    capability: tuple[int, int] | None = None  # of such a card
    total_gib: float | None = None  # as CUDA counts, where the text says
    legacy_engine: bool = False
    campaign: bool = False  # one of many runs on one card with one release
    flags: Mapping[str, Any] = field(default_factory=dict)
    seen: Mapping[str, Any] = field(default_factory=dict)
    unfair: tuple[str, ...] = ()

    @property
    def started(self) -> bool:
        return self.outcome == "Started"


@cache
def observations() -> tuple[Observation, ...]:
    """Every row of the file."""
    rows = (json.loads(line) for line in ROWS.read_text().splitlines())
    return tuple(
        Observation(
            **{**row, "capability": tuple(row["capability"])} if "capability" in row else row
        )
        for row in rows
    )


@cache
def model_file(name: str) -> dict[str, Any]:
    """Config and checkpoint bytes of a model, by the name of its file."""
    own = OWN_MODELS / f"{name}.json"
    return json.loads((own if own.exists() else MODELS / f"{name}.json").read_text())


@cache
def facts_of_row(model: str, dtype: str, quantization: str | None) -> ModelFacts:
    """The model as its flags make the engine hold it."""
    file = model_file(model)
    stored_bytes = file["weights"]["total_bytes"]
    facts = model_facts(file["config"], name=model, checkpoint_bytes=stored_bytes)
    online = quantization if quantization in ("fp8", "bitsandbytes", "gguf") else None
    return loaded_as(facts, dtype={"half": "float16"}.get(dtype, dtype), quantization=online)


def bytes_are_stated(model: str) -> bool:
    """Whether anything tells the size of the checkpoint or how it is quantised."""
    file = model_file(model)
    return file["weights"]["total_bytes"] is not None or "quantization_config" in file["config"]


def gpu_of(row: Observation) -> Gpu | None:
    """The card; None where the text names neither product nor size."""
    product = resolve_product(row.gpu) if row.gpu else None
    if product is None and row.total_gib is None:
        return None
    total = round(row.total_gib * GIB) if row.total_gib else 0
    free = row.seen.get("free_gib")  # before the engine took anything, as the log says
    free_bytes = None if free is None else round(free * GIB)
    if product is None:
        return Gpu(
            product=row.card,
            total_bytes=total,
            nominal_bytes=round(total * NVML_OF_CUDA_TOTAL),
            compute_capability=row.capability,
            free_bytes=free_bytes,
        )
    return Gpu(
        product=product.product,
        total_bytes=total or product.cuda_total_bytes,
        nominal_bytes=product.nominal_bytes,
        compute_capability=product.compute_capability,
        nvlink=product.nvlink,
        free_bytes=free_bytes,
    )


# Flag -> field of EngineSettings, where the value passes unchanged.
_PLAIN = {
    "max-num-seqs": "max_num_seqs",
    "max-num-batched-tokens": "max_num_batched_tokens",
    "gpu-memory-utilization": "gpu_memory_utilization",
    "kv-cache-dtype": "kv_cache_dtype",
    "block-size": "block_size",
    "num-gpu-blocks-override": "num_gpu_blocks_override",
    "kv-cache-memory-bytes": "kv_cache_memory_bytes",
    "max-cudagraph-capture-size": "max_cudagraph_capture_size",
    "mamba-ssm-cache-dtype": "mamba_ssm_cache_dtype",
    "async-scheduling": "async_scheduling",
    "enable-prefix-caching": "enable_prefix_caching",
    "enable-chunked-prefill": "enable_chunked_prefill",
    "language-model-only": "language_model_only",
    "enforce-eager": "enforce_eager",
    "limit-mm-per-prompt": "items_per_prompt",
    "attention-backend": "attention_backend",
    "max-lora-rank": "max_lora_rank",
}


def settings_of(row: Observation) -> EngineSettings:
    """The settings as given, not resolved; the length a log names stands in for a missing flag."""
    flags = row.flags
    given = {name: flags[flag] for flag, name in _PLAIN.items() if flag in flags}
    if flags.get("no-enable-prefix-caching"):
        given["enable_prefix_caching"] = False
    length = flags.get("max-model-len")
    given["max_model_len"] = None if length == "auto" else length
    if given["max_model_len"] is None and row.seen.get("length"):
        given["max_model_len"] = row.seen["length"]
    if draft := flags.get("speculative-config"):
        given["num_speculative_tokens"] = draft["num_speculative_tokens"]
        given["speculative_method"] = draft["method"]
    if "VLLM_USE_V2_MODEL_RUNNER" in flags:
        given["model_runner"] = "V2" if flags["VLLM_USE_V2_MODEL_RUNNER"] else "V1"
    for name, flag in (
        ("flashinfer_sampler", "VLLM_USE_FLASHINFER_SAMPLER"),
        ("estimates_graphs", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"),
    ):
        if flag in flags:
            given[name] = str(flags[flag]) == "1"
    return EngineSettings(
        version=EngineVersion.parse(row.version or ""),
        layout=layout_of(row),
        custom_all_reduce=not flags.get("disable-custom-all-reduce", False),
        legacy_engine=row.legacy_engine or None,
        max_loras=1 if flags.get("enable-lora") else 0,
        **given,
    )


def layout_of(row: Observation) -> ParallelLayout:
    flags = row.flags
    return ParallelLayout(
        tensor_parallel_size=flags.get("tensor-parallel-size", 1),
        pipeline_parallel_size=flags.get("pipeline-parallel-size", 1),
        data_parallel_size=flags.get("data-parallel-size", 1),
        enable_expert_parallel=bool(flags.get("enable-expert-parallel")),
        encoder_data_parallel=flags.get("mm-encoder-tp-mode") == "data",
    )


def model_of(row: Observation) -> ModelFacts:
    """Raises UnknownArchitectureError where the core does not know the class."""
    assert row.model is not None
    return facts_of_row(row.model, row.flags.get("dtype", "auto"), row.flags.get("quantization"))
