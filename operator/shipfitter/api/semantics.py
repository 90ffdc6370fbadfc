"""Every mistake beyond types and bounds, found in the raw object so that none hides another.

The rules that the API server checks too share their wording with it; the others only we can see:
what stands in engine.args, in the template and in the inline facts.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shipfitter.api import rules
from shipfitter.api.engine_args import argument_problems, pinned_flags
from shipfitter.api.model_source import canonical_uri
from shipfitter.api.template_overlay import template_problems

Problem = str


def at(body: Any, path: str) -> Any:
    """What stands at a dotted path; None where there is nothing, or something else on the way."""
    for key in path.split("."):
        if not isinstance(body, Mapping):
            return None
        body = body.get(key)
    return body


def semantic_problems(body: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Each problem as 'path: what is wrong: the way out', in the order of the spec."""
    checks = (
        _name_problems,
        _model_problems,
        _engine_problems,
        _workload_problems,
        _gpu_problems,
        _placement_problems,
        _storage_problems,
        _resource_problems,
        _overlay_problems,
    )
    return tuple(problem for check in checks for problem in check(body))


def _name_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    name = at(body, "metadata.name")
    if isinstance(name, str) and (
        not re.fullmatch(rules.NAME_PATTERN.strip("^$"), name) or name == rules.FORBIDDEN_NAME
    ):
        yield f"metadata.name: {rules.NAME_RULE.message}, got {name!r}"


def _items(body: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    found = at(body, path)
    for index, item in enumerate(found if isinstance(found, list | tuple) else ()):
        yield f"{path}[{index}]", item


def _model_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    seen: set[tuple[str, Any]] = set()
    choices = [
        ("spec.model", at(body, "spec.model")),
        *_items(body, "spec.model.alternatives"),
    ]
    for path, choice in choices:
        uri = at(choice, "uri")
        if isinstance(uri, str):
            yield from _uri_problems(f"{path}.uri", uri)
            key = (canonical_uri(uri), at(choice, "revision"))
            if key in seen:
                yield f"{path}.uri: the same model stands before: remove it, got {uri!r}"
            seen.add(key)
            if key[0].startswith("pvc://") and at(choice, "revision"):
                yield f"{path}.revision: files on a claim have no revisions: remove it"
        yield from _facts_problems(f"{path}.facts", at(choice, "facts"))


def _uri_problems(path: str, uri: str) -> Iterator[Problem]:
    if not rules.is_model_uri(uri):
        yield f"{path}: {rules.URI_RULE.message}, got {uri!r}"


def _facts_problems(path: str, facts: Any) -> Iterator[Problem]:
    if not isinstance(facts, Mapping):
        return
    for key in facts:
        if key not in ("config", "weightsBytes"):
            yield f"{path}.{key}: not known: facts hold config (config.json) and weightsBytes"
    config, weights = facts.get("config"), facts.get("weightsBytes")
    if not isinstance(config, Mapping) or not config:
        yield f"{path}.config: put the content of the model's config.json here"
    elif not config.get("architectures"):
        yield f"{path}.config.architectures: names no class: copy config.json whole"
    if weights is not None and (not isinstance(weights, int) or weights <= 0 or weights is True):
        yield f"{path}.weightsBytes: should be the size of the weight files, got {weights!r}"


def _engine_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    image, version = at(body, "spec.engine.image"), at(body, "spec.engine.version")
    unread = isinstance(image, str) and not re.search(rules.VERSION_TAG_PATTERN, image)
    if unread and version is None:
        yield f"spec.engine.version: {rules.VERSION_FOR_IMAGE.message}, got image {image!r}"
    if isinstance(version, str) and not re.search(rules.VERSION_PATTERN, version):
        yield (
            f"spec.engine.version: should be a release of the engine "
            f'such as "0.33.0", got {version!r}'
        )
    arguments = at(body, "spec.engine.args")
    if isinstance(arguments, list | tuple) and all(isinstance(a, str) for a in arguments):
        for problem in argument_problems(arguments):
            yield f"spec.engine.args: {problem}"
    names: set[str] = set()
    for path, variable in _items(body, "spec.engine.env"):
        name = at(variable, "name")
        if isinstance(name, str):
            if name in names:
                yield f"{path}.name: stands twice: keep one, got {name!r}"
            names.add(name)
        if at(variable, "value") is not None and at(variable, "valueFrom") is not None:
            yield f"{path}: {rules.ONE_ENV_SOURCE.message}"


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _workload_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    for field in ("maxModelLen", "maxNumSeqs"):
        path = f"spec.workload.{field}"
        least, best = _whole(at(body, f"{path}.min")), _whole(at(body, f"{path}.preferred"))
        if least is not None and best is not None and least > best:
            yield f"{path}: {rules.MIN_UP_TO_PREFERRED.message}, got min {least}, preferred {best}"


def _gpu_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    products = at(body, "spec.gpus.products")
    if isinstance(products, list | tuple) and not products:
        yield f"spec.gpus.products: {rules.PRODUCTS_NOT_EMPTY.message}"
    most = at(body, "spec.gpus.perReplica.max")
    most = rules.DEFAULT_MAX_GPUS_PER_REPLICA if most is None else _whole(most)
    wanted = _whole(at(body, "spec.gpus.tensorParallelSize"))
    if wanted is not None and most is not None and wanted > most:
        yield (
            f"spec.gpus.tensorParallelSize: {rules.TENSOR_PARALLEL_WITHIN_REPLICA.message}, "
            f"got {wanted}"
        )
    yield from _pinned_against_spec(body, wanted)


def _pinned_against_spec(body: Mapping[str, Any], tensor_parallel: int | None) -> Iterator[Problem]:
    """The same thing said twice, differently: in engine.args and in the spec."""
    arguments = at(body, "spec.engine.args")
    if not isinstance(arguments, list | tuple) or not all(isinstance(a, str) for a in arguments):
        return
    pinned = pinned_flags(arguments)
    ranks = pinned.get("tensor_parallel_size")
    if ranks is not None and tensor_parallel is not None and ranks != tensor_parallel:
        yield (
            f"spec.engine.args: --tensor-parallel-size {ranks} contradicts "
            f"spec.gpus.tensorParallelSize {tensor_parallel}: remove one"
        )
    for setting, field in (("max_model_len", "maxModelLen"), ("max_num_seqs", "maxNumSeqs")):
        value, least = pinned.get(setting), _whole(at(body, f"spec.workload.{field}.min"))
        if isinstance(value, int) and least is not None and value < least:
            yield (
                f"spec.engine.args: --{setting.replace('_', '-')} {value} is below "
                f"spec.workload.{field}.min {least}: lower min or remove the flag"
            )


def _placement_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    for path, toleration in _items(body, "spec.placement.tolerations"):
        if at(toleration, "operator") == "Exists" and at(toleration, "value"):
            yield f"{path}: {rules.EXISTS_HAS_NO_VALUE.message}"


def _storage_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    claim = at(body, "spec.storage.cacheClaim")
    if claim == "":
        yield "spec.storage.cacheClaim: names no claim: name one, or remove it"


def _resource_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    for part in ("requests", "limits"):
        found = at(body, f"spec.resources.{part}")
        for name in found if isinstance(found, Mapping) else ():
            if "gpu" in str(name) or str(name).startswith("nvidia.com/"):
                yield (
                    f"spec.resources.{part}[{name}]: the plan sets the number of GPUs: remove it, "
                    "and use spec.gpus.perReplica.max or spec.gpus.tensorParallelSize"
                )


def _overlay_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    template = at(body, "spec.template")
    if isinstance(template, Mapping):
        for path, problem in template_problems(template):
            yield f"spec.template.{path}: {problem}"
