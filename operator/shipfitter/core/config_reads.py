"""What of a config.json a computation reads: the rest need not be carried anywhere."""

from collections.abc import Iterator, Mapping
from typing import Any

from shipfitter.core.text_config import NESTED


class ReadConfig(Mapping[str, Any]):
    """A config that remembers which of its keys were asked for, in the language model's part too.

    Whoever walks over all keys has asked for all of them.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._content = {
            key: ReadConfig(value) if key in NESTED and isinstance(value, Mapping) else value
            for key, value in config.items()
        }
        self._asked: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self._asked.add(key)
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        self._asked.update(self._content)
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def asked(self) -> dict[str, Any]:
        """The config with only what was asked for."""
        return {
            key: value.asked() if isinstance(value, ReadConfig) else value
            for key, value in self._content.items()
            if key in self._asked
        }
