"""What went wrong in a start: one refusal out of all that was said."""

from collections.abc import Sequence

from shipfitter.core.engine_log.facts import EngineRefusal
from shipfitter.core.engine_log.figures import Value, figure, size_gib
from shipfitter.core.engine_log.refusals import Said
from shipfitter.core.refusals import Refusal

# What follows from another failure as often as it is one; among themselves in this order.
CONSEQUENCES = (Refusal.HOST_OUT_OF_MEMORY, Refusal.COMMUNICATION, Refusal.OTHER)


def refusal_said(kind: Refusal, said: Said) -> EngineRefusal:
    """A sentence with its figures."""
    figures: dict[str, Value] = {}
    for name, text in said.figures.items():
        value = size_gib(text) if text[-1:].isalpha() else figure(name, text)[1]
        if value is not None and name != "rest":
            figures[name] = value
    return EngineRefusal(kind=kind, message=said.message, **figures)  # type: ignore[arg-type]


def root_cause(failures: Sequence[EngineRefusal], exception: str) -> EngineRefusal | None:
    """The cause that was said last; else the likeliest of what looks like a consequence.

    `exception` is the last one that says anything: the text of a failure that is none of the known.
    """
    causes = [failure for failure in failures if failure.kind not in CONSEQUENCES]
    if causes:
        return _merged([cause for cause in causes if cause.kind == causes[-1].kind])
    for kind in CONSEQUENCES:
        for failure in failures:
            if failure.kind == kind:
                named = kind == Refusal.OTHER and exception
                return EngineRefusal(kind=kind, message=exception) if named else failure
    return None


def _merged(same: list[EngineRefusal]) -> EngineRefusal:
    """One refusal said several times, by ranks and along a chain of exceptions: all its figures."""
    fullest = max(same, key=_figures_named)
    names = [name for name in EngineRefusal.__slots__ if name not in ("kind", "message")]
    figures = {
        name: next((v for one in (fullest, *same) if (v := getattr(one, name)) is not None), None)
        for name in names
    }
    told = next((one for one in same if one.max_num_seqs is not None), fullest)
    return EngineRefusal(kind=fullest.kind, message=told.message, **figures)


def _figures_named(refusal: EngineRefusal) -> int:
    return sum(
        getattr(refusal, name) is not None
        for name in EngineRefusal.__slots__
        if name not in ("kind", "message")
    )
