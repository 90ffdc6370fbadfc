"""The wish with every default filled in."""

from dataclasses import dataclass, replace

from shipfitter.core.engines import EngineSettings, derived_max_model_len
from shipfitter.core.intent import Intent, ModelChoice

# Lengths and sequences assumed where the user bounds nothing.
DEFAULT_MIN_MODEL_LEN = 8192
DEFAULT_MIN_NUM_SEQS = 4
DEFAULT_PREFERRED_NUM_SEQS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The wish with every default filled in for one model and engine."""

    min_len: int
    preferred_len: int
    min_seqs: int
    preferred_seqs: int
    typical: int
    native_len: int
    seqs_stated: bool  # the user named a preference; the default is only a cap

    def within(self, longest: int | None) -> "Goals":
        """The same goals where an engine said that it has no room for more."""
        if longest is None or longest >= self.preferred_len:
            return self
        return replace(self, preferred_len=longest, typical=min(self.typical, longest))

    @classmethod
    def of(cls, intent: Intent, model: ModelChoice, settings: EngineSettings) -> "Goals":
        """Defaults: native length, at most 8,192 of it as minimum; 4 to 256 sequences."""
        native = settings.max_model_len or derived_max_model_len(model.facts, settings.version)
        if settings.max_model_len:  # pinned by the user
            min_len = preferred_len = settings.max_model_len
        else:
            preferred_len = intent.max_model_len.preferred or max(
                native, intent.max_model_len.minimum or 0
            )
            preferred_len = min(preferred_len, native)
            min_len = min(
                intent.max_model_len.minimum or min(native, DEFAULT_MIN_MODEL_LEN), preferred_len
            )
        if settings.max_num_seqs:
            min_seqs = preferred_seqs = settings.max_num_seqs
        else:
            min_seqs = intent.max_num_seqs.minimum or DEFAULT_MIN_NUM_SEQS
            preferred_seqs = intent.max_num_seqs.preferred or max(
                DEFAULT_PREFERRED_NUM_SEQS, min_seqs
            )
            min_seqs = min(min_seqs, preferred_seqs)
        return cls(
            min_len=min_len,
            preferred_len=preferred_len,
            min_seqs=min_seqs,
            preferred_seqs=preferred_seqs,
            typical=min(intent.typical, preferred_len),
            native_len=native,
            seqs_stated=intent.max_num_seqs.preferred is not None,
        )
