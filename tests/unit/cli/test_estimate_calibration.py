"""A Calibration applied: its correction moves the point, its observations narrow the interval."""

import pytest

from shipfitter.units import GIB
from unit.cli.estimates import LLAMA, record_of, run

SERVE = "vllm serve meta-llama/Llama-3.1-8B-Instruct"
LEARNT = """
apiVersion: shipfitter.dev/v1alpha1
kind: Calibration
metadata: {{name: learnt}}
spec:
  gpuProduct: NVIDIA-H100-80GB-HBM3
  engineMinor: "{minor}"
  architecture: LlamaForCausalLM
  weightFormat: bfloat16
  tensorParallelSize: 1
status:
  residualBytes: {residual}
  spreadBytes: 10000000
  observations: {observations}
"""


@pytest.fixture
def learnt(tmp_path):
    def write(*, residual=-GIB, observations=4, minor="0.33"):
        file = tmp_path / "learnt.yaml"
        file.write_text(LEARNT.format(residual=residual, observations=observations, minor=minor))
        return f"--calibration {file}"

    return write


def cache_of(capsys, options):
    return record_of(capsys, f"--gpu h100 {LLAMA} {options} -- {SERVE}")["perGpu"]["kvCacheBytes"]


def test_the_residual_moves_the_point(capsys, learnt):
    plain, moved = cache_of(capsys, ""), cache_of(capsys, learnt(residual=-GIB))
    assert plain["point"] - moved["point"] == GIB


def test_observations_narrow_the_interval(capsys, learnt):
    plain = cache_of(capsys, "")
    widths = [plain["high"] - plain["low"]]
    for observations in (1, 4, 16):
        cache = cache_of(capsys, learnt(residual=0, observations=observations))
        assert cache["low"] <= cache["point"] <= cache["high"]
        widths.append(cache["high"] - cache["low"])
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 4


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"minor": "0.30"}, "left out", id="learnt of another release"),
        pytest.param({"observations": 0}, "no observations yet", id="nothing learnt"),
        pytest.param({}, "corrected by calibration learnt", id="its own key"),
    ],
)
def test_what_was_done_is_said(capsys, learnt, changes, want):
    record = record_of(capsys, f"--gpu h100 {LLAMA} {learnt(**changes)} -- {SERVE}")
    assert any(want in note for note in record["assumptions"])


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param("kind: Node", "holds no Calibration", id="another object"),
        pytest.param("{", "not YAML", id="no YAML"),
        pytest.param("kind: Calibration", "spec", id="half an object"),
    ],
)
def test_a_file_that_is_none(capsys, tmp_path, content, want):
    file = tmp_path / "learnt.yaml"
    file.write_text(content)
    ran = run(capsys, f"--gpu h100 {LLAMA} --calibration {file} -- {SERVE}")
    assert ran.code == 2
    assert want in ran.err
