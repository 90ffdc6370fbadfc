"""What a model class does that its config.json does not say, as one row."""

from dataclasses import dataclass

ALWAYS, NEVER = "always", "never"  # or the config keys that decide, any of them: "use_bias|bias"


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What a class does that its config.json does not say.

    `pattern` names how layer kinds follow where config.json has no `layer_types`. Switches that
    are strings are ALWAYS, NEVER or the config keys that turn them on.
    """

    pattern: str = "full"
    attention: str = "gqa"  # gqa | mla | mla_expanded (latent weights, plain cache) | compressed
    qkv_bias: str = NEVER
    out_bias: str = NEVER
    qk_norm: str = ""  # "" | head: one head wide | width: all heads | heads: a row per head
    qk_norm_key: str = ALWAYS
    output_gate: bool = False  # q_proj also makes a gate: twice as wide
    attention_gate: str = ""  # a gate of its own: "" | width: all heads wide | heads: one per head
    attention_gate_key: str = ALWAYS
    sinks: bool = False  # one learned number per head
    gated_mlp: bool = True
    mlp_bias: str = NEVER
    norms: int = 2  # per layer, hidden_size wide
    more_norms: str = NEVER  # two more per layer
    norm_bias: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    head: bool = True  # False: embeddings, scores; no vocabulary at the end
    head_bias: bool = False
    router_bias: bool = False
    shared_expert_gate: bool = False
    expert_bias: bool = False
    score_correction: bool = False
    expert_size_key: str = "moe_intermediate_size"
    shared_experts_per_size: bool = False  # the shared width is a multiple of the dense one
    positions_offset: int | None = None  # learned positions: max_position_embeddings + offset rows
    rotary: bool = True
    rotated_part: float = 1.0  # of a head, where config.json is silent
    float32_rope: bool = False
    mixer: str = "self_attn"  # the attention's name in the checkpoint
    mlp: str = "mlp"
    tied: bool = False  # where config.json is silent
    pipeline: bool = True
    own_layer: str = ""  # family whose layers are built by their own rule (`special_modules`)
    encoder: bool = False  # reads a prompt whole and keeps nothing
