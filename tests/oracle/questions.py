"""Seeded random questions to the engine's cache planner; the same list for every release.

A question is what one rank knows: a cache for each layer, memory for each pipeline stage, and the
flags that the planner reads. Only the standard library, so that both sides can import it: `ask`
inside an engine's environment, the ordinary tests outside.
"""

import hashlib
import json
from collections.abc import Callable
from random import Random
from typing import Any

SEED = 20_260_401
COUNT = 2_400

Layer = dict[str, Any]
Question = dict[str, Any]

_MIB = 1 << 20
_HEADS = (1, 2, 4, 8, 16, 32)
_HEAD_DIMS = (64, 80, 96, 128, 192, 256)
_WINDOWS = (128, 512, 1024, 2047, 4096, 32768)
_LATENTS = (576, 320)
_DTYPE_BYTES = {"auto": 2, "fp8": 1}


def questions() -> list[Question]:
    """All questions, in order; changing anything here asks for new answers."""
    random = Random(SEED)
    families = tuple(_FAMILIES)
    return [_question(random, families[index % len(families)]) for index in range(COUNT)]


def digest(asked: list[Question]) -> str:
    """Tells whether answers belong to these questions."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def token_bytes(layer: Layer, cache_dtype: str) -> int:
    """Bytes of one token in an attention layer."""
    if layer["kind"] == "mla":
        return int(layer["latent"]) * _DTYPE_BYTES[cache_dtype]
    elements = layer["heads"] * (layer["dim"] + layer.get("v_dim", layer["dim"]))
    return int(elements) * _DTYPE_BYTES[cache_dtype]


def _question(random: Random, family: str) -> Question:
    cache_dtype = random.choice(("auto", "auto", "fp8"))
    block_tokens = random.choice((16, 16, 16, 32, 64))
    asked: Question = {
        "family": family,
        "cache_dtype": cache_dtype,
        "block_tokens": block_tokens,
        "hybrid_manager": random.random() > 0.12,
        "max_model_len": _length(random),
        "max_num_batched_tokens": random.choice((512, 2048, 2048, 8192, 16384)),
        "async_scheduling": random.random() > 0.3,
        "model_runner": random.choice(("V1", "V2")),
        "caches_prefixes": random.random() > 0.4,
        "drafts": 0,
        "draft_modules": 0,
        "dcp": 1,
        "override": None,
        "auto_fit": random.random() < 0.15,
    }
    asked["layers"] = _FAMILIES[family](random, asked)
    asked["stages"] = _stages(random, len(asked["layers"]))
    asked["available_bytes"] = _memory(random, asked)
    if random.random() < 0.06:
        asked["override"] = random.randint(1, 20_000)
    return asked


def _length(random: Random) -> int:
    length = int(2 ** random.uniform(9, 20))
    return length if random.random() < 0.3 else max(512, length // 1024 * 1024)


def _heads(random: Random) -> tuple[int, int]:
    return random.choice(_HEADS), random.choice(_HEAD_DIMS)


def _attention(kind: str, heads: int, dim: int, **more: int) -> Layer:
    return {"kind": kind, "heads": heads, "dim": dim, **more}


def _dense(random: Random, asked: Question) -> list[Layer]:
    if random.random() < 0.2:
        asked["dcp"] = random.choice((2, 4, 8))
    return [_attention("full", *_heads(random))] * random.randint(1, 96)


def _dense_of_unequal_layers(random: Random, asked: Question) -> list[Layer]:
    dim = random.choice(_HEAD_DIMS)
    values = {"v_dim": random.choice((64, 128))} if random.random() < 0.3 else {}
    heads = random.sample(_HEADS, random.randint(2, 4))
    shapes = [_attention("full", count, dim, **values) for count in heads]
    return [random.choice(shapes) for _ in range(random.randint(2, 80))]


def _latent(random: Random, asked: Question) -> list[Layer]:
    if random.random() < 0.3:
        asked["dcp"] = random.choice((2, 4, 8))
    layer = {"kind": "mla", "latent": random.choice(_LATENTS)}
    return [layer] * random.randint(2, 80)


def _sparse_latent(random: Random, asked: Question) -> list[Layer]:
    asked["block_tokens"], asked["cache_dtype"] = 64, "auto"
    return [{"kind": "mla", "latent": 576, "indexer": 132}] * random.randint(2, 80)


def _windows(random: Random, asked: Question) -> list[Layer]:
    """Windows alone, or between full layers of the same shape; some with modules that draft."""
    heads, dim = _heads(random)
    if random.random() < 0.25:
        asked["drafts"], asked["draft_modules"] = random.randint(1, 5), random.choice((1, 1, 2, 3))
    window = _attention("sliding", heads, dim, window=random.choice(_WINDOWS))
    if random.random() < 0.15:
        return [window] * random.randint(1, 64)
    return _interleaved(random, window, _attention("full", heads, dim))


def _windows_of_other_shapes(random: Random, asked: Question) -> list[Layer]:
    """Full layers with other heads than the windows: pages that must be unified."""
    window = _attention("sliding", *_heads(random), window=random.choice(_WINDOWS))
    full = _attention("full", *_heads(random))
    return _interleaved(random, window, full)


def _two_windows(random: Random, asked: Question) -> list[Layer]:
    heads, dim = _heads(random)
    short, long = sorted(random.sample(_WINDOWS, 2))
    layers = _interleaved(
        random,
        _attention("sliding", heads, dim, window=short),
        _attention("sliding", heads, dim, window=long),
    )
    full = _attention("full", heads, dim)
    return [full if random.random() < 0.2 else layer for layer in layers]


def _chunks(random: Random, asked: Question) -> list[Layer]:
    heads, dim = _heads(random)
    chunk = _attention("chunked", heads, dim, window=random.choice((2048, 8192)))
    return _interleaved(random, chunk, _attention("full", heads, dim))


def _latent_beside_windows(random: Random, asked: Question) -> list[Layer]:
    latent = {"kind": "mla", "latent": random.choice(_LATENTS)}
    window = _attention("sliding", *_heads(random), window=random.choice(_WINDOWS))
    return _interleaved(random, window, latent)


def _states(random: Random, asked: Question) -> list[Layer]:
    """Recurrent layers between attention: the state fits in the attention page, barely."""
    asked["block_tokens"] = 16
    asked["drafts"] = random.choice((0, 0, 1, 3))
    full = _attention("full", *_heads(random))
    per_token = token_bytes(full, asked["cache_dtype"])
    aligned = 16 * random.randint(2, 140)
    return _interleaved(random, _state(random, asked, per_token, aligned, 16), full)


def _states_beside_latent(random: Random, asked: Question) -> list[Layer]:
    asked["block_tokens"] = 16
    latent = {"kind": "mla", "latent": 576}
    per_token = token_bytes(latent, asked["cache_dtype"])
    aligned = 128 * random.randint(1, 20)
    return _interleaved(random, _state(random, asked, per_token, aligned, 64), latent)


def _states_alone(random: Random, asked: Question) -> list[Layer]:
    asked["block_tokens"] = 16
    layer = {"kind": "state", "bytes": 2 * random.randint(10_000, 4_000_000)}
    return [layer] * random.randint(1, 80)


def _state(random: Random, asked: Question, per_token: int, aligned: int, step: int) -> Layer:
    """A state whose page needs `aligned` tokens, counted in steps."""
    asked["aligned_block_tokens"] = aligned
    low, high = (aligned - step) * per_token, aligned * per_token
    state_bytes = random.randint(low // 2 + 1, high // 2) * 2
    return {"kind": "state", "bytes": state_bytes, "page_tokens_bytes": per_token}


def _interleaved(random: Random, many: Layer, few: Layer) -> list[Layer]:
    """Layers in a pattern of models people publish, or in no order at all."""
    if random.random() < 0.2:
        share = random.uniform(0.1, 0.9)
        layers = [many if random.random() < share else few for _ in range(random.randint(2, 70))]
        return [many, few, *layers]
    period, count = random.choice((2, 3, 4, 5, 6, 8)), random.randint(4, 72)
    return [few if index % period == period - 1 else many for index in range(max(count, period))]


def _stages(random: Random, layers: int) -> list[int]:
    """Layers of each pipeline stage, mostly one stage."""
    count = random.choice((1, 1, 1, 1, 2, 2, 3, 4))
    count = min(count, layers)
    sizes = [layers // count] * count
    for back in range(2, layers % count + 2):
        sizes[-back] += 1
    return sizes


def _memory(random: Random, asked: Question) -> list[int]:
    """Bytes of each stage: from far too little to plenty for one request."""
    wanted, first = [], 0
    for count in asked["stages"]:
        wanted.append(sum(_likely_bytes(layer, asked) for layer in asked["layers"][first:][:count]))
        first += count
    plenty = 2 ** random.uniform(-2.5, 5)
    if random.random() < 0.01:
        return [-random.randint(1, 100) * _MIB for _ in wanted]
    return [max(_MIB, int(size * plenty * random.uniform(0.97, 1.03))) for size in wanted]


def _likely_bytes(layer: Layer, asked: Question) -> int:
    if layer["kind"] == "state":
        return int(layer["bytes"]) * 2
    tokens = asked["max_model_len"] // asked["dcp"]
    if "window" in layer:
        tokens = min(tokens, layer["window"] + 2 * asked["max_num_batched_tokens"])
    return tokens * (token_bytes(layer, asked["cache_dtype"]) + layer.get("indexer", 0))


_FAMILIES: dict[str, Callable[[Random, Question], list[Layer]]] = {
    "dense": _dense,
    "dense, unequal layers": _dense_of_unequal_layers,
    "latent": _latent,
    "sparse latent": _sparse_latent,
    "windows": _windows,
    "windows of other shapes": _windows_of_other_shapes,
    "two windows": _two_windows,
    "chunks": _chunks,
    "latent beside windows": _latent_beside_windows,
    "states": _states,
    "states beside latent": _states_beside_latent,
    "states alone": _states_alone,
}
