"""A user's engine arguments, read as the engine reads them."""

import pytest

from shipfitter.api.engine_args import argument_problems, passed_through, pinned_flags


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("--max-model-len 8192", {"max_model_len": 8192}, id="a flag and its value"),
        pytest.param("--max-model-len=8192", {"max_model_len": 8192}, id="joined by ="),
        pytest.param("--max_model_len 8192", {"max_model_len": 8192}, id="with underscores"),
        pytest.param("--max_model_len=8k", {"max_model_len": 8000}, id="k is a thousand"),
        pytest.param("--max-model-len 8K", {"max_model_len": 8192}, id="K is 1024"),
        pytest.param("--max-model-len 25.6k", {"max_model_len": 25600}, id="a decimal thousand"),
        pytest.param("--max-model-len 1.5K", {}, id="the engine refuses a decimal 1024"),
        pytest.param("--max-model-len auto", {}, id="auto leaves it to the planner"),
        pytest.param("--max-model-len -1", {}, id="so does -1"),
        pytest.param("--max-num-seqs 64", {"max_num_seqs": 64}, id="sequences"),
        pytest.param(
            "--max-num-batched-tokens=2k", {"max_num_batched_tokens": 2000}, id="batched tokens"
        ),
        pytest.param(
            "--gpu-memory-utilization .85", {"gpu_memory_utilization": 0.85}, id="utilization"
        ),
        pytest.param(
            "--device-memory-utilization 0.85",
            {"gpu_memory_utilization": 0.85},
            id="utilization by its other name",
        ),
        pytest.param("-tp 2", {"tensor_parallel_size": 2}, id="a short flag"),
        pytest.param("-tp=2", {"tensor_parallel_size": 2}, id="a short flag joined by ="),
        pytest.param("--tensor-parallel 2", {"tensor_parallel_size": 2}, id="an abbreviation"),
        pytest.param("-pp 2 -dcp 2", {"pipeline_parallel_size": 2,
                     "decode_context_parallel_size": 2}, id="two short flags"),
        pytest.param("-dp 4 -ep", {"data_parallel_size": 4, "enable_expert_parallel": True},
                     id="data parallel with whole experts"),
        pytest.param("--kv-cache-dtype fp8", {"kv_cache_dtype": "fp8"}, id="cache dtype"),
        pytest.param("--kv-cache-dtype-skip-layers 0 1", {}, id="a longer flag is another flag"),
        pytest.param("--block-size 32", {"block_size": 32}, id="block size"),
        pytest.param("--enforce-eager", {"enforce_eager": True}, id="a switch"),
        pytest.param("--no-enforce-eager", {"enforce_eager": False}, id="a switch turned off"),
        pytest.param(
            "--enable-prefix-caching --no_enable_prefix_caching",
            {"enable_prefix_caching": False},
            id="the last mention wins",
        ),
        pytest.param("--async-scheduling", {"async_scheduling": True}, id="async scheduling"),
        pytest.param(
            "--max-cudagraph-capture-size 64", {"max_cudagraph_capture_size": 64}, id="graphs"
        ),
        pytest.param(
            "--cudagraph-capture-sizes 1 2 4",
            {"cudagraph_capture_sizes": (1, 2, 4)},
            id="a list of graphs",
        ),
        pytest.param(
            "--cuda-graph-sizes 1 2", {"cudagraph_capture_sizes": (1, 2)}, id="an old name"
        ),
        pytest.param(
            "--kv-cache-memory=4G", {"kv_cache_memory_bytes": 4 * 2**30}, id="the log's own advice"
        ),
        pytest.param("--spec-tokens 3", {"num_speculative_tokens": 3}, id="drafts by a flag"),
        pytest.param(
            """--speculative-config {"method":"ngram","num_speculative_tokens":4}""",
            {"num_speculative_tokens": 4},
            id="drafts by JSON",
        ),
        pytest.param(
            "--speculative-config.num_speculative_tokens 5",
            {"num_speculative_tokens": 5},
            id="drafts by a dotted flag",
        ),
        pytest.param("--max-num 5", {}, id="an ambiguous beginning is left to the engine"),
        pytest.param("--enable-auto-tool-choice --seed 5", {}, id="other flags"),
        pytest.param("", {}, id="nothing"),
    ],
)  # fmt: skip
def test_pinned_flags(line, want):
    assert pinned_flags(line.split()) == want


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("--seed 5 -tp 2 --dtype half", "--seed 5 --dtype half", id="sizes go"),
        pytest.param("--max-model-len auto --seed 5", "--seed 5", id="so does a size left open"),
        pytest.param(
            "--cudagraph-capture-sizes 1 2 --dtype half", "--dtype half", id="lists go whole"
        ),
        pytest.param(
            "--spec-tokens 3 --limit-mm-per-prompt.image 2",
            "--spec-tokens 3 --limit-mm-per-prompt.image 2",
            id="what is not ours stays as written",
        ),
    ],
)
def test_passed_through(line, want):
    assert list(passed_through(line.split())) == want.split()


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param(
            "--model a/b", "--model is written by Shipfitter; set spec.model.uri", id="the model"
        ),
        pytest.param(
            "--served_model_name=x",
            "--served_model_name=x is written by Shipfitter; clients find the model under "
            "the name in spec.model.uri and under metadata.name: remove it",
            id="the served name, in another spelling",
        ),
        pytest.param(
            "--port 80",
            "--port is written by Shipfitter; "
            "the Service, the probes and the metrics count on it: remove it",
            id="the port",
        ),
        pytest.param(
            "--api-key s",
            "--api-key is written by Shipfitter; it would be readable in every pod: "
            "set VLLM_API_KEY from a Secret in spec.engine.env",
            id="a secret in the open",
        ),
        pytest.param(
            "--max-num-seqs many",
            "--max-num-seqs takes a whole number (1k is 1000, 1K is 1024), got many",
            id="no number",
        ),
        pytest.param(
            "--gpu-memory-utilization 90",
            "--gpu-memory-utilization takes a number above 0 and up to 1, got 90",
            id="a percentage",
        ),
        pytest.param(
            "--tensor-parallel-size",
            "--tensor-parallel-size takes a whole number (1k is 1000, 1K is 1024), got nothing",
            id="no value",
        ),
        pytest.param(
            "--enforce-eager true",
            "--enforce-eager takes no value, got true",
            id="a value",
        ),
        pytest.param(
            "meta/llama --seed 1",
            "'meta/llama' follows no flag; the model is set by spec.model.uri: remove it",
            id="the model as the engine's own command line has it",
        ),
        pytest.param(
            "--compilation-config {'cudagraph_capture_sizes':[1]}",
            "cudagraph_capture_sizes inside --compilation-config hides it from the plan: "
            "write --cudagraph-capture-sizes",
            id="capture sizes in JSON",
        ),
        pytest.param(
            "-cc.max_cudagraph_capture_size=8",
            "max_cudagraph_capture_size inside --compilation-config hides it from the plan: "
            "write --max-cudagraph-capture-size",
            id="capture sizes in a dotted short flag",
        ),
    ],
)
def test_argument_problems(line, want):
    assert argument_problems(line.split()) == (want,)


@pytest.mark.parametrize(
    "line",
    [
        "--enable-auto-tool-choice --tool-call-parser hermes",
        "--model-impl transformers",
        "--max-model-len auto",
        "--compilation-config {'mode':3}",
        "-O3 --seed -1",
    ],
)
def test_what_the_engine_may_be_told(line):
    assert argument_problems(line.split()) == ()
