"""The sampler's peak in the profile run: logits of every sequence over the whole vocabulary."""

from shipfitter.core.engines import EngineSettings
from shipfitter.core.estimate import Estimate
from shipfitter.core.model import ModelFacts
from shipfitter.core.processors import ASSUMED_COUNT
from shipfitter.core.versions import EngineVersion
from shipfitter.units import ceil_div, round_up

# Bytes per sequence and vocabulary entry.
# Sorted: logits, fp32 copy, sorted values, int64 order (18), and torch's segmented sort (20.5).
# Source: vLLM up to 0.16 vllm/v1/sample/ops/topk_topp_sampler.py; logs from 0.6 to 0.16.
SORTED_TENTHS = 385
# The 20.5 are inferred from logs, within this.
_SORTED_LOW_PERCENT = 88
# Unsorted: logits 2, fp32 4, softmax 4, exponential noise 4; FlashInfer's sampler the same sum.
# Source: vLLM 0.17 on, Triton top-k/top-p; 62 starts of 0.19.
UNSORTED = 14
# V2: logits in the model's dtype, where they are capped twice (the quotient beside the logits);
# under tensor parallelism the local part, the gathered one and its reordered copy. The Gumbel
# kernel keeps an index and a value for each 1,024 entries.
# Source: vLLM 0.32 vllm/v1/worker/gpu/sample, vllm/model_executor/layers/logits_processor.py.
V2 = 2
_GUMBEL_BLOCK, _GUMBEL_BLOCK_BYTES = 1024, 12
# Source: vLLM 0.33 profiles a pass in fp32 as well; not confirmed by a log.
V2_FP32 = (6, 8, 10)

_PADDED_TO = 64


def vocabulary_entries(model: ModelFacts) -> int:
    """Rows of the embedding and of the logits as the engine pads them.

    Source: vLLM vllm/model_executor/layers/vocab_parallel_embedding.py.
    """
    return round_up(model.vocab_size, _PADDED_TO)


def profiled_sequences(settings: EngineSettings) -> int:
    """Sequences the profile run samples for."""
    return min(settings.max_num_seqs or 1, settings.max_num_batched_tokens or 1)


def sampler_bytes(model: ModelFacts, settings: EngineSettings, dtype_bytes: int) -> Estimate:
    """Transient bytes of sampling, the forward's hidden states included."""
    sequences = profiled_sequences(settings)
    logits = sequences * vocabulary_entries(model)
    hidden = model.hidden_size * dtype_bytes
    held = (settings.max_num_batched_tokens or 0) * hidden
    rules = settings.rules
    ranks = settings.layout.tensor_parallel_size
    if settings.model_runner != "V2":
        if not rules.sorts_to_sample or settings.flashinfer_sampler:
            return _unsorted(model, settings, dtype_bytes)
        return Estimate.around(
            held + logits * SORTED_TENTHS // 10, low_percent=_SORTED_LOW_PERCENT, high_percent=105
        )
    held += sequences * hidden
    if rules.samples_in_fp32_on_v2:
        gathered = 0 if ranks == 1 else logits * 2 + logits * 2 // ranks
        low, point, high = (held + gathered + logits * each for each in V2_FP32)
        return Estimate(low=low, point=point, high=high)
    return _with(held, _sampled_on_v2(model, sequences, ranks))


def _sampled_on_v2(model: ModelFacts, sequences: int, ranks: int) -> int:
    """The most of computing the logits and of choosing from them."""
    entries = vocabulary_entries(model)
    logits = sequences * entries * V2
    chosen = logits + sequences * ceil_div(entries, _GUMBEL_BLOCK) * _GUMBEL_BLOCK_BYTES
    capped = 2 * logits if model.extra.get("caps_logits") else 0
    gathered = 0 if ranks == 1 else 2 * logits + logits // ranks
    return max(chosen, capped, gathered)


# FlashInfer's sampler was taken where the package was there, as in the images, until it became
# opt-in. Source: vLLM 0.8 to 0.11 vllm/v1/sample/ops/topk_topp_sampler.py; logs show both.
_FLASHINFER_WHERE_INSTALLED = (EngineVersion(0, 8, 0), EngineVersion(0, 12, 0))


def other_sampler_bytes(
    model: ModelFacts, settings: EngineSettings, dtype_bytes: int
) -> Estimate | None:
    """What sampling may take instead, where settings do not tell; None where they do."""
    if settings.model_runner == "V2" or not settings.rules.sorts_to_sample:
        return None
    if settings.rules.legacy_engine:  # one rank samples, and every rank prints its figures
        alone = settings.layout.tensor_parallel_size == 1
        return None if alone else Estimate.exactly(0)
    first, last = _FLASHINFER_WHERE_INSTALLED
    if settings.flashinfer_sampler is not None or not first <= settings.version < last:
        return None
    return _unsorted(model, settings, dtype_bytes)


def _unsorted(model: ModelFacts, settings: EngineSettings, dtype_bytes: int) -> Estimate:
    sequences = profiled_sequences(settings)
    hidden = model.hidden_size * dtype_bytes
    held = ((settings.max_num_batched_tokens or 0) + 2 * sequences) * hidden
    return _with(held, sequences * vocabulary_entries(model) * UNSORTED)


def _with(held: int, sampled: int) -> Estimate:
    """Known within a few percent: the formulas name every tensor."""
    return Estimate.around(held + sampled, low_percent=95, high_percent=105)


def sampler_scratch_bytes(
    model: ModelFacts, settings: EngineSettings, processors: int = ASSUMED_COUNT
) -> int:
    """Scratch of V1's top-k/top-p kernel, a row for each processor; stays allocated.

    Source: vLLM vllm/v1/sample/ops/topk_topp_triton.py.
    """
    if settings.model_runner == "V2" or not settings.rules.keeps_sampler_scratch:
        return 0
    programs = min(processors, profiled_sequences(settings))
    rows = min(processors, 1 << (programs - 1).bit_length())
    return 4 * rows * vocabulary_entries(model)


def penalty_state_bytes(model: ModelFacts, settings: EngineSettings) -> int:
    """V2's counts and masks for penalties: fp32 and one bit per sequence and entry.

    Source: vLLM vllm/v1/worker/gpu/sample/penalties.py.
    """
    if settings.model_runner != "V2":
        return 0
    return (settings.max_num_seqs or 0) * vocabulary_entries(model) * 33 // 8
