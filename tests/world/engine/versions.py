"""Which release is played."""

import os

DEFAULT = "0.33.0"
OLDEST = (0, 14, 0)  # older ones word and count things differently; see `played_version`
NEWEST = (0, 33, 99)

Version = tuple[int, int, int]


def played_version(text: str | None = None) -> Version:
    """The release named, or by ENGINE_STUB_VERSION; only those whose behaviour is known here."""
    named = text or os.environ.get("ENGINE_STUB_VERSION") or DEFAULT
    parts = named.removeprefix("v").split(".")
    try:
        major, minor, patch = (int(part) for part in (*parts, "0")[:3])
    except ValueError:
        raise SystemExit(f"engine stub: ENGINE_STUB_VERSION {named!r} is no release") from None
    version = (major, minor, patch)
    if not OLDEST <= version <= NEWEST:
        raise SystemExit(
            f"engine stub: {named} is not played; name one of 0.14.0 to 0.33.x in "
            "ENGINE_STUB_VERSION"
        )
    return version


def version_text(version: Version) -> str:
    return ".".join(str(part) for part in version)
