"""Writes onto nodes which kind they are, where the chart lets us: labels a plan can select by."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from shipfitter.cluster.client import MERGE_PATCH, Client
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.kinds import NODE
from shipfitter.core.inventory import NodeCapacity
from shipfitter.core.pool_label import POOL_LABEL, pool_label

MANAGER = "shipfitter"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class NodeLabels:
    """Keeps one label of each GPU node right; a node that cannot be written is told of once."""

    client: Client
    _refused: set[str] = field(default_factory=set)

    def write(self, capacities: Iterable[NodeCapacity]) -> None:
        """Nodes whose GPUs were seen say which kind they are; those not seen keep what they say."""
        ordered = sorted(capacities, key=attrgetter("name"))
        for name, group in groupby(ordered, key=attrgetter("name")):
            offers = tuple(group)
            value = pool_label(offers)
            if value and offers[0].labels.get(POOL_LABEL) != value:
                self._write(name, value)

    def _write(self, name: str, value: str) -> None:
        patch = {"metadata": {"labels": {POOL_LABEL: value}}}
        path = NODE.path(name=name)
        try:
            self.client.patch(path, patch, content_type=MERGE_PATCH, manager=MANAGER)
        except ApiError as error:
            if name not in self._refused and not error.not_found:
                log.warning("node %s: label %s not written: %s", name, POOL_LABEL, error.message)
            self._refused.add(name)
        else:
            log.info("node %s: label %s=%s", name, POOL_LABEL, value)
            self._refused.discard(name)
