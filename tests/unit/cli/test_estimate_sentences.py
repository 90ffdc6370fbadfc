"""What a person reads of an estimate: where the engine runs, and what would help."""

import pytest

from unit.cli.estimates import run

QWEN = "vllm serve Qwen/Qwen3-8B --max-model-len 4096"


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param(
            f"--gpu NVIDIA-A100-SXM4-80GB-MIG-3g.40gb -- {QWEN}",
            "on 1 × NVIDIA-A100-SXM4-80GB MIG 3g.40gb",
            id="a slice is named",
        ),
        pytest.param(
            f"--gpu NVIDIA-L40S:4 -- {QWEN} -dp 4",
            "on 4 × NVIDIA-L40S, 4 engines of 1",
            id="every engine's GPUs are counted",
        ),
        pytest.param(
            f"--gpu Tesla-V100-SXM2-32GB --engine-version 0.8.5 -- {QWEN}",
            "vLLM 0.8.5, the engine before V1",
            id="the engine that an old card gets",
        ),
        pytest.param(
            f"--gpu NVIDIA-L40S -- {QWEN} --quantization fp8",
            "quantized to fp8 while loading",
            id="quantized on the way",
        ),
        pytest.param(
            "--gpu NVIDIA-L40S -- vllm serve Qwen/Qwen3-8B -tp 3",
            "--tensor-parallel-size 2: Fits",
            id="fewer ranks where these do not divide",
        ),
        pytest.param(
            "--gpu NVIDIA-H100-80GB-HBM3 -- vllm serve Qwen/Qwen3-32B --max-model-len 131072",
            "--max-model-len 16384: Fits",
            id="a length that the model has and that fits",
        ),
        pytest.param(
            f"--gpu NVIDIA-L40S -- {QWEN} --no-enable-chunked-prefill "
            "--max-num-batched-tokens 2048",
            "--max-num-batched-tokens 4096: Fits",
            id="a batch that holds a whole prompt",
        ),
        pytest.param(
            "--gpu NVIDIA-L40S -- vllm serve Qwen/Qwen2.5-VL-7B-Instruct --max-model-len 8192 "
            "--disable-chunked-mm-input",
            "--max-num-batched-tokens 16384: Fits",
            id="a batch that holds a whole image",
        ),
        pytest.param(
            f"--gpu NVIDIA-A100-SXM4-80GB-MIG-3g.40gb -- {QWEN} -tp 2",
            "an engine sees one MIG device at a time, so 2 ranks cannot share slices",
            id="no ranks over slices",
        ),
    ],
)
def test_a_sentence(capsys, line, want):
    shown = run(capsys, line)
    assert want in " ".join(shown.out.split()), shown.out + shown.err


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param(
            f"--gpu NVIDIA-L40S -- {QWEN} --engine-version 0.10.0",
            "--engine-version is an option of shipfitter: write it before --",
            id="an option of ours behind the command",
        ),
        pytest.param(
            f"--gpu NVIDIA-L40S --engine-version latest -- {QWEN}",
            "not a vLLM release, got 'latest'; name one like 0.33.0 with --engine-version",
            id="a moving tag",
        ),
        pytest.param(
            f"--gpu Gaudi9 -- {QWEN}",
            "not in the catalogue; name an NVIDIA product, or give --gpu unknown",
            id="a card of another maker",
        ),
    ],
)
def test_a_mistake(capsys, line, want):
    ran = run(capsys, line)
    assert (ran.code, want in ran.err) == (2, True), ran.err
