"""Wrappers around a language model: which class is inside, and how the engine places the tower."""

from shipfitter.core.text_config import TextConfig
from shipfitter.core.wrapper import Wrapper
from shipfitter.core.wrapper_rows import TEXT_CLASS_OF_TYPE, TEXT_CLASS_OF_VERSION, WRAPPERS
from shipfitter.errors import UnknownArchitectureError

__all__ = ["Wrapper", "unwrap"]


def unwrap(config: TextConfig) -> tuple[TextConfig, Wrapper | None]:
    """The config under its language model's class, and the wrapper where there is one.

    Raises UnknownArchitectureError for a known wrapper around an unknown language model.
    """
    wrapper = WRAPPERS.get(config.architecture)
    if wrapper is None:
        return config, None
    inner = wrapper.text_class or TEXT_CLASS_OF_TYPE.get(config.model_type, "")
    named = config.text.get("architectures") or ()
    if not inner and named and named[0] != config.architecture:
        inner = named[0]
    if not inner:
        inner = TEXT_CLASS_OF_VERSION.get(str(config.get("version", "")), "")
    if not inner:
        raise UnknownArchitectureError(
            f"model {config.model}: {config.architecture} wraps a language model of type "
            f"{config.model_type!r}, of which nothing is known; name a supported class in "
            "spec.model.facts, or pin the sizing flags in spec.engine.args"
        )
    return TextConfig(
        model=config.model, architecture=inner, text=config.text, whole=config.whole
    ), wrapper
