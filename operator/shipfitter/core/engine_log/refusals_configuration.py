"""How an engine says that what it was asked cannot be: length, ranks, weights, model, token.

Read in vLLM 0.6.6, 0.7.3, 0.14.1, 0.17.1, 0.20.0, 0.24.0, 0.27.1 and 0.33.0, and in public logs of
the releases between; the file is named above each group.
"""

from shipfitter.core.engine_log.sentences import Sentence, say
from shipfitter.core.refusals import Refusal

CONFIGURATION: tuple[Sentence, ...] = (
    # config/model.py _get_and_verify_max_len
    say(
        Refusal.MAX_MODEL_LEN_TOO_LONG,
        "is greater than the derived max_model_len",
        r"User-specified max_model_len \((?P<max_model_len>\d+)\) is greater than the derived "
        r"max_model_len \((?:\w+=(?P<derived_max_model_len>\d+))?",
    ),
    # config/model.py verify_with_parallel_config, config/parallel.py, distributed/utils.py
    say(
        Refusal.INVALID_PARALLELISM,
        "must be divisible by tensor parallel size",
        r"number of (?:\w+ )?attention heads \(\d+\) must be divisible by tensor parallel size "
        r"\((?P<tensor_parallel_size>\d+)\)",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "is larger than the number of available GPUs",
        r"World size \(\d+\) is larger than the number of available GPUs \(\d+\)",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "cannot be larger than the number of available GPUs",
        r"Tensor parallel size \((?P<tensor_parallel_size>\d+)\) cannot be larger than the number "
        r"of available GPUs",
    ),
    # executor/multiproc_gpu_executor.py, mp_distributed_executor.py, v1/executor
    say(
        Refusal.INVALID_PARALLELISM,
        "local gpu count",
        r"(?:please set tensor_parallel_size \((?P<tensor_parallel_size>\d+)\) to|please ensure "
        r"that world_size \(\d+\) is) less than (?:than )?max local gpu count",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "world_size (",
        r"world_size \(\d+\) (?:must be (?:equal to the tensor_parallel_size|less than or equal to "
        r"the number of visible devices|a multiple of number of devices)|exceeds assigned)",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "placement group",
        r"number of required \w+s exceeds the total number of available \w+s in the placement "
        r"group|Current node has no \w+ available.{0,80}placement group|"
        r"The current node timeout|Cannot provide a placement group (?:of|requiring)|"
        r"driver node id \S+ is not included in a placement group",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "Ray does not allocate any",
        r"Ray does not allocate any \w+s on the driver node|Not enough total available nodes",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "greater than the number of experts",
        r"Tensor parallel size (?P<tensor_parallel_size>\d+) is greater than the number of experts",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "tensor parallel",
        r"(?:If )?tensor parallel world size (?:must|does not) divide|tensor parallel (?:is )?"
        r"currently (?:not )?supported for quantized|does not (?:currently )?support tensor "
        r"parallel|with tensor parallelism is not supported|tensor parallelization but the model "
        r"does not support|tensor parallel size \d+ must be greater than total num kv heads",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "tensor_parallel_size",
        r"Try adjusting tensor_parallel_size value|'draft_tensor_parallel_size' and "
        r"'tensor_parallel_size' must be the same",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "quantization with TP or PP",
        r"quantization with TP or PP is not supported",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "quant BitsAndBytes models with TP",
        r"BitsAndBytes models with TP is not supported",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "divisible by",
        r"\b\w[\w ]{0,60}(?:size|heads|layers|experts|dim\w*|partition)\b[ =(]{0,3}\d+\)? "
        r"(?:is not|must be) divisible by|(?:must|should) be divisible by ?(?:dcp_size|"
        r"`?--?(?:decode|tensor|pipeline)|tensor|tp_size|the tensor)|not divisible by weight "
        r"quantization|AssertionError: \d+ is not divisible by \d+",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "too large tensor parallel size",
        r"caused by too large tensor parallel size",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "pipeline",
        r"Pipeline parallelism is (?:not supported for this model|only supported (?:for the "
        r"following architectures|through AsyncLLMEngine)|not yet implemented in v1)|"
        r"does not support pipeline parallel|pipeline parallel(?:ism)? is not supported|"
        r"not yet compatible with pipeline_parallel_size > 1|incompatible with pipeline "
        r"parallelism",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "context parallel",
        r"Decode context parallelism for GQA/MQA requires|`--decode-context-parallel-size`.{0,20} "
        r"exceeds the maximum|decode context parallel size must less than or equal to|"
        r"Prefill context parallelism is not fully supported",
    ),
    say(
        Refusal.INVALID_PARALLELISM,
        "==0",
        r"assert (?:self\.)?(?:\w+ % (?:self\.)?\w*(?:tp|tensor|world)\w*|"
        r"\w*(?:tp|tensor)\w* % (?:self\.)?\w+) == 0",
    ),
    # config/vllm.py, config/model.py _verify_quantization, layers/quantization, Triton
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "quantization",
        r"quantization method \S+ is not supported for the current GPU|Unknown quantization "
        r"method|is not supported for quantization method|quantization method specified in the "
        r"model config \([^)]*\) does not match|\S+ quantization is currently not supported in|"
        r"Invalid quantization method|Unsupported quantization (?:method|type|config)|"
        r"quantization (?:method )?\S+ is not supported",
    ),
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "compressed-tensors compatible scheme",
        r"No compressed-tensors compatible scheme was found",
    ),
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "kernel that can implement",
        r"Failed to find a kernel that can implement",
    ),
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "not supported in this architecture",
        r"type fp8e4\w+ not supported in this architecture",
    ),
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "weight_bits",
        r"does not support weight_bits|Unsupported weight_bits",
    ),
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "weight quantization",
        r"Currently, only [\d/ or-]+bit weight quantization (?:is|are) supported for",
    ),
    say(Refusal.UNSUPPORTED_QUANTIZATION, "num_bits", r"Unsupported num_bits = \d+"),
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "quantization",
        r"Current platform does not support \S+ quantization|does not support BitsAndBytes "
        r"quantization|BitsAndBytes loader does not support|Found unknown quantization=",
    ),
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "scheme",
        r"No quark compatible scheme was found|Unsupported FusedMoe scheme",
    ),
    # attention/layer.py, attention backends: what the cache may be stored as
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "kv",
        r"fp8_e5m2 kv-cache is not supported with fp8|does not support \S+ kv-cache on this "
        r"device|with FP8 KV[ -]cache (?:is )?not yet supported|FP8 KV[ -]cache dtype is not "
        r"supported|nvfp4 KV cache is not supported",
    ),
    say(
        Refusal.UNSUPPORTED_QUANTIZATION,
        "only supported on GPUs with compute capability",
        r"is only supported on GPUs with compute capability of at least",
    ),
    # model_executor/models/registry.py; transformers' own
    say(
        Refusal.UNSUPPORTED_ARCHITECTURE,
        "architecture",
        r"Model architectures? .{1,200}? (?:are|is) not supported(?: for now| in-tree| anymore)?|"
        r"Model architectures .{1,200}? failed to be inspected|"
        r"does not recognize this architecture|was supported in vLLM until|No model architectures "
        r"are specified|architectures? .{1,120}? (?:is|are) not (?:currently )?supported by vLLM|"
        r"This usually indicates an unsupported model architecture",
    ),
    say(
        Refusal.UNSUPPORTED_ARCHITECTURE,
        "has no vLLM implementation",
        r"has no vLLM implementation",
    ),
    say(
        Refusal.UNSUPPORTED_ARCHITECTURE,
        "Cannot find model module",
        r"Cannot find model module\. \S+ is not a registered model",
    ),
    # huggingface_hub errors
    say(
        Refusal.TOKEN_REQUIRED,
        "gated",
        r"Cannot access gated repo|trying to access a gated repo|GatedRepoError|is a gated (?:repo|"
        r"model)",
    ),
    say(
        Refusal.TOKEN_REQUIRED,
        "access to",
        r"Access to model \S+ is restricted|you are not in the authorized list",
    ),
    say(
        Refusal.TOKEN_REQUIRED,
        "Client Error",
        r"40[13] Client Error: (?:Unauthorized|Forbidden) for url: https?://(?:\w+\.)?huggingface",
    ),
    say(
        Refusal.TOKEN_REQUIRED,
        "token",
        r"Invalid user token|Token is required .{0,60}but no token found|LocalTokenNotFoundError|"
        r"Invalid credentials in Authorization header",
    ),
)
