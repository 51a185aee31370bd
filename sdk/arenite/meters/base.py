# SPDX-License-Identifier: Apache-2.0
"""What a meter is: a source of samples with time stamps, in joules since some moment or in watts.

A meter is started, read until it is stopped, and never fills in what it did not see: a reading that failed, a
counter that wrapped by an unknown amount or a sample that was lost on the way is a gap, and a gap adds no energy.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import MeterError

__all__ = ["CounterMeter", "JOULES", "Meter", "PowerMeter", "Samples", "WATTS", "number_in", "text_in"]

Array = npt.NDArray[Any]
# What the values of a meter's samples are.
JOULES, WATTS = "joules", "watts"
# What Linux drivers report for a channel without a sensor behind it.
_NO_SENSOR = -256
# The fastest wrap known is about a minute.
_LONGEST_S = 30.0


@dataclass(frozen=True)
class Samples:
    """A block of samples in order of time.

    Attributes:
        times_s: When, by `time.perf_counter`.
        values: Joules since some moment, or watts; NaN for a reading that failed. Joules of a later reading cover the
            time of a failed one, watts do not.
        gaps: True where the time since the previous sample was not seen.
    """

    times_s: Array
    values: Array
    gaps: Array

    @staticmethod
    def one(time_s: float, value: float, gap: bool) -> Samples:
        """A block of one sample."""
        return Samples(np.array([time_s]), np.array([value]), np.array([gap]))

    @staticmethod
    def none() -> Samples:
        """No samples."""
        return Samples(np.empty(0), np.empty(0), np.empty(0, bool))


class Meter(ABC):
    """One source of energy samples.

    Attributes:
        source: Its name as `arenite.meter(source=...)` takes it.
        rail: What it measures, for a person.
        quantity: `JOULES` or `WATTS`.
        interval_s: Time between two samples.
        poll_s: How long to wait between two reads; 0 when `read` itself waits.
    """

    source: str
    rail: str
    quantity: str
    interval_s: float
    poll_s: float

    def start(self) -> None:  # noqa: B027 - most need nothing
        """Makes it ready.

        Raises:
            MeterError: It cannot measure now; the message says why and what to do.
            MissingToolError: A package is missing.
        """

    @abstractmethod
    def read(self) -> Samples:
        """Samples since the last read.

        Raises:
            AreniteError: It went away and will not come back.
        """

    def stop(self) -> None:  # noqa: B027
        """Frees what `start` took."""

    def error(self, what: str, cure: str) -> MeterError:
        """An error that names this meter."""
        return MeterError(what, where=self.source, cure=cure)


class PowerMeter(Meter):
    """A sensor that is polled for its power."""

    quantity = WATTS

    def __init__(self, source: str, rail: str, interval_s: float) -> None:
        self.source, self.rail = source, rail
        self.interval_s = self.poll_s = interval_s

    @abstractmethod
    def power_w(self) -> float | None:
        """Watts now; None when the sensor gives no figure."""

    def read(self) -> Samples:
        """One sample, stamped in the middle of the reading; a failed one is a gap."""
        before_s = time.perf_counter()
        power_w = self.power_w()
        middle_s = (before_s + time.perf_counter()) / 2
        return Samples.one(middle_s, np.nan if power_w is None else power_w, power_w is None)


class CounterMeter(Meter):
    """One or several hardware counters of energy that are polled and added; each may wrap."""

    quantity = JOULES

    def __init__(self, source: str, rail: str, interval_s: float) -> None:
        self.source, self.rail = source, rail
        self.interval_s = self.poll_s = interval_s
        self._last: list[float | None] = []
        self._last_s = time.perf_counter()
        self._total_j = 0.0

    @abstractmethod
    def counters_j(self) -> list[float | None]:
        """Each counter now, in joules; None for one that cannot be read."""

    def wraps_j(self) -> list[float | None]:
        """How much each counter holds; None when that is not known."""
        return [None] * len(self._last)

    def read(self) -> Samples:
        """One sample. One that failed is NaN, and the next good one covers its time; a counter that wrapped by an
        unknown amount makes a gap."""
        now, time_s = self.counters_j(), time.perf_counter()
        if None in now:
            return Samples.one(time_s, np.nan, False)
        steps: list[float | None] = [0.0]
        if self._last:
            steps = [_step(*three) for three in zip(self._last, now, self.wraps_j(), strict=True)]
        # After a long absence nobody knows how often a counter wrapped.
        gap = None in steps or time_s - self._last_s > _LONGEST_S
        self._last, self._last_s = now, time_s
        self._total_j += 0.0 if gap else sum(step or 0.0 for step in steps)
        return Samples.one(time_s, self._total_j, gap)


def _step(before_j: float | None, after_j: float | None, wrap_j: float | None) -> float | None:
    """Joules between two readings at most one wrap apart; None when they do not say."""
    if before_j is None or after_j is None:
        return None
    if after_j >= before_j:
        return after_j - before_j
    return None if wrap_j is None else after_j - before_j + wrap_j


def text_in(path: Path) -> str | None:
    """What a small text file of the kernel says; None when it cannot be read."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def number_in(path: Path) -> int | None:
    """The whole number in a file of the kernel; None for none, and for the sentinel of a missing sensor."""
    text = text_in(path)
    try:
        value = None if text is None else int(text)
    except ValueError:
        return None
    return None if value == _NO_SENSOR else value
