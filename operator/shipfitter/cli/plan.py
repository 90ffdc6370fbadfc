"""`shipfitter plan`: the operator's own decision, with files or a cluster as its world."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.cli.facts import facts_for
from shipfitter.cli.nodes import (
    cluster_expected,
    cluster_has_groups,
    cluster_nodes,
    cluster_quotas,
    imagined_nodes,
    read_expected,
    read_nodes,
)
from shipfitter.cli.plan_text import plan_text
from shipfitter.core.expected import ExpectedNodes
from shipfitter.core.inventory import NodeCapacity
from shipfitter.core.quota import GpuQuota
from shipfitter.decide import Outcome, World, decide
from shipfitter.errors import InvalidSpecError, UserError
from shipfitter.status.conditions import find

Expected = tuple[ExpectedNodes, ...]

EXIT_FITS, EXIT_NO_FIT, EXIT_MISTAKE, EXIT_BORDERLINE = 0, 1, 2, 3
MISTAKES = (
    "InvalidSpec",
    "UnknownArchitecture",
    "ModelNotFound",
    "TokenRequired",
    "HubUnavailable",
)


def run_plan(
    file: Path,
    gpus: list[str],
    nodes: Path | None,
    *,
    output: str,
    manifests: bool,
    context: str | None,
    offline: bool,
) -> int:
    """Print the plan of every ModelDeployment in the file; the worst exit code of them."""
    try:
        bodies = _bodies(file)
        capacity = _capacity(gpus, nodes, context)
        # On paper a cluster has what a plan needs; a real one is asked.
        groups = bool(gpus or nodes) or cluster_has_groups(context)
        coming = _expected(gpus, nodes, context)
        world = World(
            now_seconds=time.time(),
            nodes=capacity,
            expected=coming,
            leader_worker_sets=groups,
            models={},
        )
        ask = not (gpus or nodes)  # on paper there are no quotas
        outcomes = [
            (body, _decide(body, world, ask=ask, context=context, offline=offline))
            for body in bodies
        ]
    except UserError as error:
        print(f"shipfitter: {error}", file=sys.stderr)
        return EXIT_MISTAKE
    codes = []
    for body, outcome in outcomes:
        _show(body, outcome, output=output, manifests=manifests)
        codes.append(_code(outcome))
    return max(codes, key=(EXIT_FITS, EXIT_BORDERLINE, EXIT_NO_FIT, EXIT_MISTAKE).index)


def _bodies(file: Path) -> Sequence[Mapping[str, Any]]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        documents = [body for body in yaml.safe_load_all(text) if body]
    except OSError as error:
        raise InvalidSpecError((f"{file}: {error.strerror}; give the path of a file",)) from error
    except yaml.YAMLError as error:
        raise InvalidSpecError((f"{file}: not YAML: {error}",)) from error
    bodies = [d for d in documents if isinstance(d, dict) and d.get("kind") == "ModelDeployment"]
    if not bodies:
        raise InvalidSpecError((f"{file}: holds no ModelDeployment",))
    for body in bodies:
        ModelDeployment.parse(body, unknown="forbid")
    return bodies


def _capacity(gpus: list[str], nodes: Path | None, context: str | None) -> tuple[NodeCapacity, ...]:
    if gpus:
        return imagined_nodes(gpus)
    if nodes is not None:
        return read_nodes(nodes)
    return cluster_nodes(context)


def _expected(gpus: list[str], nodes: Path | None, context: str | None) -> Expected:
    """Nodes that are not there yet; what is imagined is there."""
    if gpus:
        return ()
    return read_expected(nodes) if nodes is not None else cluster_expected(context)


def _decide(
    body: Mapping[str, Any], world: World, *, ask: bool, context: str | None, offline: bool
) -> Outcome:
    resource = ModelDeployment.parse(body)
    # A plan on paper starts from nothing: what the object's status says is the operator's.
    fresh = {key: value for key, value in body.items() if key != "status"}
    models = facts_for(resource, offline=offline)
    quotas = _quotas(resource, context) if ask else ()
    return decide(fresh, replace(world, models=models, quotas=quotas))


def _quotas(resource: ModelDeployment, context: str | None) -> tuple[GpuQuota, ...]:
    metadata = resource.metadata
    priority = resource.spec.placement.priority_class_name
    return cluster_quotas(context, metadata.namespace, metadata.name, priority)


def _code(outcome: Outcome) -> int:
    planned = find((outcome.status or {})["conditions"], "Planned") or {}
    ready = find((outcome.status or {})["conditions"], "Ready") or {}
    if planned.get("status") == "True":
        return EXIT_BORDERLINE if planned["reason"] == "Borderline" else EXIT_FITS
    return EXIT_MISTAKE if ready.get("reason") in MISTAKES else EXIT_NO_FIT


def _show(body: Mapping[str, Any], outcome: Outcome, *, output: str, manifests: bool) -> None:
    status = outcome.status or {}
    if manifests:
        texts = [yaml.safe_dump(dict(a.manifest), sort_keys=False) for a in outcome.applies]
        print("---\n".join(texts), end="")
        return
    shown = {
        "name": body["metadata"]["name"],
        "plan": status.get("plan"),
        "model": status.get("model"),
        "engine": status.get("engine"),
        "conditions": status["conditions"],
    }
    if output == "json":
        print(json.dumps(shown, indent=2))
    elif output == "yaml":
        print(yaml.safe_dump(shown, sort_keys=False), end="")
    else:
        print(plan_text(body, status))
