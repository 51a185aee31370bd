# SPDX-License-Identifier: Apache-2.0
"""What a pipeline tells of its run: stages, latency budget, what to work on, decisions, heat."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arenite._text.lines import table
from arenite.degrade import Chooser
from arenite.engines import EngineReport
from arenite.machine import Machine, machine
from arenite.replay import FEEDING, INVOKING, Lap, Replayed, replay
from arenite.thermal import Pace, ThermalReport, pace_of
from arenite.timing import Percentiles, StageRow, percentiles

__all__ = ["Budget", "KEPT", "PipelineReport", "Recorder", "allowed_misses", "check_budget"]

# A loop that runs for weeks keeps its last frames; counts go on.
KEPT = 10_000
_ENDS = 100
_STAGES = (*FEEDING, "wait", *INVOKING)


@dataclass(frozen=True)
class Budget:
    """A latency budget and how it was kept.

    Attributes:
        budget_ms: What a frame may take, from the moment the source gave it to its answer.
        percentile: So many per cent of the frames must keep it.
        misses: Frames that did not.
        met: No more missed it than the percentile allows.
        latency_ms: Nearest-rank percentile of the kept frames.
        work_on: The stage whose absence would leave the fewest misses among the kept frames; None without a miss.
        misses_if_free: How many that is.
    """

    budget_ms: float
    percentile: float
    misses: int
    met: bool
    latency_ms: float
    work_on: str | None
    misses_if_free: int | None


@dataclass(frozen=True)
class PipelineReport:
    """A pipeline's run.

    Attributes:
        source: Where frames came from.
        models: SHA-256 of each model.
        engines: What ran each.
        overlap: Frames were prepared while another one was inferred.
        frames: Answered ones.
        skipped: Given by the source and skipped, to keep the pace.
        source_skipped: Frames of a live source that were never taken.
        damaged: Frames that could not be decoded and were passed over.
        duration_s: Of the run.
        frames_per_s: Answered frames in that time.
        stages: Percentiles over the last 10,000 frames of: source (waiting for the frame), read, decode, resize (with
            normalising), wait (ready, but the model was busy), invoke, post, second (a cascade's second model) and app
            (the loop's body). `share` is the part of the sum of their means; `best_gain` how many times the frames a
            second could be if that stage took no time, see `arenite.replay`.
        latency: From the moment the source gave a frame to its answer.
        work_on: The stage with the highest gain.
        best_gain: That gain.
        budget: The budget, if one was given.
        decisions: How often a cascade or an adaptive size decided what.
        thermal: Temperatures, frequencies, throttling; None when it was not watched.
        pace: Invoke at the end of the run against its start; None below 40 frames, or when models took turns.
    """

    source: str
    models: tuple[str, ...]
    engines: tuple[EngineReport, ...]
    machine: Machine
    overlap: bool
    frames: int
    skipped: int
    source_skipped: int
    damaged: int
    duration_s: float
    frames_per_s: float
    stages: tuple[StageRow, ...]
    latency: Percentiles | None
    work_on: str | None
    best_gain: float | None
    budget: Budget | None
    decisions: Mapping[str, int]
    thermal: ThermalReport | None
    pace: Pace | None

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("stage", "mean ms", "p50", "p90", "p99", "p99.9", "share", "if free")]
        for row in self.stages:
            rows.append((row.stage, *_times(row.times), f"{row.share:.0%}", f"×{row.best_gain:.2f}"))
        if self.latency is not None:
            rows.append(("latency", *_times(self.latency), "", ""))
        rate = f"{self.frames_per_s:.1f} a second"
        lines = [f"{self.frames} frames from {self.source} in {self.duration_s:.2f} s, {rate}"]
        lines += table(rows, frozenset(range(1, 8)))
        if self.work_on is not None:
            lines.append(f"work on {self.work_on}: ×{self.best_gain:.2f} frames a second at best")
        lines += [*self._budget_lines(), *self._count_lines(), *self._heat_lines()]
        return "\n".join(lines)

    def _budget_lines(self) -> list[str]:
        if self.budget is None:
            return []
        b = self.budget
        verdict = "kept" if b.met else "NOT kept"
        kept = f"{b.misses} missed; it is {b.latency_ms:.1f} ms"
        line = f"budget {b.budget_ms:g} ms for {b.percentile:g} %: {verdict}, {kept}"
        cure = f"; work on {b.work_on}, {b.misses_if_free} misses at best" if b.work_on else ""
        return [line + cure]

    def _count_lines(self) -> list[str]:
        counts = {
            "skipped": self.skipped,
            "skipped by the source": self.source_skipped,
            "damaged": self.damaged,
            **self.decisions,
        }
        told = [f"{name} {count}" for name, count in counts.items() if count]
        return ["decisions: " + ", ".join(told)] if told else []

    def _heat_lines(self) -> list[str]:
        lines = []
        if self.thermal is not None:
            lines += [f"throttled: {what}" for what in self.thermal.throttled]
            if self.thermal.peak_c:
                name, peak_c = max(self.thermal.peak_c.items(), key=lambda item: item[1])
                lines.append(f"hottest {peak_c:.0f} °C: {name}")
        if self.pace is not None and self.pace.slower:
            lines.append(f"sustained ×{self.pace.slowdown:.2f} of the start's invoke time")
        return lines


def _times(times: Percentiles) -> tuple[str, ...]:
    values = (times.mean_ms, times.p50_ms, times.p90_ms, times.p99_ms, times.p99_9_ms)
    return tuple("–" if value is None else f"{value:.2f}" for value in values)


@dataclass
class Recorder:
    """Collects the frames of one run; its size does not grow without bound."""

    budget_ms: float | None
    laps: deque[Lap] = field(default_factory=lambda: deque(maxlen=KEPT))
    first_ms: list[float] = field(default_factory=list)
    frames: int = 0
    misses: int = 0
    skipped: int = 0
    damaged: int = 0
    one_model: bool = True
    duration_s: float = 0.0

    def add(self, lap: Lap) -> None:
        """A frame was answered."""
        self.frames += 1
        self.laps.append(lap)
        if len(self.first_ms) < _ENDS:
            self.first_ms.append(lap.invoke_ms)
        if self.budget_ms is not None and lap.latency_ms > self.budget_ms:
            self.misses += 1

    def report(
        self,
        *,
        source: str,
        source_skipped: int,
        period_ms: float | None,
        chooser: Chooser,
        overlap: bool,
        percentile: float,
        thermal: ThermalReport | None,
    ) -> PipelineReport:
        """The report of the run so far."""
        whole = replay(self.laps, overlap=overlap, period_ms=period_ms)
        without = self._replays(overlap, period_ms)
        gains = _gains(whole, without)
        work_on = max(gains, key=lambda stage: gains[stage]) if gains else None
        latencies = [lap.latency_ms for lap in self.laps]
        return PipelineReport(
            source=source,
            models=tuple(session.model_sha256 for session in chooser.sessions),
            engines=tuple(session.report for session in chooser.sessions),
            machine=machine(),
            overlap=overlap,
            frames=self.frames,
            skipped=self.skipped,
            source_skipped=source_skipped,
            damaged=self.damaged,
            duration_s=self.duration_s,
            frames_per_s=self.frames / self.duration_s if self.duration_s else 0.0,
            stages=self._rows(gains),
            latency=percentiles(latencies) if latencies else None,
            work_on=work_on,
            best_gain=gains[work_on] if work_on else None,
            budget=self._budget(percentile, latencies, whole, without) if latencies else None,
            decisions=dict(chooser.decisions),
            thermal=thermal,
            pace=self._pace(),
        )

    def _replays(self, overlap: bool, period_ms: float | None) -> dict[str, Replayed]:
        """The frames without each stage that took time; without another one they are as they were."""
        if not self.laps:
            return {}
        took = [s for s in (*FEEDING, *INVOKING) if s == "source" or any(getattr(lap, f"{s}_ms") for lap in self.laps)]
        return {s: replay(self.laps, overlap=overlap, free=s, period_ms=period_ms) for s in took}

    def _rows(self, gains: Mapping[str, float]) -> tuple[StageRow, ...]:
        times = {stage: [getattr(lap, f"{stage}_ms") for lap in self.laps] for stage in _STAGES}
        found = {stage: percentiles(values) for stage, values in times.items() if any(values)}
        whole_ms = math.fsum(row.mean_ms for row in found.values())
        return tuple(StageRow(s, row, row.mean_ms / whole_ms, gains.get(s, 1.0)) for s, row in found.items())

    def _budget(
        self, percentile: float, latencies: Sequence[float], whole: Replayed, without: Mapping[str, Replayed]
    ) -> Budget | None:
        if self.budget_ms is None:
            return None
        budget_ms, ordered = self.budget_ms, sorted(latencies)
        work_on: str | None = None
        left: int | None = None
        if self.misses:
            replays = {stage: without.get(stage, whole) for stage in (*FEEDING[1:], *INVOKING)}
            misses = {s: sum(late_ms > budget_ms for late_ms in found.latencies_ms) for s, found in replays.items()}
            # Of stages that leave as many, the longest: it is the one with most to win.
            means = {stage: sum(getattr(lap, f"{stage}_ms") for lap in self.laps) for stage in misses}
            work_on = min(misses, key=lambda stage: (misses[stage], -means[stage]))
            left = misses[work_on]
        return Budget(
            budget_ms=budget_ms,
            percentile=percentile,
            misses=self.misses,
            met=self.misses <= allowed_misses(self.frames, percentile),
            latency_ms=ordered[math.ceil(len(ordered) * percentile / 100) - 1],
            work_on=work_on,
            misses_if_free=left,
        )

    def _pace(self) -> Pace | None:
        count = min(_ENDS, self.frames // 4)
        if not self.one_model:
            return None
        return pace_of(self.first_ms[:count], [lap.invoke_ms for lap in list(self.laps)[-count:]] if count else [])


def _gains(whole: Replayed, without: Mapping[str, Replayed]) -> dict[str, float]:
    """How many times faster the frames would come without each stage."""
    left_ms = {stage: found.elapsed_ms for stage, found in without.items()}
    return {stage: whole.elapsed_ms / left if left else math.inf for stage, left in left_ms.items()}


def allowed_misses(count: int, percentile: float) -> int:
    """How many of so many frames or sets may miss a budget that so many per cent must keep."""
    return count - math.ceil(count * percentile / 100)


def check_budget(budget_ms: float | None, percentile: float) -> str | None:
    """Why a budget makes no sense; None when it does."""
    if budget_ms is not None and not 0 < budget_ms < math.inf:
        return f"a latency budget of {budget_ms!r} ms"
    return None if 0 < percentile <= 100 else f"a percentile of {percentile!r}"
