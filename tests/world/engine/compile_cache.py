"""Whether this model was compiled here before; kept where the real engine keeps it."""

import hashlib
import os
from pathlib import Path

from world.engine.settings import Settings


class CompileCache:
    """A mark below VLLM_CACHE_ROOT for model, release and flags; cold without that folder."""

    def __init__(self, settings: Settings) -> None:
        root = os.environ.get("VLLM_CACHE_ROOT")
        key = (settings.version, settings.model, settings.length, settings.batched_tokens)
        digest = hashlib.sha256(repr((*key, settings.tensor)).encode()).hexdigest()[:10]
        self._mark = Path(root) / "torch_compile_cache" / digest / "stub" if root else None
        self.is_warm = self._mark is not None and self._mark.exists()

    def keep(self) -> None:
        """Later starts are warm."""
        if self._mark is not None:
            self._mark.parent.mkdir(parents=True, exist_ok=True)
            self._mark.touch()
