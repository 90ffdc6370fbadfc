"""Laws of reading logs: what stands around the engine's words does not change what they say."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from shipfitter.core.engine_log import read_last_words, read_log

LOGS = Path(__file__).parents[1] / "data" / "logs"
# Those that are plain: the others carry prefixes, colours or wraps of their own.
PLAIN = {
    path.stem: path.read_bytes().decode("utf-8").replace("\r", "\n")
    for path in sorted(LOGS.glob("*.log"))
    if not re.search(r"wrapped|quoted|colours|docker|kubectl|journald", path.stem)
}
PREFIXES = (
    "",
    "vllm-1  | ",
    "[pod/llama-0/vllm] ",
    "2026-02-03T10:11:12.123456789Z ",
    "2026-02-03T10:11:12.123456789Z stdout F ",
    "Jan 30 07:00:01 gpu-node-3 docker[2213]: ",
    "> ",
    "    ",
)
HEAD = re.compile(r"\b(INFO|ERROR|WARNING|DEBUG) (\d\d-\d\d [\d:]+) (\[[^\]]+\])")
FRAGMENTS = (
    *(line for text in PLAIN.values() for line in text.splitlines()[:40]),
    "(",
    "'",
    "{",
    "non-default args: {'a': ",
    "args: Namespace(a=",
    "\x1b[0m",
    "\r",
    "GiB",
    "Traceback (most recent call last):",
    "vllm serve ",
    "\\",
)


def facts(text):
    """All that is read but the sentence itself, whose spaces a wrap may eat."""
    log = read_log(text)
    refusal = log.refusal
    names = [] if refusal is None else [n for n in refusal.__slots__ if n != "message"]
    return log.outcome, dict(log.read()), {name: getattr(refusal, name) for name in names}


def coloured(line):
    line = re.sub(r"^(\([^)]*\))", "\x1b[0;36m\\1\x1b[0;0m", line)
    return HEAD.sub("\x1b[32m\\1\x1b[0m \x1b[90m\\2\x1b[0m \x1b[90m\\3\x1b[0m", line)


def wrapped(line, width):
    return [line[start : start + width] for start in range(0, len(line), width)] or [""]


@given(st.sampled_from(sorted(PLAIN)), st.sampled_from(PREFIXES), st.booleans())
def test_prefixes_and_colours_change_nothing(name, prefix, colour):
    lines = [coloured(line) if colour else line for line in PLAIN[name].splitlines()]
    assert facts("\n".join(prefix + line for line in lines)) == facts(PLAIN[name])


@given(
    st.sampled_from(sorted(PLAIN)),
    st.sampled_from(PREFIXES),
    st.integers(120, 240),
    st.booleans(),
)
def test_a_terminal_that_wraps_changes_nothing(name, prefix, width, strips):
    lines = [part for line in PLAIN[name].splitlines() for part in wrapped(prefix + line, width)]
    pasted = "\n".join(line.rstrip() if strips else line for line in lines)
    assert facts(pasted) == facts(PLAIN[name])


@given(st.sampled_from(sorted(PLAIN)), st.sampled_from(["\r\n", "\r\r\n", "\n"]))
def test_line_ends_change_nothing(name, end):
    assert facts(end.join(PLAIN[name].splitlines())) == facts(PLAIN[name])


@given(st.text(), st.integers() | st.none(), st.text(max_size=12) | st.none())
def test_no_text_is_too_strange(text, exit_code, reason):
    read_log(text)
    read_last_words(text, exit_code, reason)


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=20), max_size=30), st.booleans())
def test_no_mixture_of_lines_is_too_strange(pieces, glued):
    log = read_log(("" if glued else "\n").join(pieces))
    assert set(log.read()) == set(read_log("").read())


@given(st.sampled_from(sorted(PLAIN)), st.data())
def test_an_excerpt_states_no_figure_that_the_whole_does_not(name, data):
    lines = PLAIN[name].splitlines()
    start = data.draw(st.integers(0, len(lines)))
    stop = data.draw(st.integers(start, len(lines)))
    stated = read_log("\n".join(lines[start:stop])).read()
    for value in stated.values():
        assert value is None or mentions(PLAIN[name], value)


def mentions(text, value):
    """Whether the text shows this figure or word, in one of the ways a log spells it."""
    if isinstance(value, str):
        return value in text
    figures = {float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*\.?\d*", text)}
    if {float(value), value / 1000} & figures:  # 16k is 16000
        return True
    return any(
        round(figure / scale, 2) == value for figure in figures for scale in (1024, 2**20, 2**30)
    )
