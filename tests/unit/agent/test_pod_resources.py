"""Which GPUs pods hold: our reading of the kubelet's answers, given by a real gRPC server."""

import socket
import threading

import pytest

from shipfitter.agent.devices import GpuReading, MigReading
from shipfitter.agent.pod_resources import PodResources, PodResourcesError, uuids_of
from shipfitter.agent.wire_format import WireFormatError, parts
from world.nodes.podresources import Container, HoldingPod, Socket


@pytest.fixture
def kubelet():
    """A function: what pods hold and what there is, to a reader of it."""
    sockets = []

    def serve(*pods, offered=None):
        sockets.append(Socket(lambda: list(pods), lambda: offered or {}))
        return PodResources(sockets[-1].path)

    yield serve
    for each in sockets:
        each.stop()


def holding(name="engine-0", **containers):
    return HoldingPod(name=name, containers=(Container(**containers),))


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param((), set(), id="no pod"),
        pytest.param((holding(),), set(), id="a pod without devices"),
        pytest.param(
            (holding(devices={"nvidia.com/gpu": ("GPU-1", "GPU-2")}),),
            {"GPU-1", "GPU-2"},
            id="two whole GPUs, each an entry of its own",
        ),
        pytest.param(
            (
                holding("a", devices={"nvidia.com/gpu.shared": ("GPU-1::0",)}),
                holding("b", devices={"nvidia.com/mig-1g.10gb": ("MIG-1",)}),
            ),
            {"GPU-1::0", "MIG-1"},
            id="copies and slices",
        ),
        pytest.param(
            (holding(devices={"rdma/hca": ("mlx5_0",), "amd.com/gpu": ("GPU-9",)}),),
            set(),
            id="devices that are no GPUs of ours",
        ),
        pytest.param(
            (holding(claimed=(("gpu.nvidia.com", "n1", "gpu-3"), ("dra.cpu", "n1", "cpu-0"))),),
            {"gpu-3"},
            id="a claim of the GPUs' driver, and of another",
        ),
    ],
)
def test_devices_that_pods_hold(kubelet, pods, want):
    assert kubelet(*pods).held() == want


def test_a_long_answer_arrives_whole(kubelet):
    names = tuple(f"GPU-{number:036}" for number in range(3000))
    pods = [holding(str(at), devices={"nvidia.com/gpu": names[at::50]}) for at in range(50)]
    assert kubelet(*pods).held() == set(names)


def test_devices_that_can_be_handed_out(kubelet):
    reader = kubelet(offered={"nvidia.com/gpu": ("GPU-1", "GPU-2"), "rdma/hca": ("mlx5_0",)})
    assert reader.offered() == {"GPU-1", "GPU-2"}


def test_without_the_socket_nothing_is_known():
    assert PodResources().held() is None
    assert PodResources().offered() == frozenset()


def test_a_kubelet_that_is_away_is_told_of(tmp_path):
    with pytest.raises(PodResourcesError, match="No such file"):
        PodResources(tmp_path / "kubelet.sock").held()
    assert PodResources(tmp_path / "kubelet.sock").offered() == frozenset()


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(b"", "closed before the answer", id="a peer that hangs up"),
        pytest.param(
            b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 64, "/s: .", id="another protocol"
        ),
    ],
)
def test_a_peer_that_is_no_kubelet_is_told_of(tmp_path, answer, want):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()

        def answer_once():
            peer, _ = listening.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(answer)

        thread = threading.Thread(target=answer_once)
        thread.start()
        with pytest.raises(PodResourcesError, match=want):
            PodResources(path).held()
        thread.join()


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"\x0a", id="a key without a value"),
        pytest.param(b"\x0a\x05ab", id="a text that is cut off"),
        pytest.param(b"\xff" * 12, id="a number without an end"),
        pytest.param(b"\x0b\x00", id="a type that is not used any more"),
    ],
)
def test_bytes_that_are_no_message_are_refused(message):
    with pytest.raises(WireFormatError):
        list(parts(message, 1))


GPUS = (
    GpuReading(uuid="GPU-a", index=0, minor_number=1),
    GpuReading(uuid="GPU-b", index=2, minor_number=0),
    GpuReading(
        uuid="GPU-c",
        index=3,
        mig_enabled=True,
        mig_devices=(
            MigReading(uuid="MIG-x", profile="3g.20gb", gpu_instance=1),
            MigReading(uuid="MIG-y", profile="2g.10gb", gpu_instance=3),
        ),
    ),
)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("GPU-a", "GPU-a", id="NVIDIA's plugin by UUID"),
        pytest.param("GPU-a::3", "GPU-a", id="a copy of a time-sliced one"),
        pytest.param("2", "GPU-b", id="NVIDIA's plugin by index, one before it being hidden"),
        pytest.param("3:1", "MIG-y", id="and of a slice"),
        pytest.param("MIG-x", "MIG-x", id="a slice by UUID"),
        pytest.param("nvidia1", "GPU-a", id="GKE's by minor number"),
        pytest.param("nvidia0/vgpu2", "GPU-b", id="GKE's copies"),
        pytest.param("nvidia3/gi3", "MIG-y", id="GKE's slices"),
        pytest.param("gpu-0", "GPU-b", id="the DRA driver's by minor number"),
    ],
)
def test_the_uuid_behind_a_devices_name(name, want):
    assert uuids_of([name], GPUS) == (want,)


def test_names_of_devices_we_do_not_see_are_left_out():
    assert uuids_of(["GPU-elsewhere", "nvidia7", "gpu-0-mig-1g5gb-19-0"], GPUS) == ()
