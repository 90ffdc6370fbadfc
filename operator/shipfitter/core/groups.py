"""One replica over several nodes: tensor parallel inside a node, pipeline stages over the network.

Between stages only a token's activations travel, which an ordinary network carries; tensor parallel
talks in every layer, so it leaves a node only where the user pins a size that no node has.
"""

from collections.abc import Iterator
from dataclasses import replace

from shipfitter.core.engines import EngineVersion
from shipfitter.core.intent import Intent, ModelChoice
from shipfitter.core.inventory import CapacitySource, Pool
from shipfitter.core.layout import ParallelLayout
from shipfitter.core.legality import layout_problems

# Nodes join by --nnodes and --node-rank, without Ray, from this release on.
# Source: vLLM 0.12 vllm/entrypoints/cli/serve.py run_headless, vllm/config/parallel.py nnodes.
GROUPS_FROM = EngineVersion(0, 12, 0)
MOST_STAGES_PER_NODE = 4


def group_gpu_counts(intent: Intent, pools: tuple[Pool, ...]) -> tuple[int, ...]:
    """GPUs per replica over at least two nodes worth trying, fewest first."""
    return tuple(sorted({count for pool in pools for count in _counts(intent, pool)}))


def _counts(intent: Intent, pool: Pool) -> Iterator[int]:
    """Whole nodes' GPUs; of a node with an odd number as many as heads divide by."""
    most = intent.max_gpus_per_replica
    wanted = intent.engine.layout
    if not can_span(intent, pool):
        return
    if intent.tensor_parallel_size and wanted.pipeline_parallel_size > 1:
        yield intent.tensor_parallel_size * wanted.pipeline_parallel_size
        return
    if intent.tensor_parallel_size and intent.tensor_parallel_size > pool.gpus_per_node:
        yield intent.tensor_parallel_size
        return
    even = 1 << (pool.gpus_per_node.bit_length() - 1)
    for gpus in {pool.gpus_per_node, even}:
        yield from range(2 * gpus, min(most, gpus * len(pool.nodes)) + 1, gpus)


def can_span(intent: Intent, pool: Pool) -> bool:
    """Whether one replica may take several nodes of the pool at all.

    Nodes that are only expected are left out: how many would come together nobody says.
    """
    return (
        intent.spans_nodes
        and intent.engine.version >= GROUPS_FROM
        and intent.engine.layout.data_parallel_size == 1
        and len(pool.nodes) > 1
        and pool.source is not CapacitySource.EXPECTED
        and not pool.mig_profile
        and pool.sharing == "none"
    )


def group_layouts(
    intent: Intent, pool: Pool, model: ModelChoice, count: int
) -> tuple[ParallelLayout, ...]:
    """The layout of this many GPUs over the fewest nodes in which the engine would start."""
    if not can_span(intent, pool) or count > intent.max_gpus_per_replica:
        return ()
    for nodes in range(2, len(pool.nodes) + 1):
        if count % nodes or count // nodes > pool.gpus_per_node:
            continue
        for layout in _layouts(intent, count, nodes):
            if not layout_problems(
                model.facts,
                layout,
                gpus_per_node=pool.gpus_per_node,
                compute_capability=pool.compute_capability,
                engine_version=intent.engine.version.release,
            ):
                return (layout,)
    return ()


def _layouts(intent: Intent, count: int, nodes: int) -> Iterator[ParallelLayout]:
    """Stages over nodes, more of them inside a node where heads forbid so many tensor ranks."""
    wanted, each = intent.engine.layout, count // nodes
    pinned = intent.tensor_parallel_size
    if pinned:
        stage_counts = [count // pinned] if count % pinned == 0 else []
    else:
        stage_counts = [nodes * inside for inside in (1, 2, MOST_STAGES_PER_NODE)]
    for stages in stage_counts:
        ranks = count // stages
        if wanted.pipeline_parallel_size not in (1, stages) or ranks * stages != count:
            continue
        if each % ranks == 0 or (pinned and ranks % each == 0):
            yield replace(
                wanted, tensor_parallel_size=ranks, pipeline_parallel_size=stages, nodes=nodes
            )
