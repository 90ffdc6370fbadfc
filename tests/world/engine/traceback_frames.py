"""The calls an uncaught error of the engine passes, by place; shapes, not copies.

Source: the log of a vLLM 0.32 start that was refused.
"""

ROOT = "/usr/local/lib/python3.12/dist-packages/"

Frame = tuple[str, int, str, str]  # file below the root, line, function, code

CORE: list[Frame] = [
    (
        "vllm/v1/engine/core.py",
        1204,
        "run_engine_core",
        "engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)",
    ),
    ("vllm/v1/engine/core.py", 931, "__init__", "super().__init__("),
]
EXECUTOR: list[Frame] = [
    (
        "vllm/v1/engine/core.py",
        127,
        "__init__",
        "self.model_executor = executor_class(vllm_config)",
    ),
    (
        "vllm/v1/executor/uniproc_executor.py",
        58,
        "_init_executor",
        "self.driver_worker.init_device()",
    ),
]
CACHES: list[Frame] = [
    (
        "vllm/v1/engine/core.py",
        139,
        "__init__",
        "kv_cache_config = self._initialize_kv_caches(vllm_config)",
    ),
]
WORKER: list[Frame] = [
    (
        "vllm/v1/executor/multiproc_executor.py",
        812,
        "worker_main",
        "worker = WorkerProc(*args, **kwargs)",
    ),
]

# Where each phase fails, seen from the worker.
PHASES: dict[str, list[Frame]] = {
    "free memory": [
        (
            "vllm/v1/worker/gpu_worker.py",
            302,
            "init_device",
            "self.requested_memory = request_memory(",
        ),
        ("vllm/v1/worker/utils.py", 311, "request_memory", "raise ValueError("),
    ],
    "load": [
        ("vllm/v1/worker/gpu_worker.py", 358, "load_model", "self.model_runner.load_model()"),
        (
            "vllm/v1/worker/gpu/model_runner.py",
            241,
            "load_model",
            "self.model = loader.load_model(",
        ),
        (
            "vllm/model_executor/layers/linear.py",
            194,
            "create_weights",
            "data=torch.empty(output_size, input_size, dtype=params_dtype),",
        ),
    ],
    "profile": [
        (
            "vllm/v1/worker/gpu_worker.py",
            402,
            "determine_available_memory",
            "self.model_runner.profile_run()",
        ),
        (
            "vllm/v1/worker/gpu/model_runner.py",
            518,
            "profile_run",
            "hidden_states = self._dummy_run(",
        ),
        ("torch/_ops.py", 1269, "__call__", "return self._op(*args, **kwargs)"),
    ],
    "cache": [
        (
            "vllm/v1/worker/gpu_worker.py",
            482,
            "initialize_from_config",
            "self.model_runner.initialize_kv_cache(kv_cache_config)",
        ),
        (
            "vllm/v1/worker/gpu/attn_utils.py",
            131,
            "_allocate_kv_cache",
            "tensor = torch.zeros(kv_cache_tensor.size, dtype=torch.int8, device=device)",
        ),
    ],
    "graphs": [
        (
            "vllm/v1/worker/gpu_worker.py",
            511,
            "compile_or_warm_up_model",
            "cuda_graph_memory_bytes = self.model_runner.capture_model()",
        ),
        ("vllm/v1/worker/gpu/cudagraph_utils.py", 288, "capture", "self.capture_graph("),
        ("torch/cuda/graphs.py", 268, "__exit__", "self.cuda_graph.capture_end()"),
    ],
    "sampler": [
        ("vllm/v1/worker/gpu_worker.py", 533, "compile_or_warm_up_model", "self._warm_up_sampler("),
        ("vllm/v1/sample/sampler.py", 104, "forward", "logits = logits.to(torch.float32)"),
    ],
    "run": [
        ("vllm/v1/engine/core.py", 1187, "run_busy_loop", "self._process_engine_step()"),
        (
            "vllm/v1/worker/gpu/model_runner.py",
            903,
            "execute_model",
            "sampler_output = self.sample(",
        ),
    ],
    "planner": [
        (
            "vllm/v1/engine/core.py",
            288,
            "_initialize_kv_caches",
            "kv_cache_configs = get_kv_cache_configs(",
        ),
        (
            "vllm/v1/core/kv_cache_planning.py",
            1207,
            "get_kv_cache_configs",
            "_check_enough_kv_cache_memory(",
        ),
        (
            "vllm/v1/core/kv_cache_planning.py",
            611,
            "_check_enough_kv_cache_memory",
            "raise ValueError(",
        ),
    ],
    "states": [
        (
            "vllm/config/compilation.py",
            1391,
            "adjust_cudagraph_sizes_for_mamba_cache",
            "raise ValueError(",
        ),
    ],
}

FRONT: list[Frame] = [
    ("vllm/entrypoints/cli/main.py", 78, "main", "args.dispatch_function(args)"),
    ("vllm/entrypoints/cli/serve.py", 121, "cmd", "uvloop.run(run_server(args))"),
    ("uvloop/__init__.py", 96, "run", "return __asyncio.run("),
    ("asyncio/runners.py", 195, "run", "return runner.run(main)"),
    ("asyncio/runners.py", 118, "run", "return self._loop.run_until_complete(task)"),
    ("uvloop/loop.pyx", 1518, "run_until_complete", "uvloop.loop.Loop.run_until_complete"),
    ("uvloop/__init__.py", 48, "wrapper", "return await main"),
    (
        "vllm/entrypoints/openai/api_server.py",
        624,
        "run_server",
        "await run_server_worker(listen_address, sock, args, **uvicorn_kwargs)",
    ),
    (
        "vllm/entrypoints/openai/api_server.py",
        645,
        "run_server_worker",
        "async with build_async_engine_client(args, client_config=client_config) as engine_client:",
    ),
    ("contextlib.py", 210, "__aenter__", "return await anext(self.gen)"),
    (
        "vllm/entrypoints/openai/api_server.py",
        102,
        "build_async_engine_client",
        "async with build_async_engine_client_from_engine_args(",
    ),
    ("contextlib.py", 210, "__aenter__", "return await anext(self.gen)"),
    (
        "vllm/entrypoints/openai/api_server.py",
        143,
        "build_async_engine_client_from_engine_args",
        "async_llm = AsyncLLM.from_vllm_config(",
    ),
    ("vllm/v1/engine/async_llm.py", 231, "from_vllm_config", "return cls("),
    (
        "vllm/v1/engine/async_llm.py",
        152,
        "__init__",
        "self.engine_core = EngineCoreClient.make_async_mp_client(",
    ),
    (
        "vllm/v1/engine/core_client.py",
        124,
        "make_async_mp_client",
        "return AsyncMPClient(*client_args)",
    ),
    ("vllm/v1/engine/core_client.py", 861, "__init__", "super().__init__("),
    (
        "vllm/v1/engine/core_client.py",
        512,
        "__init__",
        "with launch_core_engines(vllm_config, executor_class, log_stats) as (",
    ),
    ("contextlib.py", 144, "__exit__", "next(self.gen)"),
    ("vllm/v1/engine/utils.py", 969, "launch_core_engines", "wait_for_engine_startup("),
    (
        "vllm/v1/engine/utils.py",
        1028,
        "wait_for_engine_startup",
        'raise RuntimeError("Engine core "',
    ),
]

CONFIG: list[Frame] = [
    *FRONT[:13],
    (
        "vllm/engine/arg_utils.py",
        1892,
        "create_engine_config",
        "model_config = self.create_model_config()",
    ),
    ("vllm/engine/arg_utils.py", 1471, "create_model_config", "return ModelConfig("),
    (
        "pydantic/_internal/_dataclasses.py",
        121,
        "__init__",
        "s.__pydantic_validator__.validate_python(ArgsKwargs(args, kwargs), self_instance=s)",
    ),
]
