"""Each exception by which a release says no, as its source words it, and what it is taken for.

A row names the first and the last of the releases that were read and word it so.
"""

import pytest

from shipfitter.core.engine_log import read_log

TRACEBACK = (
    "(EngineCore_DP0 pid=321) Traceback (most recent call last):\n"
    '(EngineCore_DP0 pid=321)   File "/opt/vllm/v1/engine/core.py", line 712, in run_engine_core\n'
    "(EngineCore_DP0 pid=321) "
)


def refused(releases, outcome, exception):
    return pytest.param(exception, outcome, id=f"{releases}: {exception[:70]}")


PARALLELISM, QUANTIZATION = "InvalidParallelism", "UnsupportedQuantization"


@pytest.mark.parametrize(
    ("exception", "want"),
    [
        refused("0.6-0.10", PARALLELISM, "AssertionError: please set tensor_parallel_size (4) to "
                "less than max local gpu count (2)"),
        refused("0.6-0.10", PARALLELISM, "RuntimeError: please ensure that world_size (8) is less "
                "than than max local gpu count (4)"),
        refused("0.6-0.33", PARALLELISM, "ValueError: Total number of attention heads (28) must be "
                "divisible by tensor parallel size (8)."),
        refused("0.12-0.30", PARALLELISM, "AssertionError: local_world_size (4) must be less than "
                "or equal to the number of visible devices (2)."),
        refused("0.13-0.33", PARALLELISM, "pydantic_core._pydantic_core.ValidationError: 1 "
                "validation error for ParallelConfig\n  Value error, World size (8) is larger than "
                "the number of available GPUs (4) in this node. If this is intentional and you are "
                "using: - ray, set '--distributed-executor-backend ray'."),
        refused("0.6-0.11", PARALLELISM, "ValueError: Cannot provide a placement group of "
                "placement_group_specs=[{'GPU': 1.0}] within 1800 seconds. See `ray status`"),
        refused("0.12-0.33", PARALLELISM, "ValueError: Cannot provide a placement group requiring "
                "16 GPUs (placement_group_specs=[{'GPU': 1.0}]) within 1800 seconds. Tensor "
                "parallel size may exceed available GPUs in your cluster."),
        refused("0.6-0.32", PARALLELISM, "RuntimeError: driver node id 9ab is not included in a "
                "placement group 17. Node id -> bundles {}. You don't have enough GPUs available "
                "in a current node."),
        refused("0.6-0.33", PARALLELISM, "ValueError: Tensor parallel size 16 is greater than the "
                "number of experts 8."),
        refused("0.7-0.33", PARALLELISM, "AssertionError: Tensor parallel world size must divide "
                "num heads."),
        refused("0.7-0.27", PARALLELISM, "ValueError: Prequant BitsAndBytes models with tensor "
                "parallelism is not supported. Please try with pipeline parallelism."),
        refused("0.8-0.10", PARALLELISM, "ValueError: OuteTTS does not support tensor parallel "
                "yet!"),
        refused("0.6", PARALLELISM, "NotImplementedError: Pipeline parallelism is only supported "
                "for the following architectures: ['LlamaForCausalLM']."),
        refused("0.12-0.26", PARALLELISM, "AssertionError: tensor parallel size 8 must be greater "
                "than total num kv heads 8 when enable decode context parallel for GQA/MQA"),
        refused("0.8-0.11", QUANTIZATION, "ValueError: Current platform does not support NVFP4 "
                "quantization. Please use Blackwell and above."),
        refused("0.6-0.27", QUANTIZATION, "AttributeError: Model Phi3Small does not support "
                "BitsAndBytes quantization yet."),
        refused("0.6-0.33", QUANTIZATION, "ValueError: fp8_e5m2 kv-cache is not supported with "
                "fp8 checkpoints."),
        refused("0.8-0.19", QUANTIZATION, "NotImplementedError: FlashAttention does not support "
                "fp8 kv-cache on this device."),
        refused("0.8-0.17", QUANTIZATION, "NotImplementedError: TritonMLA V1 with FP8 KV cache "
                "not yet supported"),
        refused("0.6-0.33", QUANTIZATION, "ValueError: The quantization method fp8 is not "
                "supported for the current GPU. Minimum capability: 89. Current capability: 80."),
        refused("0.6-0.28", QUANTIZATION, "RuntimeError: Quantization scheme is not supported for "
                "the current GPU. Min capability: 80. Current capability: 75."),
        refused("0.7-0.33", QUANTIZATION, "NotImplementedError: No quark compatible scheme was "
                "found. Weight config: {}, Input config: {}"),
        refused("0.8-0.33", "UnsupportedArchitecture", "ValueError: Cannot find model module. "
                "'FooForCausalLM' is not a registered model in the Transformers library"),
        refused("0.14-0.28", "OutOfMemoryLoad", "RuntimeError: Failed to create unquantized linear "
                "weights. This may be caused by insufficient memory to allocate the weight."),
        refused("0.33", "NoCacheBlocks", "ValueError: The worker already uses 61.20 GiB (model "
                "weights and runtime), more than the 50.00 GiB of CPU memory reserved for it on "
                "node 0, leaving none for the KV cache."),
        refused("0.25-0.33", "NoCacheBlocks", "ValueError: frontend multimodal GPU decoding "
                "reserves 2.0 GiB (1.0 GiB raw-frame budget, 1.0 GiB decoder cache budget), but "
                "only 1.5 GiB is available for the KV cache."),
        refused("0.20-0.32", "FreeMemory", "ValueError: Available memory on node 0 (31.2/62.7 GiB) "
                "on startup is less than desired CPU memory utilization (0.9, 56.43 GiB)."),
        refused("0.9-0.33", "Communication", "RuntimeError: Barrier timed out after 30.0 seconds"),
        refused("0.33", "Other", "ValueError: Speculators verifier must name a remote model "
                "repository. Select local verifiers explicitly with --model and "
                "--speculative-config."),
        refused("0.6-0.33", "Other", "ValueError: max_num_batched_tokens (2048) is smaller than "
                "max_model_len (32768)."),
        refused("0.8-0.33", "UnsupportedArchitecture", "ValueError: FooForCausalLM has no vLLM "
                "implementation and the Transformers implementation is not compatible with vLLM."),
        refused("Slurm", "HostOutOfMemory", "slurmstepd: error: Detected 1 oom_kill event in "
                "StepId=1234.0. Some of the step tasks have been OOM Killed."),
        refused("Ray", "Other", "ray.exceptions.ActorDiedError: A worker died or was killed while "
                "executing a task by an unexpected system error."),
        refused("0.9-0.33", "Other", "AssertionError: Error in memory profiling. Initial free "
                "memory 30.1 GiB, current free memory 31.0 GiB. This happens when other processes "
                "sharing the same container release GPU memory while vLLM is profiling"),
    ],
)  # fmt: skip
def test_the_outcome_of_an_exception(exception, want):
    got = read_log(TRACEBACK + exception)
    assert (got.outcome, got.model) == (want, None)
