"""A model's weight groups from the best source there is: headers, a total, or the config alone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from shipfitter.core.architectures import Architecture
from shipfitter.core.checkpoint import prediction_modules, text_modules
from shipfitter.core.facts import LayerFacts, LayerKind, MoeFacts, Shard, TensorHeader, WeightGroup
from shipfitter.core.modules import Module, mla_facts
from shipfitter.core.multimodal import Wrapper
from shipfitter.core.quantization import PLAIN, Scheme, quantization_facts, scheme_of
from shipfitter.core.reconcile import Arithmetic, expected_bytes, reconciled
from shipfitter.core.storage import stored_tensors
from shipfitter.core.text_config import TextConfig
from shipfitter.core.towers import tower_parameters
from shipfitter.core.weight_groups import LoadRules, load, merge, stored_bytes

_BFLOAT16_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWeights:
    """What the engine will hold, and what the repository holds."""

    groups: tuple[WeightGroup, ...]
    checkpoint_bytes: int
    source: str


def model_weights(
    config: TextConfig,
    architecture: Architecture,
    layers: tuple[LayerFacts, ...],
    wrapper: Wrapper | None,
    *,
    moe: MoeFacts | None,
    tensors: tuple[TensorHeader, ...],
    checkpoint_bytes: int | None,
) -> ModelWeights:
    """The weight groups of a model; see `model_facts` for the three sources."""
    rules = _load_rules(config, architecture, layers, moe, wrapper)
    if tensors:
        loaded = load(tensors, rules)
        groups = tuple(group for tensor in loaded for group in tensor.groups)
        return ModelWeights(
            groups=merge((*groups, *_made_while_loading(config, architecture, rules, moe))),
            checkpoint_bytes=sum(map(stored_bytes, tensors)),
            source="safetensors headers",
        )
    arithmetic = _arithmetic(config, architecture, rules, moe, wrapper)
    groups = reconciled(arithmetic, checkpoint_bytes)
    return ModelWeights(
        groups=merge((*groups, *_made_while_loading(config, architecture, rules, moe))),
        checkpoint_bytes=checkpoint_bytes or expected_bytes(arithmetic),
        source="config and total bytes" if checkpoint_bytes else "config",
    )


def _made_while_loading(
    config: TextConfig, architecture: Architecture, rules: LoadRules, moe: MoeFacts | None
) -> Iterable[WeightGroup]:
    """Weights no file holds: copied or unpacked by the engine."""
    copied = (m for m in text_modules(config, architecture, rules.layers, moe) if not m.stored)
    for tensor in load(_headers(copied, config, float_bytes=_BFLOAT16_BYTES), rules):
        yield from tensor.groups
    mla = mla_facts(config, architecture)
    if mla is None:
        return
    for index, layer in enumerate(rules.layers):
        path = f"model.layers.{index}.{architecture.mixer}.kv_b_proj"
        if layer.kind is not LayerKind.MLA or scheme_of(path, config) is PLAIN:
            continue
        # A quantised kv_b_proj is unpacked to two bfloat16 matrices beside it.
        # Source: vLLM layers/attention/mla_attention.py process_weights_after_loading.
        width = layer.num_attention_heads * (mla.qk_nope_head_dim + mla.v_head_dim)
        yield WeightGroup(
            shard=Shard.DIVIDED,
            loaded_bytes=width * mla.kv_lora_rank * _BFLOAT16_BYTES,
            place="layer",
            layer=index,
        )


def _load_rules(
    config: TextConfig,
    architecture: Architecture,
    layers: tuple[LayerFacts, ...],
    moe: MoeFacts | None,
    wrapper: Wrapper | None,
) -> LoadRules:
    scheme = _expert_or_mlp_scheme(config, architecture)
    return LoadRules(
        layers=layers,
        ties_embeddings=config.ties_embeddings(default=architecture.tied),
        tower_divided=wrapper is None or wrapper.tower_divided,
        keeps_zero_points=not (scheme.layout == "gptq" and scheme.symmetric),
        keeps_group_index=scheme.activation_order,
        float32_scales=scheme.bits == 8,
        expert_pad=_expert_pad(scheme, architecture) if moe else (1, 1),
        expert_sizes=(moe.moe_intermediate_size, config.hidden_size) if moe else (0, 0),
    )


def _expert_pad(scheme: Scheme, architecture: Architecture) -> tuple[int, int]:
    """Multiples to which 4-bit expert kernels pad a rank's intermediate size and the hidden size.

    Source: vLLM layers/fused_moe/oracle/mxfp4.py (Marlin, TRT-LLM; other kernels pad less) and
    quantization/utils/flashinfer_fp4_moe.py (ungated experts to 128).
    """
    if scheme.layout == "mxfp4":
        return 128, 256
    if scheme.layout == "nvfp4":
        gated = architecture.gated_mlp and architecture.pattern != "nemotron_h"
        return (64, 1) if gated else (128, 1)
    return 1, 1


def _expert_or_mlp_scheme(config: TextConfig, architecture: Architecture) -> Scheme:
    """The scheme of the bulk of the weights, read off the last layer."""
    last = config.count("num_hidden_layers") - 1
    experts = config.count("num_experts", 0) > 1
    path = "experts.0.up_proj" if experts else "up_proj"
    return scheme_of(f"model.layers.{last}.{architecture.mlp}.{path}", config)


def _headers(
    modules: Iterable[Module], config: TextConfig, *, float_bytes: int
) -> Iterator[TensorHeader]:
    for module in modules:
        scheme = scheme_of(module.path, config) if module.linear else PLAIN
        yield from stored_tensors(module, scheme, float_bytes=float_bytes)


def _arithmetic(
    config: TextConfig,
    architecture: Architecture,
    rules: LoadRules,
    moe: MoeFacts | None,
    wrapper: Wrapper | None,
) -> Arithmetic:
    layers, float_bytes = rules.layers, config.stored_float_bytes
    stored = (m for m in text_modules(config, architecture, layers, moe) if m.stored)
    unloaded = tuple(prediction_modules(config, architecture, layers, moe))
    unloaded_plain = (replace(module, linear=False) for module in unloaded)
    quantised = quantization_facts(config) is not None
    return Arithmetic(
        text=load(_headers(stored, config, float_bytes=float_bytes), rules),
        prediction=tuple(
            load(_headers(modules, config, float_bytes=float_bytes), rules)
            for modules in (unloaded, unloaded_plain)
        ),
        has_tower=wrapper is not None,
        tower_bytes=_BFLOAT16_BYTES * tower_parameters(config) if wrapper is not None else 0,
        embedding_bytes=config.count("vocab_size") * config.hidden_size * float_bytes,
        ties_embeddings=rules.ties_embeddings,
        quantised=quantised,
    )
