"""`python -m world.engine serve MODEL --flags…`, or the older `--model MODEL --flags…`.

The device comes from ENGINE_STUB_SCENARIO or ENGINE_STUB_DEVICE, see `scenario.py`; the release
from ENGINE_STUB_VERSION.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from world.engine import tracebacks
from world.engine.bench import bench
from world.engine.checkpoint import Checkpoint, ModelError, read_checkpoint
from world.engine.checks import check
from world.engine.config_error import ConfigError
from world.engine.engine_logging import EngineLog
from world.engine.flags import parse
from world.engine.giving_up import died, refused_by_config, refused_by_core, refused_by_worker
from world.engine.group import Follower, Leader, node_count
from world.engine.metrics import Load
from world.engine.refused import Refused
from world.engine.scenario import Device, Scenario, read_device
from world.engine.serving import EngineServer
from world.engine.settings import Settings, resolve
from world.engine.start import Start
from world.engine.versions import Version, played_version, version_text

SHORT_SECONDS = 1.0  # how long it serves before memory runs out


def main(arguments: list[str]) -> int:
    """The exit code of the engine."""
    version = played_version()
    if arguments[:1] in (["--version"], ["-v"]):
        print(version_text(version))
        return 0
    if arguments[:2] == ["bench", "serve"]:
        return bench(arguments[2:])
    if arguments[:1] == ["serve"]:
        given = parse(arguments[1:], version, program="vllm serve")
    elif arguments and not arguments[0].startswith("-"):
        given = parse(arguments, version, program="vllm serve")
    else:
        given = parse(arguments, version, program="api_server.py")
    given.setdefault("model", "Qwen/Qwen3-0.6B")  # the engine's own default
    log = EngineLog()
    log.configure()
    return _run(given, version, log)


def _run(given: dict[str, Any], version: Version, log: EngineLog) -> int:
    scenario = Scenario.read()
    origin = "entrypoints.openai.api_server:1342"
    log.say(origin, f"vLLM API server version {version_text(version)}")
    log.say("entrypoints.utils:233", f"non-default args: {given}")
    try:
        device = read_device(scenario)
        if device is None:
            raise ConfigError(
                "DeviceConfig",
                "Failed to infer device type, please set the environment variable "
                "`VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.",
            )
        checkpoint, settings = _configured(given, device, version)
    except ConfigError as error:
        refused_by_config(log, error)
        return 1
    except (ModelError, AssertionError, ValueError) as error:
        kind = "OSError" if isinstance(error, ModelError) else type(error).__name__
        log.raw(tracebacks.of_config(f"{kind}: {error}"))
        return 1
    _announce(log, settings, checkpoint)
    start = Start(
        log=log,
        settings=settings,
        checkpoint=checkpoint,
        device=device,
        scenario=scenario,
        given=given,
    )
    if given.get("headless"):  # a follower of another pod: it serves nothing
        return _follow(start)
    return _serve(start)


def _follow(start: Start) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    start.log.say("entrypoints.cli.serve:198", "Launching vLLM headless multiproc executor")
    follower = Follower(start.given, start.scenario.join_seconds)
    try:
        start.follow(follower)
        crash_after = start.scenario.crash_after_seconds
        began = time.monotonic()
        follower.stay(lambda: crash_after is not None and time.monotonic() - began > crash_after)
    except Refused as refusal:
        follower.say(failed=True)
        refused_by_worker(start.log, refusal)
        return 1
    return died(start.log, "crash", start.scenario, start.device)


def _serve(start: Start) -> int:
    log, scenario = start.log, start.scenario
    leader = None
    if node_count(start.given) > 1:
        leader = Leader(start.given, scenario.join_seconds)
    try:
        started = start.run(leader)
    except Refused as refusal:
        refused_by_core(log, refusal, start.settings)
        return 1
    log.speak_as("APIServer")
    load = Load(
        running=scenario.running,
        waiting=scenario.waiting,
        kv_cache_usage_perc=scenario.kv_cache_usage_perc,
        preemptions=scenario.preemptions,
    )
    host, port = _address(start.given)
    serving_bytes = int(scenario.serving_gib * 2**30)
    server = EngineServer((host, port), started, load, serving_bytes=serving_bytes)
    if leader is not None:
        leader.watch(server.lose_rank)
    origin = "entrypoints.openai.api_server:627"
    log.say(origin, f"Starting vLLM API server 0 on http://{host}:{port}")
    log.raw("INFO:     Application startup complete.")
    soon = SHORT_SECONDS if started.is_short else None
    death = server.serve_until_ended(scenario.crash_after_seconds or soon)
    if death is None:
        return 0
    return died(log, "oom" if started.is_short else death, scenario, start.device)


def _configured(
    given: dict[str, Any], device: Device, version: Version
) -> tuple[Checkpoint, Settings]:
    checkpoint = read_checkpoint(str(given["model"]), given.get("revision"), given.get("hf_token"))
    if not checkpoint.stored_bytes and given.get("load_format") != "dummy":
        raise ValueError(f"Cannot find any model weights with `{given['model']}`")
    settings = resolve(given, checkpoint.config, device, version)
    check(settings, given, checkpoint.config, device)
    return checkpoint, settings


def _announce(log: EngineLog, settings: Settings, checkpoint: Checkpoint) -> None:
    architecture = (checkpoint.config.get("architectures") or ["?"])[0]
    log.say("config.model:611", f"Resolved architecture: {architecture}")
    log.say("config.model:1714", f"Using max model len {settings.length}")
    log.say(
        "config.scheduler:238",
        f"Chunked prefill is enabled with max_num_batched_tokens={settings.batched_tokens}.",
    )
    if settings.runner == "V2":
        log.say("config.vllm:914", "Using V2 Model Runner")
    log.speak_as("EngineCore")
    log.say(
        "v1.engine.core:104",
        f"Initializing a V1 LLM engine (v{version_text(settings.version)}) with config: "
        f"model={settings.model!r}, dtype=torch.{settings.dtype}, max_seq_len={settings.length}, "
        f"tensor_parallel_size={settings.tensor}, pipeline_parallel_size={settings.pipeline}, "
        f"kv_cache_dtype={settings.cache_dtype}, "
        f"enable_prefix_caching={settings.prefix_caching}",
    )


def _address(given: Mapping[str, Any]) -> tuple[str, int]:
    """All interfaces by default; in the test world every pod has an address of its own instead."""
    host = given.get("host") or "0.0.0.0"
    if host in ("0.0.0.0", "::"):
        host = os.environ.get("POD_LISTEN_ADDRESS", host)
    return host, given.get("port", 8000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
