"""Instance types of GPU clouds whose names say what is in them: a pattern for each way to write it.

Source: the forms of names in what the providers publish of their instances and in the node labels
of their Kubernetes services, as known to the authors and not looked up again for these rows.
A pattern captures the card's spelling, which must be one that cloud's table names, and, where the
name tells, how many. A fraction of a GPU is none.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from shipfitter.core import instance_cards as cards
from shipfitter.core.instance_counts import (
    Count,
    always,
    by_cpus,
    by_share,
    by_size_name,
    by_video_memory,
    one_unless_told,
    told,
)

# What goes with one GPU: gigabytes of the machine's memory, or the number of the size.
_OVH_GB = {"t1": 45, "t1-le": 45, "t2": 45, "t2-le": 45, "a10": 45, "a100": 180, "h100": 380}
_OVH_GB |= {"h200": 240, "l4": 90, "l40s": 90, "rtx5000": 28}
_TENCENT_GB = {"gn7": 80, "gn8": 56, "gn10x": 40, "gn10xp": 40, "gt4": 118, "pnv4": 116}
_HUAWEI_SIZE = dict.fromkeys(cards.HUAWEI, 2)
_VIDEO_GB = {"a100": 80, "a40": 48, "l40s": 48, "l40": 48, "a16": 16, "gh200": 96, "h100": 80}
_VIDEO_GB |= {"h200": 141, "b200": 180, "b300": 288}


class Pattern(NamedTuple):
    """Names of one form."""

    form: re.Pattern[str]
    cards: Mapping[str, str]  # product by the spelling in the name
    gpus: Count


# A name is tried in this order; the form must fit the whole of it.
PATTERNS: tuple[Pattern, ...] = tuple(
    Pattern(re.compile(form), table, count)
    for form, table, count in (
        (r"gpu_(?P<gpus>8)x_(?P<card>a100)", cards.LAMBDA_8_GPUS, told),
        (r"gpu_(?P<gpus>\d+)x_(?P<card>\w+)", cards.LAMBDA, told),
        (r"gd-(?P<gpus>\d+)x(?P<card>\w+)-i\d+", cards.COREWEAVE, told),
        (r"gd-(?P<gpus>\d+)x(?P<card>gh200)", cards.COREWEAVE, told),
        (r"(?P<card>[a-z]+\d+)-(?P<gpus>\d)x", cards.COREWEAVE_SHORT, told),
        (r"(?P<card>[a-z]+\d+s?(?:-[\w-]+?)?)(?:-ib|-roce)?\.(?P<gpus>\d+)x", cards.CRUSOE, told),
        (
            r"gpu-(?P<card>\w+?)x(?P<gpus>\d+)-\d+gb(?:-contracted)?",
            cards.DIGITALOCEAN,
            told,
        ),
        (
            r"gpu-(?P<card>[a-z]+\d+s?(?:-[a-z]+)*)(?:[-_.](?P<gpus>\d)gpu-\d+vcpu-\d+gb)?",
            cards.NEBIUS,
            told,
        ),
        (
            r"vcg-(?P<card>[a-z]+\d+s?)-\d+c-\d+g-(?P<whole>\d+)vram",
            cards.VULTR,
            by_video_memory(_VIDEO_GB),
        ),
        (
            r"vbm-\d+c-\d+gb-(?:(?P<gpus>\d)-)?(?P<card>[a-z]+\d+s?)-gpu",
            cards.VULTR,
            one_unless_told,
        ),
        (r"gx[234]d?-\d+x\d+x(?P<gpus>\d+)(?P<card>[a-z]+\d+s?)", cards.IBM, told),
        (r"gx[234]d?\.\d+x\d+\.(?P<gpus>\d*)(?P<card>[a-z]+\d+s?)", cards.IBM, one_unless_told),
        (r"(?P<card>[a-z]+\d+s?(?:-sxm)?)-(?P<gpus>\d+)-\d+g", cards.SCALEWAY, told),
        (r"(?P<card>render-s|gpu-3070-s)", cards.SCALEWAY_OLDER, always(1)),
        (
            r"ecs\.(?P<card>gn\d[a-z]*)-c(?P<cpus>\d+)g1\.(?P<size>\d*x?large)",
            cards.ALIBABA,
            by_cpus,
        ),
        (r"ecs\.(?P<card>gn8is|gn8v)(?:-tee)?-(?P<gpus>[248])x\.\d+xlarge", cards.ALIBABA, told),
        (r"ecs\.(?P<card>gn8is|gn8v)(?:-tee)?\.[2468]xlarge", cards.ALIBABA, always(1)),
        (r"ecs\.(?P<card>ebmgn(?:6i|7i))\.\d+xlarge", cards.ALIBABA_WHOLE, always(4)),
        (r"ecs\.(?P<card>ebmgn7ix)\.\d+xlarge", cards.ALIBABA_WHOLE, told),
        (r"ecs\.(?P<card>ebmgn\d[a-z]*)\.\d+xlarge", cards.ALIBABA_WHOLE, always(8)),
        (
            r"(?P<card>[a-z]\d+s?|t[12]-le|rtx5000)-(?P<whole>\d{2,4})",
            cards.OVH,
            by_share(_OVH_GB),
        ),
        (r"(?P<card>g[13]-gpu-rtx[a-z]*6000-(?:blackwell-)?)(?P<gpus>\d)", cards.LINODE, told),
        (r"(?P<card>g2-gpu-rtx4000a)(?P<gpus>\d)-\w+", cards.LINODE, told),
        (r"(?P<card>gn7)\.(?:2xlarge32|8xlarge128)", cards.TENCENT, always(1)),
        (
            r"(?P<card>gn7|gn8|gn10xp?|gt4|pnv4)\.\d*(?:large|xlarge)(?P<whole>\d+)",
            cards.TENCENT,
            by_share(_TENCENT_GB),
        ),
        (
            r"(?P<card>p2s|p2vs?|pi2)\.(?P<whole>\d+)xlarge\.\d",
            cards.HUAWEI,
            by_share(_HUAWEI_SIZE),
        ),
        (r"ecs\.(?P<card>g1tl|gni2|gni3cl|pni2)\.\d*x?large", cards.VOLCENGINE, told),
        (r"n\d-(?P<card>[a-z][\w-]*?)-?x(?P<gpus>\d+)", cards.HYPERSTACK, told),
        (r"(?P<gpus>\d+)(?P<card>[a-z]+\d+(?:s|ada)?(?:\.\d+s)?)\.\d+v", cards.VERDA, told),
        (r"(?P<card>n[123])\.\d+d\.g(?P<gpus>\d)", cards.STACKIT, told),
        (r"an\.g\d\.(?P<card>[a-z]+\d+s?)(?:\.kube)?\.x(?P<gpus>\d)", cards.CIVO, told),
        (r"gpu-\d+xcpu-\d+gb-(?P<gpus>\d)x(?P<card>[a-z]+\d+s?)", cards.UPCLOUD, told),
        (
            r"gpu(?P<card>2|3|a5000|3080ti|rtx6000pro)\.(?P<size>small|medium|large|huge)",
            cards.EXOSCALE,
            by_size_name,
        ),
        (r"[\w-]+-(?P<card>[a-z]+\d+s?-\d+)-(?P<gpus>\d)", cards.GCORE, told),
        (r"(?P<card>gpu-standard-v[23]|standard-v3-t4)", cards.YANDEX, told),
        (r"(?P<card>gex\d+)", cards.HETZNER, always(1)),
        (
            r"[bv]m\.gpu\.(?P<card>[a-z]+\d+[a-z]?(?:\.b?[48]0g)?)(?:-nc|-v\d)?\.(?P<gpus>\d+)",
            cards.ORACLE,
            told,
        ),
    )
)
