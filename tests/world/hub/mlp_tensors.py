"""Tensors of one layer's feed-forward part, by kind."""

from collections.abc import Iterator, Mapping
from typing import Any

from world.hub.stored_linears import Linear
from world.hub.virtual_files import Tensor

Piece = Linear | tuple[str, tuple[int, ...]] | Tensor


def gated(prefix: str, hidden: int, intermediate: int) -> Iterator[Linear]:
    """Gate, up and down projection."""
    yield Linear(f"{prefix}gate_proj", intermediate, hidden)
    yield Linear(f"{prefix}up_proj", intermediate, hidden)
    yield Linear(f"{prefix}down_proj", hidden, intermediate)


def dense(prefix: str, text: Mapping[str, Any]) -> Iterator[Linear]:
    yield from gated(f"{prefix}mlp.", text["hidden_size"], text["intermediate_size"])


def experts(prefix: str, text: Mapping[str, Any], number: int) -> Iterator[Linear]:
    """A router and experts one by one."""
    yield Linear(f"{prefix}mlp.gate", number, text["hidden_size"], keep=True)
    for expert in range(number):
        yield from gated(
            f"{prefix}mlp.experts.{expert}.", text["hidden_size"], text["moe_intermediate_size"]
        )


def shared_expert(prefix: str, text: Mapping[str, Any]) -> Iterator[Linear]:
    """The expert every token passes, with its own gate, as Qwen stores it."""
    hidden = text["hidden_size"]
    yield from gated(f"{prefix}mlp.shared_expert.", hidden, text["shared_expert_intermediate_size"])
    yield Linear(f"{prefix}mlp.shared_expert_gate", 1, hidden, keep=True)


def mixtral(prefix: str, text: Mapping[str, Any]) -> Iterator[Linear]:
    hidden, intermediate = text["hidden_size"], text["intermediate_size"]
    name = f"{prefix}block_sparse_moe."
    yield Linear(f"{name}gate", text["num_local_experts"], hidden, keep=True)
    for expert in range(text["num_local_experts"]):
        yield Linear(f"{name}experts.{expert}.w1", intermediate, hidden)
        yield Linear(f"{name}experts.{expert}.w2", hidden, intermediate)
        yield Linear(f"{name}experts.{expert}.w3", intermediate, hidden)


def mxfp4_experts(prefix: str, text: Mapping[str, Any]) -> Iterator[Piece]:
    """gpt-oss: a layer's experts in one tensor, two values a byte, one scale byte per 32."""
    hidden, intermediate = text["hidden_size"], text["intermediate_size"]
    number = text["num_local_experts"]
    yield Linear(f"{prefix}mlp.router", number, hidden, bias=True, keep=True)
    for name, rows, columns in (
        ("gate_up_proj", 2 * intermediate, hidden),
        ("down_proj", hidden, intermediate),
    ):
        stem = f"{prefix}mlp.experts.{name}"
        yield Tensor(f"{stem}_blocks", "U8", (number, rows, columns // 32, 16))
        yield Tensor(f"{stem}_scales", "U8", (number, rows, columns // 32))
        yield f"{stem}_bias", (number, rows)
