"""What the engine refuses by looking at flags alone, each in our words."""

from collections.abc import Iterator

from shipfitter.api.serve_command import ServeCommand
from shipfitter.core.encoder import largest_item_tokens
from shipfitter.core.engines import EngineSettings, Gpu, derived_max_model_len, resolve
from shipfitter.core.model import ModelFacts
from shipfitter.core.refusals import Refusal
from shipfitter.core.traits import traits_of

_BFLOAT16_CAPABILITY = (8, 0)
_LEGACY_CHUNKED_FROM = 32768

Problem = tuple[Refusal, str]


def flag_problems(
    command: ServeCommand, model: ModelFacts, settings: EngineSettings, gpu: Gpu, *, gpus: int
) -> Iterator[Problem]:
    """Why the engine would not start, whatever the memory; `settings` as asked.

    Source: vLLM vllm/config/parallel.py, scheduler.py, model.py, vllm/distributed/utils.py.
    """
    yield from _ranks(model, settings, gpus, command.count("--prefill-context-parallel-size") or 1)
    yield from _shared_contexts(model, settings)
    yield from _batches(command, model, settings, gpu)
    stated = command.text("--dtype")
    if stated == "bfloat16" and gpu.compute_capability and (
        gpu.compute_capability < _BFLOAT16_CAPABILITY
    ):  # fmt: skip
        major, minor = gpu.compute_capability
        yield (
            Refusal.OTHER,
            f"--dtype bfloat16 needs compute capability 8.0, the GPU has {major}.{minor}; "
            "leave it out, the engine then takes float16",
        )
    if command.text("--mamba-block-size") and settings.enable_prefix_caching is False:
        yield Refusal.OTHER, "--mamba-block-size goes with prefix caching only"


def _ranks(
    model: ModelFacts, settings: EngineSettings, gpus: int, shared_prefills: int
) -> Iterator[Problem]:
    layout = settings.layout
    needed = layout.world_size * layout.data_parallel_size * shared_prefills
    if needed > gpus:
        prefills = f" × prefill context {shared_prefills}" if shared_prefills > 1 else ""
        yield (
            Refusal.INVALID_PARALLELISM,
            f"tensor {layout.tensor_parallel_size} × pipeline {layout.pipeline_parallel_size} × "
            f"data {layout.data_parallel_size}{prefills} takes {needed} GPUs; there are {gpus}",
        )
    partition = layout.pipeline_partition
    if not partition or layout.pipeline_parallel_size == 1:
        return
    if len(partition) != layout.pipeline_parallel_size or (
        sum(partition) != model.num_hidden_layers
    ):
        yield (
            Refusal.INVALID_PARALLELISM,
            f"VLLM_PP_LAYER_PARTITION {','.join(map(str, partition))} is not "
            f"{layout.pipeline_parallel_size} stages of {model.num_hidden_layers} layers together",
        )


def _shared_contexts(model: ModelFacts, settings: EngineSettings) -> Iterator[Problem]:
    """Decode context parallelism: ranks that would hold the same keys share the tokens instead."""
    shards, ranks = settings.decode_context_parallel_size, settings.layout.tensor_parallel_size
    if shards == 1:
        return
    if ranks % shards:
        yield (
            Refusal.INVALID_PARALLELISM,
            f"tensor parallel {ranks} does not divide by decode context parallel {shards}",
        )
    heads = model.num_key_value_heads
    if not traits_of(model).has_latent and shards > max(1, ranks // max(1, heads)):
        yield (
            Refusal.INVALID_PARALLELISM,
            f"decode context parallel {shards} needs as many ranks for each of {heads} key-value "
            f"heads; there are {ranks} ranks",
        )


def _batches(
    command: ServeCommand, model: ModelFacts, settings: EngineSettings, gpu: Gpu
) -> Iterator[Problem]:
    tokens = settings.max_num_batched_tokens
    length = settings.max_model_len or derived_max_model_len(model, settings.version)
    if tokens and tokens < length and _prefills_whole(command, model, settings, gpu, length):
        yield (
            Refusal.OTHER,
            f"without chunked prefill --max-num-batched-tokens {tokens} must hold one request of "
            f"{length} tokens",
        )
    if command.switch("--disable-chunked-mm-input") is True:
        yield from _whole_items(model, resolve(settings, model, gpu))
    active, seqs = command.count("--max-num-active-seqs"), settings.max_num_seqs
    if active and seqs and active > seqs:
        yield Refusal.OTHER, f"--max-num-active-seqs {active} is more than --max-num-seqs {seqs}"


def _whole_items(model: ModelFacts, settings: EngineSettings) -> Iterator[Problem]:
    """Source: vLLM 0.8 to 0.33 vllm/v1/core/encoder_cache_manager.py."""
    item, tokens = largest_item_tokens(model, settings), settings.max_num_batched_tokens or 0
    if item > tokens:
        yield (
            Refusal.OTHER,
            f"--disable-chunked-mm-input keeps items whole, and one of {model.architecture} has up "
            f"to {item} tokens; --max-num-batched-tokens is {tokens}",
        )


def _prefills_whole(
    command: ServeCommand, model: ModelFacts, settings: EngineSettings, gpu: Gpu, length: int
) -> bool:
    """Whether prompts are not cut: asked so, or by the engine before V1 up to a length.

    Source: vLLM 0.6-0.7 vllm/engine/arg_utils.py create_engine_config.
    """
    if not settings.enable_chunked_prefill:
        return True
    legacy = resolve(settings, model, gpu).rules.legacy_engine
    asked = command.switch("--enable-chunked-prefill") is True
    return legacy and not asked and length <= _LEGACY_CHUNKED_FROM
