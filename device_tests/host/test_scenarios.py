# SPDX-License-Identifier: Apache-2.0
"""The rules of MLPerf's scenarios: by exact arithmetic, and by LoadGen itself where pip has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from itertools import accumulate, islice
from math import comb
from pathlib import Path

import pytest

from arenite.scenarios import SCENARIOS, judge, least_queries, sample_order, set_aside
from support import bad_models

SINGLE, MULTI, OFFLINE = (SCENARIOS[name] for name in ("SingleStream", "MultiStream", "Offline"))


def most_that_pass(queries: int, exceeding: Fraction) -> int:
    """The largest number of exceeding queries whose binomial probability of at most so many stays below 1 %."""
    chances = (comb(queries, k) * exceeding**k * (1 - exceeding) ** (queries - k) for k in range(queries + 1))
    return max((k for k, chance in enumerate(accumulate(chances)) if chance < Fraction(1, 100)), default=0)


@pytest.mark.parametrize("queries", [10, 63, 64, 65, 100, 364, 661, 662, 663, 1000])
@pytest.mark.parametrize("percent", [90, 99])
def test_estimate_is_binomial(queries: int, percent: int) -> None:
    expected = most_that_pass(queries, Fraction(100 - percent, 100))
    assert set_aside(queries, percent / 100) == expected


def test_least_queries_are_the_published_ones() -> None:
    assert (least_queries(0.90), least_queries(0.99)) == (64, 662)


def test_many_queries() -> None:
    """A run of minutes: within a standard deviation of the normal approximation."""
    queries = 5_000_000
    deviation = (queries * 0.1 * 0.9) ** 0.5
    assert set_aside(queries, 0.9) == pytest.approx(queries * 0.1 - 2.3263 * deviation, abs=deviation / 100)


def test_estimate_bounds_the_percentile() -> None:
    times = [float(i) for i in range(1, 1001)]
    outcome = judge(SINGLE, times[::-1], 1000, 600.0, 1)
    assert outcome.valid and outcome.latency_ms is not None and outcome.latency_ms > 900
    assert outcome.latency_ms == 1001 - set_aside(1000, 0.9) and outcome.judged_by == "arenite"


def test_what_a_valid_run_lacks() -> None:
    assert judge(SINGLE, [1.0] * 64, 64, 600.0, 1).valid
    few = judge(SINGLE, [1.0] * 63, 63, 600.0, 1)
    assert few.why_not == ("64 queries are wanted, not 63",) and few.latency_ms is None
    assert judge(SINGLE, [1.0] * 64, 64, 599.9, 1).why_not == ("600 s are wanted, not 600",)
    assert judge(MULTI, [1.0] * 661, 661 * 8, 600.0, 1).why_not == ("662 queries are wanted, not 661",)
    offline = judge(OFFLINE, [1.0] * 99, 99, 600.0, 100)
    assert offline.why_not == ("100 samples are wanted, not 99",) and offline.samples_per_s == 99 / 600
    assert judge(OFFLINE, [1.0] * 24576, 24576, 600.0, 50_000).valid


def test_order_of_samples() -> None:
    assert list(islice(sample_order(OFFLINE, 3), 7)) == [0, 1, 2, 0, 1, 2, 0]
    drawn = list(islice(sample_order(SINGLE, 10), 5000))
    assert drawn == list(islice(sample_order(SINGLE, 10), 5000))
    assert all(380 < drawn.count(index) < 620 for index in range(10))
    query = list(islice(sample_order(MULTI, 10), 8))
    assert query == [(query[0] + i) % 10 for i in range(8)]


PROGRAM = """
import json, sys
from pathlib import Path
import arenite
from arenite._reports import plain
from arenite.loadgen import LoadGen
from arenite.scenarios import SCENARIOS
out = Path(sys.argv[2])
judged = []
for name, counts in {"SingleStream": (50, 64, 100, 364, 3000), "MultiStream": (100, 662, 2000)}.items():
    for count in counts:
        seen = []
        outcome = LoadGen(SCENARIOS[name], 0.0, count, 5, 1.0).run(seen.append, out / f"{name}{count}")
        judged.append([name, len(seen), sorted(set(map(len, seen))), plain(outcome)])
def fail(samples):
    raise ZeroDivisionError("as if the model failed")
try:
    LoadGen(SCENARIOS["SingleStream"], 0.0, 5, 5, 1.0).run(fail, out / "failed")
except ZeroDivisionError as error:
    failure = str(error)
runs = []
for name in SCENARIOS:
    report = arenite.bench(sys.argv[1], scenario=name, min_duration_s=0.3, min_queries=700, log_dir=out / name)
    runs.append(plain(report))
print(json.dumps({"judged": judged, "failure": failure, "runs": runs, "held": LoadGen(
    SCENARIOS["SingleStream"], 3600.0, 1, 1, 0.001).held}))
"""


@pytest.fixture(scope="module")
def loadgen_says(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    """What a process with LoadGen found, and where LoadGen's logs lie; or a skip that says why there is none."""
    folder = tmp_path_factory.mktemp("loadgen")
    packages = folder / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command = [*pip, "--only-binary", ":all:", "--target", str(packages), "mlcommons-loadgen>=6.0,<7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"pip does not get mlcommons-loadgen here: {done.stderr.strip().splitlines()[-1]}")
    model = folder / "model.tflite"
    model.write_bytes(bad_models.good_model())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(packages)])}
    program = [sys.executable, "-c", PROGRAM, str(model), str(folder)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), folder


def test_loadgen_judges_alike(loadgen_says: tuple[dict[str, object], Path]) -> None:
    """The same number of queries: as many set aside, and the same say on whether they are enough."""
    judged = loadgen_says[0]["judged"]
    assert isinstance(judged, list) and len(judged) == 8
    for name, queries, sizes, outcome in judged:
        scenario = SCENARIOS[name]
        ours = judge(scenario, [1.0] * queries, queries, 0.0, 5)
        assert sizes == [scenario.samples_per_query]
        assert outcome["set_aside"] == ours.set_aside, (name, queries)
        assert (outcome["latency_ms"] is None) == (ours.latency_ms is None), (name, queries)
        assert outcome["judged_by"].startswith("LoadGen 6.") and not outcome["valid"]


def test_loadgen_survives_a_failing_model(loadgen_says: tuple[dict[str, object], Path]) -> None:
    assert loadgen_says[0]["failure"] == "as if the model failed"
    assert isinstance(loadgen_says[0]["held"], int) and loadgen_says[0]["held"] > 1_000_000_000


def test_bench_by_loadgen(loadgen_says: tuple[dict[str, object], Path]) -> None:
    """All scenarios run to their end; our own times of the queries are within LoadGen's."""
    found, folder = loadgen_says
    runs = found["runs"]
    assert isinstance(runs, list)
    for run in runs:
        name, outcome = run["scenario"], run["outcome"]
        summary = (folder / name / "mlperf_log_summary.txt").read_text()
        assert "Result is : VALID" in summary and "No errors encountered" in summary
        assert "sample_index_rng_seed : 14771362308971278857" in summary
        assert run["driver"] == "loadgen" and run["latency"]["count"] >= 700
        # LoadGen held the run for valid by what was asked for; by the scenario it was a short one.
        assert outcome["valid"] is False and outcome["why_not"] == ["600 s are wanted, not 0.3"]
        if outcome["percentile"] is None:
            assert outcome["samples_per_s"] > 0
        elif run["kept_every"] == 1:
            ours = judge(SCENARIOS[name], run["times_ms"], len(run["times_ms"]), 600.0, 1)
            assert ours.latency_ms is not None and ours.latency_ms <= outcome["latency_ms"] + 1e-6
