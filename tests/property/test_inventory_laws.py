"""Laws of the inventory, for any cluster."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from builders_nodes import PLATFORM, capacity, device, gpu_labels
from shipfitter.core.inventory import NodeCapacity, pools
from shipfitter.core.selectors import signature
from shipfitter.units import MIB

PRODUCTS = ("NVIDIA-L40S", "NVIDIA-L4", "NVIDIA-A100-SXM4-80GB", "NVIDIA-GeForce-RTX-4090")


@st.composite
def nodes(draw, name="n0"):
    """A node of some product, labelled fully, in part or not at all; busy, cordoned or broken."""
    product = draw(st.sampled_from(PRODUCTS))
    count = draw(st.sampled_from((1, 2, 8)))
    jitter_mib = draw(st.integers(0, 300))  # below 1 %, as driver branches differ
    total_bytes = device(product).total_bytes - jitter_mib * MIB
    healthy = draw(st.lists(st.booleans() | st.just(True), min_size=count, max_size=count))
    labels = draw(
        st.sampled_from(
            (
                gpu_labels(product, count),
                PLATFORM | {"nvidia.com/gpu.product": product},
                PLATFORM | {"node.kubernetes.io/instance-type": f"{product}-{count}"},
                PLATFORM,
                {},
            )
        )
    )
    return capacity(
        name,
        product,
        count,
        labels=labels,
        devices=tuple(device(product, total_bytes=total_bytes, healthy=h) for h in healthy),
        allocatable_gpus=draw(st.integers(0, count)),
        used_gpus=draw(st.integers(0, count)),
        ready=draw(st.booleans() | st.just(True)),
        schedulable=draw(st.booleans() | st.just(True)),
    )


@st.composite
def clusters(draw):
    count = draw(st.integers(1, 8))
    return tuple(draw(nodes(name=f"n{number}")) for number in range(count))


def usable(node: NodeCapacity) -> int:
    return sum(each.healthy for each in node.devices)


def free(node: NodeCapacity) -> int:
    return max(0, min(node.allocatable_gpus, usable(node)) - node.used_gpus)


def is_offered(node: NodeCapacity) -> bool:
    return node.ready and node.schedulable and node.allocatable_gpus > 0 and usable(node) > 0


@given(clusters())
def test_every_gpu_is_counted_once(cluster):
    members = {node.name: node.free_gpus for pool in pools(cluster) for node in pool.nodes}
    assert members == {node.name: free(node) for node in cluster if is_offered(node)}
    assert sum(len(pool.nodes) for pool in pools(cluster)) == len(members)


@given(st.data(), clusters())
def test_order_does_not_matter(data, cluster):
    assert pools(tuple(data.draw(st.permutations(cluster)))) == pools(cluster)


@given(clusters())
def test_no_pool_promises_more_than_any_of_its_devices_has(cluster):
    by_name = {node.name: node for node in cluster}
    for pool in pools(cluster):
        for member in pool.nodes:
            devices = [each for each in by_name[member.name].devices if each.healthy]
            assert pool.total_bytes <= min(each.total_bytes for each in devices)


@given(clusters())
def test_an_exact_selector_selects_its_nodes_and_no_other_with_gpus(cluster):
    for pool in pools(cluster):
        members = {node.name for node in pool.nodes}
        selected = {
            node.name
            for node in cluster
            if is_offered(node)
            and all(node.labels.get(key) == value for key, value in pool.selector.items())
        }
        assert members <= selected
        if pool.selector_is_exact:
            assert members == selected


@given(clusters())
def test_names_are_distinct_and_parts_of_dns_labels(cluster):
    names = [pool.name for pool in pools(cluster)]
    assert len(set(names)) == len(names)
    assert names == sorted(names)
    for name in names:
        assert name.replace("-", "").isalnum()
        assert name == name.lower().strip("-")
        assert len(name) <= 63


@given(clusters())
def test_the_nodes_of_a_pool_alone_are_that_pool(cluster):
    for pool in pools(cluster):
        members = {node.name for node in pool.nodes}
        alone = pools(tuple(node for node in cluster if node.name in members))
        if not pool.selector_is_exact:
            continue  # joined for want of labels; alone, its parts may be told apart
        (again,) = alone
        assert (again.nodes, again.total_bytes, again.product) == (
            pool.nodes,
            pool.total_bytes,
            pool.product,
        )


fleets = st.lists(st.integers(0, 300), min_size=3, max_size=8)  # of two, nobody knows which lies
lies = st.sampled_from((0.5, 0.7, 0.9, 1.1, 1.3, 1.5))


@settings(max_examples=100)
@given(fleets, lies, st.sampled_from((8, 8, 7, 1)), st.booleans(), clusters())
def test_one_lying_node_moves_no_other_pools_bytes(fleet, lie, count, labelled, others):
    product = "NVIDIA-H100-80GB-HBM3"
    labels = gpu_labels(product, 8) if labelled else PLATFORM | {"shipfitter.dev/pool": "h100"}
    honest = tuple(
        capacity(
            f"h{number}",
            product,
            labels=labels,
            devices=(device(product, total_bytes=81_090 * MIB - jitter_mib * MIB),) * 8,
        )
        for number, jitter_mib in enumerate(fleet)
    )
    first = honest[0].devices[0]
    liar = replace(
        honest[0], devices=(replace(first, total_bytes=int(first.total_bytes * lie)),) * count
    )
    others = tuple(replace(node, name=f"o{node.name}") for node in others)
    assert signature(liar.labels) == signature(honest[0].labels)

    def of_others(cluster, without=("h0",)):
        return {
            node.name: pool.total_bytes
            for pool in pools(cluster)
            for node in pool.nodes
            if node.name not in without
        }

    truth = of_others((*honest[1:], *others))
    assert of_others((liar, *honest[1:], *others)) == truth
