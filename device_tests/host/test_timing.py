# SPDX-License-Identifier: Apache-2.0
"""Percentiles, stages, the SingleStream benchmark, progress."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arenite
from arenite import singlestream
from arenite._reports import plain
from arenite.errors import UsageError
from arenite.progress import Progress, silent
from arenite.singlestream import machine
from arenite.timing import Timing, percentiles, stage_table
from support.builder import ModelBuilder


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=2500))
def test_percentiles_are_nearest_rank(times: list[float]) -> None:
    found = percentiles(times)
    for value, p in ((found.p50_ms, 50), (found.p90_ms, 90), (found.p99_ms, 99), (found.p99_9_ms, 99.9)):
        if len(times) * (100 - p) < 99.9999:
            assert value is None
        else:
            assert value == np.percentile(times, p, method="inverted_cdf")
    assert (found.min_ms, found.max_ms, found.count) == (min(times), max(times), len(times))


def test_percentiles_that_cannot_be_resolved() -> None:
    assert percentiles([1.0]).p50_ms is None
    assert percentiles([1.0, 2.0]).p50_ms == 1.0
    assert percentiles(range(99)).p99_ms is None
    assert percentiles(range(1, 101)).p99_ms == 99
    assert percentiles(range(1, 1001)).p99_9_ms == 999
    with pytest.raises(ValueError, match="no times"):
        percentiles([])


def test_stage_table_adds_up() -> None:
    rows = stage_table([Timing(1, 2, 3, 4, 0), Timing(1, 4, 3, 2, 0)])
    shares = {row.stage: row.share for row in rows}
    assert list(shares) == ["read", "decode", "resize", "invoke", "post", "total"]
    assert shares == {"read": 0.1, "decode": 0.3, "resize": 0.3, "invoke": 0.3, "post": 0, "total": 1}
    assert rows[1].best_gain == pytest.approx(1 / 0.7)
    assert rows[-1].best_gain == math.inf
    assert rows[-1].times.mean_ms == 10


@pytest.fixture
def model(tmp_path: Path) -> Path:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2, 2, 3), "int8", scales=[0.1])
    y = builder.tensor("y", (1, 2, 2, 3), "int8", scales=[0.1])
    builder.operator("RELU", [x], [y])
    path = tmp_path / "relu.tflite"
    path.write_bytes(builder.finish([x], [y]))
    return path


def test_bench_reaches_both_minima(model: Path) -> None:
    report = arenite.bench(model, min_duration_s=0.05, min_queries=20)
    assert not report.valid  # as asked for, but by far no run of the scenario
    assert report.duration_s >= 0.05
    assert report.latency.count >= 20
    assert report.queries_per_s == pytest.approx(report.latency.count / report.duration_s)
    few = arenite.bench(model, min_duration_s=0, min_queries=7, warm_up=0)
    assert few.latency.count == 7


@pytest.mark.parametrize(
    ("queries", "duration_s", "valid"),
    [(1024, 600.0, True), (1023, 600.0, False), (1024, 599.9, False), (2, 0.0, False)],
)
def test_valid_is_by_the_scenarios_minima(queries: int, duration_s: float, valid: bool) -> None:
    assert singlestream._is_valid(queries, duration_s) == valid


def test_bench_of_pictures_has_stages(model: Path) -> None:
    contract = arenite.make_contract(arenite.read_graph(model), normalisation="unit")
    session = arenite.open(model, contract=contract)
    pictures = [np.zeros((5, 5, 3), np.uint8), np.ones((9, 9, 3), np.uint8)]
    report = arenite.bench(session, pictures=pictures, min_duration_s=0, min_queries=10)
    assert [row.stage for row in report.stages] == ["read", "decode", "resize", "invoke", "post", "total"]
    assert report.stages[-1].times == report.latency


def test_bench_json_names_the_machine(model: Path) -> None:
    report = plain(arenite.bench(model, min_duration_s=0, min_queries=3))
    content = json.loads(json.dumps(report, allow_nan=False))
    assert content["scenario"] == "SingleStream"
    assert content["machine"]["cpu"]
    assert content["machine"]["cores"] >= 1
    assert content["engine"]["engine"] == "litert"
    assert content["energy"]["tag"] in ("measured", "unknown")
    assert machine() == machine()


@pytest.mark.parametrize(
    "options", [{"min_queries": 0}, {"min_duration_s": -1}, {"warm_up": -1}, {"min_duration_s": float("nan")}]
)
def test_bench_refuses_nonsense(model: Path, options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="cannot measure"):
        arenite.bench(model, **options)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_steps(stream: io.StringIO) -> str:
    progress = Progress(stream)
    with progress.step("calibrate", total=3) as step:
        for _ in range(3):
            step.advance()
        step.note("enough")
    return stream.getvalue()


def test_progress_is_plain_in_a_file() -> None:
    text = run_steps(io.StringIO())
    assert text.startswith("calibrate ...\ncalibrate done in ")
    assert text.endswith("(enough)\n")
    assert "\x1b" not in text


def test_progress_is_redrawn_on_a_terminal() -> None:
    text = run_steps(Terminal())
    assert text.count("\n") == 1
    assert text.count("\r\x1b[K") >= 2


def test_progress_says_failed() -> None:
    stream = io.StringIO()
    with pytest.raises(ZeroDivisionError), Progress(stream).step("divide"):
        _ = 1 / 0
    assert "divide failed" in stream.getvalue()


def test_silent_progress_and_a_closed_stream() -> None:
    with silent().step("nothing") as step:
        step.advance()
    stream = io.StringIO()
    progress = Progress(stream)
    stream.close()
    with progress.step("nobody listens"):
        pass
