"""A quantity that cannot be known exactly, as an interval around a point."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A quantity we cannot know exactly: low <= point <= high."""

    low: int
    point: int
    high: int

    @classmethod
    def exactly(cls, value: int) -> "Estimate":
        """A quantity that is known."""
        return cls(low=value, point=value, high=value)

    @classmethod
    def around(cls, point: int, *, low_percent: int, high_percent: int) -> "Estimate":
        """A point with an interval in percent of it."""
        return cls(
            low=point * low_percent // 100, point=point, high=-(-point * high_percent // 100)
        )


def largest_of(estimates: Iterable[Estimate]) -> Estimate:
    """The largest of several quantities, whichever it turns out to be."""
    seen = tuple(estimates)
    return Estimate(
        low=max(one.low for one in seen),
        point=max(one.point for one in seen),
        high=max(one.high for one in seen),
    )


def sum_of(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of several quantities whose errors have nothing to do with each other.

    Such errors rarely all fall on the same side: they add up as the root of their squares.
    """
    point = low_squares = high_squares = 0
    for one in estimates:
        point += one.point
        low_squares += (one.point - one.low) ** 2
        high_squares += (one.high - one.point) ** 2
    return Estimate(
        low=point - isqrt(low_squares),
        point=point,
        high=point + isqrt(high_squares) + (high_squares > 0),
    )


def together(first: Estimate, second: Estimate) -> Estimate:
    """Two quantities that err to the same side, or of which one is exact."""
    return Estimate(
        low=first.low + second.low,
        point=first.point + second.point,
        high=first.high + second.high,
    )


def either(likeliest: Estimate, other: Estimate) -> Estimate:
    """A quantity that is one or the other, and the first by its point."""
    return Estimate(
        low=min(likeliest.low, other.low),
        point=likeliest.point,
        high=max(likeliest.high, other.high),
    )


def difference(whole: Estimate, part: Estimate) -> Estimate:
    """What is left of a quantity, with the errors of both."""
    return sum_of((whole, negative(part)))


def negative(estimate: Estimate) -> Estimate:
    """The quantity taken away instead of added."""
    return Estimate(low=-estimate.high, point=-estimate.point, high=-estimate.low)
