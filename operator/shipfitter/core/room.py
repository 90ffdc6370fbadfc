"""GPUs that are free for one deployment's replicas, while they are handed out."""

from collections import Counter
from collections.abc import Iterable

from shipfitter.core.candidate import Sizing
from shipfitter.core.inventory import Pool
from shipfitter.core.quota import GpuQuota, tightest

NO_LIMIT = 1 << 31


class Room:
    """What is left on pools and under quotas; the deployment's own GPUs count as free."""

    def __init__(self, pools: Iterable[Pool], quotas: Iterable[GpuQuota] = ()) -> None:
        self._pools = {pool.name: pool for pool in pools}
        self._replicas: Counter[str] = Counter()  # handed out, by pool
        self._allowed: dict[str, int] = {}  # GPUs that a quota still allows, by resource
        for name in {pool.resource_name for pool in self._pools.values()}:
            quota = tightest(quotas, name)
            if quota is not None:
                self._allowed[name] = quota.left

    def copy(self) -> "Room":
        """The same, to be handed out for a trial."""
        other = Room(())
        other._pools, other._replicas = self._pools, Counter(self._replicas)
        other._allowed = dict(self._allowed)
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
        allowed = self._allowed.get(sizing.pool.resource_name)
        return NO_LIMIT if allowed is None else max(0, allowed) // sizing.gpus_per_replica

    def take(self, sizing: Sizing, replicas: int) -> None:
        """These replicas have a place, or hold one already."""
        self._replicas[sizing.pool.name] += replicas
        resource = sizing.pool.resource_name
        if resource in self._allowed:
            self._allowed[resource] -= replicas * sizing.gpus_per_replica
