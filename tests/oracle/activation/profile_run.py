"""One profile run of the engine's own model class on tensors without data: its peaks.

Source: vLLM 0.32 vllm/v1/worker/gpu_worker.py determine_available_memory: a forward pass over
max_num_batched_tokens without attention, then the sampler for max_num_seqs sequences.
"""

import gc
import json
import tempfile
from pathlib import Path
from typing import Any

from oracle.activation import example_block
from oracle.activation.cases import Case, model_file
from oracle.activation.collectives import know_groups
from oracle.activation.compiler import compile_without_missing_kernels
from oracle.activation.engine_operators import WATCHING
from oracle.activation.live_bytes import LiveBytes, watching
from oracle.activation.loaded_weights import finish_loading
from oracle.activation.sampling import sample_v1, sample_v2

_TEXT_PARTS = ("text_config", "llm_config")
# Lists, or letters, with one entry for each layer.
_PER_LAYER = (
    "layer_types", "layers_block_type", "attn_type_list", "mlp_layer_types", "moe_layer_freq",
    "no_rope_layers", "hybrid_override_pattern", "block_configs",
)  # fmt: skip


def answer(case: Case) -> dict[str, Any]:
    """The figures of one case; raises what the engine raises."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(_shortened(case)))
        config = _configured(case, folder)
        model = _built(case, config)
        return _measured(case, config, model)


def _configured(case: Case, folder: str) -> Any:
    import vllm.ir
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext

    config = EngineArgs(
        model=folder,
        skip_tokenizer_init=True,
        load_format="dummy",
        tensor_parallel_size=case.tp,
        distributed_executor_backend="mp" if case.tp > 1 else None,
        enable_expert_parallel=case.expert_parallel,
        max_model_len=case.length,
        max_num_batched_tokens=case.tokens,
        max_num_seqs=case.sequences,
        enforce_eager=case.eager,
        moe_backend=case.moe_backend,
        language_model_only=case.without_towers,
    ).create_engine_config(UsageContext.OPENAI_API_SERVER)
    config.kernel_config.ir_op_priority.set_default()
    vllm.ir.set_default_torch_wrap(config.compilation_config.ir_enable_torch_wrap)
    if not case.eager:
        compile_without_missing_kernels(config)
    return config


def _shortened(case: Case) -> dict[str, Any]:
    """The config with few layers: between two layers only hidden states and residual live on."""
    config: dict[str, Any] = model_file(case.model)["config"]
    config.pop("auto_map", None)
    text = next((config[name] for name in _TEXT_PARTS if name in config), config)
    text["num_hidden_layers"] = min(case.layers, text["num_hidden_layers"])
    for name in _PER_LAYER:
        if isinstance(text.get(name), (list, str)):
            text[name] = text[name][: case.layers]
    return config


def _built(case: Case, config: Any) -> Any:
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.platforms import current_platform
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vllm.v1.worker import workspace

    from oracle.pretended_ranks import pretend_ranks, without_data

    pretend_ranks(case.tp, 1, 0)
    know_groups()
    workspace._manager = None
    workspace.init_workspace_manager(torch.device("meta"))
    dtype = set_default_torch_dtype(config.model_config.dtype)
    with set_current_vllm_config(config), dtype, without_data(), torch.device("meta"):
        model = initialize_model(config)
    current_platform.update_block_size_for_backend(config)
    with set_current_vllm_config(config), without_data(), torch.device("meta"):
        finish_loading(model, config)
    return model.eval()


def _measured(case: Case, config: Any, model: Any) -> dict[str, Any]:
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.forward_context import set_forward_context

    live = LiveBytes()
    live.ignore((*model.parameters(), *model.buffers()))
    inputs = _inputs(case, config)
    live.ignore(tensor for tensor in inputs.values() if tensor is not None)
    found: dict[str, Any] = {"runner": "V2" if config.use_v2_model_runner else "V1"}
    tokens = config.scheduler_config.max_num_batched_tokens
    sequences = min(config.scheduler_config.max_num_seqs, tokens)
    context = set_forward_context(None, config, num_tokens=tokens)
    with set_current_vllm_config(config), torch.inference_mode(), context:
        model(**inputs)  # compiles, and lets the experts' workspace grow
        gc.collect()
        live.ignore(_workspaces())
        mode = watching(live)
        WATCHING.append(mode)
        with mode:
            hidden = model(**inputs)
            found["forward_bytes"] = live.peak_bytes
            found["forward_holds"] = live.held_at_peak()
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
            kept = torch.empty(sequences, dtype=torch.int64, device="meta")
            rows = torch.index_select(hidden, 0, kept)
            for name, sample in (("v2", sample_v2), ("v1", sample_v1)):
                live.forget_peak()
                sample(model, rows)
                found[f"sampler_{name}_bytes"] = live.peak_bytes
                gc.collect()
    found["workspace_bytes"] = sum(it.untyped_storage().nbytes() for it in _workspaces())
    found["compile_bytes"] = max(example_block.PEAKS_BYTES, default=0)
    if example_block.FAILURES:
        found["compile_failures"] = example_block.FAILURES[:2]
    return found


def _inputs(case: Case, config: Any) -> dict[str, Any]:
    import torch

    settings, tokens = config.model_config, config.scheduler_config.max_num_batched_tokens
    streams = (3, tokens) if settings.uses_mrope else (tokens,)
    rows = torch.zeros(tokens, settings.get_hidden_size(), dtype=settings.dtype, device="meta")
    ids = torch.zeros(tokens, dtype=torch.int32, device="meta")
    return {
        "input_ids": None if case.embeds else ids,
        "positions": torch.zeros(streams, dtype=torch.int64, device="meta"),
        "inputs_embeds": rows if case.embeds else None,
        "intermediate_tensors": None,
    }


def _workspaces() -> list[Any]:
    """What experts keep for good."""
    from vllm.v1.worker.workspace import current_workspace_manager

    made = current_workspace_manager()._current_workspaces
    return [it for it in made if it is not None]
