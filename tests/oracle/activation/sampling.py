"""The sampler as the profile run of each runner calls it."""

from dataclasses import replace
from typing import Any


def sample_v2(model: Any, rows: Any) -> None:
    """Source: vLLM 0.32 vllm/v1/worker/gpu/model_runner.py _dummy_sampler_run."""
    import torch
    from vllm.v1.worker.gpu.sample.gumbel import gumbel_sample

    logits = model.compute_logits(rows)
    each = torch.zeros(rows.shape[0], dtype=torch.int32, device="meta")
    gumbel_sample(
        logits,
        each,
        each.float(),
        each.long(),
        each.long(),
        apply_temperature=False,
        is_drafting=False,
    )


def sample_v1(model: Any, rows: Any) -> None:
    """Source: vLLM 0.32 vllm/v1/worker/gpu_model_runner.py _dummy_sampler_run."""
    import torch
    from vllm.v1.sample.logits_processor import LogitsProcessors
    from vllm.v1.sample.metadata import SamplingMetadata
    from vllm.v1.sample.sampler import Sampler

    sampler = Sampler()
    rows = torch.rand_like(rows)
    logits = model.compute_logits(rows)
    count, entries = logits.shape

    def every(value: float) -> Any:
        return torch.full((count,), value, device="meta")

    asked = SamplingMetadata(
        temperature=every(0.5),
        top_p=every(0.9),
        top_k=every(entries - 1),
        frequency_penalties=every(0.1),
        presence_penalties=every(0.1),
        repetition_penalties=every(0.1),
        all_greedy=False,
        all_random=False,
        no_penalties=True,
        generators={},
        max_num_logprobs=None,
        logprob_token_ids=None,
        prompt_token_ids=None,
        output_token_ids=[[] for _ in range(count)],
        spec_token_ids=[[] for _ in range(count)],
        allowed_token_ids_mask=None,
        bad_words_token_ids={},
        logitsprocs=LogitsProcessors(),
    )
    # The result of the first pass lives while the second, with a seed, runs.
    first = sampler(logits=logits, sampling_metadata=asked)
    seeded = replace(asked, generators={0: None})  # type: ignore[dict-item]
    sampler(logits=logits, sampling_metadata=seeded)
    del first
