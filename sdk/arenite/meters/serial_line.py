# SPDX-License-Identifier: Apache-2.0
"""Meters at the end of a serial line: opening, options in the source's name, time stamps from the sample count."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy.typing as npt

from arenite.device.streams import SerialStream
from arenite.errors import UsageError
from arenite.meters.base import Meter, Samples

Array = npt.NDArray[Any]

__all__ = ["Clock", "Line", "LineMeter", "drain", "millivolts", "open_line", "options_of", "read_until"]


class Line(Protocol):
    """What a meter's bytes come from."""

    def read(self, timeout_s: float) -> bytes:
        """Bytes that arrived; empty after `timeout_s`."""

    def close(self) -> None:
        """Frees it."""


AnyLine = TypeVar("AnyLine", bound=Line)


class LineMeter(Meter, Generic[AnyLine]):
    """A meter that sends by itself: `start` opens `_line`, `stop` closes it and leaves None."""

    poll_s = 0.0

    def __init__(self) -> None:
        self._line: AnyLine | None = None

    @abstractmethod
    def decode(self, received: bytes, arrived_s: float) -> Samples:
        """Bytes, which may be cut anywhere, as samples."""

    def read(self) -> Samples:
        """What arrived."""
        if self._line is None:
            return Samples.none()
        received = self._line.read(0.05)
        return self.decode(received, time.perf_counter()) if received else Samples.none()


def options_of(argument: str, allowed: tuple[str, ...], source: str) -> tuple[str, dict[str, str]]:
    """`PORT?name=value&name=value` as port and options.

    Raises:
        UsageError: No port, or an option that is not in `allowed`.
    """
    port, _, query = argument.partition("?")
    options = dict(word.partition("=")[::2] for word in query.split("&") if word)
    unknown = sorted(set(options) - set(allowed))
    if not port or unknown:
        what = f"unknown option '{unknown[0]}'" if unknown else "no port is named"
        raise UsageError(what, where=source, cure=f"Write {source}:PORT?{'&'.join(f'{n}=...' for n in allowed)}.")
    return port, options


def millivolts(options: Mapping[str, str], low: int, high: int, source: str) -> int:
    """The supply voltage, which a meter of current cannot know.

    Raises:
        UsageError: It is missing or out of range.
    """
    text = options.get("mv", "")
    if not text.isdecimal() or not low <= int(text) <= high:
        cure = f"Add ?mv=N with the supply's millivolts, {low} to {high}."
        raise UsageError("this meter measures current and needs the supply's voltage", where=source, cure=cure)
    return int(text)


def open_line(port: str, baud: int) -> SerialStream:
    """The port, open."""
    return SerialStream(port, baud)


def drain(line: SerialStream, quiet_s: float, limit_s: float) -> None:
    """Throws away what arrives until the line is quiet."""
    end_s = time.monotonic() + limit_s
    while line.read(quiet_s) and time.monotonic() < end_s:
        pass


def read_until(line: SerialStream, ending: bytes, limit_s: float) -> bytes:
    """What arrives up to and with `ending`; without it when it does not come within `limit_s`."""
    received = b""
    end_s = time.monotonic() + limit_s
    while ending not in received and time.monotonic() < end_s:
        received += line.read(0.05)
    return received


class Clock:
    """Time stamps for samples that come at a fixed rate in bursts.

    The first burst sets the origin. A burst that arrives before its stamps shows that the first one came late: its
    stamps are drawn together a little until they agree, and never go backwards. After a loss of unknown length the
    arrival says how much time went by.
    """

    _SLEW = 0.02
    _LATE_S = 0.1

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._next_s: float | None = None

    def stamps(self, indices: Array, arrived_s: float, lost: bool) -> Array:
        """When each of some samples was taken.

        Args:
            indices: Their places from 0 on, with places left free for those that are known to be lost.
            arrived_s: When the last one arrived.
            lost: Some were lost, perhaps more than is known.
        """
        count = int(indices[-1]) + 1
        length_s = count * self._period_s
        if self._next_s is None or (lost and arrived_s - self._next_s - length_s > self._LATE_S):
            self._next_s = arrived_s - length_s
        early_s = self._next_s + length_s - arrived_s
        step_s = self._period_s * (1 - min(self._SLEW, max(0.0, early_s / length_s)))
        times_s: Array = self._next_s + indices * step_s
        self._next_s += count * step_s
        return times_s
