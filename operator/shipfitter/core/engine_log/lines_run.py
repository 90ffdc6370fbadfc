"""The lines that say what runs, in which release, and on which GPU."""

from shipfitter.core.engine_log.line import Line, line

RUN_LINES: tuple[Line, ...] = (
    # --- who runs
    line(
        "LLM engine (",
        r"(?:Initializing an?|Dumping input data for) (?:V\d )?LLM engine "
        r"\(v?(?P<engine_version>[\w.+-]+)\)",
        "0.6 to 0.33 engine/llm_engine.py, v1/engine/core.py; logging_utils/dump_input.py",
    ),
    line(
        "server version",
        r"vLLM (?:API )?server version v?(?P<engine_version>\d[\w.+-]*\w)",
        "0.6 to 0.27 entrypoints/openai/api_server.py; 0.28 on: without the logo",
    ),
    line("█ version", r"█ version v?(?P<engine_version>\d[\w.+-]*)", "0.15 to 0.33: the logo"),
    line("█ model", r"█ model (?P<model>\S+)", "0.15 to 0.33: the logo", rank=3),
    line("serving model", r", serving model (?P<model>[^\s\"'\\,}]+)", "0.28 to 0.33", rank=3),
    line(
        "to load model",
        r"Starting to load model (?P<model>\S+?)\.\.\.",
        "0.6 to 0.33 model runners",
        rank=3,
    ),
    line("model len", r"Using max model len (?P<max_model_len>\d+)", "0.9 to 0.33", rank=3),
    line(
        "vLLM",
        r"vLLM [Vv]ersion\s*: v?(?P<engine_version>\d+\.\d[\w.+-]*)",
        "collect_env.py, pasted",
        rank=2,
    ),
    line(
        "vllm/vllm-openai:v",
        r"vllm/vllm-openai:v(?P<engine_version>\d+\.\d+\.\d+[\w.]*)",
        "an image's tag in a pasted command",
        rank=3,
    ),
    line("vllm==", r"\bvllm==(?P<engine_version>\d+\.\d+[\w.+]*)", "a pasted installation", rank=3),
    line(
        "LLM engine (",
        r"Initializing a (?P<generation>V[01]) LLM engine \(",
        "0.7 to 0.33; what says neither is 0.6's V0",
    ),
    line(
        "Model Runner",
        r"Using (?P<model_runner>V2) Model Runner",
        "0.22 to 0.33 v1/worker/gpu_worker.py",
    ),
    line(
        "max_num_batched_tokens=",
        r"Chunked prefill is enabled with max_num_batched_tokens=(?P<max_num_batched_tokens>\d+)\.",
        "0.6 to 0.33 config/scheduler.py",
    ),
    # --- on which GPU
    line(
        "device_name=",
        r"device_name=(?P<gpu>[A-Z][\w.-]*?)(?:,[a-z_]+=[^/\s]*)?\.json",
        "0.6 to 0.33: tables of tuned kernels, named after the GPU",
        rank=2,
    ),
    line("GPU 0: ", r"GPU 0: (?P<gpu>[^\n(,]+?)(?= GPU \d|\s*\(UUID|\s*$)", "nvidia-smi -L"),
    line(
        "| ",
        r"\| +\d+ +(?P<gpu>(?:NVIDIA|Tesla|Quadro|GRID) [\w /.-]+?) +(?:On|Off|Persist\w*|\.\.\.)",
        "nvidia-smi, pasted",
    ),
    line(
        "has a total capac",
        r"has a total capaci?ty of (?P<total_gib><N>) GiB",
        "torch's allocator",
        rank=2,
    ),
    line(
        "GiB total capacity;",
        r"\((?:GPU|CUDA device) \d+; (?P<total_gib><N>) GiB total capacity;",
        "torch's allocator, to 2.1",
        rank=2,
    ),
)
