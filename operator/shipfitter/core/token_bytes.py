"""What one token costs in the cache, as a figure of the model."""

from shipfitter.core.model import LayerKind, ModelFacts

CACHE_ELEMENT_BYTES = 2  # bfloat16 and float16, the model's own dtype


def kv_bytes_per_token(model: ModelFacts) -> int:
    """Bytes one token takes over all layers on one GPU in the model's dtype.

    Layers with a window or chunk count as long as the token lies inside; recurrent state counts
    nothing: it does not grow with length.
    Source: vLLM 0.33 vllm/v1/kv_cache_interface.py.
    """
    total = 0
    for layer in model.layers:
        if layer.kind is LayerKind.MLA:
            total += layer.latent_dim * CACHE_ELEMENT_BYTES + layer.indexer_bytes_per_token
        elif layer.kind not in (LayerKind.STATE, LayerKind.NONE):
            per_head = layer.head_dim + layer.v_head_dim
            total += layer.num_key_value_heads * per_head * CACHE_ELEMENT_BYTES
    return total
