# SPDX-License-Identifier: Apache-2.0
"""Reads a table of settings field by field, and names the field that is not as it must be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from arenite.errors import UsageError

__all__ = ["Table"]

T = TypeVar("T")


class Table:
    """One table of a file. Each reader names the field that is wrong; `end` refuses leftovers."""

    def __init__(self, path: Path, values: Mapping[str, Any], name: str = "") -> None:
        self._path, self._values, self._name = path, dict(values), name

    def fail(self, key: str, problem: str) -> UsageError:
        cure = "Correct the board file"
        return UsageError(f"field `{self._name}{key}` {problem}", where=str(self._path), cure=cure)

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        if key not in self._values:
            if default is None:
                raise self.fail(key, "is missing")
            return default
        value = self._values.pop(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(key, f"must be {_KIND_NAMES[kind]}, not {value!r}")
        return value

    def number(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.take(key, int, default)
        if not low <= value <= high:
            raise self.fail(key, f"must be between {low} and {high}, not {value}")
        return value

    def word(self, key: str) -> str:
        value = self.take(key, str)
        if not value or not all(c.isascii() and (c.isalnum() or c in "-_") for c in value):
            raise self.fail(key, f"must be letters, digits, '-' and '_', not {value!r}")
        return value

    def choice(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        value = self.take(key, str, default)
        if value not in allowed:
            raise self.fail(key, f"must be one of {', '.join(allowed)}, not {value!r}")
        return value

    def address(self, key: str, needed: bool) -> int | None:
        if key not in self._values and not needed:
            return None
        return self.number(key, 0, 0xFFFFFFFF)

    def table(self, key: str, needed: bool = True) -> Table:
        values = self.take(key, dict, None if needed else {})
        return Table(self._path, values, f"{self._name}{key}.")

    def tables(self, key: str) -> list[Table]:
        values = self.take(key, list)
        if not values or not all(isinstance(value, dict) for value in values):
            raise self.fail(key, "must be one or more tables")
        return [Table(self._path, value, f"{self._name}{key}[{i}].") for i, value in enumerate(values)]

    def strings(self, key: str) -> tuple[str, ...]:
        values = self.take(key, list, [])
        if not all(isinstance(value, str) for value in values):
            raise self.fail(key, "must be a list of strings")
        return tuple(values)

    def writes(self, key: str) -> tuple[tuple[int, int], ...]:
        """Pairs of a register's address and the value to write."""
        values = self.take(key, list)
        for pair in values:
            words = isinstance(pair, list) and len(pair) == 2 and all(type(v) is int and v >> 32 == 0 for v in pair)
            if not words:
                raise self.fail(key, f"must be pairs [address, value] of 32-bit numbers, not {pair!r}")
        return tuple((address, value) for address, value in values)

    @property
    def keys(self) -> list[str]:
        """Fields not taken yet, sorted."""
        return sorted(self._values)

    def end(self) -> None:
        for key in self.keys:
            raise self.fail(key, "is unknown")


_KIND_NAMES: dict[type, str] = {
    int: "an integer",
    str: "a string",
    bool: "true or false",
    dict: "a table",
    list: "a list",
}
