"""A model's config.json and tensors in, facts out; the place to import the facts' types from."""

from collections.abc import Mapping
from typing import Any

from shipfitter.core.architectures import architecture_of
from shipfitter.core.checkpoint import prediction_layers
from shipfitter.core.facts import (
    LayerFacts,
    LayerKind,
    MlaFacts,
    ModelFacts,
    MoeFacts,
    Quantization,
    Shard,
    StateShape,
    TensorHeader,
    WeightGroup,
)
from shipfitter.core.mixture import moe_facts
from shipfitter.core.model_layers import model_layers
from shipfitter.core.model_weights import Blueprint, model_weights
from shipfitter.core.modules import mla_facts
from shipfitter.core.multimodal import unwrap
from shipfitter.core.quantization import Coverage, quantization_facts
from shipfitter.core.rotary import rotary_bytes
from shipfitter.core.text_config import TextConfig
from shipfitter.core.towers import tower_shape

__all__ = [
    "LayerFacts",
    "LayerKind",
    "MlaFacts",
    "ModelFacts",
    "MoeFacts",
    "Quantization",
    "Shard",
    "StateShape",
    "TensorHeader",
    "WeightGroup",
    "model_facts",
]

# What the engine derives its longest sequence from.
# Source: vLLM vllm/config/model.py _get_and_verify_max_len.
_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
    "rope_scaling",
    "rope_parameters",
    "sliding_window",
)


def model_facts(
    config: Mapping[str, Any],
    *,
    name: str,
    tensors: tuple[TensorHeader, ...] = (),
    checkpoint_bytes: int | None = None,
    revision: str = "",
) -> ModelFacts:
    """The facts of a model from its config.json and, where known, its tensors or total bytes.

    With tensor headers the bytes are exact. With only a total, the config's arithmetic gives each
    group and the total corrects it. With neither, the arithmetic alone.

    Raises UnknownArchitectureError when the class's cache or weights are not known by name.
    """
    whole = TextConfig.read(config, model=name)
    text, wrapper = unwrap(whole)
    architecture = architecture_of(text)
    layers = model_layers(text, architecture)
    moe = moe_facts(text, architecture)
    blueprint = Blueprint(
        config=text,
        architecture=architecture,
        layers=layers,
        moe=moe,
        wrapper=wrapper,
        coverage=Coverage.read(text),
    )
    weights = model_weights(blueprint, tensors=tensors, checkpoint_bytes=checkpoint_bytes)
    return ModelFacts(
        name=name,
        architecture=whole.architecture,
        model_type=text.model_type or whole.model_type,
        dtype=text.dtype,
        hidden_size=text.hidden_size,
        intermediate_size=text.count("intermediate_size", 0),
        num_hidden_layers=len(layers),
        num_attention_heads=text.count("num_attention_heads", 0),
        num_key_value_heads=text.num_key_value_heads,
        head_dim=text.head_dim,
        vocab_size=text.count("vocab_size"),
        tie_word_embeddings=text.ties_embeddings(default=architecture.tied),
        layers=layers,
        weight_groups=weights.groups,
        checkpoint_bytes=weights.checkpoint_bytes,
        weights_source=weights.source,
        mla=mla_facts(text, architecture),
        moe=moe,
        quantization=quantization_facts(text),
        is_multimodal=wrapper is not None,
        supports_pipeline_parallel=architecture.pipeline,
        rotary_bytes=rotary_bytes(
            text,
            architecture,
            layers,
            multimodal=wrapper is not None and wrapper.multimodal_rope,
        ),
        length_keys={key: text.get(key) for key in _LENGTH_KEYS if text.get(key) is not None},
        revision=revision,
        extra=_extra(whole, prediction_layers(text, architecture)),
    )


def _extra(config: TextConfig, num_mtp_layers: int) -> Mapping[str, Any]:
    """Facts of some families: the tower's shape, its levels that are tapped, drafting layers."""
    levels = (config.whole.get("vision_config") or {}).get("deepstack_visual_indexes") or ()
    found = {
        "deepstack_levels": len(levels),
        "num_mtp_layers": num_mtp_layers,
        "residual_streams": int(config.get("hc_mult") or 0),
        "caps_logits": int(bool(config.get("final_logit_softcapping"))),
        **tower_shape(config),
    }
    return {name: count for name, count in found.items() if count}
