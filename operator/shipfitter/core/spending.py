"""What one rank spends besides its cache: the same on every card of a kind, so kept and reused."""

from dataclasses import dataclass
from functools import lru_cache

from shipfitter.core.activation import activation
from shipfitter.core.cache_dtype import model_dtype_bytes
from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.estimate import Estimate, either, sum_of
from shipfitter.core.graphs import charges_graphs, graph_bytes
from shipfitter.core.identity import SameModel
from shipfitter.core.loading import quantised_peak_bytes
from shipfitter.core.model import ModelFacts
from shipfitter.core.overhead import overhead_parts
from shipfitter.core.processors import processors_of
from shipfitter.core.sampler import vocabulary_entries
from shipfitter.core.traits import traits_of
from shipfitter.core.versions import EngineVersion
from shipfitter.core.weights import (
    WHOLE_BLOCKS_FROM,
    ParallelLayout,
    pipeline_stages,
    weights_bytes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Bytes of one rank, cache and what was left alone not among them."""

    weights_bytes: int
    overhead_bytes: int
    activation_bytes: int
    cuda_graph_bytes: int  # charged
    uncharged_cuda_graph_bytes: int
    used: Estimate  # the first four together
    load_peak_bytes: int
    held: Estimate  # weights and overhead
    peak: Estimate  # activation
    sampler: Estimate  # the part of the peak that sampling alone needs
    other_peak: Estimate  # the peak if the other sampler ran; the same where none may
    charged: Estimate  # for graphs
    graphs: Estimate  # charged or not


class _Question:
    """Settings and card, compared only by what the answer depends on."""

    __slots__ = ("gpu", "key", "model", "settings", "stage")

    def __init__(self, model: ModelFacts, settings: EngineSettings, gpu: Gpu, stage: int) -> None:
        self.model, self.settings, self.gpu, self.stage = model, settings, gpu, stage
        self.key = (
            SameModel(model),
            settings.version,
            settings.layout,
            stage,
            gpu.compute_capability,
            gpu.product.startswith("AMD"),
            processors_of(gpu),
            settings.max_num_seqs,
            settings.max_num_batched_tokens,
            settings.max_model_len if _depends_on_length(model) else None,
            settings.block_size,
            settings.cudagraph_capture_sizes,
            settings.enforce_eager,
            settings.model_runner,
            settings.num_speculative_tokens,
            settings.compile_cache_warm,
            settings.language_model_only,
            settings.drafts_with_own_layers,
            settings.extra_bytes,
            settings.cudagraph_mode,
            settings.estimates_graphs,
            settings.flashinfer_sampler,
            settings.custom_all_reduce,
            settings.attention_backend,
            tuple((settings.items_per_prompt or {}).items()),
        )

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Question) and self.key == other.key


# Cards of AMD before the MI350 have no 4-bit units, and experts in MXFP4 may be unpacked: a start
# of DeepSeek-V4-Pro on eight MI300X was refused with 60 GiB a card to spare by their packed size.
UNPACKED_PERCENT = 250


def _may_unpack(model: ModelFacts, gpu: Gpu) -> bool:
    quantization = model.quantization
    four_bits = quantization is not None and quantization.weight_bits <= 4
    return gpu.product.startswith("AMD") and model.moe is not None and four_bits


def _depends_on_length(model: ModelFacts) -> bool:
    """Latent attention's scratch, sparse attention's buffers, the longest video."""
    return model.mla is not None or model.is_multimodal or traits_of(model).is_packed


def spending(model: ModelFacts, settings: EngineSettings, gpu: Gpu, *, stage: int) -> Spending:
    """What one rank of a pipeline stage spends; settings must be resolved.

    Source: vLLM vllm/v1/worker/gpu_worker.py determine_available_memory: what is consumed (0.27
    and newer) or its parts (before) and the peak are subtracted from the request alike; they
    differ in which persistent buffers count, see `overhead`.
    """
    return _answer(_Question(model, settings, gpu, stage))


@lru_cache(maxsize=8192)
def _answer(question: _Question) -> Spending:
    model, settings, stage = question.model, question.settings, question.stage
    last = stage == settings.layout.pipeline_parallel_size - 1
    held = _weights(
        SameModel(model),
        settings.layout,
        stage,
        settings.version >= WHOLE_BLOCKS_FROM,
        settings.drafts_with_own_layers,
        not settings.language_model_only,
    )
    held += _deepstack_bytes(model, settings) + _absorbed_bytes(model, settings, stage)
    transient = activation(model, settings, question.gpu, first_stage=stage == 0, last_stage=last)
    peak = transient.peak
    overhead = (
        *overhead_parts(model, settings, question.gpu, transient),
        settings.extra_bytes,
    )
    graphs = graph_bytes(model, settings)
    charged = graphs if charges_graphs(settings) else Estimate.exactly(0)
    # Scales and paddings that no header shows: seen to one percent.
    high = UNPACKED_PERCENT if _may_unpack(model, question.gpu) else 101
    weights = Estimate.around(held, low_percent=100, high_percent=high)
    return Spending(
        weights_bytes=held,
        overhead_bytes=sum(part.point for part in overhead),
        activation_bytes=peak.point,
        cuda_graph_bytes=charged.point,
        uncharged_cuda_graph_bytes=graphs.point - charged.point,
        used=either(
            sum_of((weights, *overhead, peak, charged)),
            sum_of((weights, *overhead, transient.other_peak, charged)),
        ),
        held=sum_of((weights, *overhead)),
        peak=peak,
        sampler=transient.sampler_bytes,
        other_peak=transient.other_peak,
        charged=charged,
        graphs=graphs,
        load_peak_bytes=max(
            held + _loaded_twice_bytes(model, settings.layout),
            quantised_peak_bytes(model, held, settings.version),
        ),
    )


@lru_cache(maxsize=1024)
def _weights(same: SameModel, layout: ParallelLayout, stage: int, *flags: bool) -> int:
    whole_blocks, with_prediction, with_towers = flags
    return weights_bytes(
        same.facts,
        layout,
        stage=stage,
        whole_blocks=whole_blocks,
        with_prediction=with_prediction,
        with_towers=with_towers,
    )


# Source: vLLM 0.7.0 to 0.7.2 vllm/attention/backends/mla/utils.py process_weights_after_loading:
# latent attention multiplies its projections into each other and keeps the products; two logs.
_ABSORBED = (EngineVersion(0, 7, 0), EngineVersion(0, 7, 3))


def _absorbed_bytes(model: ModelFacts, settings: EngineSettings, stage: int) -> int:
    mla = model.mla
    if mla is None or not _ABSORBED[0] <= settings.version < _ABSORBED[1]:
        return 0
    layout = settings.layout
    layers = len(pipeline_stages(len(model.layers), layout.pipeline_parallel_size)[stage])
    heads = -(-model.num_attention_heads // layout.tensor_parallel_size)
    queried = mla.q_lora_rank or model.hidden_size
    of_head = mla.kv_lora_rank * (queried + model.hidden_size) + queried * mla.qk_rope_head_dim
    return layers * heads * of_head * model_dtype_bytes(model)


def _deepstack_bytes(model: ModelFacts, settings: EngineSettings) -> int:
    """Buffers of batched tokens: for each level of the tower that is tapped, or residual stream.

    Made with the model, so the engine counts them among the weights. Source: vLLM
    vllm/model_executor/models/qwen3_vl.py deepstack_input_embeds, deepseek_v4.py
    _mtp_hidden_buffer.
    """
    levels = int(model.extra.get("deepstack_levels", 0))
    if settings.language_model_only:
        levels = 0
    levels += int(model.extra.get("residual_streams", 0))
    tokens = settings.max_num_batched_tokens or 0
    return levels * tokens * model.hidden_size * model_dtype_bytes(model)


def _loaded_twice_bytes(model: ModelFacts, layout: ParallelLayout) -> int:
    """A tied embedding is on the card twice until it is tied.

    Measured: peaks while loading exceed loaded weights by 1.3 to 2.7 GiB for Gemma 3 of 4B to 27B
    and by up to 0.44 GiB for others, which is their table.
    """
    if not model.tie_word_embeddings:
        return 0
    table = vocabulary_entries(model) * model.hidden_size * model_dtype_bytes(model)
    return table // layout.tensor_parallel_size
