"""Workloads, Service, disruption budget and ConfigMap."""

import json
import logging
import logging.config
import re
import subprocess
import sys
import types
from dataclasses import replace

import pytest

from shipfitter.api.model_deployment import Allocation
from shipfitter.core.plan import VariantPlan
from shipfitter.render.args import DRAIN_SECONDS
from shipfitter.render.claim_template import claim_template, claim_template_name
from shipfitter.render.config_map import logging_config, logging_config_map
from shipfitter.render.deployment import deployment, on_one_node, scale_manifest
from shipfitter.render.disruption import disruption_budget
from shipfitter.render.leader_worker_set import group_scale_manifest, leader_worker_set
from shipfitter.render.pod import engine_container
from shipfitter.render.service import service
from shipfitter.render.variant import variant_name, workload_kind
from unit.render.plans import IMAGE, INPUTS, SIZING, plan, ranks, record, resource, sizing

OWNER = {
    "apiVersion": "shipfitter.dev/v1alpha1",
    "kind": "ModelDeployment",
    "name": "llama",
    "uid": "1234",
    "controller": True,
}


def rendered(of=None, planned=SIZING, **options):
    of = of or resource()
    variant = VariantPlan(sizing=planned, replicas=2)
    written = record(of, plan(planned))
    return deployment(of, variant, written, image=IMAGE, **options)


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param(sizing(pool={"name": "nvidia-h100-8"}), False, id="another pool"),
        pytest.param(sizing(settings={"layout": ranks(2)}), False, id="more ranks"),
        pytest.param(sizing(settings={"layout": ranks(1, 2)}), False, id="more stages"),
        pytest.param(sizing(settings={"layout": ranks(16)}), False, id="another kind"),
        pytest.param(sizing(settings={"max_num_seqs": 8}), True, id="other sizes"),
        pytest.param(sizing(uri="hf://other/model"), True, id="an alternative"),
        pytest.param(sizing(pool={"total_bytes": 5}), True, id="a pool that was measured again"),
    ],
)
def test_a_variant_keeps_its_name_for_what_can_change_in_place(changed, same):
    assert (variant_name("llama", changed) == variant_name("llama", SIZING)) is same


def test_a_variant_by_claims_is_another():
    by_claim = variant_name("llama", SIZING, allocation=Allocation.DRA)
    assert by_claim != variant_name("llama", SIZING)


def test_a_variants_name_leaves_room_for_pod_names():
    assert re.fullmatch(r"a{40}-[0-9a-f]{8}", variant_name("a" * 40, SIZING))


def test_a_deployment_belongs_to_its_model_deployment():
    metadata = rendered()["metadata"]
    assert metadata["name"] == variant_name("llama", SIZING)
    assert metadata["ownerReferences"] == [OWNER]
    assert metadata["annotations"]["shipfitter.dev/inputs-hash"] == INPUTS
    kept = json.loads(metadata["annotations"]["shipfitter.dev/plan"])
    assert kept == {
        **record(resource(), plan(SIZING)),
        "engine": {"image": IMAGE, "version": "0.33.0"},
    }


def test_a_queue_is_passed_on():
    queue = {"kueue.x-k8s.io/queue-name": "gpus"}
    of = resource(metadata__labels={**queue, "team": "ml"})
    labels = rendered(of)["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "gpus"
    assert "team" not in labels


def test_the_selector_finds_the_pods():
    spec = rendered()["spec"]
    labels = spec["template"]["metadata"]["labels"].items()
    assert spec["selector"]["matchLabels"].items() <= labels
    assert service(resource())["spec"]["selector"].items() <= labels


def test_a_deployment_leaves_replicas_to_the_scale_manager():
    spec = rendered()["spec"]
    assert "replicas" not in spec
    assert "strategy" not in spec
    assert spec["revisionHistoryLimit"] == 3
    assert spec["progressDeadlineSeconds"] == 1800


def test_a_claim_of_one_node_keeps_the_replicas_together():
    affinity = on_one_node(rendered(), resource())["spec"]["template"]["spec"]["affinity"]
    (term,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert "nodeAffinity" in affinity, "the pool is still selected"


def test_a_new_deployment_starts_with_its_own_scale():
    spec = rendered(replicas=0, max_surge=0, max_unavailable=1)["spec"]
    scale = scale_manifest(resource(), "x", replicas=0, max_surge=0, max_unavailable=1)
    assert spec.items() >= scale["spec"].items()


def test_big_weights_move_the_deadline():
    spec = rendered(planned=sizing(facts={"checkpoint_bytes": 200_000_000_000}))["spec"]
    probe = engine_container(spec["template"])["startupProbe"]
    startup = probe["periodSeconds"] * probe["failureThreshold"]
    assert spec["progressDeadlineSeconds"] > startup > 1800


def test_the_scale_manifest_says_nothing_else():
    assert scale_manifest(resource(), "v", replicas=3, max_surge=1, max_unavailable=0) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "v", "namespace": "default"},
        "spec": {
            "replicas": 3,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
        },
    }


def test_a_rollout_that_cannot_move_is_refused():
    with pytest.raises(ValueError, match="no pod is ever replaced"):
        scale_manifest(resource(), "v", replicas=1, max_surge=0, max_unavailable=0)


def test_one_service_for_all_variants():
    got = service(resource())
    assert got["metadata"]["name"] == "llama"
    assert got["metadata"]["ownerReferences"] == [OWNER]
    assert got["spec"]["selector"] == {
        "shipfitter.dev/modeldeployment": "llama",
        "shipfitter.dev/serves": "true",
    }
    (port,) = got["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (8000, "http")


@pytest.mark.parametrize(
    ("replicas", "group_size", "want"),
    [(0, 1, None), (1, 1, None), (2, 1, 1), (5, 1, 4), (3, 4, 8)],
)
def test_disruption_budget(replicas, group_size, want):
    got = disruption_budget(resource(spec__replicas=replicas), group_size=group_size)
    if want is None:
        assert got is None
        return
    assert got["spec"] == {
        "minAvailable": want,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": {"shipfitter.dev/modeldeployment": "llama"}},
    }


class NewLineFormatter(logging.Formatter):
    """As the engine's: it adds the file that the format asks for."""

    def format(self, record):
        record.fileinfo = record.filename
        return super().format(record)


@pytest.fixture(name="engine_logging")
def _engine_logging(monkeypatch):
    module = types.ModuleType("vllm.logging_utils")
    module.NewLineFormatter = NewLineFormatter
    package = types.ModuleType("vllm")
    package.logging_utils = module
    monkeypatch.setitem(sys.modules, "vllm", package)
    monkeypatch.setitem(sys.modules, "vllm.logging_utils", module)
    yield logging.getLogger("vllm")
    logger = logging.getLogger("vllm")
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True


def configure(of, last_words):
    text = logging_config_map(of)["data"]["logging.json"]
    logging.config.dictConfig(json.loads(text.replace("/dev/termination-log", str(last_words))))


def test_errors_reach_the_termination_message_and_the_console(engine_logging, tmp_path, capfd):
    last_words = tmp_path / "termination-log"
    configure(resource(), last_words)
    engine_logging.info("loading")
    assert not last_words.exists(), "a healthy start leaves no last words"
    logging.getLogger("vllm.engine").error("KV cache is needed")
    assert last_words.read_text() == "KV cache is needed\n"
    console = capfd.readouterr().out
    assert "(MainProcess pid=" in console
    assert "loading" in console
    assert "KV cache is needed" in console


def test_the_users_log_level_keeps_its_meaning():
    env = [{"name": "VLLM_LOGGING_LEVEL", "value": "DEBUG"}]
    config = logging_config(resource(spec__engine__env=env))
    assert config["loggers"]["vllm"]["level"] == "DEBUG"
    assert config["handlers"]["last_words"]["level"] == "ERROR"


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({}, True),
        ({"spec__engine__version": "0.33.0"}, True),
        ({"spec__engine__image": "vllm:v0.32.0"}, False),
        ({"status__engine": {"image": "x", "version": "0.20.0"}}, False),
    ],
)
def test_the_console_names_the_process_where_the_engine_does_not(changes, want):
    line = logging_config(resource(**changes))["formatters"]["vllm"]["format"]
    assert line.startswith("(%(processName)s") is want


def test_a_version_nobody_knows_logs_as_the_newest():
    of = resource(spec__engine__version="0.1.0")
    assert logging_config(of)["formatters"]["vllm"]["format"].startswith("(")


def test_a_claim_asks_for_what_was_planned():
    of = resource(spec__gpus__allocation="DRA")
    planned = sizing(settings={"layout": ranks(4)})
    template = claim_template(of, planned)
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    exactly = request["exactly"]
    assert (exactly["deviceClassName"], exactly["count"]) == ("gpu.nvidia.com", 4)
    (selector,) = exactly["selectors"]
    assert "quantity('46856625192')" in selector["cel"]["expression"]
    assert "semver('8.9.0')" in selector["cel"]["expression"]
    assert template["metadata"]["name"] == claim_template_name(of, planned)
    more = claim_template_name(of, sizing(settings={"layout": ranks(8)}))
    assert more != claim_template_name(of, planned), "its spec cannot change, so its name does"


@pytest.mark.parametrize(
    ("pool", "want", "not_wanted"),
    [
        pytest.param(
            {"product": "NVIDIA-H100-80GB-HBM3"},
            "productName == 'NVIDIA H100 80GB HBM3'",
            "matches",
            id="a product of the catalogue, as its driver writes it",
        ),
        pytest.param(
            {"product": "NVIDIA-X900.2-80GB"},
            r"productName.matches(r'^NVIDIA[- ]X900\.2[- ]80GB$')",
            "==",
            id="one nobody knows: any of the names its label may stand for",
        ),
        pytest.param(
            {"product": "NVIDIA-GB10", "unified": True},
            "productName == 'NVIDIA GB10'",
            "memory",
            id="unified memory is published by nobody",
        ),
    ],
)
def test_a_claim_is_for_the_planned_product(pool, want, not_wanted):
    (request,) = claim_template(resource(), sizing(pool=pool))["spec"]["spec"]["devices"][
        "requests"
    ]
    expression = request["exactly"]["selectors"][0]["cel"]["expression"]
    assert want in expression
    assert not_wanted not in expression
    for fact in ("productName", "cudaComputeCapability"):
        assert f"has(device.attributes['gpu.nvidia.com'].{fact})" in expression


def test_a_claim_for_a_mig_device():
    planned = sizing(pool={"mig_profile": "3g.40gb", "compute_capability": None})
    (request,) = claim_template(resource(), planned)["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "mig.nvidia.com"
    assert ".profile == '3g.40gb'" in request["exactly"]["selectors"][0]["cel"]["expression"]


GROUP = sizing(settings={"layout": replace(ranks(8, 2), nodes=2)})


def group(**options):
    of = resource()
    variant = VariantPlan(sizing=GROUP, replicas=2)
    return leader_worker_set(of, variant, record(of, plan(GROUP)), image=IMAGE, **options)


def test_a_replica_over_two_nodes_is_a_group():
    assert workload_kind(GROUP) == "LeaderWorkerSet"
    got = group()
    assert got["spec"]["startupPolicy"] == "LeaderCreated"
    assert "replicas" not in got["spec"]
    assert group(replicas=3)["spec"]["replicas"] == 3
    pods = got["spec"]["leaderWorkerTemplate"]
    assert (pods["size"], pods["restartPolicy"]) == (2, "RecreateGroupOnPodRestart")


def test_a_leader_serves_and_workers_join_it():
    pods = group()["spec"]["leaderWorkerTemplate"]
    leader, worker = pods["leaderTemplate"], pods["workerTemplate"]
    assert leader["metadata"]["labels"]["shipfitter.dev/serves"] == "true"
    assert "shipfitter.dev/serves" not in worker["metadata"]["labels"]
    joining = ["--nnodes=2", "--master-addr=$(LWS_LEADER_ADDRESS)", "--master-port=29501"]
    assert engine_container(leader)["args"][-4:] == [*joining, "--node-rank=0"]
    assert engine_container(worker)["args"][-5:] == [
        *joining,
        "--node-rank=$(LWS_WORKER_INDEX)",
        "--headless",
    ]
    assert engine_container(leader)["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    for each in (leader, worker):
        (address,) = (e for e in engine_container(each)["env"] if e["name"] == "VLLM_HOST_IP")
        assert address["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    probes = {"startupProbe", "readinessProbe", "livenessProbe", "ports"}
    assert probes <= engine_container(leader).keys()
    assert not probes & engine_container(worker).keys()


def test_workers_stay_until_their_leaders_requests_have_ended():
    pods = group()["spec"]["leaderWorkerTemplate"]
    leader, worker = pods["leaderTemplate"], pods["workerTemplate"]
    sleep = engine_container(leader)["lifecycle"]["preStop"]["sleep"]["seconds"]
    *python, program = engine_container(worker)["lifecycle"]["preStop"]["exec"]["command"]
    assert python == ["python3", "-c"]
    assert f"+ {sleep + DRAIN_SECONDS}" in program
    assert worker["spec"]["terminationGracePeriodSeconds"] > sleep + DRAIN_SECONDS
    run_hook = [sys.executable, "-c", program]
    environment = {"LWS_LEADER_ADDRESS": "leader.invalid"}
    assert subprocess.run(run_hook, env=environment, timeout=20, check=True).returncode == 0


def test_workers_are_not_told_how_many_servers_to_run():
    of = resource(spec__engine={"args": ["--api-server-count", "4", "--api-server-count=4"]})
    variant = VariantPlan(sizing=GROUP, replicas=2)
    written = leader_worker_set(of, variant, record(of, plan(GROUP)), image=IMAGE)
    pods = written["spec"]["leaderWorkerTemplate"]
    leader, worker = (
        engine_container(pods[f"{who}Template"])["args"] for who in ("leader", "worker")
    )
    assert "--api-server-count" in leader
    assert not any("server-count" in word or word == "4" for word in worker)


def test_groups_are_scaled_apart_from_their_template():
    got = group_scale_manifest(resource(), "v", replicas=2, max_surge=1, max_unavailable=0)
    assert got["kind"] == "LeaderWorkerSet"
    assert got["spec"]["replicas"] == 2
    assert got["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] == {
        "maxSurge": 1,
        "maxUnavailable": 0,
    }


def test_what_is_rendered_is_plain():
    """Nothing but what JSON knows, so that it can be applied and compared as it is."""
    for manifest in (rendered(), group(), service(resource()), logging_config_map(resource())):
        assert json.loads(json.dumps(manifest)) == manifest


def test_a_rendering_does_not_depend_on_who_is_in_the_pool():
    other = replace(SIZING, pool=replace(SIZING.pool, source=SIZING.pool.source, nodes=()))
    assert rendered(planned=other) == rendered()
