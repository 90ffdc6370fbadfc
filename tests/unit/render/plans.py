"""Plans by hand: resources, pools and sizings that a test changes only where it must."""

from dataclasses import replace

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.budget import Budget, Estimate
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.facts import ModelFacts
from shipfitter.core.inventory import Pool, Taint
from shipfitter.core.plan import (
    Alternative,
    FrontierPoint,
    ModelChoice,
    Plan,
    Sizing,
    VariantPlan,
    Verdict,
)
from shipfitter.core.weights import ParallelLayout
from shipfitter.render.plan_record import plan_record
from shipfitter.units import GIB
from unit.api.mistakes import changed, minimal

IMAGE = "vllm/vllm-openai:v0.33.0"
DECIDED_AT = "2026-03-01T12:00:00Z"
INPUTS = "0123456789abcdef"
COMMIT = "0e9e39f249a16976918f6564b8830bc894c89659"


def resource(**changes) -> ModelDeployment:
    """The minimal resource with changes at dotted paths (dots written as __)."""
    paths = {path.replace("__", "."): value for path, value in changes.items()}
    return ModelDeployment.parse(
        changed(minimal(), {"metadata.uid": "1234", **paths}), unknown="forbid"
    )


LLAMA_8B = ModelFacts(
    name="meta-llama/Llama-3.1-8B-Instruct",
    architecture="LlamaForCausalLM",
    model_type="llama",
    dtype="bfloat16",
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    vocab_size=128256,
    tie_word_embeddings=False,
    layers=(),
    weight_groups=(),
    checkpoint_bytes=16_060_522_496,
    weights_source="safetensors headers",
    revision=COMMIT,
)

L40S = Pool(
    name="nvidia-l40s-8",
    product="NVIDIA-L40S",
    gpus_per_node=8,
    total_bytes=47_676_000_000,
    nominal_bytes=48_305_799_168,
    compute_capability=(8, 9),
    selector={"nvidia.com/gpu.product": "NVIDIA-L40S", "kubernetes.io/arch": "amd64"},
    taints=(Taint(key="nvidia.com/gpu", value="present"),),
    host_memory_bytes=512 * GIB,
)

BUDGET = Budget(
    total_bytes=47_676_000_000,
    requested_bytes=45_292_200_000,
    weights_bytes=16_094_076_928,
    overhead_bytes=145_077_329,
    activation_bytes=1_084_227_584,
    cuda_graph_bytes=273_971_776,
    kv_cache_bytes=Estimate(low=27_261_684_198, point=27_694_846_383, high=27_931_307_487),
    not_requested_bytes=2_383_800_000,
    uncharged_cuda_graph_bytes=0,
    outside_bytes=Estimate(low=161_061_273, point=536_870_912, high=697_932_185),
    load_peak_bytes=16_094_076_928,
)

SETTINGS = EngineSettings(
    version=EngineVersion(0, 33, 0),
    max_model_len=131_072,
    max_num_seqs=96,
    max_num_batched_tokens=2048,
    gpu_memory_utilization=0.95,
    block_size=16,
    enable_prefix_caching=True,
    cudagraph_capture_sizes=(1, 2, 4, *range(8, 193, 8)),
    max_cudagraph_capture_size=192,
    async_scheduling=True,
    model_runner="V2",
)

SIZING = Sizing(
    pool=L40S,
    model=ModelChoice(uri="hf://meta-llama/Llama-3.1-8B-Instruct", facts=LLAMA_8B),
    settings=SETTINGS,
    budget=BUDGET,
    verdict=Verdict.FITS,
    kv_cache_tokens=211_280,
    num_gpu_blocks=13_205,
    max_concurrency=1.61,
    running_at_typical=96,
    limited_by="KV cache",
    one_request_share=0.6303,
    native_len=131_072,
    preferred_reached=1,
    calibrated_observations=3,
)


def sizing(*, pool=None, settings=None, facts=None, uri=None, **changes) -> Sizing:
    """SIZING with changes one level down."""
    return replace(
        SIZING,
        pool=replace(L40S, **(pool or {})),
        settings=replace(SETTINGS, **(settings or {})),
        model=ModelChoice(uri=uri or SIZING.model.uri, facts=replace(LLAMA_8B, **(facts or {}))),
        **changes,
    )


def ranks(tensor: int = 1, pipeline: int = 1, **more) -> ParallelLayout:
    return ParallelLayout(tensor_parallel_size=tensor, pipeline_parallel_size=pipeline, **more)


def plan(*sizings: Sizing, replicas: int = 2) -> Plan:
    return Plan(
        variants=tuple(VariantPlan(sizing=each, replicas=replicas) for each in sizings),
        alternatives=(Alternative("2 × NVIDIA-L40S", "max_num_seqs 256"),),
        frontier=(FrontierPoint(65_536, 3), FrontierPoint(8192, 24)),
        why="1 × NVIDIA-L40S: one GPU holds it",
    )


def record(of: ModelDeployment, planned: Plan) -> dict:
    return plan_record(of, planned, inputs_hash=INPUTS, decided_at=DECIDED_AT, reason="Decided")
