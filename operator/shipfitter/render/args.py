"""The engine's command line: every size written, so that no default can move underneath.

Source: vLLM vllm/engine/arg_utils.py, releases 0.8 to 0.33.
"""

from collections.abc import Iterator

from shipfitter.api.engine_args import passed_through, pinned_flags, read_arguments
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import claim_and_path, hub_repository, served_name
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.plan import Sizing

ENGINE_PORT = 8000
COMMAND = ("vllm", "serve")
MODEL_MOUNT = "/models"

# Requests in flight get this long to end; from this release on the engine waits for them.
DRAIN_SECONDS = 60
_SHUTDOWN_FLAG = "--shutdown-timeout"
SHUTDOWN_TIMEOUT_FROM = EngineVersion(0, 18, 0)
ASYNC_SCHEDULING_FROM = EngineVersion(0, 10, 0)
CAPTURE_SIZE_FROM = EngineVersion(0, 12, 0)  # before: --cuda-graph-sizes, one value is the largest
GRAPH_SIZES_FROM = EngineVersion(0, 9, 0)  # before: no flag for it


def served_names(resource: ModelDeployment) -> tuple[str, ...]:
    """The names clients may use, the same whichever alternative runs."""
    return tuple(dict.fromkeys((served_name(resource.spec.model.uri), resource.metadata.name)))


def model_argument(uri: str) -> str:
    """What the engine loads: a repository, or the folder where the claim is mounted."""
    place = claim_and_path(uri)
    if place is None:
        return hub_repository(uri) or uri
    return f"{MODEL_MOUNT}/{place[1]}".rstrip("/")


def drain_seconds(resource: ModelDeployment) -> int:
    """How long requests in flight may take after the pod was asked to stop."""
    for argument in read_arguments(resource.spec.engine.args):
        if argument.flag == _SHUTDOWN_FLAG and argument.values and argument.values[0].isdigit():
            return int(argument.values[0])
    return DRAIN_SECONDS


def engine_args(resource: ModelDeployment, sizing: Sizing) -> list[str]:
    """All arguments after `vllm serve`: the model, our flags, then the user's own."""
    settings = sizing.settings
    return [
        model_argument(sizing.model.uri),
        *_identity_flags(resource, sizing),
        *_size_flags(settings),
        *_layout_flags(settings),
        *_graph_flags(resource, settings),
        *_behaviour_flags(resource, settings),
        *_pinned_only_flags(resource, settings),
        *_own_arguments(resource),
    ]


def _identity_flags(resource: ModelDeployment, sizing: Sizing) -> Iterator[str]:
    revision = sizing.model.facts.revision
    if revision and hub_repository(sizing.model.uri):
        yield f"--revision={revision}"
    yield from ("--served-model-name", *served_names(resource))
    yield f"--port={ENGINE_PORT}"


def _size_flags(settings: EngineSettings) -> Iterator[str]:
    yield f"--max-model-len={settings.max_model_len}"
    yield f"--max-num-seqs={settings.max_num_seqs}"
    yield f"--max-num-batched-tokens={settings.max_num_batched_tokens}"
    yield f"--gpu-memory-utilization={settings.gpu_memory_utilization}"
    yield f"--kv-cache-dtype={settings.kv_cache_dtype}"
    if settings.kv_cache_memory_bytes is not None:
        yield f"--kv-cache-memory-bytes={settings.kv_cache_memory_bytes}"
    if settings.num_gpu_blocks_override is not None:
        yield f"--num-gpu-blocks-override={settings.num_gpu_blocks_override}"


def _layout_flags(settings: EngineSettings) -> Iterator[str]:
    layout = settings.layout
    yield f"--tensor-parallel-size={layout.tensor_parallel_size}"
    yield f"--pipeline-parallel-size={layout.pipeline_parallel_size}"
    if layout.data_parallel_size > 1:
        yield f"--data-parallel-size={layout.data_parallel_size}"
    if layout.enable_expert_parallel:
        yield "--enable-expert-parallel"
    if settings.decode_context_parallel_size > 1:
        yield f"--decode-context-parallel-size={settings.decode_context_parallel_size}"


def _graph_flags(resource: ModelDeployment, settings: EngineSettings) -> Iterator[str]:
    if settings.enforce_eager:
        yield "--enforce-eager"
        return
    pinned = pinned_flags(resource.spec.engine.args).get("cudagraph_capture_sizes")
    newest = settings.version >= CAPTURE_SIZE_FROM
    if isinstance(pinned, tuple):
        flag = "--cudagraph-capture-sizes" if newest else "--cuda-graph-sizes"
        yield from (flag, *map(str, pinned))
    elif settings.max_cudagraph_capture_size is not None and settings.version >= GRAPH_SIZES_FROM:
        flag = "--max-cudagraph-capture-size" if newest else "--cuda-graph-sizes"
        yield f"{flag}={settings.max_cudagraph_capture_size}"


def _behaviour_flags(resource: ModelDeployment, settings: EngineSettings) -> Iterator[str]:
    if settings.enable_prefix_caching is not None:
        yield _switch("--enable-prefix-caching", settings.enable_prefix_caching)
    if settings.async_scheduling is not None and settings.version >= ASYNC_SCHEDULING_FROM:
        yield _switch("--async-scheduling", settings.async_scheduling)
    if settings.version >= SHUTDOWN_TIMEOUT_FROM:
        yield f"{_SHUTDOWN_FLAG}={drain_seconds(resource)}"


def _pinned_only_flags(resource: ModelDeployment, settings: EngineSettings) -> Iterator[str]:
    """Flags that the engine derives from the model alone: written only where the user did."""
    pinned = pinned_flags(resource.spec.engine.args)
    if "block_size" in pinned:
        yield f"--block-size={settings.block_size}"
    if "enable_chunked_prefill" in pinned:
        yield _switch("--enable-chunked-prefill", settings.enable_chunked_prefill)
    if "disable_hybrid_kv_cache_manager" in pinned:
        yield _switch("--disable-hybrid-kv-cache-manager", settings.disable_hybrid_kv_cache_manager)
    if "language_model_only" in pinned:
        yield _switch("--language-model-only", settings.language_model_only)


def _own_arguments(resource: ModelDeployment) -> Iterator[str]:
    for argument in read_arguments(passed_through(resource.spec.engine.args)):
        if argument.flag != _SHUTDOWN_FLAG:
            yield from argument.tokens


def _switch(flag: str, on: bool) -> str:
    return flag if on else f"--no-{flag.removeprefix('--')}"
