"""A vllm serve command line, read as the engine would read it."""

import shlex

import pytest

from shipfitter.api.engine_flags import OTHER_NAMES
from shipfitter.api.serve_command import config_arguments, parse_serve_command
from shipfitter.api.serve_flags import EVERY_FLAG, GONE_SINCE, LISTS, SINGLES, SWITCHES
from shipfitter.errors import InvalidSpecError


def parsed(line):
    return parse_serve_command(shlex.split(line))


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("vllm serve a/b -tp 2", "a/b", id="the model comes first"),
        pytest.param("serve a/b", "a/b", id="without the program"),
        pytest.param("a/b --port 8000", "a/b", id="only what follows serve"),
        pytest.param("--model a/b", "a/b", id="by its flag"),
        pytest.param("vllm serve --enforce-eager a/b", "a/b", id="after a switch"),
        pytest.param("vllm serve -tp 2 a/b", "a/b", id="after a flag and its value"),
        pytest.param("vllm serve --max-model-len=8k a/b", "a/b", id="after a joined value"),
        pytest.param("vllm serve a/b --served-model-name x y", "a/b", id="a list ends at no word"),
        pytest.param("vllm serve x --model a/b", "a/b", id="the flag goes before the word"),
        pytest.param(
            "python3 -m vllm.entrypoints.openai.api_server --model a/b", "a/b", id="as a module"
        ),
        pytest.param("/opt/venv/bin/vllm serve a/b", "a/b", id="by its path"),
        pytest.param("CUDA_VISIBLE_DEVICES=0 vllm serve a/b", "a/b", id="after a variable"),
        pytest.param("env A=1 vllm serve a/b", "a/b", id="after env"),
        pytest.param(
            "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.11.0 --model a/b",
            "a/b",
            id="in a container",
        ),
        pytest.param("vllm serve", None, id="no model"),
    ],
)
def test_the_model(line, want):
    assert parsed(line).model == want


def test_one_quoted_line_is_taken_apart():
    command = parse_serve_command(["vllm serve a/b --tensor-parallel-size 2"])
    assert (command.model, command.text("--tensor-parallel-size")) == ("a/b", "2")


def test_variables_and_the_images_release():
    command = parsed("docker run -e VLLM_USE_V1=0 --env X=2 vllm/vllm-openai:v0.8.5 --model a/b")
    assert command.environment == {"VLLM_USE_V1": "0", "X": "2"}
    assert command.image_tag == "v0.8.5"


def test_variables_before_the_command():
    assert parsed("VLLM_X=1 B=2 vllm serve a/b").environment == {"VLLM_X": "1", "B": "2"}


@pytest.mark.parametrize(
    ("line", "flag", "want"),
    [
        pytest.param("--enforce-eager", "--enforce-eager", True, id="a switch"),
        pytest.param("--no-enforce-eager", "--enforce-eager", False, id="switched off"),
        pytest.param("--enable-prefix-caching False", "--enable-prefix-caching", False,
                     id="releases up to 0.8 took a word"),
        pytest.param("--enable-prefix-caching=true", "--enable-prefix-caching", True, id="joined"),
        pytest.param("--disable-prefix-caching", "--enable-prefix-caching", False,
                     id="disable is the inverse of enable"),
        pytest.param("", "--enforce-eager", None, id="not mentioned"),
        pytest.param("--no-disable-hybrid-kv-cache-manager", "--disable-hybrid-kv-cache-manager",
                     False, id="no longer disabled"),
        pytest.param("--enforce-eager --no-enforce-eager", "--enforce-eager", False,
                     id="the last mention counts"),
    ],
)  # fmt: skip
def test_a_switch(line, flag, want):
    assert parsed(f"vllm serve a/b {line}").switch(flag) is want


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("""-cc '{"mode": 3}'""", {"mode": 3}, id="JSON"),
        pytest.param("-cc.mode 3", {"mode": 3}, id="a dotted key"),
        pytest.param("-cc.a.b=x", {"a": {"b": "x"}}, id="two keys deep"),
        pytest.param("-cc.sizes+ 1,2", {"sizes": [1, 2]}, id="a list, by its items"),
        pytest.param("-O.mode 3", {"mode": 3}, id="by the letter O"),
        pytest.param("""-cc '{"a": 1}' -cc.b 2k""", {"a": 1, "b": 2000}, id="both together"),
        pytest.param("-cc '{mode: 3, x: none}'", {"mode": 3, "x": "none"}, id="lost quotes"),
        pytest.param("-cc 3", {}, id="a bare level has no keys"),
    ],
)
def test_an_object(line, want):
    assert parsed(f"vllm serve a/b {line}").mapping("--compilation-config") == want


@pytest.mark.parametrize("spelling", ["-O3", "-O 3", "-O=3", "--optimization-level 3"])
def test_an_optimisation_level(spelling):
    assert parsed(f"vllm serve a/b {spelling}").text("--optimization-level") == "3"


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("--tensor-paralel-size 2", "did you mean --tensor-parallel-size", id="a typo"),
        pytest.param("--max-num 2", "could be --max-num-active-seqs", id="an ambiguous beginning"),
        pytest.param("--zzzz 2", "--zzzz is no flag of vllm serve; remove it", id="nothing near"),
        pytest.param("c/d", "names the model a/b and then c/d", id="two models"),
    ],
)
def test_what_no_release_knows(line, want):
    with pytest.raises(InvalidSpecError, match=want):
        parsed(f"vllm serve a/b {line}")


def test_every_unknown_flag_is_named_at_once():
    with pytest.raises(InvalidSpecError) as error:
        parsed("vllm serve a/b --frist 1 --secnod 2")
    assert len(error.value.problems) == 2


def test_a_config_file_comes_before_the_command_line():
    file = parse_serve_command(
        config_arguments({"model": "a/b", "max_model_len": 4096, "enforce-eager": True,
                          "enable-prefix-caching": False, "served-model-name": ["x", "y"],
                          "compilation-config": {"mode": 0}})
    )  # fmt: skip
    command = parsed("vllm serve --max-model-len 8192").over(file)
    assert command.model == "a/b"
    assert command.text("--max-model-len") == "8192"
    assert command.switch("--enforce-eager") is True
    assert command.switch("--enable-prefix-caching") is False
    assert command.mapping("--compilation-config") == {"mode": 0}


def test_each_flag_takes_one_kind_of_value():
    assert not SWITCHES & SINGLES
    assert not SINGLES & LISTS
    assert not LISTS & SWITCHES
    assert set(GONE_SINCE) <= EVERY_FLAG


def test_every_flag_is_known_in_both_spellings():
    for flag in sorted(EVERY_FLAG):
        value = [] if flag in SWITCHES else ["1"]
        for spelling in (flag, "--" + flag.removeprefix("--").replace("-", "_")):
            command = parse_serve_command(["vllm", "serve", "a/b", spelling, *value])
            assert command.arguments[0].flag == OTHER_NAMES.get(flag, flag)
