# SPDX-License-Identifier: Apache-2.0
"""Strict reading of JSON objects: each mistake is a ContractError that names the field."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from arenite.errors import ContractError

__all__ = ["Fields", "wrong"]

_LARGEST = sys.float_info.max


_CURE = "Convert the model again, or pass a corrected contract."


def wrong(
    field: str, expected: str, got: object, where: str | None = None, *, cure: str = _CURE
) -> ContractError:
    """The error for a field whose value is not as it must be."""
    shown = repr(got)
    shown = shown if len(shown) <= 60 else shown[:59] + "…"
    return ContractError(
        f"contract field '{field}' must be {expected}, not {shown}",
        where=where,
        cure=cure,
    )


class Fields:
    """Takes typed values out of one JSON object; `end` refuses what nobody asked for.

    Args:
        content: The parsed JSON value, which must be an object.
        path: Name of the object in messages, empty for the whole contract.
        where: File that the contract came from.
        problems: Where `part` leaves mistakes; shared with the objects inside.
    """

    def __init__(
        self,
        content: object,
        path: str = "",
        where: str | None = None,
        problems: list[ContractError] | None = None,
    ) -> None:
        self._path = path
        self._where = where
        self.problems = [] if problems is None else problems
        if not isinstance(content, Mapping):
            raise wrong(path or "(whole)", "a JSON object", content, where)
        self._content = content
        self._taken: set[str] = set()

    def part(self, read: Callable[[], Any]) -> Any:
        """What `read` gives; after a mistake in it None, so that the mistakes of other parts are found, too."""
        try:
            return read()
        except ContractError as error:
            self.problems.append(error)
            return None

    def _name(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def wrong(self, key: str, expected: str, got: object) -> ContractError:
        """The error for `key` of this object."""
        return wrong(self._name(key), expected, got, self._where)

    def take(self, key: str) -> Any:
        """The raw value, which must be there."""
        self._taken.add(key)
        if key not in self._content:
            raise ContractError(
                f"contract field '{self._name(key)}' is missing",
                where=self._where,
                cure=_CURE,
            )
        return self._content[key]

    def text(self, key: str, choices: Sequence[str] | None = None) -> str:
        """A string, one of `choices` when given."""
        value = self.take(key)
        if not isinstance(value, str):
            raise self.wrong(key, "a text", value)
        if choices is not None and value not in choices:
            raise self.wrong(key, "one of " + ", ".join(choices), value)
        return value

    def integer(self, key: str, low: int, high: int) -> int:
        """An integer within low..high."""
        return self._integer(key, self.take(key), low, high)

    def _integer(self, key: str, value: object, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(key, f"an integer within {low}..{high}", value)
        return value

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.take(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false", value)
        return value

    def integers(self, key: str, low: int, high: int) -> tuple[int, ...]:
        """A list of integers within low..high."""
        return tuple(self._integer(f"{key}[{i}]", v, low, high) for i, v in enumerate(self._list(key)))

    def number(self, key: str, *, positive: bool = False) -> float:
        """A finite number."""
        return self._number(key, self.take(key), positive)

    def _number(self, key: str, value: object, positive: bool) -> float:
        expected = "a finite number above 0" if positive else "a finite number"
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _LARGEST:
            raise self.wrong(key, expected, value)
        if positive and value <= 0:
            raise self.wrong(key, expected, value)
        return float(value)

    def numbers(self, key: str, *, positive: bool = False) -> tuple[float, ...]:
        """A list of finite numbers."""
        return tuple(self._number(f"{key}[{i}]", v, positive) for i, v in enumerate(self._list(key)))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        values = self._list(key)
        for i, value in enumerate(values):
            if not isinstance(value, str):
                raise self.wrong(f"{key}[{i}]", "a text", value)
        return tuple(values)

    def _list(self, key: str) -> list[Any]:
        value = self.take(key)
        if not isinstance(value, list):
            raise self.wrong(key, "a list", value)
        return value

    def child(self, key: str) -> Fields:
        """The object under `key`."""
        return Fields(self.take(key), self._name(key), self._where, self.problems)

    def optional_child(self, key: str) -> Fields | None:
        """The object under `key`, None when it is null."""
        return None if self.take(key) is None else self.child(key)

    def children(self, key: str) -> list[Fields]:
        """The objects of the list under `key`."""
        return [
            Fields(v, f"{self._name(key)}[{i}]", self._where, self.problems) for i, v in enumerate(self._list(key))
        ]

    def strings_by_name(self, key: str) -> dict[str, str]:
        """An object whose values are all strings."""
        child = self.child(key)
        return {name: child.text(name) for name in child._content}

    def end(self) -> None:
        """Refuse fields that nobody took."""
        for key in self._content:
            if key not in self._taken:
                raise ContractError(
                    f"contract field '{self._name(str(key))}' is unknown",
                    where=self._where,
                    cure="A newer version may have written it: pip install --upgrade arenite",
                )
