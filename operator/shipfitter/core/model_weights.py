"""A model's weight groups from the best source there is: headers, a total, or the config alone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from shipfitter.core.architecture import Architecture
from shipfitter.core.checkpoint import prediction_modules, text_modules
from shipfitter.core.facts import LayerFacts, LayerKind, MoeFacts, Shard, TensorHeader, WeightGroup
from shipfitter.core.modules import Module, mla_facts
from shipfitter.core.multimodal import Wrapper
from shipfitter.core.quantization import PLAIN, Coverage, Scheme
from shipfitter.core.reconcile import Arithmetic, expected_bytes, reconciled
from shipfitter.core.storage import stored_tensors
from shipfitter.core.text_config import TextConfig
from shipfitter.core.towers import TowerParameters, tower_parameters
from shipfitter.core.weight_groups import LoadRules, load, merge, stored_bytes

_BFLOAT16_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWeights:
    """What the engine will hold, and what the repository holds."""

    groups: tuple[WeightGroup, ...]
    checkpoint_bytes: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """Everything the config says, read once."""

    config: TextConfig
    architecture: Architecture
    layers: tuple[LayerFacts, ...]
    moe: MoeFacts | None
    wrapper: Wrapper | None
    coverage: Coverage

    def text_modules(self, *, stored: bool) -> Iterator[Module]:
        """Modules of the language model that the file holds, or that only the engine has."""
        modules = text_modules(self.config, self.architecture, self.layers, self.moe)
        return (module for module in modules if module.stored is stored)

    def headers(self, modules: Iterable[Module], *, float_bytes: int) -> Iterator[TensorHeader]:
        """The tensors a checkpoint stores for modules."""
        for module in modules:
            scheme = self.coverage.scheme_of(module.path) if module.linear else PLAIN
            yield from stored_tensors(module, scheme, float_bytes=float_bytes)


def model_weights(
    blueprint: Blueprint, *, tensors: tuple[TensorHeader, ...], checkpoint_bytes: int | None
) -> ModelWeights:
    """The weight groups of a model; see `model_facts` for the three sources."""
    rules = _load_rules(blueprint)
    if tensors:
        groups = tuple(group for tensor in load(tensors, rules) for group in tensor.groups)
        total, source = sum(map(stored_bytes, tensors)), "safetensors headers"
    else:
        arithmetic = _arithmetic(blueprint, rules)
        groups = reconciled(arithmetic, checkpoint_bytes)
        total = checkpoint_bytes or expected_bytes(arithmetic)
        source = "config and total bytes" if checkpoint_bytes else "config"
    return ModelWeights(
        groups=merge((*groups, *_made_while_loading(blueprint, rules))),
        checkpoint_bytes=total,
        source=source,
    )


def _made_while_loading(blueprint: Blueprint, rules: LoadRules) -> Iterator[WeightGroup]:
    """Weights no file holds: copied or unpacked by the engine."""
    copied = blueprint.headers(blueprint.text_modules(stored=False), float_bytes=_BFLOAT16_BYTES)
    for tensor in load(copied, rules):
        yield from tensor.groups
    mla = mla_facts(blueprint.config, blueprint.architecture)
    if mla is None:
        return
    for index, layer in enumerate(blueprint.layers):
        path = f"model.layers.{index}.{blueprint.architecture.mixer}.kv_b_proj"
        if layer.kind is not LayerKind.MLA or blueprint.coverage.scheme_of(path) is PLAIN:
            continue
        # A quantised kv_b_proj is unpacked to two bfloat16 matrices beside it.
        # Source: vLLM layers/attention/mla_attention.py process_weights_after_loading.
        width = layer.num_attention_heads * (mla.qk_nope_head_dim + mla.v_head_dim)
        yield WeightGroup(
            shard=Shard.DIVIDED,
            loaded_bytes=width * mla.kv_lora_rank * _BFLOAT16_BYTES,
            place="layer",
            layer=index,
            unpacked=True,
        )


def _load_rules(blueprint: Blueprint) -> LoadRules:
    config, moe, wrapper = blueprint.config, blueprint.moe, blueprint.wrapper
    scheme = _bulk_scheme(blueprint)
    return LoadRules(
        layers=blueprint.layers,
        ties_embeddings=config.ties_embeddings(default=blueprint.architecture.tied),
        tower_divided=wrapper is None or wrapper.tower_divided,
        without_audio=_is_without_audio(blueprint),
        keeps_zero_points=not (scheme.layout == "gptq" and scheme.symmetric),
        keeps_group_index=scheme.activation_order,
        float32_scales=scheme.bits == 8,
        expert_pad=_expert_pad(scheme, blueprint.architecture) if moe else (1, 1),
        expert_sizes=(moe.moe_intermediate_size, config.hidden_size) if moe else (0, 0),
    )


def _bulk_scheme(blueprint: Blueprint) -> Scheme:
    """The scheme of most weights, read off the last layer."""
    last = len(blueprint.layers) - 1
    path = "experts.0.up_proj" if blueprint.moe else "up_proj"
    return blueprint.coverage.scheme_of(f"model.layers.{last}.{blueprint.architecture.mlp}.{path}")


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


def _arithmetic(blueprint: Blueprint, rules: LoadRules) -> Arithmetic:
    config, float_bytes = blueprint.config, blueprint.config.stored_float_bytes
    prediction = tuple(
        prediction_modules(config, blueprint.architecture, blueprint.layers, blueprint.moe)
    )
    plain = tuple(replace(module, linear=False) for module in prediction)
    has_tower = blueprint.wrapper is not None
    stored = blueprint.text_modules(stored=True)
    tower = _tower(blueprint)
    return Arithmetic(
        text=load(blueprint.headers(stored, float_bytes=float_bytes), rules),
        prediction=tuple(
            load(blueprint.headers(modules, float_bytes=float_bytes), rules)
            for modules in (prediction, plain)
        ),
        has_tower=has_tower,
        tower_bytes=_BFLOAT16_BYTES * (tower.divided + tower.whole + tower.unused),
        whole_tower_bytes=_BFLOAT16_BYTES * tower.whole,
        unused_tower_bytes=_BFLOAT16_BYTES * tower.unused,
        tower_divided=rules.tower_divided,
        tower_known=rules.without_audio,
        embedding_bytes=config.count("vocab_size") * config.hidden_size * float_bytes,
        ties_embeddings=rules.ties_embeddings,
        quantised=bool(blueprint.coverage.rules),
    )


def _tower(blueprint: Blueprint) -> TowerParameters:
    config, wrapper = blueprint.config, blueprint.wrapper
    if wrapper is None:
        return TowerParameters()
    feature_layer = wrapper.feature_layer
    named = config.whole.get("vision_feature_layer")
    if feature_layer is not None and isinstance(named, int) and named < 0:
        feature_layer = named
    return tower_parameters(config, feature_layer=feature_layer or -1)


def _is_without_audio(blueprint: Blueprint) -> bool:
    """A file may hold an audio tower that the class builds only where config.json describes it.

    Source: vLLM vllm/model_executor/models/gemma4_mm.py __init__ and load_weights.
    """
    wrapper = blueprint.wrapper
    named = blueprint.config.whole.get("audio_config")
    return wrapper is not None and wrapper.audio_by_config and not named
