# SPDX-License-Identifier: Apache-2.0
"""A scenario driven by MLPerf's LoadGen, in this process.

LoadGen makes all queries before the first is issued, twice as many as fill the minimum duration by the expected
latency. Expected too long, they run out too early; so it is told the fastest sample of the warm-up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from arenite.errors import MissingToolError, OutputError, UsageError
from arenite.scenarios import QSL_SEED, SAMPLE_SEED, SCHEDULE_SEED, Outcome, Scenario, least_queries

__all__ = ["LoadGen", "find_loadgen"]

# LoadGen makes every query beforehand, some 330 bytes and 10 us each, and answers all of them before it lets go.
MOST_QUERIES = 1_000_000
_GENERATED = 2.0


def find_loadgen() -> ModuleType | None:
    """The package, or None."""
    try:
        import mlperf_loadgen
    except ImportError:
        return None
    found: ModuleType = mlperf_loadgen
    return found


@dataclass(frozen=True)
class LoadGen:
    """One run.

    Attributes:
        scenario: What LoadGen shall do.
        min_duration_s: At least so long.
        min_queries: At least so many queries; of Offline, samples.
        data_set: How many different samples there are.
        fastest_ms: The shortest time of a sample that was seen.
    """

    scenario: Scenario
    min_duration_s: float
    min_queries: int
    data_set: int
    fastest_ms: float

    @property
    def expected_s(self) -> float:
        """What LoadGen is told about the time of a sample."""
        return max(1e-6, self.fastest_ms / 1e3)

    @property
    def held(self) -> int:
        """Samples that LoadGen holds in memory."""
        return max(self.min_queries, math.ceil(_GENERATED * self.min_duration_s / self.expected_s))

    def run(self, query: Callable[[list[int]], None], folder: Path) -> Outcome:
        """Lets LoadGen issue queries; what `query` raises is raised once LoadGen has come to its end.

        Args:
            query: Infers samples by their numbers, one after another.
            folder: Where LoadGen writes its logs.

        Raises:
            MissingToolError: LoadGen is not installed.
            UsageError: It would hold too many queries in memory.
            OutputError: Its logs cannot be written.
        """
        lg = find_loadgen()
        if lg is None:
            raise MissingToolError("LoadGen is not installed", cure="pip install 'arenite[loadgen]'")
        if self.held > MOST_QUERIES:
            text = f"LoadGen would hold {self.held:,} queries in memory"
            raise UsageError(text, cure="Measure for a shorter time, or without LoadGen (--driver python).")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"the folder for LoadGen's logs cannot be made: {error}", where=str(folder)) from error
        failures: list[BaseException] = []

        def issue(samples: Any) -> None:
            # LoadGen cannot be stopped, and an exception that passes through it, even Ctrl-C, ends the process. So what
            # is left is answered without work, at 10 us each.
            try:
                if not failures:
                    query([sample.index for sample in samples])
            except BaseException as error:
                failures.append(error)
            lg.QuerySamplesComplete([lg.QuerySampleResponse(sample.id, 0, 0) for sample in samples])

        sut = lg.ConstructSUT(issue, _nothing)
        qsl = lg.ConstructQSL(self.data_set, self.data_set, _nothing, _nothing)
        try:
            # An audit file in the working folder would change the run.
            lg.StartTestWithLogSettings(sut, qsl, self._settings(lg), _logs(lg, folder), str(folder / "audit.config"))
        finally:
            lg.DestroyQSL(qsl)
            lg.DestroySUT(sut)
        if failures:
            raise failures[0]
        return self._outcome(folder / "mlperf_log_detail.txt")

    def _settings(self, lg: ModuleType) -> Any:
        settings = lg.TestSettings()
        settings.scenario = getattr(lg.TestScenario, self.scenario.name)
        settings.mode = lg.TestMode.PerformanceOnly
        settings.min_duration_ms = round(1e3 * self.min_duration_s)
        settings.min_query_count = self.min_queries
        settings.qsl_rng_seed, settings.sample_index_rng_seed = QSL_SEED, SAMPLE_SEED
        settings.schedule_rng_seed = SCHEDULE_SEED
        expected_ns = round(1e9 * self.expected_s)
        settings.single_stream_expected_latency_ns = expected_ns
        settings.multi_stream_expected_latency_ns = expected_ns * (self.scenario.samples_per_query or 1)
        settings.multi_stream_samples_per_query = self.scenario.samples_per_query or 1
        settings.offline_expected_qps = 1 / self.expected_s
        return settings

    def _outcome(self, log: Path) -> Outcome:
        """What LoadGen's own log says."""
        try:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise OutputError(f"LoadGen's log cannot be read: {error}", where=str(log)) from error
        entries = [json.loads(line.split(" ", 1)[1]) for line in lines if line.startswith(":::MLLOG ")]
        found = {entry["key"]: entry["value"] for entry in entries}
        why_not = [entry["value"] for entry in entries if entry["metadata"].get("is_error")]
        if self.scenario.percentile is not None and not found["early_stopping_met"]:
            needed = least_queries(self.scenario.percentile)
            why_not.append(f"{needed:,} queries are wanted, not {found['result_query_count']:,}")
        if found["result_validity"] != "VALID" and found.get("result_invalid_reason"):
            why_not.append(found["result_invalid_reason"].strip())
        if self.min_duration_s < self.scenario.min_duration_s:
            why_not.append(f"{self.scenario.min_duration_s:g} s are wanted, not {self.min_duration_s:g}")
        estimate_ns = found.get("early_stopping_latency_ss" if self.scenario.name == "SingleStream" else _MS)
        words = str(found.get("early_stopping_result", "")).split("Would discard ")
        return Outcome(
            percentile=self.scenario.percentile,
            latency_ms=estimate_ns / 1e6 if estimate_ns and found.get("early_stopping_met") else None,
            samples_per_s=found.get("result_samples_per_second"),
            set_aside=int(words[1].split()[0]) if len(words) > 1 else 0,
            valid=found["result_validity"] == "VALID" and not why_not,
            why_not=tuple(why_not),
            judged_by=f"LoadGen {found['loadgen_version']}",
        )


_MS = "early_stopping_latency_ms"


def _logs(lg: ModuleType, folder: Path) -> Any:
    output = lg.LogOutputSettings()
    output.outdir = str(folder)
    output.copy_summary_to_stdout = False
    settings = lg.LogSettings()
    settings.log_output = output
    settings.enable_trace = False
    return settings


def _nothing(*_: object) -> None:
    """LoadGen wants to be able to load samples; ours lie ready."""
