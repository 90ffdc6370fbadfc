"""A separate drafter that a command names: counted where its config can be had, else said."""

from dataclasses import replace

from shipfitter.api.serve_engine import Drafter
from shipfitter.api.serve_notes import assumed_drafter, uncounted_drafter
from shipfitter.cli.estimate_model import checkpoint_of
from shipfitter.core.drafters import (
    config_of_layers,
    is_head,
    with_assumed_head,
    with_drafting_model,
    with_head,
)
from shipfitter.core.engines import EngineSettings
from shipfitter.core.estimate import sum_of
from shipfitter.core.model import ModelFacts, model_facts
from shipfitter.core.traits import traits_of
from shipfitter.errors import UserError
from shipfitter.hub import Checkpoint

_OWN_LAYERS = ("mtp",)
_COUNTED_METHODS = ("", "draft_model", "eagle", "eagle3")


def with_drafter(
    model: ModelFacts,
    settings: EngineSettings,
    drafter: Drafter | None,
    *,
    name: str | None,
    offline: bool = False,
) -> tuple[ModelFacts, EngineSettings, tuple[str, ...]]:
    """The model and the settings with the drafter, and what was assumed of it."""
    if drafter is None or drafter.model is None or _is_itself(drafter, name):
        return model, settings, ()
    counted = _counted(model, drafter, offline=offline)
    if counted is None:
        assumed = with_assumed_head(model, drafter.method) if "eagle" in drafter.method else None
        said = assumed_drafter if assumed else uncounted_drafter
        unknown = said(drafter.model)
        extra_bytes = sum_of((settings.extra_bytes, unknown.bytes))
        return assumed or model, replace(settings, extra_bytes=extra_bytes), (unknown.note,)
    layers = len(counted.extra["drafter_layers"])
    weights = sum(group.loaded_bytes for group in counted.weight_groups) - sum(
        group.loaded_bytes for group in model.weight_groups
    )
    # Drafts are not made by the checkpoint's own layers, whatever their method is called.
    method = settings.speculative_method or "draft_model"
    note = (
        f"the drafter {drafter.model}: {weights / 2**30:.2f} GiB of weights over all ranks, and "
        f"{layers} {'layer' if layers == 1 else 'layers'} of cache"
    )
    return counted, replace(settings, speculative_method=method), (note,)


def _is_itself(drafter: Drafter, name: str | None) -> bool:
    """The checkpoint's own layers, named as a drafter."""
    return drafter.model == name or any(own in drafter.method for own in _OWN_LAYERS)


def _counted(model: ModelFacts, drafter: Drafter, *, offline: bool) -> ModelFacts | None:
    """None where nothing is known of the drafter, or of a cache of both kinds together."""
    assert drafter.model is not None
    if drafter.method not in _COUNTED_METHODS:
        return None
    try:
        checkpoint = checkpoint_of(drafter.model, offline=offline)
        counted = _joined(model, drafter, checkpoint)
    except UserError:
        return None
    kinds = {traits_of(facts).has_latent for facts in (model, counted) if facts is not None}
    latent = any(layer.latent_dim for layer in (counted or model).extra.get("drafter_layers", ()))
    return counted if kinds == {latent} else None


def _joined(model: ModelFacts, drafter: Drafter, checkpoint: Checkpoint) -> ModelFacts | None:
    if not is_head(drafter.method, checkpoint.config):
        facts = model_facts(
            checkpoint.config,
            name=checkpoint.name,
            tensors=checkpoint.tensors,
            checkpoint_bytes=checkpoint.stored_bytes,
        )
        return with_drafting_model(model, facts, divided=drafter.tensor_parallel_size != 1)
    config = config_of_layers(checkpoint.config)
    if config is None:
        return None
    return with_head(
        model,
        model_facts(config, name=checkpoint.name),
        checkpoint.config,
        method=drafter.method,
    )
