"""Bytes of weights one rank holds: tensors by name, divided or not.

Source: vLLM 0.33 vllm/model_executor/layers/linear.py, vocab_parallel_embedding.py, fused_moe/.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from world.engine.architecture import heads, text_config
from world.engine.checkpoint import Checkpoint

BITS = {"F64": 64, "F32": 32, "I32": 32, "I64": 64, "BF16": 16, "F16": 16, "I16": 16, "F4": 4}
WHOLE = re.compile(
    r"norm|\.sinks$|mlp\.gate\.|router|q_a_proj|kv_a_proj|indexer|shared_expert_gate"
    r"|e_score_correction_bias|position_embedding|mm_input_projection|weight_shape"
)
ROW_BIAS = re.compile(r"(o_proj|down_proj|out_proj|fc2)\.bias$")
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
DRAFTER = re.compile(r"^mtp\.|^eagle|\.mtp\.")
EXPERT = re.compile(r"\.experts\.")


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """How the model is spread."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts_whole: bool = False


def stage_of(layer: int, layers: int, stages: int) -> int:
    """The stage that holds a layer: the rest of the division goes to the stages before the last.

    Source: vLLM vllm/distributed/utils.py get_pp_indices.
    """
    each, rest = divmod(layers, stages)
    sizes = [each] * stages
    for extra in range(rest):
        sizes[stages - 2 - extra] += 1
    for stage, size in enumerate(sizes):
        if layer < size:
            return stage
        layer -= size
    raise ValueError(f"no stage holds layer {layer}")


def weight_bytes(checkpoint: Checkpoint, ranks: Ranks) -> list[int]:
    """Bytes on a rank of each pipeline stage."""
    if not checkpoint.tensors:
        return [checkpoint.stored_bytes // (ranks.tensor * ranks.pipeline)] * ranks.pipeline
    text = text_config(checkpoint.config)
    layers = int(text.get("num_hidden_layers") or 0)
    tied = bool(text.get("tie_word_embeddings")) or not any(
        "lm_head" in name for name, _, _ in checkpoint.tensors
    )
    held = [0] * ranks.pipeline
    for name, dtype, shape in checkpoint.tensors:
        size = _bytes_on_rank(name, dtype, shape, checkpoint.config, ranks)
        match = LAYER.search(name) if "vision" not in name else None
        if DRAFTER.search(name) or (match and int(match[1]) >= layers):
            continue
        if match:
            held[stage_of(int(match[1]), layers, ranks.pipeline)] += size
        elif "lm_head" in name:
            held[-1] += 0 if tied else size
        else:
            held[-1 if re.search(r"(^|\.)norm\.weight$", name) else 0] += size
            if tied and "embed_tokens" in name and ranks.pipeline > 1:
                held[-1] += size
    absorbed = absorbed_bytes(checkpoint.config, ranks) * layers // ranks.pipeline
    return [size + rope_bytes(text) + absorbed for size in held]


def absorbed_bytes(config: Mapping[str, Any], ranks: Ranks) -> int:
    """A layer's latent projections once more in 16 bits, where the stored ones are quantised."""
    text = text_config(config)
    if not text.get("kv_lora_rank") or not config.get("quantization_config"):
        return 0
    per_head = int(text["kv_lora_rank"]) * (text["qk_nope_head_dim"] + text["v_head_dim"])
    return int(text["num_attention_heads"]) // ranks.tensor * per_head * 2


def _bytes_on_rank(
    name: str, dtype: str, shape: list[int], config: Mapping[str, Any], ranks: Ranks
) -> int:
    elements = 1
    for dimension in shape:
        elements *= dimension
    keeps_fp32 = "scale" in name or "correction_bias" in name
    bits = 16 if dtype == "F32" and not keeps_fp32 else BITS.get(dtype, 8)
    size = elements * bits // 8
    if "embed_tokens" in name or "lm_head" in name:
        padded = -(-shape[0] // 64) * 64
        return size * padded // shape[0] // ranks.tensor
    if WHOLE.search(name) or ROW_BIAS.search(name) or (name.endswith("_scale") and size <= 4):
        return size
    if EXPERT.search(name):
        return _expert_bytes(name, size, config, ranks)
    _, kv_heads, _ = heads(text_config(config))
    if re.search(r"\.(k_proj|v_proj)\.", name) and "vision" not in name:
        return size * max(1, kv_heads // ranks.tensor) // kv_heads
    return size // ranks.tensor


def _expert_bytes(name: str, size: int, config: Mapping[str, Any], ranks: Ranks) -> int:
    share = size // (ranks.tensor * ranks.data)
    text = text_config(config)
    scheme = config.get("quantization_config") or {}
    if scheme.get("quant_method") != "mxfp4" or not re.search(r"_(blocks|scales)$", name):
        return share
    # MXFP4 kernels pad the inner size of a rank to 128 and the hidden size to 256.
    hidden, inner = int(text["hidden_size"]), int(text["intermediate_size"])
    inner_on_rank = inner if ranks.experts_whole else inner // ranks.tensor
    padded = -(-hidden // 256) * 256 * (-(-inner_on_rank // 128) * 128)
    return share * padded // (hidden * inner_on_rank)


def rope_bytes(text: Mapping[str, Any]) -> int:
    """The table of cosines and sines every rank holds."""
    scaling = text.get("rope_scaling") or text.get("rope_parameters") or {}
    kind = scaling.get("rope_type") or scaling.get("type")
    rows = float(text.get("max_position_embeddings") or 131072)
    if kind in ("yarn", "deepseek_yarn"):
        rows = scaling.get("original_max_position_embeddings", rows) * scaling["factor"]
    elif kind == "linear":
        rows *= scaling["factor"]
    _, _, head_dim = heads(text)
    width = text.get("qk_rope_head_dim") or head_dim * text.get("partial_rotary_factor", 1.0)
    return int(rows * width * (4 if "kv_lora_rank" in text else 2))
