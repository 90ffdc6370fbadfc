"""A separate drafter beside the model: its weights on the last stage, its layers in the cache.

Source: vLLM 0.33 vllm/v1/spec_decode/eagle.py, draft_model.py; vllm/model_executor/models
llama_eagle.py, llama_eagle3.py: a head shares the model's embedding, and the model's output layer
unless it has a vocabulary of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from shipfitter.core.facts import LayerFacts, LayerKind, ModelFacts, Shard, WeightGroup

# What the layers of a head are, by the model_type that its config states.
_LAYERS_OF = {
    "llama": "LlamaForCausalLM",
    "mistral": "LlamaForCausalLM",
    "qwen2": "LlamaForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
_TAPPED_LAYERS = 3  # EAGLE-3 reads hidden states of three of the model's layers
_USUAL_VOCABULARY = 32_000  # of an EAGLE-3 head
_HEAD_PLACE = "head"  # on the last stage


def is_head(method: str, config: Mapping[str, Any]) -> bool:
    """Whether the drafter is a head on the model's hidden states, not a model of its own."""
    return "eagle" in _stated(method, config)


def taps_layers(method: str, config: Mapping[str, Any]) -> bool:
    """Whether the head reads several of the model's layers: EAGLE-3."""
    return is_head(method, config) and "eagle3" in _stated(method, config)


def _stated(method: str, config: Mapping[str, Any]) -> str:
    named = " ".join(str(name) for name in config.get("architectures") or ())
    return f"{method} {named} {config.get('speculators_model_type', '')}".lower()


def config_of_layers(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The config of a head as if its layers were a model; None for a head that is not known."""
    inner = config.get("transformer_layer_config") or config
    architecture = _LAYERS_OF.get(str(inner.get("model_type", "llama")))
    if architecture is None or not inner.get("hidden_size"):
        return None
    layers = int(config.get("num_hidden_layers") or inner.get("num_hidden_layers") or 1)
    plain = {key: value for key, value in inner.items() if key != "quantization_config"}
    return {**plain, "architectures": [architecture], "num_hidden_layers": layers}


def with_drafting_model(model: ModelFacts, drafter: ModelFacts, *, divided: bool) -> ModelFacts:
    """The facts with a whole smaller model that drafts. `divided`: over the same ranks."""
    groups = tuple(_of_drafter(group, divided=divided) for group in drafter.weight_groups)
    rotary = WeightGroup(
        shard=Shard.REPLICATED, loaded_bytes=drafter.rotary_bytes, place=_HEAD_PLACE
    )
    return _with_layers(model, drafter.layers, (*groups, rotary))


def with_head(
    model: ModelFacts, layers: ModelFacts, config: Mapping[str, Any], *, method: str
) -> ModelFacts:
    """The facts with a head; `layers` are the facts of its layers."""
    taps = taps_layers(method, config)
    return _with_layers(model, layers.layers, tuple(_head_groups(model, layers, config, taps)))


def with_assumed_head(model: ModelFacts, method: str) -> ModelFacts | None:
    """The facts with a head whose config is not to be had: one layer like the model's own.

    None for a model without such layers. So are the published heads of Llama, Qwen and gpt-oss.
    """
    own = next((layer for layer in reversed(model.layers) if layer.kind is LayerKind.FULL), None)
    if own is None:
        return None
    width = own.intermediate_size or model.intermediate_size or 4 * model.hidden_size
    layers = replace(model, layers=(replace(own, intermediate_size=width, mlp="dense"),))
    config = {"draft_vocab_size": _USUAL_VOCABULARY} if "eagle3" in method else {}
    return with_head(model, layers, config, method=method)


def _with_layers(
    model: ModelFacts, layers: tuple[LayerFacts, ...], groups: tuple[WeightGroup, ...]
) -> ModelFacts:
    cached = tuple(layer for layer in layers if layer.kind is not LayerKind.NONE)
    return replace(
        model,
        weight_groups=(*model.weight_groups, *groups),
        extra={**model.extra, "drafter_layers": cached},
    )


def _of_drafter(group: WeightGroup, *, divided: bool) -> WeightGroup:
    shard = group.shard if divided else Shard.REPLICATED
    if shard is Shard.EXPERTS:  # its experts are not those that the model's parallelism spreads
        shard = Shard.DIVIDED
    tensor = f"drafter.{group.layer}.{group.tensor}" if group.tensor else ""
    return replace(group, shard=shard, place=_HEAD_PLACE, layer=-1, tensor=tensor, padded_size=0)


def _head_groups(
    model: ModelFacts, layers: ModelFacts, config: Mapping[str, Any], taps: bool
) -> Iterator[WeightGroup]:
    """In the model's dtype of two bytes: heads are not quantised."""
    hidden, read = layers.hidden_size, model.hidden_size
    inputs = 2 if taps else 1  # an EAGLE-3 layer reads embeddings beside hidden states
    joined = _TAPPED_LAYERS * read if taps else 2 * hidden
    divided = 0
    for layer in layers.layers:
        queries = layer.num_attention_heads * layer.head_dim
        keys_and_values = layer.num_key_value_heads * (layer.head_dim + layer.v_head_dim)
        divided += inputs * hidden * (queries + keys_and_values) + queries * hidden
        divided += 3 * hidden * layer.intermediate_size
    yield _group(Shard.REPLICATED, joined * hidden)
    yield _group(Shard.DIVIDED, divided)
    vocabulary = int(config.get("draft_vocab_size") or layers.vocab_size)
    if taps:
        yield _group(Shard.VOCAB, vocabulary * hidden)
    if (layers.vocab_size, hidden) != (model.vocab_size, read):
        yield _group(Shard.VOCAB, layers.vocab_size * hidden)


def _group(shard: Shard, elements: int) -> WeightGroup:
    return WeightGroup(shard=shard, loaded_bytes=2 * elements, place=_HEAD_PLACE)
