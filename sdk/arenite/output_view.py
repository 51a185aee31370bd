# SPDX-License-Identifier: Apache-2.0
"""Read-only views on a session's outputs that go stale."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import UsageError

__all__ = ["OutputView", "StaleOutputError", "why_unreadable"]

Array = npt.NDArray[Any]


class StaleOutputError(UsageError):
    """An output view was read before the session's first run, or after the session ran again."""


def why_unreadable(generation: int, born: int) -> tuple[str, StaleOutputError] | None:
    """Why an output cannot be read, in short and as the error to raise; None when it can.

    Args:
        generation: The session's: 0 before its first run, odd while a run lasts and for good when it fails.
        born: What that was when the output was taken.
    """
    cure = "Fill session.input, call session.run(), then read session.output."
    if generation == 0:
        short, what = "not run yet", "the session has not run yet, so there is no output"
    elif born % 2:
        short, what = "run did not finish", "the last run did not finish, so there is no output"
    elif generation != born:
        short, what = "stale", "the output is stale: the session ran again after it was taken"
        cure = "Take session.output after the run, or keep session.output.copy()."
    else:
        return None
    return short, StaleOutputError(what, cure=cure)


class OutputView(np.lib.mixins.NDArrayOperatorsMixin):
    """Read-only view on an output tensor, good until the next run.

    It lives on the engine's memory and keeps the engine alive. Reading it before the first run or after the
    next one raises `StaleOutputError` instead of showing what is no answer of this inference; `copy()` and
    `numpy.asarray` give arrays of your own. Everything that an array can do works on it, on a copy.
    """

    def __init__(self, view: Array, generation: list[int]) -> None:
        self._view = view
        self._generation = generation
        self._born = generation[0]

    def _fresh(self) -> Array:
        if reason := why_unreadable(self._generation[0], self._born):
            raise reason[1]
        return self._view

    def _read(self, read: Callable[[Array], Any]) -> Any:
        """What `read` gives, which must be no view; a run in another thread meanwhile makes it stale."""
        found = read(self._fresh())
        self._fresh()
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor, readable when stale too."""
        return tuple(self._view.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the tensor, readable when stale too."""
        return self._view.dtype

    def copy(self) -> Array:
        """An array of your own."""
        copied: Array = self._read(np.array)
        return copied

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an output view cannot be shared: it goes stale at the next run; use a copy")
        copied: Array = self._read(lambda view: np.array(view, dtype))
        return copied

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(out, OutputView) for out in kwargs.get("out", ())):
            raise ValueError("an output view is read-only")
        plain = [value.copy() if isinstance(value, OutputView) else value for value in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._read(lambda view: view[key].copy())

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ValueError("an output view is read-only")

    def __len__(self) -> int:
        return len(self._view)

    def __bool__(self) -> bool:
        return bool(self._read(bool))

    def __int__(self) -> int:
        return int(self._read(np.ndarray.item))

    def __float__(self) -> float:
        return float(self._read(np.ndarray.item))

    def __complex__(self) -> complex:
        return complex(self._read(np.ndarray.item))

    def __index__(self) -> int:
        return operator.index(self._read(np.ndarray.item))

    def __contains__(self, value: object) -> bool:
        return bool(self._read(lambda view: value in view))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.copy())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        copied = self.copy()
        copied.flags.writeable = False
        return getattr(copied, name)

    def __repr__(self) -> str:
        if reason := why_unreadable(self._generation[0], self._born):
            return f"OutputView({reason[0]}, {self.dtype}{list(self.shape)})"
        return f"OutputView({self._view!r})"
