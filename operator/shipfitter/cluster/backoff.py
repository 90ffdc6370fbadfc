"""How long to wait before asking again: doubling, spread by chance, never less than asked for."""

import random
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Waits that double from `first_seconds` to `most_seconds` until `reset`."""

    first_seconds: float = 1.0
    most_seconds: float = 300.0
    chance: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def next_seconds(self, retry_after_seconds: float | None = None) -> float:
        """The wait after one more failure: 75 to 100 % of the step, or what the server asked."""
        step = min(self.most_seconds, self.first_seconds * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return max(step * self.chance.uniform(0.75, 1.0), retry_after_seconds or 0.0)

    def reset(self) -> None:
        """The next failure is the first one again."""
        self.failures = 0
