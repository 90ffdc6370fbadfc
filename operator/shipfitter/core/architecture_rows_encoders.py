"""Model classes that read a prompt whole and keep nothing of it: for embeddings and scores."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from shipfitter.core.architecture import NEVER, Architecture
from shipfitter.core.architecture_rows_dense import BIASED, GEMMA3, LLAMA

_BERT = replace(
    BIASED,
    positions_offset=0,
    rotary=False,
    embedding_norm=True,
    final_norm=False,
    head=False,
    encoder=True,
    pipeline=False,
)
_ROTARY_BERT = replace(_BERT, positions_offset=None, rotary=True)

# Source: vLLM vllm/model_executor/models/{bert,roberta,bert_with_rope,modernbert}.py.
ENCODERS: Mapping[str, Architecture] = MappingProxyType(
    {
        "BertModel": _BERT,
        "RobertaModel": _BERT,
        "NomicBertModel": replace(
            _ROTARY_BERT,
            pattern="nomic",
            gated_mlp=True,
            qkv_bias="qkv_proj_bias",
            out_bias="qkv_proj_bias",
            mlp_bias="mlp_fc1_bias",
        ),
        "GteNewModel": replace(_ROTARY_BERT, gated_mlp=True, mlp_bias=NEVER),
        "ModernBertModel": replace(
            _ROTARY_BERT,
            pattern="modernbert",
            gated_mlp=True,
            qkv_bias="attention_bias",
            out_bias="attention_bias",
            mlp_bias="mlp_bias",
            norm_bias=False,
            final_norm=True,
        ),
        "LlamaBidirectionalModel": replace(LLAMA, encoder=True, head=False),
        "EmbeddingGemmaModel": replace(GEMMA3, encoder=True, head=False),
    }
)
