"""The trimmed objects of one kind, by key; older news never overwrites newer."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")
GRAVES = 1000  # deletions remembered, against answers to our writes that arrive after them


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One object before and after; None where it did not exist."""

    key: str
    old: T | None
    new: T | None


def key_of(raw: Mapping[str, Any]) -> str:
    """`namespace/name`, or the bare name of a cluster-scoped object."""
    metadata = raw["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


class Store(Generic[T]):
    """What one watch knows; safe for threads, values are never changed in place."""

    def __init__(self, trim: Callable[[Mapping[str, Any]], T]) -> None:
        self._trim = trim
        self._lock = threading.Lock()
        self._items: dict[str, T] = {}
        self._versions: dict[str, int] = {}
        self._fresh: dict[str, tuple[T, int]] | None = None  # the list in progress
        self._newer_than_list: set[str] = set()
        self._listed_version = 0
        self._graves: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> dict[str, T]:
        """A snapshot: key to value."""
        with self._lock:
            return dict(self._items)

    def value(self, key: str) -> T | None:
        """One value; None where unknown."""
        return self._items.get(key)

    def put(self, raw: Mapping[str, Any]) -> Change[T] | None:
        """The object is stored; None where that changed nothing that matters."""
        key, version = key_of(raw), _version(raw)
        with self._lock:
            if version < self._newest(key):
                return None
            self._newer_than_list.add(key)
            value = self._read(key, raw)
            return self._drop(key) if value is None else self._set(key, value, version)

    def remove(self, raw: Mapping[str, Any]) -> Change[T] | None:
        """The object is gone, unless a newer one of the same name is known already."""
        key, version = key_of(raw), _version(raw)
        with self._lock:
            if version < self._newest(key):
                return None
            self._newer_than_list.add(key)
            self._graves[key] = version
            while len(self._graves) > GRAVES:
                self._graves.popitem(last=False)
            return self._drop(key)

    def begin_list(self) -> None:
        """A whole new list begins; until its end what is known stays in force."""
        with self._lock:
            self._fresh = {}
            self._newer_than_list.clear()

    def add_listed(self, raw: Mapping[str, Any]) -> None:
        """One listed object, trimmed at once so that no page outlives its reading."""
        key = key_of(raw)
        value = self._read(key, raw)
        if self._fresh is not None and value is not None:
            self._fresh[key] = (value, _version(raw))

    def end_list(self, position: str) -> list[Change[T]]:
        """The list is in force; what was learnt while it was read is newer and stays."""
        with self._lock:
            self._listed_version = _number(position)
            for key in [key for key, dug in self._graves.items() if dug <= self._listed_version]:
                del self._graves[key]
            fresh, self._fresh = self._fresh or {}, None
            keep = self._newer_than_list
            changes = [
                self._set(key, value, version)
                for key, (value, version) in fresh.items()
                if key not in keep
            ]
            changes += [
                self._drop(key) for key in list(self._items) if key not in fresh and key not in keep
            ]
        return [change for change in changes if change is not None]

    def _read(self, key: str, raw: Mapping[str, Any]) -> T | None:
        """The trimmed object; None of one we cannot read: it must not hide all others."""
        try:
            return self._trim(raw)
        except Exception:
            log.exception("%s cannot be read and is left out", key)
            return None

    def _newest(self, key: str) -> int:
        """The version below which news of a key is old; what no list showed is gone."""
        known = self._versions.get(key)
        return known if known is not None else self._graves.get(key, self._listed_version)

    def _set(self, key: str, value: T, version: int) -> Change[T] | None:
        old = self._items.get(key)
        self._versions[key] = version
        if old == value:
            return None
        self._items[key] = value
        return Change(key, old, value)

    def _drop(self, key: str) -> Change[T] | None:
        self._versions.pop(key, None)
        old = self._items.pop(key, None)
        return Change(key, old, None) if old is not None else None


def _version(raw: Mapping[str, Any]) -> int:
    """The object's resource version as a number: those of one kind can be compared."""
    return _number(str(raw["metadata"].get("resourceVersion") or ""))


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
