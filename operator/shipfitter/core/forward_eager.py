"""The forward pass without compilation: what Python frames hold at the peak of one layer.

Each function's temporaries die when it returns; what its callers still name lives on: the residual,
the output of the layer before, the row that the layer works on. Elements per batched token.

Source: vLLM 0.32 vllm/model_executor/models, run on tensors without data.
"""

from math import isqrt

from shipfitter.core.model import LayerFacts, LayerKind, ModelFacts
from shipfitter.units import ceil_div

# Residual, output of the layer before, attention's output.
_CALLERS_ROWS = 3
# Classes whose MLP keeps no name for gate and up, so that they are gone when its output is made.
_DROPS_GATE = ("Llama", "Mistral", "Phi3", "DeciLM")
# Norms that scale by one plus the weight make a new residual where others write into the old one.
_NEW_RESIDUAL = ("Gemma", "Qwen3_5", "Qwen3Next")


def eager_dense_elements(model: ModelFacts, inner: int, tensor_parallel_size: int) -> int:
    """The MLP: gate and up, their product, and rows of the hidden size."""
    hidden = model.hidden_size
    rows = _CALLERS_ROWS + model.architecture.startswith(_NEW_RESIDUAL)
    at_product = 3 * inner + rows * hidden
    # The output, and under tensor parallelism its sum over the ranks.
    made = 1 if tensor_parallel_size == 1 else 2
    kept = 1 if model.architecture.startswith(_DROPS_GATE) else 3
    return max(at_product, kept * inner + (rows + made) * hidden)


def eager_attention_elements(
    model: ModelFacts, layer: LayerFacts, tensor_parallel_size: int
) -> int:
    """Attention when its output is projected: qkv, the queries' and the keys' copies, the output.

    Hidden rows: residual, input, the projected output and, over several ranks, its sum.
    """
    if layer.kind not in (LayerKind.FULL, LayerKind.SLIDING, LayerKind.CHUNKED):
        return 0
    keys = max(1, layer.num_key_value_heads // tensor_parallel_size) * layer.head_dim
    queries = ceil_div(layer.num_attention_heads, tensor_parallel_size) * layer.head_dim
    rows = 3 if tensor_parallel_size == 1 else 4
    return (queries + 2 * keys) + 2 * queries + keys + rows * model.hidden_size


def eager_recurrent_elements(
    model: ModelFacts, layer: LayerFacts, tensor_parallel_size: int
) -> int:
    """A recurrent layer after its norm: projections, what is cut out of them, the output."""
    state = layer.state
    if state is None:
        return 0
    value_width = state.recurrent_heads * isqrt(state.recurrent_elements_per_head)
    values = ceil_div(value_width, tensor_parallel_size)
    projected = ceil_div(state.in_proj_width, tensor_parallel_size)
    rows = (_CALLERS_ROWS + 2) * model.hidden_size
    if not model.architecture.startswith("Qwen3Next"):
        return rows + projected + 2 * values
    # Its checkpoint orders the projection by head: queries, keys, values and gate are copied out,
    # the first three joined for the convolution; output, its norm and one value copy beside them.
    convolved = ceil_div(state.conv_channels, tensor_parallel_size)
    return rows + projected + 2 * convolved + 4 * values
