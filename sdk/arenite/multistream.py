# SPDX-License-Identifier: Apache-2.0
"""Several sources at the same time: one frame of each makes a set, and a set has a deadline.

    stream = arenite.MultiStream(session, ["v4l2:/dev/video0", "v4l2:/dev/video2"], deadline_ms=50)
    for frames in stream:
        print([frame.answer[0].text for frame in frames.answers], frames.reused)

Each source has a thread of its own, which prepares its frames; the thread that iterates runs the models, one frame
after the other. A set begins with the first new frame of any source and waits `timeout_ms` for the others. A source
that is later than that is represented by its last frame and its answer, which is counted.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any

from arenite._channel import end_feeder
from arenite.degrade import Chooser, as_chooser
from arenite.errors import FrameError, UsageError
from arenite.machine import Machine, machine
from arenite.pipeline import post_of
from arenite.pipeline_report import KEPT, allowed_misses, check_budget
from arenite.preparing import FrameAnswer, Prepared, answer, answered, frames_of, prepare
from arenite.replay import Lap
from arenite.session import Session
from arenite.sources import FrameSource, open_source
from arenite.thermal import ThermalReport, ThermalWatch
from arenite.timing import Percentiles, percentiles

__all__ = ["MultiStream", "MultiStreamReport", "SetAnswer"]

_STAGES = ("read", "decode", "resize", "invoke", "post", "second")


@dataclass(frozen=True)
class SetAnswer:
    """One set.

    Attributes:
        number: From 0.
        answers: Of each source, in their order.
        reused: Whether a source was late, so that its last frame stands for it.
        spread_ms: Between the first and the last new frame of the set.
        latency_ms: From the set's first new frame to its last answer.
    """

    number: int
    answers: tuple[FrameAnswer, ...]
    reused: tuple[bool, ...]
    spread_ms: float
    latency_ms: float


@dataclass(frozen=True)
class MultiStreamReport:
    """A multi-stream's run; percentiles are over the last 10,000 sets.

    Attributes:
        sources: Their names.
        sets: How many were answered.
        reused: How often each source was late.
        source_skipped: Frames of each live source that were never taken.
        duration_s: Of the run.
        latency: Of a set.
        spread: Of a set.
        stages: Of one frame.
        deadline_ms: What was asked for.
        misses: Sets that were later; None without a deadline.
        met: No more were later than the percentile allows; None without a deadline.
        decisions: Of the models' choosers, together.
        thermal: Temperatures, frequencies, throttling; None when it was not watched.
    """

    sources: tuple[str, ...]
    machine: Machine
    sets: int
    reused: tuple[int, ...]
    source_skipped: tuple[int, ...]
    duration_s: float
    latency: Percentiles | None
    spread: Percentiles | None
    stages: dict[str, Percentiles]
    deadline_ms: float | None
    misses: int | None
    met: bool | None
    decisions: dict[str, int]
    thermal: ThermalReport | None


class _Gate:
    """A place for one frame of each source. Their threads put, one thread gathers."""

    def __init__(self, count: int) -> None:
        self._changed = threading.Condition()
        self._places: list[Prepared | None] = [None] * count
        self._ended = [False] * count
        self._error: BaseException | None = None
        self._closed = False

    def put(self, place: int, frame: Prepared) -> bool:
        """Waits until the frame is taken; False once nobody gathers any more."""
        with self._changed:
            self._places[place] = frame
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._places[place] is not frame)
            return not self._closed

    def end(self, place: int, error: BaseException | None = None) -> None:
        """A source has no more, or failed."""
        with self._changed:
            self._ended[place] = True
            self._error = self._error or error
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody gathers any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def gather(self, all_s: float, first_s: float) -> list[Prepared | None] | None:
        """The new frame of each source, None for one that is late; None at the end.

        Args:
            all_s: How long to wait for all once the first is there.
            first_s: How long to wait for the first.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._over() or any(self._places), first_s)
            self._changed.wait_for(lambda: self._over() or all(self._places), all_s)
            if self._error is not None:
                raise self._error
            if self._over():
                return None
            taken, self._places = self._places, [None] * len(self._places)
            self._changed.notify_all()
            return taken

    def _over(self) -> bool:
        gone = any(ended and place is None for ended, place in zip(self._ended, self._places, strict=True))
        return self._error is not None or gone


@dataclass
class _Record:
    """What the report is made of."""

    sets: int = 0
    misses: int = 0
    duration_s: float = 0.0
    reused: list[int] = field(default_factory=list)
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    spreads_ms: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    laps: deque[Lap] = field(default_factory=lambda: deque(maxlen=KEPT))

    def add(self, found: SetAnswer, laps: Sequence[Lap], deadline_ms: float | None) -> None:
        """A set was answered."""
        self.sets += 1
        self.misses += deadline_ms is not None and found.latency_ms > deadline_ms
        self.reused = [count + late for count, late in zip(self.reused, found.reused, strict=True)]
        self.latencies_ms.append(found.latency_ms)
        self.spreads_ms.append(found.spread_ms)
        self.laps.extend(laps)


class MultiStream:
    """Runs once over its sources, until the first of them ends; iterate over it.

    Args:
        models: One session or chooser for all sources, or one for each.
        sources: As for `Pipeline`; they are closed at the end.
        deadline_ms: What a set may take, from its first new frame to its last answer.
        percentile: So many per cent of the sets must keep it.
        timeout_ms: How long a set waits for the sources that are late.
        patience_s: No frame of any source for so long, or none of one at the start, is an error.
        post: Makes the answer of a session that has run; None gives labels or boxes by the contract.
        top_k: Labels at most.
        threshold: The lowest score that counts.
        thermal: Watch temperature, frequency and throttling.

    Raises:
        UsageError: An argument makes no sense, or there is no such source.
        ContractError: A model's contract does not say how a picture becomes the input.
    """

    def __init__(
        self,
        models: Session | Chooser | Sequence[Session | Chooser],
        sources: Sequence[Any],
        *,
        deadline_ms: float | None = None,
        percentile: float = 99.0,
        timeout_ms: float = 100.0,
        patience_s: float = 10.0,
        post: Callable[[Session], Any] | None = None,
        top_k: int = 5,
        threshold: float | None = None,
        thermal: bool = True,
    ) -> None:
        problem = check_budget(deadline_ms, percentile)
        if isinstance(sources, (str, bytes)) or not sources:
            problem = "no list of sources"
        elif not 0 <= timeout_ms < math.inf or not 0 < patience_s < math.inf:
            problem = f"a time-out of {timeout_ms!r} ms and a patience of {patience_s!r} s"
        if problem:
            raise UsageError(problem, cure="Give sources, and times above 0.")
        given = models if isinstance(models, Sequence) else [models] * len(sources)
        if len(given) != len(sources):
            raise UsageError(f"{len(given)} models for {len(sources)} sources", cure="Give one, or one for each.")
        self._choosers = [as_chooser(model) for model in given]
        self._sessions = list(dict.fromkeys(s for chooser in self._choosers for s in chooser.sessions))
        for session in self._sessions:
            _ = session.preprocessor  # say now if there is none; it is made in this thread
        self._deadline_ms, self._percentile = deadline_ms, percentile
        self._timeout_s, self._patience_s = timeout_ms / 1e3, patience_s
        self._post = post_of(post, top_k, threshold)
        self._watch = ThermalWatch() if thermal else None
        self._record = _Record(reused=[0] * len(sources))
        self._started = False
        self._sources: list[FrameSource] = []
        try:
            for source in sources:
                self._sources.append(open_source(source))
        except BaseException:
            self._close()
            raise

    def __iter__(self) -> Iterator[SetAnswer]:
        """Sets in their order.

        Raises:
            FrameError: A stage or a source failed: once, with the frame's name.
            ConcurrentUseError: Another thread has a session.
        """
        if self._started:
            raise UsageError("a multi-stream runs once", cure="Make another one for another run.")
        self._started = True
        return self._run()

    def run(self) -> MultiStreamReport:
        """Go through the sources, drop the answers, give the report."""
        for _ in self:
            pass
        return self.report()

    def report(self) -> MultiStreamReport:
        """What was measured, so far or in the whole run."""
        record = self._record
        times = {stage: [getattr(lap, f"{stage}_ms") for lap in record.laps] for stage in _STAGES}
        decisions = sum((chooser.decisions for chooser in dict.fromkeys(self._choosers)), Counter[str]())
        return MultiStreamReport(
            sources=tuple(source.name for source in self._sources),
            machine=machine(),
            sets=record.sets,
            reused=tuple(record.reused),
            source_skipped=tuple(source.skipped for source in self._sources),
            duration_s=record.duration_s,
            latency=percentiles(record.latencies_ms) if record.sets else None,
            spread=percentiles(record.spreads_ms) if record.sets else None,
            stages={stage: percentiles(values) for stage, values in times.items() if any(values)},
            deadline_ms=self._deadline_ms,
            misses=None if self._deadline_ms is None else record.misses,
            met=None if self._deadline_ms is None else record.misses <= allowed_misses(record.sets, self._percentile),
            decisions=dict(decisions),
            thermal=None if self._watch is None else self._watch.report(),
        )

    def _close(self) -> None:
        for source in self._sources:
            source.close()

    def _run(self) -> Iterator[SetAnswer]:
        gate = _Gate(len(self._sources))
        threads = [
            threading.Thread(target=self._feed, args=(gate, place), name=f"arenite-feeder-{place}", daemon=True)
            for place in range(len(self._sources))
        ]
        with ExitStack() as stack:
            stack.callback(self._close)
            for session in self._sessions:
                stack.enter_context(session.held())
            if self._watch is not None:
                stack.enter_context(self._watch)
            for thread, source in zip(threads, self._sources, strict=True):
                stack.callback(end_feeder, thread, source.name)
                thread.start()
            stack.callback(self._close)
            stack.callback(gate.close)
            yield from self._sets(gate)

    def _sets(self, gate: _Gate) -> Iterator[SetAnswer]:
        start_s = time.perf_counter()
        last: list[FrameAnswer] = []
        for number in itertools.count():
            frames = gate.gather(self._timeout_s if last else self._patience_s, self._patience_s)
            if frames is None:
                return
            self._check_alive(frames, first=not last)
            fresh = [frame for frame in frames if frame is not None]
            last = [
                replace(last[i], skipped=True) if frame is None else self._answer(frame, i)
                for i, frame in enumerate(frames)
            ]
            given_s = [frame.given_s for frame in fresh]
            now_s = time.perf_counter()
            spread_ms, latency_ms = 1e3 * (max(given_s) - min(given_s)), 1e3 * (now_s - min(given_s))
            found = SetAnswer(number, tuple(last), tuple(frame is None for frame in frames), spread_ms, latency_ms)
            self._record.add(found, [frame.lap for frame in fresh], self._deadline_ms)
            self._record.duration_s = now_s - start_s
            yield found

    def _check_alive(self, frames: Sequence[Prepared | None], first: bool) -> None:
        silent = [i for i, frame in enumerate(frames) if frame is None]
        if silent and (first or len(silent) == len(frames)):
            what = f"no frame for {self._patience_s:g} s"
            cure = "Check the camera, or give more patience_s."
            raise FrameError(what, stage="source", frame=self._sources[silent[0]].name, cure=cure)

    def _answer(self, frame: Prepared, place: int) -> FrameAnswer:
        chooser = self._choosers[place]
        found = answer(frame, chooser, self._post)
        lap = frame.lap
        assert frame.session is not None
        chooser.learn(frame.session, lap.invoke_ms + lap.post_ms + lap.second_ms)
        return answered(frame, found, time.perf_counter())

    def _feed(self, gate: _Gate, place: int) -> None:
        try:
            with closing(frames_of(self._sources[place])) as frames:
                for frame, picture in frames:
                    frame.name = f"{self._sources[place].name}, {frame.name}"
                    prepare(frame, picture, self._choosers[place], lambda session: session.preprocessor.tensor())
                    if not gate.put(place, frame):
                        return
        except BaseException as error:
            gate.end(place, error)
        else:
            gate.end(place)
