"""Names that tell what a tensor is: towers, embeddings, heads, and how layers are divided."""

from collections.abc import Mapping
from types import MappingProxyType

TOWER = frozenset(
    (
        "visual",
        "vision_tower",
        "vision_model",
        "vision_encoder",
        "vision_embedder",
        "audio_tower",
        "audio_model",
        "multi_modal_projector",
        "mm_projector",
        "mlp1",
        "embed_vision",
        "embed_audio",
        "image_newline",
        "patch_merger",
        "pre_mm_projector_norm",
        "connector",
        "aligner",
        "audio_projector",
        "vision_language_adapter",
        "apm",
        "audio_encoder",
        "audio_projection_layer",
        "embed_tokens_extend",
        "image_projector",
        "language_projection",
        "modality_projection",
        "projector",
        "qformer",
        "resampler",
        "sam_model",
        "sound_encoder",
        "sound_projection",
        "speech_encoder",
        "view_seperator",
        "vision_adapter",
        "vision_backbone",
        "vision_embed_tokens",
        "vision_projection",
        "visual_tokenizer",
        "vit",
        "vit_large_projector",
        "vpm",
        "vte",
    )
)
# Parts of towers that no parallel layer holds; every rank has them whole.
# Source: vLLM vllm/model_executor/models/{siglip,clip,pixtral,mistral3,qwen3_vl,gemma3_mm}.py and
# gemma4_unified.py.
WHOLE_IN_TOWER = frozenset(
    (
        "patch_embed",
        "patch_embedding",
        "patch_conv",
        "position_embedding",
        "pos_embed",
        "pos_embedding",
        "merging_layer",
        "mm_input_projection_weight",
        "embedding_projection",
        "c_fc",
        "c_proj",
    )
)
EMBEDDING = frozenset(
    (
        "embed_tokens",
        "wte",
        "word_embeddings",
        "embeddings",
        "tok_embeddings",
        "embed_in",
    )
)
HEAD = frozenset(
    (
        "lm_head",
        "output",
        "embed_out",
        "output_layer",
    )
)
# Column-parallel maps of the whole model. Source: vLLM models/{gemma3n,gemma4}.py.
DIVIDED_OUTSIDE = frozenset(
    ("per_layer_model_projection", "altup_projections", "altup_unembed_projections")
)
KEY_VALUE = frozenset(
    (
        "k_proj",
        "v_proj",
        "wk",
        "wv",
    )
)
FUSED_QKV = frozenset(
    (
        "qkv_proj",
        "query_key_value",
        "c_attn",
        "W_pack",
        "Wqkv",
        "wqkv",
        "qkv",
    )
)
ROW_PARALLEL = frozenset(
    (
        "o_proj",
        "down_proj",
        "w2",
        "fc2",
        "c_proj",
        "out_proj",
        "dense",
        "dense_4h_to_h",
        "wo",
        "fc_out",
        "output_linear",
    )
)
REPLICATED = frozenset(
    (
        "gate",
        "router",
        "q_a_proj",
        "kv_a_proj_with_mqa",
        "shared_expert_gate",
        "per_layer_input_gate",
        "per_layer_projection",
        "fc1_latent_proj",
        "fc2_latent_proj",
        "routed_expert_down_proj",
        "routed_expert_up_proj",
        "f_a_proj",
        "g_a_proj",
        "wq_a",
        "wkv",
        "attn_sink",
        "hc_attn_fn",
        "hc_ffn_fn",
        "weights_proj",
        "e_score_correction",
    )
)
WHOLE_BLOCKS = frozenset(("indexer", "router", "compressor"))

# Modules the engine keeps in one tensor.
# Source: vLLM packed_modules_mapping of the classes; MergedColumnParallelLinear, QKVParallelLinear.
MERGED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("q_proj", "k_proj", "v_proj", "wq", "wk", "wv"), "qkv_proj"),
        **dict.fromkeys(("gate_proj", "up_proj", "w1", "w3"), "gate_up_proj"),
        **dict.fromkeys(("q_a_proj", "kv_a_proj_with_mqa"), "fused_qkv_a_proj"),
        **dict.fromkeys(("wq_a", "wkv"), "fused_wqa_wkv"),
        **dict.fromkeys(("in_proj_qkv", "in_proj_z"), "in_proj_qkvz"),
        **dict.fromkeys(("in_proj_a", "in_proj_b"), "in_proj_ba"),
    }
)
