"""Models as cache keys: facts hold mappings, so they are told apart by identity, not by value."""

from shipfitter.core.model import ModelFacts


class SameModel:
    """Hashable stand-in for one ModelFacts object; equal only to the same object's."""

    __slots__ = ("facts",)

    def __init__(self, facts: ModelFacts) -> None:
        self.facts = facts

    def __hash__(self) -> int:
        return id(self.facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameModel) and other.facts is self.facts
