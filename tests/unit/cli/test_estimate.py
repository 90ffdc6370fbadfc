"""What `shipfitter estimate` says, by its figures, its exit codes and its sentences."""

import json

import pytest

from unit.cli.estimates import LLAMA, MODELS, record_of, run

H100 = f"--gpu h100 {LLAMA}"
SERVE = "vllm serve meta-llama/Llama-3.1-8B-Instruct"
# fmt: off
KEYS = {
    "verdict", "reason", "perGpu", "numGpuBlocks", "blockSize", "kvCacheTokens", "maxConcurrency",
    "kvNeededBytes", "estimatedMaxModelLen", "maxModelLen", "maxNumSeqs", "maxNumBatchedTokens",
    "engineVersion", "modelRunner", "enablePrefixCaching", "kvCacheDtype", "cudagraphCaptureSizes",
    "kvBytesPerToken", "pagesPerRequest", "holdPagesPerRequest", "runningAtTypical",
    "loadPeakBytes", "freeAfterStartBytes", "stages", "fixes", "assumptions",
}
PER_GPU_KEYS = {
    "totalBytes", "requestedBytes", "weightsBytes", "overheadBytes", "activationBytes",
    "cudaGraphBytes", "kvCacheBytes",
}
# fmt: on


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    """The engine's variables of whoever runs the tests do not count."""
    import os

    for name in [name for name in os.environ if name.startswith("VLLM_")]:
        monkeypatch.delenv(name)


def test_the_figures_under_their_names(capsys):
    record = record_of(capsys, f"{H100} -- {SERVE}")
    assert set(record) >= KEYS
    assert set(record["perGpu"]) >= PER_GPU_KEYS
    assert set(record["perGpu"]["kvCacheBytes"]) == {"low", "point", "high"}
    assert len(record["stages"]) == 1


def test_given_cache_memory_asks_the_planner_alone(capsys):
    record = record_of(capsys, f"{H100} --given-kv-cache-memory-gib 50 -- {SERVE}")
    assert (record["numGpuBlocks"], record["blockSize"]) == (25_600, 16)
    assert record["kvCacheTokens"] == 409_600
    assert round(record["maxConcurrency"], 2) == 3.12
    assert record["kvBytesPerToken"] == 131_072
    assert record["pagesPerRequest"] == record["holdPagesPerRequest"] == 8192
    assert record["perGpu"]["kvCacheBytes"]["point"] == 50 * 2**30


def test_a_refusal_with_the_engines_own_figures(capsys):
    ran = run(capsys, f"{H100} --given-kv-cache-memory-gib 10 -o json -- {SERVE}")
    assert ran.code == 1
    assert (ran.record["verdict"], ran.record["reason"]) == ("DoesNotFit", "KVCacheTooSmall")
    assert ran.record["estimatedMaxModelLen"] == 81_904
    assert ran.record["kvNeededBytes"] == 16 * 2**30


def test_an_fp8_cache_is_half_the_size(capsys):
    line = f"{H100} --given-kv-cache-memory-gib 50 -- {SERVE} --kv-cache-dtype fp8"
    assert record_of(capsys, line)["kvCacheTokens"] == 819_200


def test_a_length_between_the_ends_is_borderline(capsys):
    cache = record_of(capsys, f"{H100} -- {SERVE} -tp 1")["perGpu"]["kvCacheBytes"]
    between = (cache["low"] + cache["point"]) // 2 // 131_072
    ran = run(
        capsys,
        f"{H100} --env VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 -o json -- {SERVE} "
        f"--max-model-len {between}",
    )
    assert (ran.code, ran.record["verdict"]) == (3, "Borderline")
    assert ran.record["reason"] == "KVCacheTooSmall"


@pytest.mark.parametrize(
    ("line", "code", "reason"),
    [
        pytest.param(f"{H100} -- {SERVE}", 0, None, id="it fits"),
        pytest.param(f"--gpu t4 {LLAMA} -- {SERVE}", 1, "OutOfMemoryLoad", id="too heavy"),
        pytest.param(f"--gpu h100:1 {LLAMA} -- {SERVE} -tp 2", 1, "InvalidParallelism",
                     id="more ranks than GPUs"),
        pytest.param(f"--gpu h100:1 --nodes 2 {LLAMA} -- {SERVE} -pp 2", 0, None,
                     id="as many over two nodes"),
        pytest.param(f"{H100} -- {SERVE} -tp 3", 1, "InvalidParallelism", id="heads do not divide"),
        pytest.param(f"{H100} -- {SERVE} --max-model-len 999999", 1, "MaxModelLenTooLong",
                     id="longer than the model allows"),
        pytest.param(f"--gpu v100 --gpu-memory-mib 32510 {LLAMA} -- {SERVE} --dtype bfloat16", 2,
                     None, id="a name that stands for two cards"),
        pytest.param(f"--gpu t4 --gpu-memory-mib 32000 {LLAMA} -- {SERVE} --dtype bfloat16", 1,
                     "Other", id="no bfloat16 on an older card"),
        pytest.param(f"--gpu-free-memory-mib 60000 {H100} -- {SERVE}", 1, "FreeMemory",
                     id="another tenant"),
        pytest.param(f"{H100} -- {SERVE} --no-enable-chunked-prefill "
                     "--max-num-batched-tokens 4096", 1, "Other", id="a prefill that is too long"),
        pytest.param(f"{H100} -- {SERVE} -tp 2 -dcp 2", 1, "InvalidParallelism",
                     id="shared contexts want more ranks than heads"),
        pytest.param(f"{H100} --env VLLM_PP_LAYER_PARTITION=10,10 -- {SERVE} -pp 2", 1,
                     "InvalidParallelism", id="a partition of another model"),
        pytest.param(f"{H100} --env VLLM_PP_LAYER_PARTITION=10,22 -- {SERVE} -pp 2", 0, None,
                     id="a partition"),
    ],
)  # fmt: skip
def test_exit_codes_and_reasons(capsys, line, code, reason):
    options, _, command = line.partition(" -- ")
    ran = run(capsys, f"{options} -o json -- {command}")
    assert ran.code == code
    if code != 2:
        assert ran.record["reason"] == reason


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param(f"{H100} -- {SERVE} --tensor-paralel-size 2",
                     "did you mean --tensor-parallel-size", id="a misspelt flag"),
        pytest.param(f"--gpu L40Z {LLAMA} -- {SERVE}", "did you mean NVIDIA-L40", id="a card"),
        pytest.param(f"{LLAMA} -- {SERVE}", "--gpu PRODUCT", id="no card"),
        pytest.param(f"--gpu unknown {LLAMA} -- {SERVE}", "--gpu-memory-mib", id="no memory"),
        pytest.param(f"--gpu h100:0 {LLAMA} -- {SERVE}", "a number from 1", id="a count"),
        pytest.param(f"--gpu NVIDIA-A100-SXM4-40GB-MIG-9g.99gb {LLAMA} -- {SERVE}",
                     "--gpu-memory-mib", id="a slice"),
        pytest.param(f"--gpu h100 --model-facts /nowhere.json -- {SERVE}", "/nowhere.json",
                     id="no such file"),
        pytest.param("--gpu h100 -- vllm serve", "names no model", id="no model"),
        pytest.param("--gpu h100 -- vllm serve ./nowhere", "no such folder", id="no folder"),
        pytest.param(f"{H100} --env X -- {SERVE}", "NAME=VALUE", id="a variable"),
        pytest.param(f"{H100} --engine-version 0.5.0 -- {SERVE}", "0.6.0 or newer", id="too old"),
        pytest.param(f"{H100} -- {SERVE} --config /nowhere.yaml", "/nowhere.yaml", id="no config"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_on_stderr(capsys, line, want):
    ran = run(capsys, line)
    assert (ran.code, ran.out) == (2, "")
    assert want in ran.err


def test_the_class_nobody_knows_is_named(capsys, tmp_path):
    file = tmp_path / "facts.json"
    file.write_text('{"config": {"architectures": ["XLMRobertaModel"], "hidden_size": 8}}')
    ran = run(capsys, f"--gpu h100 --model-facts {file} -- vllm serve x/y")
    assert ran.code == 2
    assert "UnknownArchitecture: model x/y" in ran.err
    assert "XLMRobertaModel" in ran.err


def test_facts_without_a_total_say_so(capsys, tmp_path):
    facts = json.loads((MODELS / "Llama-3.1-8B-Instruct.json").read_text())
    file = tmp_path / "facts.json"
    file.write_text(json.dumps({"config": facts["config"]}))
    record = record_of(capsys, f"--gpu h100 --model-facts {file} -- vllm serve x/y")
    assert any("their total was not given" in note for note in record["assumptions"])
    assert record["model"]["name"] == "x/y"


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param("{", "not JSON", id="no JSON"),
        pytest.param("[]", 'has no "config"', id="a list"),
        pytest.param('{"config": {}, "weights": {"total_bytes": "1G"}}', "a number of bytes",
                     id="bytes with a unit"),
        pytest.param('{"config": {}}', "names no class", id="an empty config"),
    ],
)  # fmt: skip
def test_facts_that_cannot_be_read(capsys, tmp_path, content, want):
    file = tmp_path / "facts.json"
    file.write_text(content)
    ran = run(capsys, f"--gpu h100 --model-facts {file} -- vllm serve x/y")
    assert ran.code == 2
    assert want in ran.err


def test_a_card_without_a_name_is_less_certain(capsys):
    named = record_of(capsys, f"{H100} --gpu-memory-mib 81090 -- {SERVE}")
    nameless = record_of(capsys, f"--gpu unknown --gpu-memory-mib 81090 {LLAMA} -- {SERVE}")

    def width(record):
        cache = record["perGpu"]["kvCacheBytes"]
        return cache["high"] - cache["low"]

    assert nameless["perGpu"]["totalBytes"] == 81_090 * 2**20
    assert width(nameless) > width(named) / 2
    assert any("compute capability unknown" in note for note in nameless["assumptions"])


def test_known_models_need_no_facts(capsys):
    record = record_of(capsys, "--gpu NVIDIA-L40S -- vllm serve Qwen/Qwen3-32B -tp 2 "
                       "--max-model-len 32768")  # fmt: skip
    assert (record["verdict"], record["model"]["architecture"]) == ("Fits", "Qwen3ForCausalLM")


def test_keys_of_config_json_are_replaced(capsys):
    line = f"""{H100} -- {SERVE} --hf-overrides '{{"max_position_embeddings": 4096}}'"""
    assert record_of(capsys, line)["maxModelLen"] == 4096


def test_a_config_file_is_read(capsys, tmp_path):
    file = tmp_path / "serve.yaml"
    file.write_text("max-model-len: 4096\nmax-num-seqs: 17\nenforce-eager: true\n")
    record = record_of(capsys, f"{H100} -- {SERVE} --config {file} --max-num-seqs 9")
    assert (record["maxModelLen"], record["maxNumSeqs"]) == (4096, 9)
    assert record["cudagraphCaptureSizes"] == []


def test_the_release_of_the_image_counts(capsys):
    record = record_of(capsys, f"{H100} -- docker run vllm/vllm-openai:v0.11.0 --model a/b")
    assert (record["engineVersion"], record["gpuMemoryUtilization"]) == ("0.11.0", 0.9)


def test_variables_in_the_environment_count(capsys, monkeypatch):
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "0")
    assert record_of(capsys, f"{H100} -- {SERVE}")["modelRunner"] == "V1"
    over = f"{H100} --env VLLM_USE_V2_MODEL_RUNNER=1 -- {SERVE}"
    assert record_of(capsys, over)["modelRunner"] == "V2"


@pytest.mark.parametrize(
    ("line", "want_mib"),
    [
        pytest.param(f"{H100} -- {SERVE} --attention-backend FLASHINFER", 394, id="asked for"),
        pytest.param(f"{H100} --env VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE={2**30} -- {SERVE} "
                     "--attention-backend FLASHINFER", 1024, id="of another size"),
        pytest.param(f"{H100} --env VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE={2**30} -- {SERVE}", 0,
                     id="of a backend that does not run"),
    ],
)  # fmt: skip
def test_a_workspace_of_flashinfer(capsys, line, want_mib):
    plain = record_of(capsys, f"{H100} -- {SERVE}")["perGpu"]["overheadBytes"]
    assert record_of(capsys, line)["perGpu"]["overheadBytes"] - plain == want_mib * 2**20


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(f"{H100} --env VLLM_USE_V1=0 -- {SERVE}", id="by a variable"),
        pytest.param(f"--gpu t4 {LLAMA} -- {SERVE}", id="on a card that the newer one refuses"),
    ],
)
def test_the_engine_before_v1(capsys, line):
    record = record_of(capsys, line.replace(" -- ", " --engine-version 0.8.5 -- "))
    assert record["engineVersion"] == "0.8.5"
    assert any("engine before V1" in note for note in record["assumptions"])


def test_a_newer_release_is_counted_as_the_newest_known(capsys):
    record = record_of(capsys, f"{H100} --engine-version 0.99.1 -- {SERVE}")
    assert record["engineVersion"] == "0.99.1"
    assert any("newer than what is known" in note for note in record["assumptions"])


def test_a_length_that_may_shrink_is_fitted(capsys):
    line = f"{H100} --given-kv-cache-memory-gib 10 -- {SERVE} --max-model-len auto"
    record = record_of(capsys, line)
    assert (record["verdict"], record["maxModelLen"]) == ("Fits", 81_904)


def test_requests_at_once_follow_the_typical_length(capsys):
    line = "{} --given-kv-cache-memory-gib 50 {} -- {}"
    short = record_of(capsys, line.format(H100, "--typical-tokens 1024", SERVE))
    long = record_of(capsys, line.format(H100, "--typical-tokens 65536", SERVE))
    assert short["runningAtTypical"] == 399  # 25,599 blocks, 64 each
    assert long["runningAtTypical"] == 6


def test_performance_modes(capsys):
    plain = record_of(capsys, f"{H100} -- {SERVE}")
    twice = record_of(capsys, f"{H100} -- {SERVE} --performance-mode throughput")
    assert twice["maxNumSeqs"] == 2 * plain["maxNumSeqs"]
    fine = record_of(capsys, f"{H100} -- {SERVE} --performance-mode interactivity")
    assert set(range(1, 33)) <= set(fine["cudagraphCaptureSizes"])


def test_adapters_take_weight(capsys):
    plain = record_of(capsys, f"{H100} -- {SERVE}")["perGpu"]["weightsBytes"]
    more = record_of(capsys, f"{H100} -- {SERVE} --enable-lora --max-lora-rank 64")
    assert more["perGpu"]["weightsBytes"] > plain


def test_stages_are_listed_each(capsys):
    record = record_of(capsys, f"{H100} -- {SERVE} -pp 2")
    assert [stage["stage"] for stage in record["stages"]] == [0, 1]
    least = min(stage["kvCacheBytes"]["point"] for stage in record["stages"])
    assert record["perGpu"]["kvCacheBytes"]["point"] == least


def test_yaml_holds_the_same(capsys):
    ran = run(capsys, f"{H100} -o yaml -- {SERVE}")
    assert "verdict: Fits" in ran.out


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param(f"{H100} -- {SERVE}", ("✓ Fits", "will report", "KV cache", "certain?"),
                     id="it fits"),
        pytest.param(f"--gpu l4 {LLAMA} -- {SERVE}",
                     ("✗ DoesNotFit: KVCacheTooSmall", "the longest", "what would help",
                      "--max-model-len"), id="the cache is too small"),
        pytest.param(f"{H100} -- {SERVE} -tp 3", ("InvalidParallelism", "do not divide"),
                     id="refused before memory counts"),
    ],
)  # fmt: skip
def test_the_text_for_a_person(capsys, line, want):
    out = run(capsys, line).out
    assert all(part in out for part in want)
    assert max(len(row) for row in out.splitlines()) <= 100


def test_help_names_every_option(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = run(capsys, "--help").out
    for option in ("--gpu", "--gpu-memory-mib", "--gpu-free-memory-mib", "--nodes", "--env",
                   "--interconnect", "--engine-version", "--model-facts", "--revision",
                   "--given-kv-cache-memory", "--compile-cache", "--typical-tokens",
                   "--calibration"):  # fmt: skip
        assert option in out
