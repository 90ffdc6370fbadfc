"""A language model of two megabytes with random weights: `python tiny_model.py FOLDER`.

Run by the engine's Python. Nothing is downloaded: the configuration is what transformers writes for
a Qwen3, the tokenizer is trained on three sentences.
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SENTENCES = (
    "A model fits onto the GPUs that a cluster has.",
    "Nothing is created that does not fit.",
    "The engine says how much cache it found.",
)
END = "<end>"
LAYERS, HIDDEN, INNER, HEADS, HEAD = 4, 128, 256, 4, 64  # heads of 32 or 64 are what CPUs can do


def main(folder: Path) -> None:
    """All files of the checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = write_tokenizer(folder)
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "dtype": "float16",  # vLLM's bfloat16 on CPUs uses tiles that Linux must first allow
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": 65_536,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
        "attention_bias": False,
        "tie_word_embeddings": False,
        "eos_token_id": 0,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    save_file(weights(vocabulary), folder / "model.safetensors", metadata={"format": "pt"})


def write_tokenizer(folder: Path) -> int:
    """Bytes and some pairs of them; the size of the vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=384,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(described, indent=2))
    size: int = tokenizer.get_vocab_size()
    return size


def weights(vocabulary: int) -> dict[str, np.ndarray]:
    """The same random tensors every time."""
    chance = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (0.02 * chance.standard_normal((rows, columns))).astype(np.float16)

    def ones(size: int) -> np.ndarray:
        return np.ones(size, dtype=np.float16)

    tensors = {
        "model.embed_tokens.weight": matrix(vocabulary, HIDDEN),
        "lm_head.weight": matrix(vocabulary, HIDDEN),
        "model.norm.weight": ones(HIDDEN),
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        for name in ("q_proj", "k_proj", "v_proj"):
            tensors[f"{at}.self_attn.{name}.weight"] = matrix(HEADS * HEAD, HIDDEN)
        tensors[f"{at}.self_attn.o_proj.weight"] = matrix(HIDDEN, HEADS * HEAD)
        for name in ("q_norm", "k_norm"):
            tensors[f"{at}.self_attn.{name}.weight"] = ones(HEAD)
        for name in ("gate_proj", "up_proj"):
            tensors[f"{at}.mlp.{name}.weight"] = matrix(INNER, HIDDEN)
        tensors[f"{at}.mlp.down_proj.weight"] = matrix(HIDDEN, INNER)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{at}.{name}.weight"] = ones(HIDDEN)
    return tensors


if __name__ == "__main__":
    main(Path(sys.argv[1]))
