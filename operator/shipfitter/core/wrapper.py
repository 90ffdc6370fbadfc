"""What a multimodal class does with its towers, as one row."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A multimodal class; `text_class` is empty where the inner config decides."""

    text_class: str = ""
    tower_divided: bool = True  # tensor parallelism divides the tower; else every rank has it whole
    multimodal_rope: bool = False  # rope over three axes even where config.json is silent
    # The layer of the tower whose output is used, where config.json is silent; later ones are not
    # built. None: all are. Source: vLLM llava.py init_vision_tower_for_llava.
    feature_layer: int | None = None
    audio_by_config: bool = False  # no audio tower is built where config.json describes none
