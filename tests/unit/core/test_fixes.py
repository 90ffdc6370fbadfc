"""What is proposed where a command does not fit: only what helps, with the verdict it then gets."""

from dataclasses import replace
from functools import partial

import pytest

from builders_core import card, llama_8b, qwen3_next
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.fixes import fixes, joint_fix
from shipfitter.core.intent import Verdict
from shipfitter.core.verdict import Refusal, assess
from shipfitter.units import GIB


def asked(version="0.33.0", **more):
    return EngineSettings(version=EngineVersion.parse(version), **more)


def proposals(facts, settings, gpu, **given):
    judged = partial(_judged, facts, gpu, given)
    found = judged(settings)
    return found, fixes(facts, settings, gpu, found, judged)


def _judged(facts, gpu, given, settings):
    return assess(facts, settings, gpu, **given)


def test_nothing_where_it_fits():
    found, proposed = proposals(llama_8b(), asked(), card())
    assert (found.verdict, proposed) == (Verdict.FITS, ())


def test_a_length_below_the_engines_own_estimate():
    gpu = card("NVIDIA-L4")
    found, proposed = proposals(llama_8b(), asked(), gpu)
    (length,) = [fix for fix in proposed if fix.flag == "--max-model-len"]
    assert found.reason is Refusal.KV_CACHE_TOO_SMALL
    assert length.verdict is Verdict.FITS
    assert length.value <= found.low.estimated_max_model_len


def test_what_makes_it_fit_comes_first():
    _, proposed = proposals(llama_8b(), asked(), card("NVIDIA-L4"))
    verdicts = [fix.verdict for fix in proposed]
    assert verdicts == sorted(verdicts, key=[Verdict.FITS, Verdict.BORDERLINE].index)


def test_only_more_ranks_help_where_the_weights_do_not_go_on_the_card():
    heavy = replace(llama_8b(), weight_groups=tuple(
        replace(group, loaded_bytes=3 * group.loaded_bytes) for group in llama_8b().weight_groups
    ))  # fmt: skip
    found, proposed = proposals(heavy, asked(), card("NVIDIA-L4"))
    assert found.reason is Refusal.OUT_OF_MEMORY_LOAD
    assert {fix.flag for fix in proposed} == {"--tensor-parallel-size"}


def test_no_more_ranks_than_the_node_has():
    _, proposed = proposals(llama_8b(), asked(), card("NVIDIA-L4"), gpus_per_node=1)
    assert "--tensor-parallel-size" not in {fix.flag for fix in proposed}


def test_a_smaller_share_where_others_are_on_the_card():
    gpu = card(foreign_used_bytes=20 * GIB)
    found, proposed = proposals(llama_8b(), asked(), gpu)
    (share,) = [fix for fix in proposed if fix.flag == "--gpu-memory-utilization"]
    assert found.reason is Refusal.FREE_MEMORY
    assert share.value < 0.75


@pytest.mark.parametrize(
    ("capability", "want"),
    [
        pytest.param((8, 9), True, id="compute capability 8.9 has it"),
        pytest.param((8, 6), False, id="8.6 has not"),
        pytest.param(None, True, id="unknown: it may"),
    ],
)
def test_an_fp8_cache_only_on_cards_that_have_it(capability, want):
    gpu = replace(card("NVIDIA-L4"), compute_capability=capability)
    _, proposed = proposals(llama_8b(), asked(max_model_len=30_000), gpu)
    assert ("--kv-cache-dtype" in {fix.flag for fix in proposed}) is want


def test_two_flags_where_no_single_one_is_enough():
    facts, gpu = qwen3_next(), card()
    settings = asked("0.26.0", max_num_seqs=1024, layout=asked().layout)
    judged = partial(_judged, facts, gpu, {"given_cache_bytes": 2 * GIB})
    found = judged(settings)
    assert not any(
        fix.verdict is Verdict.FITS for fix in fixes(facts, settings, gpu, found, judged)
    )
    together = joint_fix(facts, settings, gpu, found, judged)
    assert together is not None
    changes = {flag.removeprefix("--").replace("-", "_"): value for flag, value in together.changes}
    assert judged(replace(settings, **changes)).verdict is together.verdict is Verdict.FITS
