"""The engine's answers beside the core's, figure by figure; needs no engine."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from oracle.activation.cases import Case, model_file
from shipfitter.core.activation import activation
from shipfitter.core.cache_dtype import model_dtype_bytes
from shipfitter.core.engines import EngineSettings, EngineVersion, Gpu, resolve
from shipfitter.core.loading import loaded_as
from shipfitter.core.model import ModelFacts, model_facts
from shipfitter.core.sampler import sampler_bytes, sampler_scratch_bytes
from shipfitter.core.weights import ParallelLayout

ANSWERS = Path(__file__).parents[1] / "answers" / "activation-0.32.0.jsonl"
_GPU = Gpu(product="NVIDIA-H100-80GB-HBM3", total_bytes=85_029_158_912, compute_capability=(9, 0))
# What the engine chooses Marlin's kernels for by itself.
_GPU_OF_MARLIN = replace(_GPU, product="NVIDIA-A100-SXM4-80GB", compute_capability=(8, 0))
_OF_THE_CASE = tuple(Case.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the engine said to one case."""

    case: Case
    said: dict[str, Any]

    @property
    def refused(self) -> str | None:
        """The engine's words where it gave no figures."""
        return self.said.get("refused")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One quantity of one case, in bytes."""

    case: Case
    quantity: str
    ours: int
    engine: int
    excepted: bool = False

    @property
    def relative(self) -> float:
        """How far ours is off."""
        if not self.engine:
            return float(self.ours != 0)
        return self.ours / self.engine - 1


@cache
def answers() -> tuple[Answer, ...]:
    """Every line of the file."""
    rows = (json.loads(line) for line in ANSWERS.read_text().splitlines())
    return tuple(
        Answer(case=Case(**{name: row.pop(name) for name in _OF_THE_CASE}), said=row)
        for row in rows
    )


def answered() -> tuple[Answer, ...]:
    """Those with figures."""
    return tuple(answer for answer in answers() if answer.refused is None)


def figures(answer: Answer) -> Iterator[Figure]:
    """Every quantity of one answer."""
    said = answer.said
    model, settings = facts_of_case(answer.case), settings_of_case(answer.case)
    gpu = _GPU if answer.case.moe_backend == "auto" else _GPU_OF_MARLIN
    text = replace(settings, language_model_only=True)  # the tower is no part of these figures
    ours = activation(model, text, gpu)
    found = {
        "forward": (ours.forward_bytes.point, said["forward_bytes"]),
        "workspace": (ours.workspace_bytes, said["workspace_bytes"]),
        "sampler V1": (_sampled(model, text, "V1"), said["sampler_v1_bytes"]),
        "sampler V2": (_sampled(model, text, "V2"), said["sampler_v2_bytes"]),
    }
    compiled = activation(model, settings, gpu).compile_bytes.point
    if _compares_compiling(answer, ours.forward_bytes.point, compiled):
        found["compiling"] = compiled + ours.workspace_bytes, said["compile_bytes"]
    sampled = found[f"sampler {said['runner']}"][0]
    peak = max(ours.forward_bytes.point, sampled, compiled)
    found["peak"] = peak, engine_peak(answer)
    for quantity, (own, engine) in found.items():
        excepted = quantity == "forward" and _fuses_quantisation(model)
        yield Figure(
            case=answer.case, quantity=quantity, ours=own, engine=engine, excepted=excepted
        )


def _fuses_quantisation(model: ModelFacts) -> bool:
    """Dense layers of 8 bits: the engine's answer cannot be trusted.

    It quantises activations in kernels that are not here, fused with what makes them: stand-ins
    leave out a buffer, or hold the 8-bit and the 16-bit form side by side.
    """
    quantization = model.quantization
    return quantization is not None and quantization.weight_bits == 8 and model.moe is None


def _compares_compiling(answer: Answer, forward_bytes: int, compiled_bytes: int) -> bool:
    """Where a kernel takes the embedding table, or where compiling outweighs the forward pass.

    Elsewhere the core does not count kernels one by one: none of them can decide the peak.
    """
    case, said = answer.case, answer.said
    takes_table = case.tp == 1 and not case.embeds and not case.eager
    decides = said["compile_bytes"] - said["workspace_bytes"] > said["forward_bytes"]
    return takes_table or decides or compiled_bytes > forward_bytes


def engine_peak(answer: Answer, *, runner: str | None = None, compiles: bool = True) -> int:
    """The largest of the engine's candidates, without the experts' workspace."""
    said = answer.said
    sampled = said[f"sampler_{(runner or said['runner']).lower()}_bytes"]
    compiled = said["compile_bytes"] - said["workspace_bytes"] if compiles else 0
    return int(max(said["forward_bytes"], sampled, compiled))


@cache
def facts_of_case(case: Case) -> ModelFacts:
    """The model as the core reads its config."""
    file = model_file(case.model)
    stored_bytes = (file.get("weights") or {}).get("total_bytes", file.get("weightsBytes"))
    facts = model_facts(file["config"], name=case.model, checkpoint_bytes=stored_bytes)
    return loaded_as(facts)


def settings_of_case(case: Case) -> EngineSettings:
    """The case as the core's settings, resolved."""
    layout = ParallelLayout(
        tensor_parallel_size=case.tp, enable_expert_parallel=case.expert_parallel
    )
    asked = EngineSettings(
        version=EngineVersion(0, 32, 0),
        layout=layout,
        max_model_len=case.length,
        max_num_seqs=case.sequences,
        max_num_batched_tokens=case.tokens,
        enforce_eager=case.eager,
        language_model_only=case.without_towers,
    )
    return resolve(asked, facts_of_case(case), _GPU)


def _sampled(model: ModelFacts, settings: EngineSettings, runner: str) -> int:
    """Sampling with what V1's kernel keeps: the engine's figure has both."""
    settings = replace(settings, model_runner=runner)
    sampled = sampler_bytes(model, settings, model_dtype_bytes(model)).point
    return sampled + sampler_scratch_bytes(model, settings)
