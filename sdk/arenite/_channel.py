# SPDX-License-Identifier: Apache-2.0
"""A hand-over from one thread to another that either side can end."""

from __future__ import annotations

import threading
import warnings
from typing import Generic, TypeVar

__all__ = ["Channel", "end_feeder"]

T = TypeVar("T")
# A source that does not give its frame in this time after the end is left to itself.
_PATIENCE_S = 5.0


def end_feeder(thread: threading.Thread, source: str) -> None:
    """Wait for a thread that was told to end; one whose source never returns is left behind with a warning."""
    thread.join(_PATIENCE_S)
    if thread.is_alive():
        text = f"the source {source} has not returned for {_PATIENCE_S:g} s; its thread is left behind"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


class Channel(Generic[T]):
    """Items in order, from hand to hand: one thread puts, and goes on when the other has taken it."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._changed = threading.Condition()
        self._finished = False
        self._error: BaseException | None = None

    def put(self, item: T) -> bool:
        """Wait until the item is taken; False when the getter has closed the channel instead."""
        with self._changed:
            if not self._finished:
                self._items.append(item)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._finished or not self._items)
            return not self._finished

    def get(self) -> T | None:
        """The next item; None at the end. What the putter failed with is raised once, after the items before it."""
        with self._changed:
            self._changed.wait_for(lambda: self._finished or self._items)
            if self._items:
                item = self._items.pop()
                self._changed.notify_all()
                return item
            error, self._error = self._error, None
        if error is not None:
            raise error
        return None

    def finish(self, error: BaseException | None = None) -> None:
        """The putter has no more, or failed; what waits can still be taken."""
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    def close(self) -> None:
        """The getter wants no more: what waits is dropped and the putter's `put` gives False."""
        with self._changed:
            self._finished, self._error = True, None
            self._items.clear()
            self._changed.notify_all()
