"""How many replicas each variant is to have now, and how it replaces its pods."""

from collections.abc import Mapping

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.plan import Plan, Sizing
from shipfitter.core.room import Room
from shipfitter.decide.groups import has_strategy
from shipfitter.decide.rollout import Strategy, spec_replicas, strategy
from shipfitter.decide.takeover import Takeover, takeover
from shipfitter.decide.world import Apply, World
from shipfitter.render.variant import variant_name, workload_kind
from shipfitter.render.workload import workload_scale

SCALE_MANAGER = "shipfitter-scale"


class Scaling:
    """The wanted variants by name, with the room there is for them."""

    def __init__(self, resource: ModelDeployment, world: World, plan: Plan) -> None:
        self._resource, self._world = resource, world
        allocation = resource.spec.gpus.allocation
        self.variants = {
            variant_name(resource.metadata.name, each.sizing, allocation=allocation): each
            for each in plan.variants
        }
        self.first = plan.variants[0].sizing
        self.moves: Takeover = takeover(
            {name: variant.replicas for name, variant in self.variants.items()},
            world.workloads,
            world.replicas,
            yields={name: self._yield_to(name) for name in self.variants},
            most=self._allowed(),
        )

    def strategy(self, name: str) -> Strategy:
        """How the variant of this name replaces its own pods."""
        pods = tuple(pod for pod in self._world.pods if pod.variant == name)
        variant = self.variants.get(name)
        sizing = variant.sizing if variant else self.first
        replicas = variant.replicas if variant else self._resource.spec.replicas
        # A surge pod that has its GPUs took the room there was: to give surging up now would end a
        # pod that serves for one that only starts.
        surges = sum(pod.gpus for pod in pods) > replicas * sizing.gpus_per_replica
        return strategy(
            str(self._resource.spec.rollout.mode),
            pods,
            room_to_surge=surges or self._room(sizing),
            now_seconds=self._world.now_seconds,
        )

    def scales(self) -> list[Apply]:
        """The scale of every variant that does not have it yet."""
        live = {workload.name: workload for workload in self._world.workloads}
        applies = []
        for name, replicas in sorted(self.moves.replicas.items()):
            how, found = self.strategy(name), live.get(name)
            same = found is not None and spec_replicas(found) == replicas
            if found is not None and same and has_strategy(found.body, how):
                continue
            kind = found.body["kind"] if found else workload_kind(self.variants[name].sizing)
            manifest = workload_scale(
                self._resource,
                name,
                kind=str(kind),
                replicas=replicas,
                max_surge=how.max_surge,
                max_unavailable=how.max_unavailable,
            )
            applies.append(Apply(manifest=manifest, manager=SCALE_MANAGER))
        return applies

    def _room(self, sizing: Sizing) -> bool:
        """Whether one more replica finds free GPUs on nodes of the pool, and no quota forbids."""
        members = {node.name for node in sizing.pool.nodes}
        layout = sizing.settings.layout
        pods = sum(
            (node.allocatable_gpus - node.used_gpus) // layout.gpus_per_node
            for node in self._world.nodes
            if node.name in members
            and node.resource_name == sizing.pool.resource_name
            and node.ready
            and node.schedulable
        )
        return pods >= layout.nodes and self._quota_left(sizing) >= sizing.gpus_per_replica

    def _quota_left(self, sizing: Sizing) -> float:
        """GPUs that quotas still allow beside all pods there are."""
        own = self._world.own_requests
        return min(
            (
                quota.left - sum(count for name, count in own.items() if quota.counts(name))
                for quota in self._world.quotas
                if quota.counts(sizing.pool.resource_name)
            ),
            default=float("inf"),
        )

    def _allowed(self) -> Mapping[str, int]:
        """Replicas of each variant that quotas allow, in the order of the variants."""
        most = {}
        room = Room((variant.sizing.pool for variant in self.variants.values()), self._world.quotas)
        for name, variant in self.variants.items():
            most[name] = min(variant.replicas, room.allowed(variant.sizing))
            room.take(variant.sizing, most[name])
        return most

    def _yield_to(self, name: str) -> frozenset[str]:
        """Other variants one of which must give up GPUs before this one's next pod can start."""
        sizing = self.variants[name].sizing
        if str(self._resource.spec.rollout.mode) == "Surge" or self._room(sizing):
            return frozenset()
        mine = [pod for pod in self._world.pods if pod.variant == name]
        waits = any(pod.waiting_for_gpu_since is not None for pod in mine)
        if not waits and any(pod.gpus and pod.serves and not pod.ready for pod in mine):
            return frozenset()  # it has its GPUs: the old ones serve until it does
        members = {node.name for node in sizing.pool.nodes}
        full = self._quota_left(sizing) < sizing.gpus_per_replica
        return frozenset(
            pod.variant
            for pod in self._world.pods
            if pod.variant != name and (full or pod.node in members)
        )
