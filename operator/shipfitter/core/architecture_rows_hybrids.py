"""Model classes whose layers, or some of them, keep a recurrent state."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from shipfitter.core.architecture import Architecture
from shipfitter.core.architecture_rows_mixtures import BLOCK_SPARSE, DEEPSEEK

_QWEN_GDN = Architecture(
    pattern="gdn", qk_norm="head", output_gate=True, shared_expert_gate=True, own_layer="gdn"
)
_MAMBA2 = Architecture(pattern="mamba2", own_layer="mamba2", tied=True)
_LFM2 = Architecture(
    pattern="lfm2", own_layer="short_conv", qk_norm="head", tied=True, mlp="feed_forward"
)
_MAMBA_ALONE = Architecture(
    pattern="mamba2", norms=1, rotary=False, tied=True, mixer="mixer", mlp="none"
)

# Source: vLLM vllm/model_executor/models/registry.py and the module of each class, releases 0.8
# to 0.33.
HYBRIDS: Mapping[str, Architecture] = MappingProxyType(
    {
        "Qwen3NextForCausalLM": _QWEN_GDN,
        "Qwen3_5ForCausalLM": _QWEN_GDN,
        "Qwen3_5MoeForCausalLM": _QWEN_GDN,
        "KimiLinearForCausalLM": replace(
            DEEPSEEK,
            pattern="kda",
            own_layer="kda",
            rotary=False,
            mlp=BLOCK_SPARSE,
            more_norms="attn_res_block_size",
        ),
        "MambaForCausalLM": replace(_MAMBA_ALONE, own_layer="mamba1"),
        "FalconMambaForCausalLM": replace(_MAMBA_ALONE, own_layer="mamba1"),
        "Mamba2ForCausalLM": replace(_MAMBA_ALONE, own_layer="mamba2"),
        "NemotronHForCausalLM": replace(
            _MAMBA2, pattern="nemotron_h", own_layer="nemotron_h", rotary=False, tied=False
        ),
        "BambaForCausalLM": replace(_MAMBA2, pattern="bamba", tied=False),
        "GraniteMoeHybridForCausalLM": replace(
            _MAMBA2, mlp=BLOCK_SPARSE, expert_size_key="intermediate_size"
        ),
        "FalconH1ForCausalLM": replace(
            _MAMBA2, pattern="falcon_h1", tied=False, mlp="feed_forward", own_layer="falcon_h1"
        ),
        "Zamba2ForCausalLM": replace(_MAMBA2, pattern="zamba2", norms=1, mlp="none"),
        "Plamo2ForCausalLM": Architecture(
            pattern="plamo2", own_layer="plamo2", norms=4, qk_norm="heads", rotary=True
        ),
        "JambaForCausalLM": Architecture(
            pattern="jamba",
            own_layer="mamba1",
            rotary=False,
            mlp="feed_forward",
            expert_size_key="intermediate_size",
        ),
        "Lfm2ForCausalLM": _LFM2,
        "Lfm2MoeForCausalLM": replace(_LFM2, score_correction=True),
        "MiniMaxText01ForCausalLM": Architecture(
            pattern="minimax",
            own_layer="linear",
            mlp=BLOCK_SPARSE,
            expert_size_key="intermediate_size",
        ),
    }
)
