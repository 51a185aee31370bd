# SPDX-License-Identifier: Apache-2.0
"""Percentiles, stages, progress."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.progress import Progress, silent
from arenite.timing import Timing, percentiles, stage_table


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
