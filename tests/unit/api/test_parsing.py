"""Reading a resource: what is understood, and every mistake at once."""

import pytest
import yaml

from shipfitter.api.model_deployment import Allocation, ModelDeployment
from shipfitter.core.plan import Prefer
from shipfitter.errors import InvalidSpecError
from unit.api.full_sample import model_deployment
from unit.api.mistakes import MISTAKES, RIGHT, changed, minimal


def problems(changes=None, *, unknown="ignore"):
    with pytest.raises(InvalidSpecError) as error:
        ModelDeployment.parse(changed(minimal(), changes or {}), unknown=unknown)
    return error.value.problems


def test_five_lines_are_enough():
    spec = ModelDeployment.parse(minimal(), unknown="forbid").spec
    assert spec.replicas == 1
    assert spec.model.uri == "hf://meta-llama/Llama-3.1-8B-Instruct"
    assert spec.workload.prefer is Prefer.BALANCED
    assert spec.gpus.allocation is Allocation.DEVICE_PLUGIN
    assert spec.resize.minimum_gain_percent == 15


def test_everything_is_understood_and_written_back_as_it_was():
    body = model_deployment()
    resource = ModelDeployment.parse(body, unknown="forbid")
    written = resource.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert written["spec"] == body["spec"]
    assert written["status"] == body["status"]


def test_yaml_dates_in_the_metadata_are_no_obstacle():
    body = yaml.safe_load(
        """
        apiVersion: shipfitter.dev/v1alpha1
        kind: ModelDeployment
        metadata: {name: llama, creationTimestamp: 2026-03-01T12:00:00Z, managedFields: [{}]}
        spec: {model: {uri: a/b}}
        """
    )
    assert ModelDeployment.parse(body, unknown="forbid").metadata.name == "llama"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_what_the_api_server_would_say(mistake):
    with pytest.raises(InvalidSpecError) as error:
        ModelDeployment.parse(mistake.body())
    (problem,) = error.value.problems
    assert problem.startswith(f"{mistake.path}: {mistake.rule.message}")


@pytest.mark.parametrize("what", RIGHT)
def test_what_people_write_is_taken(what):
    ModelDeployment.parse(changed(minimal(), RIGHT[what]), unknown="forbid")


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param(
            {"spec.replicas": "2"},
            'spec.replicas: should be a valid integer, got "2"',
            id="a number in quotes is no number",
        ),
        pytest.param(
            {"spec.engine.version": 0.33},
            "spec.engine.version: should be a valid string, got 0.33 (put it in quotes)",
            id="a version without quotes is no string",
        ),
        pytest.param(
            {"spec.workload.maxModelLen.min": 0},
            "spec.workload.maxModelLen.min: should be greater than or equal to 1, got 0",
            id="a bound of the schema",
        ),
        pytest.param(
            {"spec.resources.requests": {"cpu": 0.5}},
            'spec.resources.requests.cpu: should be a quantity such as 4, "500m" or "16Gi", '
            "got 0.5",
            id="a number with a point is no quantity",
        ),
        pytest.param(
            {"spec.resources.limits": {"nvidia.com/gpu": 2}},
            "spec.resources.limits[nvidia.com/gpu]: the plan sets the number of GPUs: remove it, "
            "and use spec.gpus.perReplica.max or spec.gpus.tensorParallelSize",
            id="a number of GPUs beside the plan's",
        ),
        pytest.param(
            {"spec.model": {}},
            "spec.model.uri: is missing: add it",
            id="a missing field",
        ),
        pytest.param(
            {"spec.gpus.allocation": "CDI"},
            "spec.gpus.allocation: should be 'DevicePlugin' or 'DRA', got \"CDI\"",
            id="a word that is none of the choices",
        ),
        pytest.param(
            {"spec.model.alternatives": [{"uri": "a/b"}, {"uri": 5}]},
            "spec.model.alternatives[1].uri: should be a valid string, got 5 (put it in quotes)",
            id="a place in a list",
        ),
        pytest.param(
            {"apiVersion": "shipfitter.dev/v2"},
            "apiVersion: should be 'shipfitter.dev/v1alpha1', got \"shipfitter.dev/v2\"",
            id="another version of the API",
        ),
        pytest.param(
            {"spec.model.alternatives": [{"uri": "meta-llama/Llama-3.1-8B-Instruct"}]},
            "spec.model.alternatives[0].uri: the same model stands before: remove it, "
            "got 'meta-llama/Llama-3.1-8B-Instruct'",
            id="an alternative that is the model itself, spelled differently",
        ),
        pytest.param(
            {"spec.model.uri": "pvc://models/llama", "spec.model.revision": "main"},
            "spec.model.revision: files on a claim have no revisions: remove it",
            id="a revision of files that have none",
        ),
        pytest.param(
            {"spec.model.facts": {"config": {"hidden_size": 1}, "weightBytes": 1}},
            "spec.model.facts.weightBytes: not known: facts hold config (config.json) "
            "and weightsBytes",
            id="a misspelt fact",
        ),
        pytest.param(
            {"spec.model.facts": {"config": {"hidden_size": 1}}},
            "spec.model.facts.config.architectures: names no class: copy config.json whole",
            id="a config without its class",
        ),
        pytest.param(
            {"spec.engine.version": "latest"},
            'spec.engine.version: should be a release of the engine such as "0.33.0", '
            "got 'latest'",
            id="a version that is none",
        ),
        pytest.param(
            {"spec.engine.env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
            "spec.engine.env[1].name: stands twice: keep one, got 'A'",
            id="a variable set twice",
        ),
        pytest.param(
            {"spec.engine.args": ["-tp=4"], "spec.gpus.tensorParallelSize": 2},
            "spec.engine.args: --tensor-parallel-size 4 contradicts "
            "spec.gpus.tensorParallelSize 2: remove one",
            id="two sizes for one thing",
        ),
        pytest.param(
            {"spec.engine.args": ["--max-model-len=4k"], "spec.workload.maxModelLen.min": 8192},
            "spec.engine.args: --max-model-len 4000 is below spec.workload.maxModelLen.min 8192: "
            "lower min or remove the flag",
            id="a pinned length below the least",
        ),
        pytest.param(
            {"spec.storage.cacheClaim": ""},
            "spec.storage.cacheClaim: names no claim: name one, or remove it",
            id="a claim without a name",
        ),
        pytest.param(
            {"spec.template": {"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}}},
            "spec.template.spec.volumes[0].hostPath: pods may not mount the host's files: "
            "use a claim",
            id="a mount of the host",
        ),
    ],
)
def test_a_mistake_has_its_path_and_what_was_found(changes, want):
    assert want in problems(changes)


def test_every_mistake_is_reported_at_once():
    found = problems(
        {
            "metadata.name": "Llama",
            "spec.replicas": -1,
            "spec.model.uri": "llama",
            "spec.engine.args": ["--port=80", "--max-num-seqs=few"],
            "spec.gpus.products": [],
            "spec.template": {"spec": {"hostNetwork": True}},
        }
    )
    assert [problem.split(":")[0] for problem in found] == [
        "spec.replicas",
        "metadata.name",
        "spec.model.uri",
        "spec.engine.args",
        "spec.engine.args",
        "spec.gpus.products",
        "spec.template.spec.hostNetwork",
    ]


def test_the_operator_leaves_unknown_fields_to_newer_versions():
    body = changed(minimal(), {"spec.workload.latencyTarget": 5, "status.phase": "New"})
    assert ModelDeployment.parse(body).spec == ModelDeployment.parse(minimal()).spec


@pytest.mark.parametrize(
    ("path", "way_out"),
    [
        ("spec.workload.maxModelLenght", "did you mean maxModelLen?"),
        ("spec.workload.max_model_len", "did you mean maxModelLen?"),
        ("spec.colour", "see kubectl explain modeldeployment.spec"),
    ],
)
def test_the_command_line_takes_an_unknown_field_for_a_typo(path, way_out):
    assert problems({path: 5}, unknown="forbid") == (f"{path}: no such field: {way_out}, got 5",)


def test_a_status_of_another_version_is_not_held_against_the_user():
    body = changed(minimal(), {"status": {"replicas": "many"}})
    assert ModelDeployment.parse(body).status.replicas is None


@pytest.mark.parametrize("body", [{}, {"spec": None}, {"metadata": None, "spec": []}])
def test_an_object_that_is_none(body):
    with pytest.raises(InvalidSpecError):
        ModelDeployment.parse(body)
