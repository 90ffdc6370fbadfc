"""Lines with sizes in them that are none of the facts: nothing is read from them."""

import pytest

from shipfitter.core.engine_log import read_log

HEAD = "(EngineCore_DP0 pid=321) INFO 10-21 09:12:44 [gpu_worker.py:298] "


def silent(releases, line):
    return pytest.param(line, id=f"{releases}: {line[:60]}")


@pytest.mark.parametrize(
    "line",
    [
        silent("0.12-0.33", "Sleep mode freed 20.10 GiB memory, 1.31 GiB memory is still in use."),
        silent(
            "0.20-0.33",
            "Filesystem type for checkpoints: EXT4. Checkpoint size: 15.27 GiB. Available RAM: "
            "63.12 GiB.",
        ),
        silent(
            "0.20-0.33",
            "Auto-prefetch is disabled because the filesystem (EXT4) is not a recognized network "
            "FS (NFS/Lustre) and the checkpoint size (15.27 GiB) exceeds 90% of available RAM "
            "(12.10 GiB).",
        ),
        silent("0.16-0.33, DEBUG", "Peak GPU memory after loading weights: 31.02 GiB"),
        silent(
            "0.10.2-0.33, DEBUG",
            "Free memory after profiling: 60.10 GiB (total), 52.18 GiB (within requested)",
        ),
        silent("0.17-0.33", "Total CPU offloaded parameters: 10.0"),
        silent(
            "0.33",
            "Free memory grew by 0.31 GiB during profiling (initial 78.66 GiB, current 78.97 GiB). "
            "Sizing the KV cache from the 15.90 GiB torch reserved instead of the profiling "
            "difference.",
        ),
    ],
)
def test_a_line_that_states_none_of_the_facts(line):
    assert set(read_log(HEAD + line).read().values()) == {None}


def test_a_client_that_finds_nobody_is_no_failure_of_the_engine():
    got = read_log(
        "litellm-1  | litellm.exceptions.InternalServerError: Connection error. Received Model "
        "Group=qwen\n"
        "app-1      | openai.APIConnectionError: Connection error.\n"
    )
    assert got.outcome == "Unknown"
