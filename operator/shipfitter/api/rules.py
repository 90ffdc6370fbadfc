"""The rules that a schema can see: CEL for the API server, one wording for all."""

import re

from shipfitter.api.base import Rule

MAX_NAME_LENGTH = 40  # leaves room for a variant's hash and for pod names within a label's 63
FORBIDDEN_NAME = "vllm"  # a Service of that name puts VLLM_PORT and the like into every pod
NAME_PATTERN = r"^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$"

# The Hub's own rule for both parts. Source: huggingface_hub 2.4 utils/_validators.py.
_PART = r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
HUB_URI_PATTERN = rf"^(hf://)?{_PART}/{_PART}$"
CLAIM_URI_PATTERN = r"^pvc://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[A-Za-z0-9_][A-Za-z0-9._-]*)*/?$"

# A tag that is a release: v0.33.0, 0.33.0, v0.33.0-cu129, v0.33.0.post1. A registry's port is none.
VERSION_TAG_PATTERN = r":v?[0-9]+\.[0-9]+(\.[0-9]+)?([.+_-][A-Za-z0-9._-]*|rc[0-9]+)?$"
VERSION_PATTERN = r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?([.+_-]?[A-Za-z0-9._-]*)?$"

DEFAULT_MAX_GPUS_PER_REPLICA = 8

NAME_RULE = Rule(
    cel=f"self.metadata.name.matches(r'{NAME_PATTERN}') "
    f"&& self.metadata.name != '{FORBIDDEN_NAME}'",
    message=(
        "metadata.name becomes the name of a Service and of labels: take at most 40 lower-case "
        "letters, digits and '-', starting with a letter, and not 'vllm'"
    ),
)
URI_RULE = Rule(
    cel=f"(self.matches(r'{HUB_URI_PATTERN}') && !self.contains('--') && !self.contains('..')"
    f" && !self.endsWith('.git')) || self.matches(r'{CLAIM_URI_PATTERN}')",
    message="not a model: write hf://ORG/NAME, ORG/NAME or pvc://CLAIM/PATH",
)
MIN_UP_TO_PREFERRED = Rule(
    cel="!has(self.min) || !has(self.preferred) || self.min <= self.preferred",
    message="min is above preferred: lower min or raise preferred (equal values pin it)",
)
VERSION_FOR_IMAGE = Rule(
    cel=f"!has(self.image) || has(self.version) || self.image.matches(r'{VERSION_TAG_PATTERN}')",
    message=(
        "the image's tag is no engine version, and the sizes depend on it: "
        'add version, for example version: "0.33.0"'
    ),
)
PRODUCTS_NOT_EMPTY = Rule(
    cel="!has(self.products) || size(self.products) > 0",
    message="an empty products list allows no GPU: name at least one product, "
    "or remove products to allow any",
)
TENSOR_PARALLEL_WITHIN_REPLICA = Rule(
    cel="!has(self.tensorParallelSize) || self.tensorParallelSize <= "
    "(has(self.perReplica) && has(self.perReplica.max) ? self.perReplica.max : "
    f"{DEFAULT_MAX_GPUS_PER_REPLICA})",
    message="tensorParallelSize is above perReplica.max (8 where it is absent): "
    "raise perReplica.max or lower tensorParallelSize",
)
EXISTS_HAS_NO_VALUE = Rule(
    cel="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
    message="a toleration with operator Exists takes no value: remove value, or use operator Equal",
)
ONE_ENV_SOURCE = Rule(
    cel="!(has(self.value) && has(self.valueFrom))",
    message="value and valueFrom exclude each other: keep one",
)


def is_model_uri(uri: str) -> bool:
    """What URI_RULE says, for everybody but the API server.

    >>> is_model_uri("Qwen/Qwen3-32B"), is_model_uri("pvc://models/a--b"), is_model_uri("a/b--c")
    (True, True, False)
    """
    if re.search(CLAIM_URI_PATTERN, uri):
        return True
    never = "--" in uri or ".." in uri or uri.endswith(".git")
    return not never and re.search(HUB_URI_PATTERN, uri) is not None
