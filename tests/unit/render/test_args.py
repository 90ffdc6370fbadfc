"""The engine's command line."""

import pytest

from shipfitter.core.engines import EngineVersion
from shipfitter.render.args import drain_seconds, engine_args, model_argument, served_names
from unit.render.plans import COMMIT, SIZING, ranks, resource, sizing
from world.engine.flags import parse


def args(*, spec=None, **changes):
    return engine_args(resource(**(spec or {})), sizing(**changes))


def test_the_whole_command_line():
    assert engine_args(resource(), SIZING) == [
        "meta-llama/Llama-3.1-8B-Instruct",
        f"--revision={COMMIT}",
        "--served-model-name",
        "meta-llama/Llama-3.1-8B-Instruct",
        "llama",
        "--port=8000",
        "--max-model-len=131072",
        "--max-num-seqs=96",
        "--max-num-batched-tokens=2048",
        "--gpu-memory-utilization=0.95",
        "--kv-cache-dtype=auto",
        "--tensor-parallel-size=1",
        "--pipeline-parallel-size=1",
        "--max-cudagraph-capture-size=192",
        "--enable-prefix-caching",
        "--async-scheduling",
        "--shutdown-timeout=60",
    ]


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param(
            {"settings": {"enable_prefix_caching": False, "async_scheduling": False}},
            ["--no-enable-prefix-caching", "--no-async-scheduling"],
            id="what is off is said",
        ),
        pytest.param(
            {"settings": {"layout": ranks(4, 2)}},
            ["--tensor-parallel-size=4", "--pipeline-parallel-size=2"],
            id="ranks",
        ),
        pytest.param(
            {
                "settings": {
                    "layout": ranks(8, data_parallel_size=2, enable_expert_parallel=True),
                    "decode_context_parallel_size": 4,
                }
            },
            [
                "--data-parallel-size=2",
                "--enable-expert-parallel",
                "--decode-context-parallel-size=4",
            ],
            id="layouts the user asked for",
        ),
        pytest.param(
            {"settings": {"kv_cache_dtype": "fp8"}}, ["--kv-cache-dtype=fp8"], id="cache dtype"
        ),
        pytest.param(
            {"settings": {"kv_cache_memory_bytes": 2**30, "num_gpu_blocks_override": 99}},
            ["--kv-cache-memory-bytes=1073741824", "--num-gpu-blocks-override=99"],
            id="cache given in bytes or blocks",
        ),
        pytest.param(
            {"settings": {"enforce_eager": True}}, ["--enforce-eager"], id="no graphs"
        ),
        pytest.param(
            {
                "spec": {"spec__engine__args": ["--cudagraph-capture-sizes", "1", "2"]},
                "settings": {"cudagraph_capture_sizes": (1, 2), "max_cudagraph_capture_size": 2},
            },
            ["--cudagraph-capture-sizes", "1", "2"],
            id="a pinned list of graphs",
        ),
        pytest.param(
            {
                "spec": {
                    "spec__engine__args": [
                        "--block-size=32", "--no-enable-chunked-prefill",
                        "--disable-hybrid-kv-cache-manager", "--language-model-only",
                    ]
                },
                "settings": {
                    "block_size": 32, "enable_chunked_prefill": False,
                    "disable_hybrid_kv_cache_manager": True, "language_model_only": True,
                },
            },
            ["--block-size=32", "--no-enable-chunked-prefill",
             "--disable-hybrid-kv-cache-manager", "--language-model-only"],
            id="what follows from the model is written only where the user did",
        ),
        pytest.param(
            {
                "spec": {"spec__engine__args": ["--max_num_seqs", "64", "--seed", "1"]},
                "settings": {"max_num_seqs": 64},
            },
            ["--max-num-seqs=64", "--seed", "1"],
            id="a pinned size stands once, the rest as written",
        ),
        pytest.param(
            {"spec": {"spec__engine__args": ["--shutdown-timeout", "120"]}},
            ["--shutdown-timeout=120"],
            id="the user's own time to drain",
        ),
    ],
)  # fmt: skip
def test_flags(changes, want):
    got = args(**changes)
    start = got.index(want[0])
    assert all(word in got for word in want)
    assert got.count(want[0]) == 1, got[start:]


@pytest.mark.parametrize(
    ("version", "want", "unwanted"),
    [
        ((0, 33, 0), ["--max-cudagraph-capture-size=192", "--async-scheduling"], []),
        ((0, 18, 0), ["--shutdown-timeout=60"], []),
        ((0, 17, 0), ["--async-scheduling"], ["--shutdown-timeout"]),
        ((0, 12, 0), ["--max-cudagraph-capture-size=192"], ["--cuda-graph-sizes"]),
        ((0, 11, 2), ["--cuda-graph-sizes=192"], ["--max-cudagraph-capture-size"]),
        ((0, 9, 0), ["--cuda-graph-sizes=192"], ["--async-scheduling"]),
        ((0, 8, 5), ["--max-num-seqs=96"], ["--cuda-graph-sizes", "--async-scheduling"]),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_only_flags_that_the_release_has(version, want, unwanted):
    got = args(settings={"version": EngineVersion(*version)})
    assert all(flag in got for flag in want)
    assert not [word for word in got for flag in unwanted if word.startswith(flag)]


def test_an_older_release_takes_a_pinned_list_by_its_older_flag():
    got = args(
        spec={"spec__engine__args": ["--cuda-graph-sizes", "1", "2"]},
        settings={"version": EngineVersion(0, 11, 0), "cudagraph_capture_sizes": (1, 2)},
    )
    assert got[got.index("--cuda-graph-sizes") :][:3] == ["--cuda-graph-sizes", "1", "2"]


@pytest.mark.parametrize(
    ("uri", "want"),
    [
        ("hf://a/b", "a/b"),
        ("a/b", "a/b"),
        ("pvc://claim", "/models"),
        ("pvc://claim/deep/path/", "/models/deep/path"),
    ],
)
def test_model_argument(uri, want):
    assert model_argument(uri) == want


def test_a_model_on_a_claim_has_no_revision():
    assert not [word for word in args(uri="pvc://models/llama") if word.startswith("--revision")]


@pytest.mark.parametrize(
    ("uri", "want"),
    [
        ("hf://Qwen/Qwen3-32B", ("Qwen/Qwen3-32B", "llama")),
        ("pvc://models/qwen/32b", ("32b", "llama")),
        ("pvc://models/llama", ("llama",)),
    ],
)
def test_served_names(uri, want):
    assert served_names(resource(spec__model__uri=uri)) == want


def test_clients_do_not_see_which_alternative_runs():
    names = "--served-model-name meta-llama/Llama-3.1-8B-Instruct llama"
    assert names in " ".join(args(uri="hf://other/Llama-FP8"))


def test_drain_seconds_that_are_no_number_are_left_to_the_engine():
    assert drain_seconds(resource(spec__engine__args=["--shutdown-timeout=soon"])) == 60


EAGER_AND_EVERYTHING = {
    "enforce_eager": True,
    "layout": ranks(8, 2, data_parallel_size=2, enable_expert_parallel=True),
    "decode_context_parallel_size": 4,
    "kv_cache_memory_bytes": 2**30,
    "num_gpu_blocks_override": 99,
}


@pytest.mark.parametrize("version", [(0, 12, 0), (0, 17, 1), (0, 18, 0), (0, 24, 0), (0, 33, 0)])
@pytest.mark.parametrize("settings", [{}, EAGER_AND_EVERYTHING], ids=["usual", "unusual"])
def test_the_stand_in_engine_understands_every_word(version, settings):
    words = args(
        spec={"spec__engine__args": ["--seed=1", "--block-size", "32"]},
        settings={**settings, "version": EngineVersion(*version)},
    )
    given = parse(words, version, program="vllm serve")
    assert given["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert given["served_model_name"] == ["meta-llama/Llama-3.1-8B-Instruct", "llama"]
    assert given["max_model_len"] == 131_072
    assert given["gpu_memory_utilization"] == 0.95
