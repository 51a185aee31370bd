# SPDX-License-Identifier: Apache-2.0
"""Comparing benchmarks: intervals that hold the truth as often as they say, verdicts, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import arenite
from arenite.comparison import STATISTICS, ratio_interval
from arenite.errors import UsageError

Array = npt.NDArray[np.float64]


def report(times_ms: Array, **changes: Any) -> dict[str, Any]:
    """What a benchmark's JSON holds, as far as a comparison reads it."""
    content: dict[str, Any] = {
        "format": "arenite-bench-1",
        "model_sha256": "ab" * 32,
        "scenario": "SingleStream",
        "driver": "python",
        "warm_up": 5,
        "workload": "model",
        "pictures_sha256": None,
        "engine": {"engine": "litert", "version": "2.3.0", "kernels": "fast", "threads": 1},
        "machine": {"name": "a", "cpu": "c", "cores": 4, "system": "Linux aarch64", "governor": "schedutil"},
        "times_ms": list(times_ms),
    }
    return {**content, **changes}


def written(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def latencies(random: np.random.Generator, size: int, memory: float = 0.0) -> Array:
    """Log-normal, each like the one before by `memory`."""
    noise = random.normal(size=size)
    for i in range(1, size):
        noise[i] = memory * noise[i - 1] + np.sqrt(1 - memory**2) * noise[i]
    found: Array = np.exp(0.1 * noise)
    return found


def hits(intervals: list[tuple[float, float]], truth: float) -> int:
    return sum(low <= truth <= high for low, high in intervals)


@pytest.mark.parametrize("memory", [0.0, 0.7])
@pytest.mark.parametrize("name", ["mean", "p50", "p90"])
def test_interval_of_single_runs_holds_the_truth(name: str, memory: float) -> None:
    """Of 60 intervals of 95 %, 57 are expected; fewer than 49 would be a chance of 1 in 2,000 at 93 %."""
    random = np.random.default_rng(3)
    pairs = [(latencies(random, 400, memory), 1.03 * latencies(random, 400, memory)) for _ in range(60)]
    assert hits([ratio_interval([a], [b], STATISTICS[name]) for a, b in pairs], 1.03) >= 49


@pytest.mark.parametrize("runs", [2, 4])
def test_interval_of_several_runs_holds_what_differs_between_them(runs: int) -> None:
    """Each process has a factor of its own, which single runs cannot know."""
    random = np.random.default_rng(4)

    def side(scale: float) -> list[Array]:
        return [scale * np.exp(random.normal(0, 0.2)) * latencies(random, 100) for _ in range(runs)]

    pairs = [(side(1.0), side(1.5)) for _ in range(300)]
    assert hits([ratio_interval(a, b, STATISTICS["p50"]) for a, b in pairs], 1.5) >= 273
    single = [ratio_interval(a[:1], b[:1], STATISTICS["p50"]) for a, b in pairs[:60]]
    assert hits(single, 1.5) < 30


def test_welch_by_hand() -> None:
    """Logarithms 0, 2 against 5, 7, 9: difference 6, standard error sqrt(1 + 4/3), 2 degrees of freedom, t 4.303."""
    before, after = ([np.full(3, np.exp(value)) for value in values] for values in ((0.0, 2.0), (5.0, 7.0, 9.0)))
    low, high = np.log(ratio_interval(before, after, STATISTICS["p50"]))
    half = 4.303 * np.sqrt(1 + 4 / 3)
    assert (low, high) == pytest.approx((6 - half, 6 + half))


def test_verdicts(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    times = latencies(random, 300)
    same = written(tmp_path / "same.json", report(times))
    other = written(tmp_path / "other.json", report(latencies(random, 300)))
    slow = written(tmp_path / "slow.json", report(1.2 * times))
    assert arenite.compare(same, other).verdict == "no difference"
    found = arenite.compare(same, slow, by="p90", max_ratio=1.05)
    assert (found.verdict, found.within_limit, found.by) == ("slower", False, "p90")
    assert [row.ratio for row in found.rows] == pytest.approx([1.2] * 4)
    assert arenite.compare(slow, same).verdict == "faster"
    assert arenite.compare(same, slow, max_ratio=1.3).within_limit
    assert arenite.compare(same, same).rows[1].ratio == 1


def test_folders_hold_runs(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    for side, scale in (("a", 1.0), ("b", 2.0)):
        for run in range(3):
            written(tmp_path / side / str(run) / "bench.json", report(scale * latencies(random, 50)))
    found = arenite.compare(tmp_path / "a", tmp_path / "b")
    assert found.runs == (3, 3) and found.verdict == "slower"
    assert [row.name for row in found.rows] == ["mean", "p50", "p90"]
    (tmp_path / "c").mkdir()
    with pytest.raises(UsageError, match="no benchmark"):
        arenite.compare(tmp_path / "a", tmp_path / "c")


def test_logs_of_loadgen_are_no_runs(tmp_path: Path) -> None:
    """LoadGen writes traces beside `bench.json`, and an empty one is no JSON."""
    random = np.random.default_rng(6)
    for side in ("a", "b"):
        for run in range(2):
            folder = tmp_path / side / str(run)
            written(folder / "bench.json", report(latencies(random, 50)))
            written(folder / "mlperf_log_accuracy.json", [])
            (folder / "mlperf_log_trace.json").write_text("")
    assert arenite.compare(tmp_path / "a", tmp_path / "b").runs == (2, 2)
    for name in ("a/0", "a/1"):
        (tmp_path / name / "bench.json").unlink()
    with pytest.raises(UsageError, match="no benchmark"):
        arenite.compare(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_sha256": "cd" * 32}, "model differs"),
        ({"scenario": "Offline"}, "scenario differs"),
        ({"workload": "pictures"}, "workload differs"),
        ({"pictures_sha256": "12"}, "pictures differs"),
        ({"machine": {"cpu": "d", "cores": 4, "system": "Linux aarch64"}}, r"machine \(cpu\) differs"),
        ({"machine": {"cpu": "c", "cores": 8, "system": "Linux aarch64"}}, r"machine \(cores\) differs"),
    ],
)
def test_what_is_not_comparable_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    times = latencies(np.random.default_rng(7), 50)
    before = written(tmp_path / "a.json", report(times))
    with pytest.raises(UsageError, match=said):
        arenite.compare(before, written(tmp_path / "b.json", report(times, **changes)))


def test_other_differences_are_told(tmp_path: Path) -> None:
    times = latencies(np.random.default_rng(8), 50)
    changes = {"engine": {"engine": "aot", "version": "2.3.0", "kernels": "fast", "threads": 2}}
    found = arenite.compare(
        written(tmp_path / "a.json", report(times)), written(tmp_path / "b.json", report(times, **changes))
    )
    assert found.differences == (("engine engine", "litert", "aot"), ("engine threads", "1", "2"))


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"format": "arenite-bench-0"},
        report(np.array([])),
        report(np.ones(19)),
        {**report(np.ones(30)), "times_ms": [1.0, "2"]},
        {**report(np.ones(30)), "times_ms": [0.0] * 30},
        {**report(np.ones(30)), "machine": None},
    ],
)
def test_files_that_are_none(tmp_path: Path, content: object) -> None:
    good = written(tmp_path / "a.json", report(np.ones(30)))
    with pytest.raises(UsageError):
        arenite.compare(good, written(tmp_path / "b.json", content))


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    good = written(tmp_path / "a.json", report(np.ones(30)))
    with pytest.raises(UsageError, match="no statistic"):
        arenite.compare(good, good, by="p75")
    for ratio in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="no sense"):
            arenite.compare(good, good, max_ratio=ratio)
    (tmp_path / "broken.json").write_text("{")
    for path in ("broken.json", "gone.json"):
        with pytest.raises(UsageError, match=path):
            arenite.compare(good, tmp_path / path)
