"""How many GPUs an instance type has, by what its name tells of the whole machine."""

import re
from collections.abc import Callable, Mapping

Count = Callable[[re.Match[str]], int | None]  # 0: the name does not tell; None: no whole GPU


def told(found: re.Match[str]) -> int | None:
    """The number in the name; 0 where it tells none.

    >>> told(re.match(r"b200-(?P<gpus>[0-9])x", "b200-8x"))
    8
    """
    return int(found.groupdict().get("gpus") or 0)


def one_unless_told(found: re.Match[str]) -> int | None:
    """The number in the name; one where it tells none."""
    return told(found) or 1


def always(gpus: int) -> Count:
    """The same for every name of the form."""
    return lambda _: gpus


def by_share(whole_of_one: Mapping[str, int]) -> Count:
    """What the name tells of the whole machine, over what goes with one GPU of that card."""

    def count(found: re.Match[str]) -> int | None:
        gpus = int(found["whole"]) / whole_of_one[found["card"]]
        return round(gpus) if gpus > 0.75 else None  # less is a fraction

    return count


def by_video_memory(gigabytes: Mapping[str, int]) -> Count:
    """GPUs by their memory altogether; what is no multiple of a card's is a fraction."""

    def count(found: re.Match[str]) -> int | None:
        gpus, rest = divmod(int(found["whole"]), gigabytes[found["card"]])
        return gpus if gpus and not rest else None

    return count


def by_cpus(found: re.Match[str]) -> int | None:
    """GPUs by the vCPUs of the size and those for each GPU: c8g1.16xlarge has 64, 8 for each.

    Source: Alibaba Cloud's naming of instance types: large has 2, xlarge 4, Nxlarge 4 × N.
    """
    size = found["size"].removesuffix("large")
    cpus = 4 * int(size.removesuffix("x") or 1) if size else 2
    return cpus // int(found["cpus"])


def by_size_name(found: re.Match[str]) -> int | None:
    """GPUs by a size's word, as Exoscale has them."""
    return {"small": 1, "medium": 2, "large": 4, "huge": 8}[found["size"]]
