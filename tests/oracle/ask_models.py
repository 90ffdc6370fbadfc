"""Let the newest release plan published models on a pretended card: weights, blocks, tokens.

Runs inside the engine's environment: `python -m oracle.ask_models FILE`. The engine resolves its
configuration, builds the real model class of each pipeline stage on tensors without data, asks its
attention layers what they keep, and plans the cache. One child process for each question, because
the engine keeps what it learnt of the last model.
"""

import contextlib
import copy
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from oracle.ask import refusal
from oracle.pretended_gpu import H100, pretend

MODELS = Path(__file__).parents[1] / "data" / "models"
CLASSES = (
    Path(__file__).parent / "classes.json"
)  # a config for each model class, most of them small
AVAILABLE_BYTES = 24 << 30  # for the cache, on every rank
# Layouts and dtypes of the cache each model is asked for, in the order of a row's `asked`.
ASKED = (
    {"tp": 1, "pp": 1, "cache": "auto"},
    {"tp": 8, "pp": 1, "cache": "fp8"},
    {"tp": 2, "pp": 2, "cache": "auto"},
)


def main(path: str) -> None:
    """Ask about every model and write the file."""
    prepare()
    import vllm

    rows = []
    for name, config, asked in _questions():
        answer = _in_child(config, asked)
        print(name, asked, str(answer)[:120], file=sys.stderr, flush=True)
        rows.append({"model": name, **asked, **answer})
    known = {"release": vllm.__version__.split("+")[0], "card": H100.name, "answers": rows}
    with open(path, "wb") as target, gzip.GzipFile(fileobj=target, mode="wb", mtime=0) as packed:
        packed.write(json.dumps(known, separators=(",", ":")).encode())


def _questions() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name, config and layout; classes are asked for without a dtype of the cache."""
    for file in sorted(MODELS.glob("*.json")):
        config = json.loads(file.read_text())["config"]
        yield from ((file.stem, config, asked) for asked in ASKED)
    for name, config in json.loads(CLASSES.read_text()).items():
        yield from ((name, config, asked) for asked in ASKED if asked["cache"] == "auto")


def prepare(before_engine: Callable[[], None] = lambda: None) -> None:
    """Pretend the card and import the engine; what must stand before it does goes between."""
    os.environ.update(
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        VLLM_NO_USAGE_STATS="1",
        DO_NOT_TRACK="1",
        VLLM_LOGGING_LEVEL="ERROR",
        CUDA_VISIBLE_DEVICES="",
    )
    pretend(H100)
    before_engine()
    import vllm.engine.arg_utils
    import vllm.model_executor.model_loader.utils
    import vllm.v1.core.kv_cache_utils
    import vllm.v1.worker.gpu.attn_utils
    from vllm.model_executor.layers.fused_moe import expert_map_manager
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda function: function()
    expert_map_manager.ExpertMapManager.get_compressed_map_string = lambda self: ""
    with contextlib.suppress(ImportError):
        import vllm.v1.attention.ops.cp_common  # noqa: F401


def _in_child(config: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            answer = _answer(config, asked)
        except BaseException as error:
            answer = {"refused": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answered:
        text = answered.read()
    os.waitpid(child, 0)
    return json.loads(text or '{"refused": "the engine ended without a word"}')


def _answer(config: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        config = {key: value for key, value in config.items() if key != "auto_map"}
        Path(folder, "config.json").write_text(json.dumps(config))
        if apart := config.get("hf_quant_config"):  # modelopt's own file
            Path(folder, "hf_quant_config.json").write_text(json.dumps(apart))
        return _plan(_configured(folder, asked), asked)


def _configured(folder: str, asked: dict[str, Any]) -> Any:
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext

    return EngineArgs(
        model=folder,
        skip_tokenizer_init=True,
        load_format="dummy",
        kv_cache_dtype=asked["cache"],
        tensor_parallel_size=asked["tp"],
        pipeline_parallel_size=asked["pp"],
        distributed_executor_backend="mp" if asked["tp"] * asked["pp"] > 1 else None,
    ).create_engine_config(UsageContext.OPENAI_API_SERVER)


def _plan(config: Any, asked: dict[str, Any]) -> dict[str, Any]:
    from vllm.config import set_current_vllm_config
    from vllm.v1.attention.backends.utils import (
        get_supported_kv_cache_layouts,
        resolve_kv_cache_layout,
    )
    from vllm.v1.core import kv_cache_utils as core

    from oracle.pretended_ranks import pretend_ranks

    stages = [_stage(config, asked, stage) for stage in range(asked["pp"])]
    for name in ("block_size", "mamba_block_size", "mamba_page_size_padded", "mamba_cache_mode"):
        setattr(config.cache_config, name, getattr(stages[0]["cache"], name))
    pretend_ranks(asked["tp"], asked["pp"], 0)
    found: dict[str, Any] = {
        "weights_bytes": [stage["weights_bytes"] for stage in stages],
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "block_size": config.cache_config.block_size,
        "backends": sorted({it.__name__ for stage in stages for it in stage["backends"]}),
    }
    if not any(stage["specs"] for stage in stages):
        return found | {"planned": None}  # nothing is kept
    with set_current_vllm_config(config):
        specs = [stage["specs"] for stage in stages for _ in range(asked["tp"])]
        layouts = [
            [it.name for it in get_supported_kv_cache_layouts(stage["backends"])]
            for stage in stages
            for _ in range(asked["tp"])
        ]
        resolve_kv_cache_layout(config, layouts, [spec for it in specs for spec in it.values()])
        length = config.model_config.max_model_len
        try:
            plans = core.get_kv_cache_configs(config, specs, [AVAILABLE_BYTES] * len(specs))
        except ValueError as error:
            return found | {"planned": refusal(str(error), length)}
        scheduler = core.generate_scheduler_kv_cache_config(plans)
        tokens, concurrency = core.get_kv_cache_capacity(config, scheduler)
        figures = [scheduler.num_blocks, tokens, round(concurrency, 4), length, None, None]
        return found | {"planned": ["Fits", *figures]}


def _stage(config: Any, asked: dict[str, Any], stage: int) -> dict[str, Any]:
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.platforms import current_platform
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vllm.v1.worker import workspace
    from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec
    from vllm.v1.worker.worker_base import get_current_attn_backends

    from oracle.pretended_ranks import pretend_ranks, without_data

    own = copy.deepcopy(config)
    own.compilation_config.static_forward_context.clear()
    own.parallel_config.rank = pretend_ranks(asked["tp"], asked["pp"], stage)
    workspace._manager = None
    workspace.init_workspace_manager(torch.device("meta"))
    dtype = set_default_torch_dtype(config.model_config.dtype)
    with set_current_vllm_config(own), dtype, without_data(), torch.device("meta"):
        model = initialize_model(own)
    current_platform.update_block_size_for_backend(own)
    with set_current_vllm_config(own):
        specs, backends = get_kv_cache_spec(own), get_current_attn_backends(own)
    return {
        "weights_bytes": _held_bytes(model),
        "specs": specs,
        "backends": backends,
        "cache": own.cache_config,
    }


def _held_bytes(model: Any) -> int:
    """Parameters and buffers, each once."""
    tensors = {id(it): it for it in (*model.parameters(), *model.buffers())}
    return sum(it.numel() * it.element_size() for it in tensors.values())


if __name__ == "__main__":
    main(sys.argv[1])
