"""GPUs that are free for one deployment's replicas, while they are handed out."""

from collections import Counter
from collections.abc import Iterable

from shipfitter.core.candidate import Sizing
from shipfitter.core.inventory import Pool
from shipfitter.core.quota import GpuQuota

NO_LIMIT = 1 << 31


class Room:
    """What is left on pools and under quotas; the deployment's own GPUs count as free."""

    def __init__(self, pools: Iterable[Pool], quotas: Iterable[GpuQuota] = ()) -> None:
        self._pools = {pool.name: pool for pool in pools}
        self._replicas: Counter[str] = Counter()  # handed out, by pool
        self._quotas = tuple(quotas)
        self._spent = [0] * len(self._quotas)  # GPUs handed out that a quota counts

    def copy(self) -> "Room":
        """The same, to be handed out for a trial."""
        other = Room(self._pools.values(), self._quotas)
        other._replicas, other._spent = Counter(self._replicas), list(self._spent)
        return other

    def more(self, sizing: Sizing) -> int:
        """Replicas of this sizing that find a place beside those that were handed out."""
        layout, pool = sizing.settings.layout, self._pools.get(sizing.pool.name)
        if pool is None:
            return 0
        fit = pool.replicas_that_fit(layout.gpus_per_node, nodes=layout.nodes)
        return min(max(0, fit - self._replicas[pool.name]), self.allowed(sizing))

    def allowed(self, sizing: Sizing) -> int:
        """Replicas of this sizing that quotas allow beside those that were handed out."""
        lefts = (
            max(0, quota.left - spent)
            for quota, spent in zip(self._quotas, self._spent, strict=True)
            if quota.counts(sizing.pool.resource_name)
        )
        return min((left // sizing.gpus_per_replica for left in lefts), default=NO_LIMIT)

    def take(self, sizing: Sizing, replicas: int) -> None:
        """These replicas have a place, or hold one already."""
        self._replicas[sizing.pool.name] += replicas
        for index, quota in enumerate(self._quotas):
            if quota.counts(sizing.pool.resource_name):
                self._spent[index] += replicas * sizing.gpus_per_replica
