"""The engine's version, as far as an image's name tells it."""

import re

from shipfitter.api.rules import VERSION_TAG_PATTERN


def engine_version(image: str) -> str | None:
    """The release in an image's tag; None for a digest, which may differ from any tag beside it.

    >>> engine_version("registry.example:5000/vllm:v0.33.0-cu129")
    '0.33.0'
    >>> engine_version("vllm/vllm-openai:latest") is None
    True
    """
    if "@" in image or not re.search(VERSION_TAG_PATTERN, image):
        return None
    tag = image.rpartition(":")[2].removeprefix("v")
    match = re.match(r"[0-9]+\.[0-9]+(\.[0-9]+)?", tag)
    return match[0] if match else None
