"""A plan for a person: the same facts as in status, within 100 columns."""

from collections.abc import Iterator, Mapping
from typing import Any

from shipfitter.status.conditions import find
from shipfitter.units import GIB

WIDTH = 100
BAR_WIDTH = 40
LABEL = 18

# Parts of the request, in the order of the sum; then what lies outside it.
PARTS = (
    ("weights", "weightsBytes"),
    ("KV cache", "kvCacheBytes"),
    ("activations", "activationBytes"),
    ("CUDA graphs", "cudaGraphBytes"),
    ("engine", "overheadBytes"),
    ("not requested", "notRequestedBytes"),
)


def plan_text(body: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """The decision in a few lines: the numbers, why, where the bytes go, what else would do."""
    name = body["metadata"]["name"]
    planned = find(status["conditions"], "Planned")
    if planned is None or planned["status"] != "True":
        return "\n".join(_refusal(name, status))
    return "\n".join(_plan(name, status, planned))


def _refusal(name: str, status: Mapping[str, Any]) -> Iterator[str]:
    ready = find(status["conditions"], "Ready") or {}
    yield f"✗ {name}: {ready.get('reason', 'Unknown')}"
    problem, _, options = str(ready.get("message", "")).partition(". what would fit: ")
    yield from wrapped(problem, indent="    ")
    if options:
        yield "    what would fit"
        for option in options.split("; "):
            yield from wrapped(option, indent="      ")


def _plan(name: str, status: Mapping[str, Any], planned: Mapping[str, Any]) -> Iterator[str]:
    plan = status["plan"]
    variants = plan["variants"]
    why = f"why: {planned['message'].partition(' on ')[2]}"
    if len(variants) == 1:
        yield from _heading(f"{_mark(variants[0])} {name} on", variants[0])
        yield from _variant(variants[0], status, why=why)
    else:
        replicas = sum(variant["replicas"] for variant in variants)
        mark = min(map(_mark, variants))  # the doubtful one sorts first
        yield f"{mark} {name}: {replicas} replicas in {len(variants)} pools, one Service"
        yield from wrapped(f"first choice: {plan.get('why', '')}", indent="    ")
        for variant in variants:
            yield ""
            yield from _heading(f"  {variant['replicas']} on", variant)
            yield from _variant(variant, status)
    yield from _choices(plan)


def _mark(variant: Mapping[str, Any]) -> str:
    return "✓" if variant["verdict"] == "Fits" else "≈"


def _heading(start: str, variant: Mapping[str, Any]) -> Iterator[str]:
    what = f"{start} {_gpus(variant)} × {variant['gpuProduct']}"
    where = f"(pool {variant['pool']}, capacity: {variant['capacitySource'].lower()})"
    if len(what) + len(where) + 3 > WIDTH:
        yield from (what, f"  {where}")
    else:
        yield f"{what}   {where}"


def _variant(
    variant: Mapping[str, Any], status: Mapping[str, Any], *, why: str = ""
) -> Iterator[str]:
    for key, value in _numbers(variant, status.get("model", {}), status):
        yield f"    {key:<24}{value}"
    if why:
        yield from wrapped(why, indent="    ")
    yield ""
    yield from _budget(variant)


def _gpus(variant: Mapping[str, Any]) -> str:
    """GPUs of a replica; over several nodes as nodes × GPUs of each."""
    gpus, nodes = variant["gpusPerReplica"], variant.get("nodesPerReplica", 1)
    return f"{nodes} nodes × {gpus // nodes}" if nodes > 1 else str(gpus)


def _layout(variant: Mapping[str, Any]) -> str:
    """How the engine is spread; empty where tensor parallel is all there is to say."""
    copies = int((variant.get("settings") or {}).get("data_parallel_size", 1))
    stages, nodes = variant["pipelineParallelSize"], variant.get("nodesPerReplica", 1)
    words = [f"tensor parallel {variant['tensorParallelSize']}"]
    if stages > 1:
        words.append(f"{stages} pipeline stages")
    if copies > 1:
        words.append(f"data parallel {copies}: cache and sequences are each rank's")
    if nodes > 1:
        words.append(f"{nodes} pods as a LeaderWorkerSet")
    return "; ".join(words) if len(words) > 1 else ""


def _numbers(
    variant: Mapping[str, Any], model: Mapping[str, Any], status: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    length, tokens = variant["maxModelLen"], variant["kvCacheTokens"]
    share = 100 / variant["maxConcurrency"] if variant["maxConcurrency"] else 100
    native = " (the model's own limit)" if length == model.get("nativeMaxModelLen") else ""
    yield "max_model_len", f"{length}{native}; one such request takes {share:.0f} % of the cache"
    yield (
        "max_num_seqs",
        f"{variant['maxNumSeqs']}; {variant['runningAtTypical']} of typical length run at once; "
        f"limited by {variant['limitedBy']}",
    )
    if layout := _layout(variant):
        yield "layout", layout
    yield "max_num_batched_tokens", str(variant["maxNumBatchedTokens"])
    yield "gpu_memory_utilization", str(variant["gpuMemoryUtilization"])
    yield (
        "model",
        f"{variant['modelUri']}; {_precision(variant, model)}",
    )
    yield (
        "engine",
        f"vLLM {status.get('engine', {}).get('version', '')}, runner {variant['modelRunner']}; "
        f"will report {tokens:,} tokens, {variant['maxConcurrency']:.2f}x",
    )


def _precision(variant: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    method = model.get("quantization") or "none"
    weights = "not quantized" if method == "none" else method
    cache = "" if variant["kvCacheDtype"] == "auto" else f", KV cache {variant['kvCacheDtype']}"
    return weights + cache


def _budget(variant: Mapping[str, Any]) -> Iterator[str]:
    budget = variant["budget"]
    yield from memory_bars(budget, gpus=variant["gpusPerReplica"])
    low = (budget["kvCacheBytes"] - budget["marginBytes"]) / GIB
    high = (budget["kvCacheBytes"] + budget.get("upsideBytes", 0)) / GIB
    yield (
        f"    certain?      {variant['verdict']}: KV cache {low:.2f} to {high:.2f} GiB, "
        "planned for the low end"
    )


def memory_bars(budget: Mapping[str, Any], *, gpus: int) -> Iterator[str]:
    """Where the bytes of one GPU go, a bar each."""
    total = budget["totalBytes"]
    each = f" on each of {gpus}" if gpus > 1 else ""
    yield (
        f"    GPU memory    {total / GIB:7.2f} GiB{each}, "
        f"{budget['requestedBytes'] / GIB:.2f} of it requested"
    )
    for label, key in PARTS:
        size = budget[key]
        yield f"      {label:<13}{size / GIB:7.2f}  {_bar(size, total)}".rstrip()


def _bar(size: int, total: int) -> str:
    eighths = min(max(0, round(size / total * BAR_WIDTH * 8)), BAR_WIDTH * 8)
    blocks = "█" * (eighths // 8)
    return blocks + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def _choices(plan: Mapping[str, Any]) -> Iterator[str]:
    alternatives = plan.get("alternatives") or []
    if alternatives:
        yield ""
        yield "    instead"
        for each in alternatives:
            yield from wrapped(f"{each['summary']}: {each['wouldAllow']}", indent="      ")
    frontier = plan.get("frontier") or []
    if frontier:
        points = " · ".join(f"{p['maxModelLen']}×{p['maxNumSeqs']}" for p in frontier)
        yield ""
        yield from wrapped(
            f"trade-off, tokens × requests of that length at once: {points}", indent="    "
        )


def wrapped(text: str, *, indent: str) -> Iterator[str]:
    """Lines within the width; a long word stays whole."""
    line = indent
    for word in text.split():
        if len(line) + len(word) > WIDTH and line.strip():
            yield line.rstrip()
            line = indent + "  "
        line += word + " "
    if line.strip():
        yield line.rstrip()
