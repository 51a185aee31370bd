# SPDX-License-Identifier: Apache-2.0
"""What a stage would gain if it were free: closed formulas, bounds, budgets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.degrade import Chooser
from arenite.pipeline_report import PipelineReport, Recorder
from arenite.replay import FEEDING, INVOKING, Lap, replay
from arenite.thermal import pace_of

EVEN = Lap(source_ms=1, read_ms=1, decode_ms=5, resize_ms=3, invoke_ms=4, post_ms=1, app_ms=1)


def report_of(
    laps: list[Lap], *, overlap: bool, budget_ms: float | None = None, percentile: float = 90
) -> PipelineReport:
    recorder = Recorder(budget_ms)
    for lap in laps:
        recorder.add(lap)
    chooser = Chooser.__new__(Chooser)
    chooser.sessions, chooser.decisions = (), {}  # type: ignore[assignment]
    return recorder.report(
        source="laps",
        source_skipped=0,
        period_ms=None,
        chooser=chooser,
        overlap=overlap,
        percentile=percentile,
        thermal=None,
    )


def gain(laps: list[Lap], stage: str, overlap: bool, period_ms: float | None = None) -> float:
    whole = replay(laps, overlap=overlap, period_ms=period_ms).elapsed_ms
    return whole / replay(laps, overlap=overlap, free=stage, period_ms=period_ms).elapsed_ms


def test_in_turn_it_is_amdahls_law() -> None:
    laps = [EVEN] * 100
    assert replay(laps, overlap=False).elapsed_ms == pytest.approx(1600)
    for stage in (*FEEDING, *INVOKING):
        assert gain(laps, stage, False) == pytest.approx(1 / (1 - getattr(EVEN, f"{stage}_ms") / 16))


def test_overlapped_the_slower_lane_sets_the_pace() -> None:
    """Feeding takes 10 ms a frame, invoking 6: only a shorter feeding lane helps, and only down to 6."""
    laps = [EVEN] * 10_000
    assert replay(laps, overlap=True).elapsed_ms / len(laps) == pytest.approx(10, rel=1e-3)
    expected = {"source": 10 / 9, "read": 10 / 9, "decode": 10 / 6, "resize": 10 / 7, "invoke": 1, "post": 1, "app": 1}
    for stage, best in expected.items():
        assert gain(laps, stage, True) == pytest.approx(best, rel=1e-3)
    report = report_of(laps, overlap=True)
    assert report.work_on == "decode"
    assert report.best_gain == pytest.approx(10 / 6, rel=1e-3)


def test_overlapped_waiting_is_part_of_the_latency() -> None:
    """Invoking takes 10 ms, feeding 2: a frame is ready after 2 and waits 8 for the one before."""
    laps = [Lap(decode_ms=2, invoke_ms=10)] * 50
    assert replay(laps, overlap=True).latencies_ms[-1] == pytest.approx(2 + 8 + 10)
    assert replay(laps, overlap=True, free="invoke").latencies_ms[-1] == pytest.approx(2)


def test_a_camera_is_no_faster_than_its_frames() -> None:
    laps = [Lap(source_ms=13, decode_ms=10, invoke_ms=10)] * 300
    assert gain(laps, "invoke", False) == pytest.approx(33 / 23)
    assert gain(laps, "invoke", False, period_ms=33) == pytest.approx(1, rel=0.01)
    assert gain(laps, "source", False, period_ms=33) == pytest.approx(33 / 20, rel=0.01)


times = st.floats(0, 50)
stages = {f"{stage}_ms": times for stage in (*FEEDING, *INVOKING)}
laps_of_all_kinds = st.lists(st.builds(Lap, **stages), min_size=1, max_size=40)


@settings(deadline=None)
@given(laps_of_all_kinds)
def test_overlap_lies_between_its_bounds(laps: list[Lap]) -> None:
    lanes = [sum(getattr(lap, f"{stage}_ms") for lap in laps for stage in lane) for lane in (FEEDING, INVOKING)]
    both = replay(laps, overlap=True)
    assert max(lanes) - 1e-6 <= both.elapsed_ms <= sum(lanes) + 1e-6
    assert replay(laps, overlap=False).elapsed_ms == pytest.approx(sum(lanes))
    for stage in (*FEEDING, *INVOKING):
        assert replay(laps, overlap=True, free=stage).elapsed_ms <= both.elapsed_ms + 1e-6


@settings(deadline=None)
@given(laps_of_all_kinds)
def test_overlap_is_what_two_lanes_do(laps: list[Lap]) -> None:
    """Against a plain simulation of the two lanes, in steps of events."""
    feed = [sum(getattr(lap, f"{stage}_ms") for stage in FEEDING) for lap in laps]
    work = [sum(getattr(lap, f"{stage}_ms") for stage in INVOKING) for lap in laps]
    assert replay(laps, overlap=True).elapsed_ms == pytest.approx(_simulated(feed, work))


def _simulated(feed: list[float], work: list[float]) -> float:
    """Two workers, from hand to hand; time moves to the next end of somebody's work."""
    now = 0.0
    fed, held = 0, False
    feeding: float | None = feed[0]
    working: float | None = None
    done = 0
    while done < len(work):
        ends = [end for end in (feeding, working) if end is not None]
        now = min(ends) if ends else now
        if working is not None and working <= now:
            working, done = None, done + 1
        if feeding is not None and feeding <= now:
            feeding, held = None, True
        if held and working is None:
            held, fed, working = False, fed + 1, now + work[done]
            feeding = now + feed[fed] if fed < len(feed) else None
    return now


def test_budget_by_percentile() -> None:
    """Of ten frames one may miss at the 90th percentile; two may not."""
    quick, slow = Lap(decode_ms=5, invoke_ms=5), Lap(decode_ms=5, invoke_ms=30)
    one = report_of([quick] * 9 + [slow], overlap=False, budget_ms=20).budget
    two = report_of([quick] * 8 + [slow] * 2, overlap=False, budget_ms=20).budget
    assert one is not None and two is not None
    assert (one.misses, one.met, one.latency_ms) == (1, True, 10)
    assert (two.misses, two.met, two.latency_ms) == (2, False, 35)
    assert (two.work_on, two.misses_if_free) == ("invoke", 0)


def test_work_on_is_what_leaves_the_fewest_misses() -> None:
    """Decode is the longer stage, but the misses come from rare slow posts."""
    laps = [Lap(decode_ms=15, invoke_ms=2, post_ms=1)] * 95 + [Lap(decode_ms=15, invoke_ms=2, post_ms=20)] * 5
    budget = report_of(laps, overlap=False, budget_ms=21, percentile=99).budget
    assert budget is not None
    assert (budget.misses, budget.met) == (5, False)
    assert (budget.work_on, budget.misses_if_free) == ("post", 0)


def test_sustained_against_burst() -> None:
    laps = [Lap(invoke_ms=10)] * 100 + [Lap(invoke_ms=14)] * 300
    pace = report_of(laps, overlap=False).pace
    assert pace is not None and pace.slower
    assert (pace.burst_ms, pace.sustained_ms, pace.slowdown) == (10, 14, pytest.approx(1.4))
    steady = report_of([Lap(invoke_ms=10)] * 400, overlap=False).pace
    assert steady is not None and not steady.slower
    assert report_of([Lap(invoke_ms=10)] * 39, overlap=False).pace is None
    assert pace_of([1.0] * 9, [1.0] * 10) is None


def test_a_run_of_weeks_stays_small() -> None:
    recorder = Recorder(budget_ms=1)
    for _ in range(30_000):
        recorder.add(Lap(invoke_ms=2))
    assert (recorder.frames, recorder.misses) == (30_000, 30_000)
    assert (len(recorder.laps), len(recorder.first_ms)) == (10_000, 100)
