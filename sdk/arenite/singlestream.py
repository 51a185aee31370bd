# SPDX-License-Identifier: Apache-2.0
"""SingleStream benchmark: one query at a time, batch 1, by the rules of MLPerf Inference's scenario.

Warm-up queries come first and are not counted. Queries follow each other without a pause until both the
minimum duration and the minimum number of queries are reached. The scenario's figure is the 90th percentile
of latency. A run is valid when it reached the scenario's own minima, 1,024 queries and 600 s; a shorter one
is a quick look, and its report says so.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from arenite.energy import Energy, rapl_meter
from arenite.engines import EngineReport
from arenite.errors import UsageError
from arenite.preprocess import PictureSource
from arenite.progress import Progress
from arenite.session import Session
from arenite.timing import Percentiles, StageRow, Timing, percentiles, stage_table

__all__ = ["BenchReport", "Machine", "bench_session", "machine"]

# SingleStream.min_query_count and SingleStream.min_duration of MLPerf Inference: mlperf.conf in
# github.com/mlcommons/inference.
SCENARIO_MIN_QUERIES = 1024
SCENARIO_MIN_DURATION_S = 600.0


@dataclass(frozen=True)
class Machine:
    """The machine that a figure belongs to."""

    name: str
    system: str
    cpu: str
    cores: int
    python: str


@dataclass(frozen=True)
class BenchReport:
    """Result of one benchmark.

    Attributes:
        scenario: SingleStream.
        latency: Of one query; a query is one invocation, or one picture with all its stages.
        stages: Percentiles of each stage when pictures were given.
        queries_per_s: Queries in the measured time.
        duration_s: The measured time, warm-up apart.
        warm_up: Queries before it.
        min_duration_s: What was asked for, as is `min_queries`.
        valid: The scenario's own minima were reached: `SCENARIO_MIN_QUERIES` and `SCENARIO_MIN_DURATION_S`.
        energy: Energy of one query, or that it is unknown.
    """

    scenario: str
    model_sha256: str
    engine: EngineReport
    machine: Machine
    latency: Percentiles
    stages: tuple[StageRow, ...]
    queries_per_s: float
    duration_s: float
    min_duration_s: float
    min_queries: int
    warm_up: int
    valid: bool
    energy: Energy


def bench_session(
    session: Session,
    *,
    pictures: Sequence[PictureSource] = (),
    min_duration_s: float = 1.0,
    min_queries: int = 100,
    warm_up: int = 5,
    progress: Progress | None = None,
) -> BenchReport:
    """Measure a session.

    Args:
        session: What to measure.
        pictures: Classified in turn, all stages measured; without them the model alone runs on what is in
            its input.
        min_duration_s: Measure at least this long.
        min_queries: Measure at least so many queries.
        warm_up: Queries before the measurement, not counted.
        progress: Where to report.

    Raises:
        UsageError: A minimum makes no sense.
    """
    if not 0 <= min_duration_s <= 3600 or min_queries < 1 or warm_up < 0:
        raise UsageError(
            f"cannot measure {min_queries} queries for {min_duration_s} s after {warm_up} warm-up queries",
            cure="Give at least 1 query, 0 to 3600 s, and no negative warm-up.",
        )
    query = _picture_query(session, pictures) if pictures else _model_query(session)
    for i in range(warm_up):
        query(i)
    with (progress or Progress()).step("bench", min_queries) as step, rapl_meter() as meter:
        timings, duration_s = _measure(query, min_duration_s, min_queries, step.advance)
    return BenchReport(
        scenario="SingleStream",
        model_sha256=session.model_sha256,
        engine=session.report,
        machine=machine(),
        latency=percentiles(t.total_ms for t in timings),
        stages=stage_table(timings) if pictures else (),
        queries_per_s=len(timings) / duration_s,
        duration_s=duration_s,
        min_duration_s=min_duration_s,
        min_queries=min_queries,
        warm_up=warm_up,
        valid=_is_valid(len(timings), duration_s),
        energy=meter.per_inference(len(timings)),
    )


def _is_valid(queries: int, duration_s: float) -> bool:
    return queries >= SCENARIO_MIN_QUERIES and duration_s >= SCENARIO_MIN_DURATION_S


def _measure(
    query: Callable[[int], Timing], min_duration_s: float, min_queries: int, advance: Callable[[], None]
) -> tuple[list[Timing], float]:
    timings: list[Timing] = []
    start = time.perf_counter()
    while len(timings) < min_queries or time.perf_counter() - start < min_duration_s:
        timings.append(query(len(timings)))
        advance()
    return timings, time.perf_counter() - start


def _model_query(session: Session) -> Callable[[int], Timing]:
    def query(_: int) -> Timing:
        start = time.perf_counter()
        session.run()
        return Timing(invoke_ms=1e3 * (time.perf_counter() - start))

    return query


def _picture_query(session: Session, pictures: Sequence[PictureSource]) -> Callable[[int], Timing]:
    return lambda i: session.classify(pictures[i % len(pictures)]).timing


def machine() -> Machine:
    """This machine."""
    return Machine(
        name=platform.node() or "unknown",
        system=f"{platform.system()} {platform.machine()}",
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    for key in ("model name", "Model", "Hardware"):
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == key and value.strip():
                return value.strip()
    return platform.processor() or "unknown"
