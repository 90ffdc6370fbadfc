"""What is asked of a model again and again, read from its layers once."""

from dataclasses import dataclass
from functools import lru_cache

from shipfitter.core.identity import SameModel
from shipfitter.core.model import LayerKind, ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Yes-or-no facts of a model's layers."""

    has_state: bool
    is_hybrid: bool
    has_latent: bool  # latent attention
    is_sparse: bool  # with an indexer
    is_packed: bool  # windows and compressed rows in one pool
    shares_caches: bool  # layers without a cache of their own
    state_families: frozenset[str]


def traits_of(model: ModelFacts) -> Traits:
    """The traits of a model, kept for as long as it is in use."""
    return _traits(SameModel(model))


@lru_cache(maxsize=256)
def _traits(same: SameModel) -> Traits:
    model = same.facts
    kinds = {layer.kind for layer in model.layers}
    states = [layer.state for layer in model.layers if layer.state is not None]
    return Traits(
        has_state=bool(states),
        is_hybrid=model.is_hybrid,
        has_latent=LayerKind.MLA in kinds,
        is_sparse=any(layer.indexer_bytes_per_token for layer in model.layers),
        is_packed=LayerKind.COMPRESSED in kinds,
        shares_caches=LayerKind.NONE in kinds,
        state_families=frozenset(state.family for state in states),
    )
