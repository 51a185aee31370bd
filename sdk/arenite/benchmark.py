# SPDX-License-Identifier: Apache-2.0
"""Benchmarks in this process by the scenarios of MLPerf Inference, see `arenite.scenarios`.

SingleStream: one sample a query, one query after another. MultiStream: eight samples a query. Offline: all samples at
once. Samples of a query are inferred one after another, at batch 1. Warm-up comes first and is not counted.
LoadGen issues the queries where it is installed, else the same loop in Python.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from arenite.cold_start import ColdStart
from arenite.comparison import FORMAT
from arenite.energy import Energy, EnergyModel
from arenite.energy_report import declared_energy, open_recording
from arenite.engines import EngineReport
from arenite.errors import UsageError
from arenite.loadgen import MOST_QUERIES, LoadGen, find_loadgen
from arenite.machine import Conditions, Machine, Watch, machine
from arenite.preprocess import PictureSource, read_picture
from arenite.progress import Progress
from arenite.scenarios import DRIVERS, SCENARIOS, Outcome, judge, sample_order
from arenite.session import Session
from arenite.timing import Percentiles, StageRow, Timing, percentiles, stage_table

__all__ = ["BenchReport", "bench_session"]

# More latencies than this are thinned evenly in a report.
MOST_KEPT = 4096


@dataclass(frozen=True)
class BenchReport:
    """Result of one benchmark.

    Attributes:
        format: Of this report as JSON.
        scenario: SingleStream, MultiStream or Offline.
        driver: What issued the queries: `loadgen` or `python`.
        outcome: The scenario's figure, and whether the run is valid.
        model_sha256: The model file's digest.
        workload: `model`, or `pictures` with all their stages.
        pictures: How many different ones.
        pictures_sha256: Their digest; None when there are none, or some of a kind that has none.
        latency: Of one query. Offline: of one sample.
        jitter_ms: Mean difference between one latency and the next, without its sign; None for a single one.
        first_ms: The very first sample: as a rule in the warm-up, with all that is done once.
        cold_start: How the session was opened.
        stages: Percentiles of each stage of a sample when pictures were given.
        samples_per_s: Inferences in the measured time.
        duration_s: The measured time, warm-up apart.
        warm_up: Samples before it.
        min_duration_s: What was asked for, as is `min_queries`.
        times_ms: Latencies in order, every `kept_every`-th.
        conditions: Clock and temperature meanwhile.
        energy: Of one sample, or that it is unknown.
    """

    format: str
    scenario: str
    driver: str
    outcome: Outcome
    model_sha256: str
    workload: str
    pictures: int
    pictures_sha256: str | None
    engine: EngineReport
    machine: Machine
    latency: Percentiles
    jitter_ms: float | None
    first_ms: float
    cold_start: ColdStart
    stages: tuple[StageRow, ...]
    samples_per_s: float
    duration_s: float
    min_duration_s: float
    min_queries: int
    warm_up: int
    times_ms: tuple[float, ...]
    kept_every: int
    conditions: Conditions
    energy: Energy

    @property
    def valid(self) -> bool:
        """The run is valid by the scenario's own minima."""
        return self.outcome.valid


class _Recorder:
    """Infers samples and keeps their times."""

    def __init__(self, session: Session, pictures: Sequence[PictureSource], watch: Watch) -> None:
        self._session, self._pictures, self._watch = session, pictures, watch
        self.data_set = max(1, len(pictures))
        self.timings: list[Timing] = []
        # One number a query, as a run of minutes has millions of them.
        self.times_ms = array("d")
        self.samples = 0
        self.issued_s = self.start_s = self.end_s = 0.0

    def sample(self, index: int) -> float:
        """Infers one sample: its latency in milliseconds."""
        start_s = time.perf_counter()
        if not self._pictures:
            self._session.run()
            return 1e3 * (time.perf_counter() - start_s)
        timing = self._session.classify(self._pictures[index]).timing
        self.timings.append(timing)
        return timing.total_ms

    @property
    def invoke_s(self) -> float:
        """Mean time of an invocation since the measurement began."""
        if self.timings:
            return 1e-3 * fmean(timing.invoke_ms for timing in self.timings)
        return (self.end_s - self.start_s) / self.samples

    def _issue(self) -> None:
        self.issued_s = time.perf_counter()
        # LoadGen prepares before the first query.
        if not self.samples:
            self.start_s = self.issued_s

    def query(self, indices: Sequence[int]) -> None:
        """One query."""
        self._watch.look()
        self._issue()
        if len(indices) == 1:
            self.times_ms.append(self.sample(indices[0]))
        else:
            for index in indices:
                self.sample(index)
            self.times_ms.append(1e3 * (time.perf_counter() - self.issued_s))
        self.samples += len(indices)
        self.end_s = time.perf_counter()

    def offline(self, indices: Sequence[int]) -> None:
        """All samples as one query; the time of each is kept."""
        self._issue()
        for index in indices:
            self._watch.look()
            self.times_ms.append(self.sample(index))
        self.samples += len(indices)
        self.end_s = time.perf_counter()


def bench_session(
    session: Session,
    *,
    pictures: Sequence[PictureSource] = (),
    scenario: str = "SingleStream",
    min_duration_s: float = 1.0,
    min_queries: int = 100,
    warm_up: int = 5,
    driver: str | None = None,
    log_dir: Path | str | None = None,
    meter: str | None = None,
    model_costs: EnergyModel | None = None,
    progress: Progress | None = None,
) -> BenchReport:
    """Measure a session.

    Args:
        session: What to measure.
        pictures: Classified with all stages measured; without them the model alone runs on what is in its input.
        scenario: `SingleStream`, `MultiStream` or `Offline`.
        min_duration_s: Measure at least this long.
        min_queries: Measure at least so many queries; of Offline, samples.
        warm_up: Samples before the measurement, not counted; one is always done.
        driver: `loadgen` or `python`; None takes LoadGen where it is installed and the run is not too long for it.
        log_dir: Where LoadGen's logs are kept; None keeps none.
        meter: The energy meter as in `arenite.meter`; None takes the best of this machine.
        model_costs: Declared costs, for a machine without a meter.
        progress: Where to report.

    Raises:
        UsageError: A minimum makes no sense, or there is no such scenario, driver or meter.
        MissingToolError: LoadGen is asked for and not installed.
        MeterError: The named meter cannot measure.
    """
    _check(scenario, driver, min_duration_s, min_queries, warm_up)
    rules, watch = SCENARIOS[scenario], Watch()
    recorder = _Recorder(session, pictures, watch)
    modelled = None if model_costs is None else declared_energy(session, model_costs, with_stages=bool(pictures))
    with (progress or Progress()).step("bench"), open_recording(meter) as recording:
        # Idle has been measured by now: what warms up must be warm when the measurement begins.
        warm_ms = [recorder.sample(i % recorder.data_set) for i in range(max(1, warm_up))]
        recorder.timings.clear()
        plan = LoadGen(rules, min_duration_s, min_queries, recorder.data_set, min(warm_ms))
        chosen = driver or ("loadgen" if find_loadgen() and plan.held <= MOST_QUERIES else "python")
        with recording.section() as section:
            outcome = _drive(chosen, plan, recorder, None if log_dir is None else Path(log_dir))
            section.narrow(recorder.start_s, recorder.end_s)
    energy = section.per_inference(recorder.samples)
    if recording.source is None and modelled is not None:
        energy = modelled(recorder.invoke_s)
    times_ms = np.frombuffer(recorder.times_ms)
    every = -(-len(times_ms) // MOST_KEPT)
    duration_s = recorder.end_s - recorder.start_s
    return BenchReport(
        format=FORMAT,
        scenario=scenario,
        driver=chosen,
        outcome=outcome,
        model_sha256=session.model_sha256,
        workload="pictures" if pictures else "model",
        pictures=len(pictures),
        pictures_sha256=_digest(pictures),
        engine=session.report,
        machine=machine(),
        latency=percentiles(times_ms),
        jitter_ms=float(np.abs(np.diff(times_ms)).mean()) if len(times_ms) > 1 else None,
        first_ms=warm_ms[0],
        cold_start=session.cold_start,
        stages=stage_table(recorder.timings) if pictures else (),
        samples_per_s=recorder.samples / duration_s,
        duration_s=duration_s,
        min_duration_s=min_duration_s,
        min_queries=min_queries,
        warm_up=len(warm_ms),
        times_ms=tuple(round(float(value), 6) for value in times_ms[::every]),
        kept_every=every,
        conditions=watch.seen(),
        energy=energy,
    )


def _check(scenario: str, driver: str | None, min_duration_s: float, min_queries: int, warm_up: int) -> None:
    if scenario not in SCENARIOS:
        raise UsageError(f"there is no scenario '{scenario}'", cure=f"Choose one of {', '.join(SCENARIOS)}.")
    if driver is not None and driver not in DRIVERS:
        raise UsageError(f"there is no driver '{driver}'", cure=f"Choose one of {', '.join(DRIVERS)}.")
    if not 0 <= min_duration_s <= 3600 or min_queries < 1 or warm_up < 0:
        raise UsageError(
            f"cannot measure {min_queries} queries for {min_duration_s} s after {warm_up} warm-up queries",
            cure="Give at least 1 query, 0 to 3600 s, and no negative warm-up.",
        )


def _drive(driver: str, plan: LoadGen, recorder: _Recorder, log_dir: Path | None) -> Outcome:
    offline = plan.scenario.samples_per_query is None
    if driver == "python":
        return _loop(plan, recorder)
    with tempfile.TemporaryDirectory(prefix="arenite-loadgen-") as folder:
        return plan.run(recorder.offline if offline else recorder.query, log_dir or Path(folder))


def _loop(plan: LoadGen, recorder: _Recorder) -> Outcome:
    """LoadGen's loop: until both minima are reached."""
    scenario = plan.scenario
    order = sample_order(scenario, recorder.data_set)
    per_query = scenario.samples_per_query or 1
    issue: Callable[[Sequence[int]], None] = recorder.query if scenario.samples_per_query else recorder.offline
    # The first query sets the start.
    while len(recorder.times_ms) < plan.min_queries or recorder.end_s - recorder.start_s < plan.min_duration_s:
        issue([next(order) for _ in range(per_query)])
    until_s = recorder.end_s if scenario.samples_per_query is None else recorder.issued_s
    return judge(scenario, recorder.times_ms, recorder.samples, until_s - recorder.start_s, recorder.data_set)


def _digest(pictures: Sequence[PictureSource]) -> str | None:
    """One digest of all pictures that are files, bytes or arrays."""
    digest = hashlib.sha256()
    for picture in pictures:
        content = read_picture(picture)
        if isinstance(content, np.ndarray):
            content = repr(content.shape).encode() + content.tobytes()
        if not isinstance(content, bytes):
            return None
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest() if pictures else None
