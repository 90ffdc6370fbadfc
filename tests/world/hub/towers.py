"""Tensors of vision towers."""

from collections.abc import Iterator, Mapping
from typing import Any

from world.hub.stored_linears import Linear

Piece = Linear | tuple[str, tuple[int, ...]]


def gemma3_vision(vision: Mapping[str, Any], text_hidden: int) -> Iterator[Piece]:
    """SigLIP and the projector into the language model."""
    width, inner = vision["hidden_size"], vision["intermediate_size"]
    patch, patches = vision["patch_size"], (vision["image_size"] // vision["patch_size"]) ** 2
    root = "vision_tower.vision_model."
    yield f"{root}embeddings.patch_embedding.weight", (width, 3, patch, patch)
    yield f"{root}embeddings.patch_embedding.bias", (width,)
    yield f"{root}embeddings.position_embedding.weight", (patches, width)
    for number in range(vision["num_hidden_layers"]):
        name = f"{root}encoder.layers.{number}."
        for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield Linear(f"{name}self_attn.{projection}", width, width, bias=True, keep=True)
        yield Linear(f"{name}mlp.fc1", inner, width, bias=True, keep=True)
        yield Linear(f"{name}mlp.fc2", width, inner, bias=True, keep=True)
        yield from _layer_norm(f"{name}layer_norm1", width)
        yield from _layer_norm(f"{name}layer_norm2", width)
    yield from _layer_norm(f"{root}post_layernorm", width)
    yield "multi_modal_projector.mm_input_projection_weight", (width, text_hidden)
    yield "multi_modal_projector.mm_soft_emb_norm.weight", (width,)


def _layer_norm(name: str, width: int) -> Iterator[Piece]:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)
