"""The pure parts of the node emulator: texts, paths, variables, messages, statuses, addresses."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest

from world.nodes import Image, Program, ProgramMap, status
from world.nodes.addresses import AddressPool
from world.nodes.devices import DevicePool, UnexpectedAdmissionError
from world.nodes.downward import field_value
from world.nodes.endpoints import backends, service_name
from world.nodes.environment import MissingConfigError, declared, joined, service_links
from world.nodes.expansion import PathRewriter, expand, on_own_address
from world.nodes.kubelet_server import parse_log_path
from world.nodes.logs import LogRequest, read
from world.nodes.processes import Processes
from world.nodes.programs import Place, command_line, program_for
from world.nodes.proxy import BadRequestError, target_of
from world.nodes.quantities import parse_quantity, resource_field
from world.nodes.spec_file import SpecFileError, parse
from world.nodes.status import ContainerState, Terminated
from world.nodes.termination import message
from world.nodes.volumes import write_files

POD = {
    "metadata": {
        "name": "llama-0",
        "namespace": "team",
        "uid": "u-1",
        "labels": {"app": "llama", "shipfitter.dev/serves": "true"},
        "annotations": {"note": 'a "word"'},
    },
    "spec": {"nodeName": "n1", "serviceAccountName": "reader"},
}
PLACE = Place(address="127.18.0.5", pod_ip="198.18.0.5", pod="p", namespace="ns", node="n1")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("$(A)-$(B)", "1-2", id="every known name"),
        pytest.param("$(C)", "$(C)", id="an unknown name stays"),
        pytest.param("$$(A)", "$(A)", id="a doubled dollar escapes"),
        pytest.param("$$$(A)", "$1", id="an escaped dollar before a name"),
        pytest.param("$A ${A}", "$A ${A}", id="a shell's own spellings are left to the shell"),
        pytest.param("$(A", "$(A", id="an open bracket is text"),
    ],
)
def test_expand(text, want):
    assert expand(text, {"A": "1", "B": "2"}) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("/mnt/x", "/l/x", id="the path itself"),
        pytest.param("/mnt/x/deep.json", "/l/x/deep.json", id="a file below"),
        pytest.param("--flag=/mnt/x/a", "--flag=/l/x/a", id="the value of a flag"),
        pytest.param("/mnt/x:/mnt/y:/usr/lib", "/l/x:/l/y:/usr/lib", id="a search path"),
        pytest.param('{"path": "/mnt/x"}', '{"path": "/l/x"}', id="inside JSON"),
        pytest.param("/mnt/xyz /a/mnt/x", "/mnt/xyz /a/mnt/x", id="only whole names"),
        pytest.param("/mnt/x/inner/f", "/l/inner/f", id="a mount inside another is the nearer one"),
        pytest.param("https://host/mnt/x", "https://host/mnt/x", id="an address is no local path"),
        pytest.param("file:///mnt/x", "file:///l/x", id="a file address is one"),
        pytest.param("/mnt/x.bak", "/mnt/x.bak", id="a longer name is another file"),
    ],
)
def test_container_paths_become_local(text, want):
    places = {"/mnt/x": "/l/x", "/mnt/y/": "/l/y", "/mnt/x/inner": "/l/inner"}
    assert PathRewriter(places)(text) == want


def test_a_local_path_is_not_rewritten_again():
    assert PathRewriter({"/tmp": "/tmp/pod/tmp"})("/tmp/a") == "/tmp/pod/tmp/a"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("0.0.0.0", "127.18.0.5", id="alone"),
        pytest.param("http://0.0.0.0:8080/h", "http://127.18.0.5:8080/h", id="in an address"),
        pytest.param("10.0.0.0", "10.0.0.0", id="not the end of another address"),
        pytest.param("v0.0.0.0.1", "v0.0.0.0.1", id="not the beginning of a version"),
    ],
)
def test_all_interfaces_are_the_pods_own(text, want):
    assert on_own_address(text, "127.18.0.5") == want


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("metadata.name", "llama-0"),
        ("metadata.namespace", "team"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['shipfitter.dev/serves']", "true"),
        ("metadata.labels['absent']", ""),
        ("metadata.annotations", 'note="a \\"word\\""\n'),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "reader"),
        ("status.podIP", "198.18.0.5"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_field_value(path, want):
    assert field_value(path, POD, "198.18.0.5") == want


@pytest.mark.parametrize(
    ("text", "want"), [("2", 2), ("250m", 0.25), ("1Ki", 1024), ("1.5G", 1.5e9), ("1e3", 1000)]
)
def test_parse_quantity(text, want):
    assert float(parse_quantity(text)) == want


@pytest.mark.parametrize(
    ("reference", "want"),
    [
        pytest.param({"resource": "limits.cpu"}, "2", id="a part of a core is rounded up"),
        pytest.param({"resource": "limits.cpu", "divisor": "1m"}, "1500", id="in millicores"),
        pytest.param({"resource": "limits.memory", "divisor": "1Gi"}, "8", id="no limit: the node"),
        pytest.param({"resource": "requests.memory"}, "0", id="no request: nothing"),
    ],
)
def test_resource_field(reference, want):
    container = {"resources": {"limits": {"cpu": "1500m"}}}
    assert resource_field(reference, container, {"memory": "8Gi"}) == want


OBJECTS = {
    ("configmaps", "settings"): {"data": {"level": "debug"}},
    ("secrets", "hf"): {"data": {"token": "c2VjcmV0"}},
}


def variables_of(*env, **container):
    return declared(
        {"env": list(env), **container},
        POD,
        pod_ip="198.18.0.5",
        allocatable={"memory": "8Gi"},
        read=lambda kind, name: OBJECTS.get((kind, name)),
        inherited={"HOME": "/root"},
    )


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        pytest.param({"value": "plain"}, "plain", id="a value"),
        pytest.param({"value": "$(HOME)/x"}, "/root/x", id="a value with an inherited variable"),
        pytest.param(
            {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, "n1", id="a field"
        ),
        pytest.param(
            {"valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}},
            "debug",
            id="a key of a ConfigMap",
        ),
        pytest.param(
            {"valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
            "secret",
            id="a key of a Secret",
        ),
        pytest.param(
            {"valueFrom": {"secretKeyRef": {"name": "no", "key": "k", "optional": True}}},
            None,
            id="an optional object that is missing",
        ),
    ],
)
def test_a_declared_variable(entry, want):
    assert variables_of({"name": "X", **entry}).get("X") == want


@pytest.mark.parametrize(
    ("reference", "want"),
    [
        pytest.param({"name": "no", "key": "k"}, 'secret "no" not found', id="no such Secret"),
        pytest.param({"name": "hf", "key": "k"}, "couldn't find key k", id="no such key"),
    ],
)
def test_a_missing_reference_is_said(reference, want):
    with pytest.raises(MissingConfigError, match=want):
        variables_of({"name": "X", "valueFrom": {"secretKeyRef": reference}})


def test_variables_see_those_before_them_and_whole_objects_come_first():
    got = variables_of(
        {"name": "A", "value": "$(P_level)!"},
        {"name": "B", "value": "$(A)$(C)"},
        envFrom=[{"prefix": "P_", "configMapRef": {"name": "settings"}}],
    )
    assert got == {"P_level": "debug", "A": "debug!", "B": "debug!$(C)"}


def test_a_search_path_is_extended_and_not_replaced():
    below, above = {"LD_LIBRARY_PATH": "/pod"}, {"LD_LIBRARY_PATH": "/shim"}
    assert joined(below, above) == {"LD_LIBRARY_PATH": "/shim:/pod"}


def test_service_links_are_what_makes_a_service_called_vllm_harmful():
    spec = {"clusterIP": "10.96.0.9", "ports": [{"name": "http", "port": 80}]}
    got = service_links([{"metadata": {"name": "vllm"}, "spec": spec}])
    assert got["VLLM_PORT"] == "tcp://10.96.0.9:80"


SERVE = Program(argv=("py", "-m", "engine", "serve"), append=("--host", "{address}"))
VLLM = Image(entrypoint=SERVE, commands={"vllm": Program(argv=("py", "-m", "engine"))})


@pytest.mark.parametrize(
    ("command", "args", "want"),
    [
        pytest.param(
            [],
            ["--model", "m"],
            ["py", "-m", "engine", "serve", "--model", "m", "--host", "127.18.0.5"],
            id="the entry point gets the arguments",
        ),
        pytest.param(
            ["/usr/bin/vllm", "serve"],
            ["$(MODEL)"],
            ["py", "-m", "engine", "serve", "llama"],
            id="a command that the map knows",
        ),
        pytest.param(["sleep", "1"], [], ["sleep", "1"], id="a command of the machine"),
        pytest.param(["python3", "-c"], ["x"], [sys.executable, "-c", "x"], id="Python is ours"),
        pytest.param(["cat"], ["/mnt/x/a"], ["cat", "/l/x/a"], id="paths are local"),
    ],
)
def test_command_line(command, args, want):
    program, rest = program_for(VLLM, command)
    got = command_line(
        program,
        [*rest, *args],
        place=PLACE,
        variables={"MODEL": "llama"},
        rewrite=PathRewriter({"/mnt/x": "/l/x"}),
    )
    assert got == want


@pytest.mark.parametrize(
    ("image", "want"),
    [
        pytest.param("vllm/vllm-openai:v0.33.0", VLLM, id="with a tag"),
        pytest.param("vllm/vllm-openai@sha256:1", VLLM, id="with a digest"),
        pytest.param("vllm/vllm-openai", VLLM, id="bare"),
        pytest.param("vllm/vllm-openai-cpu:v1", None, id="another name that begins alike"),
    ],
)
def test_an_image_is_found_by_its_name(image, want):
    assert ProgramMap({"vllm/vllm-openai": VLLM}).find(image) == want


def words(written, tmp_path, *, log=(), policy="FallbackToLogsOnError", code=1):
    path = tmp_path / "termination"
    path.write_bytes(written)
    return message(path, log_lines=list(log), policy=policy, exit_code=code)


NUMBERS = [b"%03d\n" % n for n in range(100)]


@pytest.mark.parametrize(
    ("written", "given", "want"),
    [
        pytest.param(b"words", {"log": [b"log"]}, "words", id="the file's words"),
        pytest.param(b"a" * 5000 + b"end", {}, "a" * 4093 + "end", id="its last 4,096 bytes"),
        pytest.param(
            b"", {"log": [b"log\n"], "policy": "File"}, "", id="the log only when asked for"
        ),
        pytest.param(b"", {"log": [b"log\n"]}, "log\n", id="the log's end"),
        pytest.param(b"", {"log": [b"log\n"], "code": 0}, "", id="not when all went well"),
        pytest.param(
            b"", {"log": NUMBERS}, b"".join(NUMBERS[20:]).decode(), id="at most 80 lines of it"
        ),
        pytest.param(
            b"", {"log": [b"x" * 3000 + b"\n"]}, "x" * 2047 + "\n", id="at most 2,048 bytes of it"
        ),
    ],
)
def test_last_words(tmp_path, written, given, want):
    assert words(written, tmp_path, **given) == want


def test_the_containers_of_a_pod_share_twelve_kibibytes_of_words(tmp_path):
    path = tmp_path / "termination"
    path.write_bytes(b"x" * 5000)
    got = message(path, log_lines=[], policy="File", exit_code=0, containers=6)
    assert len(got) == 2048


def state(name="c", *, ran=None, ended=None, last=None, ready=False):
    def over(code):
        return None if code is None else Terminated(exit_code=code, reason="Error")

    return ContainerState(
        name=name,
        image="i",
        running_since_seconds=ran,
        terminated=over(ended),
        last=over(last),
        ready=ready,
    )


@pytest.mark.parametrize(
    ("init", "containers", "policy", "ending", "want"),
    [
        pytest.param([], [state()], "Always", False, "Pending", id="nothing ran yet"),
        pytest.param([], [state(ran=1)], "Always", False, "Running", id="it runs"),
        pytest.param([], [state(last=1)], "Always", False, "Running", id="it waits to run again"),
        pytest.param([], [state(ended=1)], "Always", False, "Running", id="it will run again"),
        pytest.param([], [state(ended=0)], "Never", False, "Succeeded", id="it ended well"),
        pytest.param([], [state(ended=1)], "Never", False, "Failed", id="it ended badly"),
        pytest.param([], [state(ended=0)], "OnFailure", False, "Succeeded", id="no need to rerun"),
        pytest.param([], [state(ended=1)], "OnFailure", False, "Running", id="it is to be rerun"),
        pytest.param(
            [], [state(ran=1), state(ended=0)], "Never", False, "Running", id="one of two ended"
        ),
        pytest.param(
            [state(ran=1)], [state()], "Always", False, "Pending", id="the first step still runs"
        ),
        pytest.param(
            [state(ended=2)], [state()], "Never", False, "Failed", id="the first step failed"
        ),
        pytest.param(
            [state(ended=2)], [state()], "Always", False, "Pending", id="it is to be repeated"
        ),
        pytest.param([], [state(ended=0)], "Always", True, "Succeeded", id="deleted, ended well"),
        pytest.param([], [state(ended=143)], "Always", True, "Failed", id="deleted, ended badly"),
        pytest.param([], [state(ran=1)], "Always", True, "Running", id="deleted, still runs"),
    ],
)
def test_phase(init, containers, policy, ending, want):
    assert status.phase(init, containers, policy, ending=ending) == want


def conditions(containers, *, phase="Running", previous=(), now=100.0):
    got = status.conditions([], containers, phase, list(previous), now)
    return {condition["type"]: condition for condition in got}


def test_a_pod_is_ready_when_every_container_is():
    assert conditions([state(ran=1, ready=True)])["Ready"]["status"] == "True"
    unready = conditions([state(ran=1, ready=True), state("slow", ran=1)])["Ready"]
    assert (unready["status"], unready["reason"]) == ("False", "ContainersNotReady")
    assert unready["message"] == "containers with unready status: [slow]"


def test_a_condition_that_stays_keeps_its_time():
    first = conditions([state()], now=100.0)
    again = conditions([state()], previous=first.values(), now=200.0)
    changed = conditions([state(ready=True)], previous=first.values(), now=200.0)
    assert again == first
    assert changed["Ready"]["lastTransitionTime"] == status.stamp(200.0)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(
            state(), {"waiting": {"reason": "ContainerCreating"}}, id="waiting says for what"
        ),
        pytest.param(
            state(ran=0), {"running": {"startedAt": "1970-01-01T00:00:00Z"}}, id="running"
        ),
        pytest.param(
            state(ended=3),
            {
                "terminated": {
                    "exitCode": 3,
                    "reason": "Error",
                    "startedAt": "1970-01-01T00:00:00Z",
                    "finishedAt": "1970-01-01T00:00:00Z",
                }
            },
            id="terminated",
        ),
    ],
)
def test_the_state_of_a_container(given, want):
    assert given.body()["state"] == want


def test_devices_are_given_once():
    pool = DevicePool({"nvidia.com/gpu": ["a", "b", "c"]})
    first = pool.take("pod-1", {"nvidia.com/gpu": 2})
    assert first == {"nvidia.com/gpu": ("a", "b")}
    with pytest.raises(UnexpectedAdmissionError, match="Requested: 2, Available: 1"):
        pool.take("pod-2", {"nvidia.com/gpu": 2})
    pool.release("pod-1")
    assert pool.take("pod-2", {"nvidia.com/gpu": 2}) == first


def test_a_device_that_left_the_node_stays_with_its_pod():
    pool = DevicePool({"nvidia.com/gpu": ["a", "b"]})
    pool.take("pod-1", {"nvidia.com/gpu": 1})
    pool.replace("nvidia.com/gpu", ["b"])
    assert pool.held() == {"a": "pod-1"}
    assert pool.counts() == {"nvidia.com/gpu": "1"}


def test_two_emulators_never_share_an_address():
    first, second = AddressPool(), AddressPool()
    try:
        assert {first.take() for _ in range(300)}.isdisjoint(second.take() for _ in range(300))
    finally:
        first.close()
        second.close()


def slice_of(*addresses, port=8000, name="http", ready=True, hostname=None):
    endpoints = [
        {"addresses": [a], "conditions": {"ready": ready}, "hostname": hostname} for a in addresses
    ]
    return {"ports": [{"name": name, "port": port}], "endpoints": endpoints}


SERVICE = {"spec": {"clusterIP": "10.96.0.9", "ports": [{"name": "http", "port": 80}]}}
HEADLESS = {"spec": {"clusterIP": "None"}}


@pytest.mark.parametrize(
    ("service", "slices", "port", "hostname", "want"),
    [
        pytest.param(
            SERVICE, [slice_of("a", "b")], 80, "", [("a", 8000), ("b", 8000)], id="the target port"
        ),
        pytest.param(SERVICE, [slice_of("a")], 81, "", [], id="a port it does not have"),
        pytest.param(SERVICE, [slice_of("a", ready=False)], 80, "", [], id="only what is ready"),
        pytest.param(
            HEADLESS, [slice_of("a", name="")], 9, "", [("a", 9)], id="headless: the caller's port"
        ),
        pytest.param(
            HEADLESS,
            [slice_of("a", hostname="x"), slice_of("b", hostname="y")],
            9,
            "y",
            [("b", 9)],
            id="one pod by its name",
        ),
    ],
)
def test_backends(service, slices, port, hostname, want):
    assert backends(service, slices, port, hostname) == want


@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("api.team.svc", ("", "api", "team")),
        ("api.team.svc.cluster.local.", ("", "api", "team")),
        ("pod-0.api.team.svc", ("pod-0", "api", "team")),
        ("127.0.0.1", None),
        ("a.b.c.d.svc", None),
    ],
)
def test_service_name(host, want):
    assert service_name(host) == want


def test_a_tunnel_has_a_host_and_no_head():
    assert target_of(b"CONNECT h:443 HTTP/1.1\r\n\r\n") == ("CONNECT", "h", 443, b"")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /path HTTP/1.1\r\n\r\n", id="not for a proxy"),
        pytest.param(b"nonsense\r\n\r\n", id="not HTTP"),
        pytest.param(b"CONNECT h:x HTTP/1.1\r\n\r\n", id="a port that is no number"),
    ],
)
def test_a_request_that_is_none(head):
    with pytest.raises(BadRequestError):
        target_of(head)


LOG = b"".join(b"2026-01-01T00:00:%02d.000000Z line %d\n" % (n, n) for n in range(10))
LOG_SECONDS = 1_767_225_600  # the first of these


@pytest.mark.parametrize(
    ("request_", "want"),
    [
        pytest.param(LogRequest(tail_lines=2), b"line 8\nline 9\n", id="the last lines"),
        pytest.param(LogRequest(tail_lines=0), b"", id="no lines"),
        pytest.param(LogRequest(since_seconds=LOG_SECONDS + 9), b"line 9\n", id="since then"),
        pytest.param(LogRequest(limit_bytes=9), b"line 0\nli", id="so many bytes"),
        pytest.param(
            LogRequest(tail_lines=1, timestamps=True),
            b"2026-01-01T00:00:09.000000Z line 9\n",
            id="with the time",
        ),
    ],
)
def test_the_part_of_a_log_that_is_asked_for(tmp_path, request_, want):
    path = tmp_path / "log"
    path.write_bytes(LOG)
    assert b"".join(read(path, request_, Event())) == want


def test_a_log_is_followed_to_the_end_of_its_container(tmp_path):
    path, ended = tmp_path / "log", Event()
    path.write_bytes(LOG)
    lines = read(path, LogRequest(tail_lines=1, follow=True), ended)
    assert next(lines) == b"line 9\n"
    with path.open("ab") as file:
        file.write(b"2026-01-01T00:01:00.000000Z more\n")
    assert next(lines) == b"more\n"
    ended.set()
    assert list(lines) == []


def test_a_log_request_is_read_from_its_address():
    got = parse_log_path("/containerLogs/ns/pod/c?previous=true&tailLines=3&follow=false")
    assert got == ("ns", "pod", "c", True, LogRequest(tail_lines=3))
    with pytest.raises(ValueError, match="/pods"):
        parse_log_path("/pods/a/b/c")


def test_a_written_folder_holds_exactly_its_files(tmp_path):
    write_files(tmp_path, {"a": b"1", "sub/b": b"2"})
    before = (tmp_path / "a").stat().st_ino
    write_files(tmp_path, {"a": b"1", "c": b"3"})
    files = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert files == {"a", "c"}
    assert (tmp_path / "a").stat().st_ino == before, "an unchanged file was written again"


def test_a_spec_file():
    world = parse(
        "nodes: [{name: n1, gpus: 2, cpu: 8}]\n"
        "images: {e: {entrypoint: {argv: ['{python}', -m, x], append: [--host, '{address}']}}}\n"
        "timing: {backoff_seconds: 10}\n"
    )
    assert (world.nodes[0].gpus, world.nodes[0].cpu) == (2, "8")
    assert world.programs.images["e"].entrypoint.argv == (sys.executable, "-m", "x")
    assert world.timing.backoff_seconds == 10


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("nodes: [{gpus: 1}]", r"nodes\[0\].name: missing", id="a node with no name"),
        pytest.param("nodes: [{name: a, gpu: 1}]", "gpu: no such field; there are", id="a typo"),
        pytest.param("images: {e: {}}", "images.e.entrypoint: missing", id="an image of nothing"),
        pytest.param("pods: []", "and nothing else", id="a part that is unknown"),
    ],
)
def test_a_mistake_in_a_spec_file_is_named(text, want):
    with pytest.raises(SpecFileError, match=want):
        parse(text)


@pytest.fixture
def processes():
    sandbox = Processes()
    sandbox.start()
    yield sandbox
    sandbox.stop()


def launch(processes, tmp_path, *argv, name="one"):
    env = {"PATH": os.environ["PATH"]}
    return processes.launch(name, argv, env, tmp_path, tmp_path / "log")


@pytest.mark.parametrize(
    ("script", "want"),
    [
        pytest.param("exit 0", 0, id="well"),
        pytest.param("exit 3", 3, id="with a code"),
        pytest.param("kill -9 $$", 137, id="by a signal"),
    ],
)
def test_how_a_process_ended(processes, tmp_path, script, want):
    assert launch(processes, tmp_path, "sh", "-c", script).wait(10) == want


def test_a_program_that_does_not_exist(processes, tmp_path):
    process = launch(processes, tmp_path, "no-such-program")
    assert "no-such-program" in process.error


def test_both_outputs_are_logged_with_the_time(processes, tmp_path):
    launch(processes, tmp_path, "sh", "-c", "echo out; echo err >&2; printf rest").wait(10)
    lines = [line.split(" ", 1)[1] for line in (tmp_path / "log").read_text().splitlines()]
    assert lines == ["out", "err", "rest"]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(check, *, within_seconds=20.0):
    deadline = time.monotonic() + within_seconds
    while not check():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def log_word(tmp_path, index=0):
    words = (tmp_path / "log").read_text().split() if (tmp_path / "log").exists() else []
    return words[1 + 2 * index] if len(words) > 1 + 2 * index else None


ORPHAN = "setsid sleep 1000 & echo $!; "


def test_a_container_takes_its_descendants_with_it(processes, tmp_path):
    process = launch(processes, tmp_path, "sh", "-c", ORPHAN + "sleep 0.1")
    assert process.wait(10) == 0
    eventually(lambda: not is_alive(int(log_word(tmp_path))))


def test_a_daemon_of_a_living_container_lives(processes, tmp_path):
    process = launch(processes, tmp_path, "sh", "-c", f"({ORPHAN}) ; exec sleep 1000")
    eventually(lambda: log_word(tmp_path) is not None)
    launch(processes, tmp_path, "true", name="two").wait(10)  # makes the sandbox look for orphans
    assert is_alive(int(log_word(tmp_path)))
    process.kill()
    assert process.wait(10) == 137
    eventually(lambda: not is_alive(int(log_word(tmp_path))))


def test_sigterm_reaches_the_program(processes, tmp_path):
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    process = launch(processes, tmp_path, "sh", "-c", script)
    eventually(lambda: log_word(tmp_path) == "up")
    process.terminate()
    assert process.wait(10) == 0
    assert log_word(tmp_path, 1) == "bye"


def test_nothing_is_left_when_the_sandbox_stops(tmp_path):
    sandbox = Processes()
    sandbox.start()
    process = launch(sandbox, tmp_path, "sh", "-c", ORPHAN + "sleep 1000")
    eventually(lambda: log_word(tmp_path) is not None)
    sandbox.stop()
    assert not is_alive(process.pid)
    assert not is_alive(int(log_word(tmp_path)))


MASTER = """
import sys, os, time
from pathlib import Path
from world.nodes.processes import Processes
folder = Path(sys.argv[1])
processes = Processes()
processes.start()
env = {"PATH": os.environ["PATH"]}
argv = ["sh", "-c", "setsid sleep 1000 & echo $!; sleep 1000"]
print(processes.launch("one", argv, env, folder, folder / "log").pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("who", ["the master", "the sandbox"])
def test_nothing_is_left_when_it_is_killed(tmp_path, who):
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", MASTER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as master:
        pid = int(master.stdout.readline())
        eventually(lambda: log_word(tmp_path) is not None)
        sandbox = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(master.pid if who == "the master" else sandbox, 9)
        eventually(lambda: not is_alive(pid))
        if who == "the master":
            eventually(lambda: not is_alive(int(log_word(tmp_path))))
        else:
            os.kill(int(log_word(tmp_path)), 9)  # out of every group: only the sandbox knew it
        master.kill()


def test_a_port_of_the_pods_own(processes, tmp_path):
    pool = AddressPool()
    try:
        address = pool.take().replace("198.", "127.", 1)
        with socket.create_server((address, 0)) as server:
            assert server.getsockname()[0] == address
    finally:
        pool.close()
