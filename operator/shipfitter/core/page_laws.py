"""How many blocks one request takes in a group, as a function of its length."""

from dataclasses import dataclass

from shipfitter.core.cache_specs import (
    CacheKey,
    LayerSpec,
    keeps_state_per_block,
    prefills_gdn_in_flashinfer,
)
from shipfitter.core.model import LayerKind, ModelFacts
from shipfitter.core.releases import rules_for
from shipfitter.core.rules import StateRule
from shipfitter.core.traits import traits_of
from shipfitter.core.versions import EngineVersion

# Source: vLLM vllm/multimodal: Whisper's encoder, where config.json does not say.
ENCODER_TOKENS = 1500
_COUNTS_DRAFT_STATES_PER_BLOCK = EngineVersion(0, 22, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLaw:
    """Blocks = constant + ceil(min(tokens, cap) / shards / block)."""

    block_tokens: int = 0  # 0: the number does not depend on the length
    constant_pages: int = 0
    cap_tokens: int | None = None  # window or chunk, in-flight tokens included
    in_flight_tokens: int = 0  # the part of the cap that is empty between steps
    shards: int = 1  # ranks that share one request's tokens (decode context parallelism)

    def pages(self, tokens: int) -> int:
        """Blocks to admit a request of this length."""
        return self._pages(tokens, self.cap_tokens)

    def hold_pages(self, tokens: int) -> int:
        """Blocks a running request keeps between steps."""
        cap = self.cap_tokens
        return self._pages(tokens, None if cap is None else cap - self.in_flight_tokens)

    def _pages(self, tokens: int, cap_tokens: int | None) -> int:
        if self.block_tokens == 0:
            return self.constant_pages
        if cap_tokens is not None and tokens > cap_tokens:
            tokens = cap_tokens
        if self.shards > 1:
            tokens = -(-tokens // self.shards)
        return self.constant_pages - (-tokens // self.block_tokens)


def page_law(
    spec: LayerSpec, model: ModelFacts, key: CacheKey, *, in_flight_tokens: int
) -> PageLaw:
    """The law of one layer; the layers of a group all follow the same.

    Source: vLLM vllm/v1/kv_cache_interface.py max_memory_usage_bytes of each spec.
    """
    shards = key.decode_context_parallel_size
    match spec.kind:
        case LayerKind.SLIDING:
            cap = spec.window_tokens - 1 + retained_tokens(model, key) + in_flight_tokens
            return PageLaw(
                block_tokens=spec.block_tokens,
                constant_pages=1,
                cap_tokens=cap,
                in_flight_tokens=in_flight_tokens,
            )
        case LayerKind.CHUNKED:
            return PageLaw(
                block_tokens=spec.block_tokens,
                cap_tokens=spec.window_tokens + in_flight_tokens,
                in_flight_tokens=in_flight_tokens,
            )
        case LayerKind.STATE:
            return _state_law(spec, model, key)
        case LayerKind.CROSS:
            tokens = int(model.extra.get("max_encoder_tokens", ENCODER_TOKENS))
            return PageLaw(constant_pages=-(-tokens // spec.block_tokens))
        case _:
            return PageLaw(block_tokens=spec.block_tokens, shards=shards)


def retained_tokens(model: ModelFacts, key: CacheKey) -> int:
    """Tokens kept behind the window for drafts of several modules, each one token further ahead.

    Source: vLLM vllm/config/vllm.py num_prefill_lookahead_tokens, speculative.py
    use_multi_module_mtp: a single module, however often it drafts, keeps none.
    """
    if not (rules_for(key.version).retains_lookahead and key.drafts_with_own_layers):
        return 0
    drafts = key.num_speculative_tokens
    several = min(int(model.extra.get("num_mtp_layers", 0)), drafts) > 1
    return drafts - 1 if several else 0


def _state_law(spec: LayerSpec, model: ModelFacts, key: CacheKey) -> PageLaw:
    rules = rules_for(key.version)
    drafts = key.num_speculative_tokens
    if rules.state_rule is StateRule.ONE:
        return PageLaw(constant_pages=1)
    if keeps_state_per_block(model, key):
        counted = drafts if key.version >= _COUNTS_DRAFT_STATES_PER_BLOCK else 0
        return PageLaw(block_tokens=spec.block_tokens, constant_pages=counted)
    if rules.state_rule is StateRule.BY_BLOCK:
        return PageLaw(constant_pages=1)
    if not key.caches_prefixes:
        return PageLaw(constant_pages=1 + drafts)
    return PageLaw(constant_pages=2 + drafts + _checkpoint_pages(model, key))


def _checkpoint_pages(model: ModelFacts, key: CacheKey) -> int:
    """One more page where the prefill kernel can export the state at a block's end."""
    families = traits_of(model).state_families & set(rules_for(key.version).checkpoint_families)
    if not prefills_gdn_in_flashinfer(model, key):
        families -= {"gdn"}
    if key.compute_capability is not None and key.compute_capability < (9, 0):
        families -= {"flash_kda"}
    return 1 if families else 0
