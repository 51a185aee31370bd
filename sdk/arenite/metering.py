# SPDX-License-Identifier: Apache-2.0
"""Records a meter over a `with` block and gives the energy of an inference from it.

    with arenite.meter() as meter:
        for picture in pictures:
            session.classify(picture)
            meter.tick()
    print(meter.per_inference())

Idle is measured first, for `idle_s`, and its mean power is subtracted. The energy of the block is the meter's own
integral. For the confidence interval the block is cut, between inferences, into windows of at least 0.2 s and ten
samples; their energies an inference have a mean and a standard error, to which the idle's standard error is added, and
Student's t for the smaller number of windows gives 95 %. That holds for noise that is shorter than a window; what
drifts over the whole run, such as temperature, and the meter's own accuracy are not in it.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from arenite.energy import Energy
from arenite.errors import AreniteError, UsageError
from arenite.meters.base import JOULES, WATTS, Meter, Samples
from arenite.meters.trace import Portion, Trace, join

__all__ = ["Recording", "Section", "student_95"]

# Counters tick about once a millisecond: a shorter block would be a few ticks' worth of guesswork.
MIN_BLOCK_S = 0.1
_MIN_WINDOW_S = 0.2
_MIN_SAMPLES = 10
_MIN_WINDOWS, _MAX_WINDOWS = 5, 40
# Idle is measured for so many windows, but no longer than this unless it is asked for.
_IDLE_WINDOWS, _IDLE_LONGEST_S = 6, 15.0
# A meter at a serial line has so long to send its first sample, and its last ones.
_PATIENCE_S = 3.0
# So much of a block may go unseen before its energy is a lower bound.
_UNSEEN = 0.002
# A smaller part of the energy is the rounding of the subtraction.
_LEAST = 1e-6
# Two-sided 95 % points of Student's t for 1 to 10 degrees of freedom; then the expansion below is within 0.1 %.
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def student_95(degrees: int) -> float:
    """Two-sided 95 % point of Student's t for at least one degree of freedom."""
    return _T95[degrees - 1] if degrees <= len(_T95) else 1.96 + 2.372 / degrees + 2.82 / degrees**2


class Section:
    """A part of a recording in which inferences run; `tick` after each one."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.start_s = time.perf_counter()
        self.end_s: float | None = None
        self.ticks_s: list[float] = []

    def tick(self) -> None:
        """One inference is done."""
        self.ticks_s.append(time.perf_counter())

    def narrow(self, start_s: float, end_s: float) -> None:
        """Let only this part count, between two readings of `time.perf_counter` within the section."""
        self.start_s, self.end_s = start_s, end_s

    def per_inference(self, count: int | None = None) -> Energy:
        """Energy of one inference.

        Args:
            count: How many ran; None takes the number of ticks.

        Raises:
            UsageError: Neither a count nor a tick.
        """
        return self._recording.energy_of(self, count)


@dataclass(frozen=True)
class _Mean:
    """A mean with its standard error over `windows` windows."""

    value: float
    error: float
    windows: int


class Recording:
    """A meter read by a thread of its own while the block runs.

    Args:
        start: Gives a started meter.
        idle_s: How long to measure idle first; None takes six windows (1.2 s, longer for a slow meter, at most 15 s);
            0 does not.
        strict: A meter that cannot be started is an error; otherwise figures are unknown and say why.
        fallback: The figure when there is no meter.
    """

    def __init__(
        self,
        start: Callable[[], Meter],
        *,
        idle_s: float | None = None,
        strict: bool = False,
        fallback: Energy | None = None,
    ) -> None:
        self._start, self._idle_s, self._strict, self._fallback = start, idle_s, strict, fallback
        self._meter: Meter | None = None
        self._problem = ""
        self._lost = ""
        self._blocks: list[Samples] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="arenite-meter", daemon=True)
        self._idle: tuple[float, float] | None = None
        self._main: Section | None = None

    @property
    def source(self) -> str | None:
        """The meter's name; None without one."""
        return None if self._meter is None else self._meter.source

    def __enter__(self) -> Recording:
        try:
            self._meter = self._start()
        except AreniteError as error:
            if self._strict:
                raise
            self._problem = str(error)
        if self._meter is not None:
            self._thread.start()
            try:
                self._begin(self._meter)
            except BaseException:
                self._finish()
                raise
        self._main = Section(self)
        return self

    def _begin(self, meter: Meter) -> None:
        self._settle()
        if not self._blocks and not self._lost:
            self._lost = "it sends nothing"
        if self._lost:
            if self._strict:
                raise meter.error(self._lost, "Check its cable and that it is set to send.")
            return
        usual_s = min(_IDLE_LONGEST_S, _IDLE_WINDOWS * _shortest_s(meter))
        idle_s = usual_s if self._idle_s is None else self._idle_s
        if idle_s > 0:
            start_s = time.perf_counter()
            time.sleep(idle_s)
            self._settle()
            self._idle = (start_s, time.perf_counter())

    def __exit__(self, *_: object) -> None:
        if self._main is not None:
            self._close(self._main)
        if self._meter is not None:
            self._finish()

    def _finish(self) -> None:
        self._over.set()
        self._thread.join()
        if self._meter is not None:
            # A meter that went away cannot be told to stop.
            with contextlib.suppress(AreniteError, OSError):
                self._meter.stop()

    def _poll(self) -> None:
        assert self._meter is not None
        while not self._over.wait(self._meter.poll_s) and not self._lost:
            self._read()

    def _read(self) -> None:
        assert self._meter is not None
        with self._lock:
            try:
                block = self._meter.read()
            except (AreniteError, OSError) as error:
                self._lost = str(error)
                return
            if len(block.times_s):
                self._blocks.append(block)

    def _settle(self) -> None:
        """Waits until the samples reach the present."""
        meter, now_s = self._meter, time.perf_counter()
        if meter is None:
            return
        if meter.poll_s > 0:
            self._read()
        while not self._lost and time.perf_counter() - now_s < _PATIENCE_S:
            if self._blocks and self._blocks[-1].times_s[-1] >= now_s:
                return
            time.sleep(0.005)

    def _close(self, section: Section) -> None:
        if section.end_s is None:
            section.end_s = time.perf_counter()
            self._settle()

    @contextlib.contextmanager
    def section(self) -> Iterator[Section]:
        """A part of the block that is accounted by itself."""
        self._settle()
        section = Section(self)
        try:
            yield section
        finally:
            self._close(section)

    def tick(self) -> None:
        """One inference is done."""
        self._whole().tick()

    def per_inference(self, count: int | None = None) -> Energy:
        """Energy of one inference over the whole block; see `Section.per_inference`."""
        return self._whole().per_inference(count)

    def _whole(self) -> Section:
        if self._main is None:
            raise UsageError("the recording has not begun", cure="Use it in a with statement.")
        return self._main

    def _trace(self) -> Trace:
        assert self._meter is not None
        with self._lock:
            return Trace(self._meter.quantity, join(self._blocks))

    def energy_of(self, section: Section, count: int | None) -> Energy:
        """Energy of one inference in a section; see `Section.per_inference`."""
        inferences = len(section.ticks_s) if count is None else count
        if inferences < 1:
            raise UsageError("no inference was counted", cure="Call tick() after each one, or give their number.")
        if self._meter is None:
            return self._fallback or Energy(None, "unknown", self._problem)
        end_s = time.perf_counter() if section.end_s is None else section.end_s
        trace = self._trace()
        whole = trace.portion(section.start_s, end_s)
        problem = self._judge(whole, end_s - section.start_s)
        if problem:
            return Energy(None, "unknown", f"{self._meter.source}: {problem}", rail=self._meter.rail)
        windows = _windows(trace, _edges(section, end_s, inferences, self._meter))
        return self._energy(whole, end_s - section.start_s, inferences, windows, self._idle_mean(trace))

    def _judge(self, whole: Portion, duration_s: float) -> str:
        """Why a section's samples give no figure; empty when they do."""
        assert self._meter is not None
        if duration_s < MIN_BLOCK_S:
            return f"the measured time of {duration_s:.3f} s is too short, at least {MIN_BLOCK_S:g} s are needed"
        if whole.seen_s < duration_s / 2:
            lost = f" ({self._lost})" if self._lost else ""
            return f"the meter saw {whole.seen_s:.3g} of {duration_s:.3g} s{lost}"
        if self._meter.quantity == WATTS and whole.samples < _MIN_SAMPLES:
            needed_s = _MIN_SAMPLES * self._meter.interval_s
            return f"{whole.samples} samples are too few: the measured time was too short, {needed_s:g} s are needed"
        if self._meter.quantity == JOULES and whole.joules <= 0:
            return "the counter did not move: the measured time was too short"
        return ""

    def _idle_mean(self, trace: Trace) -> _Mean | None:
        """Idle power in watts; None when it was not measured well enough."""
        assert self._meter is not None
        if self._idle is None:
            return None
        start_s, end_s = self._idle
        whole = trace.portion(start_s, end_s)
        if self._judge(whole, end_s - start_s) or whole.seen_s < (1 - 0.05) * (end_s - start_s):
            return None
        edges = np.linspace(start_s, end_s, 1 + _count(end_s - start_s, self._meter))
        powers_w = [part.joules / part.seen_s for a, b in pairwise(edges) if (part := trace.portion(a, b)).seen_s > 0]
        return _mean(np.array(powers_w), whole.joules / whole.seen_s)

    def _energy(
        self,
        whole: Portion,
        duration_s: float,
        inferences: int,
        windows: list[tuple[Portion, float]],
        idle: _Mean | None,
    ) -> Energy:
        assert self._meter is not None
        idle_w = 0.0 if idle is None else idle.value
        net_j = whole.joules - idle_w * whole.seen_s
        source = f"{self._meter.source}, {self._meter.rail}, over {inferences} inferences"
        source += f", idle of {idle_w:.3g} W subtracted" if idle else ", idle not subtracted"
        if self._lost:
            source += f"; the meter was lost: {self._lost}"
        peak_w, average_w = whole.peak_w, whole.joules / whole.seen_s
        known: dict[str, Any] = {
            "source": source,
            "inferences": inferences,
            "gross_mj": 1e3 * whole.joules / inferences,
            "average_w": average_w,
            "peak_w": peak_w,
            "idle_w": None if idle is None else idle_w,
            "rail": self._meter.rail,
            "lower_bound": whole.seen_s < (1 - _UNSEEN) * duration_s,
        }
        if net_j <= _LEAST * whole.joules:
            known["source"] += "; the load drew no more than idle"
            return Energy(None, "unknown", **known)
        each = np.array([1e3 * (part.joules - idle_w * part.seen_s) / count for part, count in windows])
        mean = _mean(each, 1e3 * net_j / inferences)
        return Energy(
            mean.value,
            "measured",
            idle_subtracted=idle is not None,
            interval_mj=_interval(mean, idle, 1e3 * duration_s / inferences),
            windows=mean.windows,
            **known,
        )


def _count(duration_s: float, meter: Meter) -> int:
    """How many windows a block is cut into."""
    return max(1, min(_MAX_WINDOWS, int(duration_s / _shortest_s(meter))))


def _shortest_s(meter: Meter) -> float:
    """The shortest window that a meter's samples fill."""
    return max(_MIN_WINDOW_S, _MIN_SAMPLES * meter.interval_s)


def _edges(section: Section, end_s: float, inferences: int, meter: Meter) -> list[tuple[float, float, float]]:
    """Windows as start, end and inferences: cut at ticks, or evenly when the ticks are not those inferences."""
    count = _count(end_s - section.start_s, meter)
    if len(section.ticks_s) != inferences:
        edges = np.linspace(section.start_s, end_s, count + 1)
        return [(float(a), float(b), inferences / count) for a, b in pairwise(edges)]
    times_s = [section.start_s, *section.ticks_s]
    targets = np.linspace(section.start_s, section.ticks_s[-1], count + 1)[1:-1]
    cuts = sorted({0, *(int(i) for i in np.searchsorted(times_s, targets)), len(times_s) - 1})
    return [(times_s[a], times_s[b], float(b - a)) for a, b in pairwise(cuts)]


def _windows(trace: Trace, edges: list[tuple[float, float, float]]) -> list[tuple[Portion, float]]:
    """The windows that the meter saw from end to end."""
    parts = [(trace.portion(a, b), b - a, count) for a, b, count in edges]
    return [(part, count) for part, length_s, count in parts if part.seen_s > (1 - 0.05) * length_s]


def _mean(values: Any, value: float) -> _Mean:
    count = len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(count) if count > 1 else math.inf
    return _Mean(value, error, count)


def _interval(mean: _Mean, idle: _Mean | None, ms_each: float) -> tuple[float, float] | None:
    """95 % of an energy in millijoules from which idle power was subtracted for `ms_each` milliseconds."""
    windows = mean.windows if idle is None else min(mean.windows, idle.windows)
    if windows < _MIN_WINDOWS:
        return None
    idle_error = 0.0 if idle is None else idle.error * ms_each
    half = student_95(windows - 1) * math.hypot(mean.error, idle_error)
    return mean.value - half, mean.value + half
