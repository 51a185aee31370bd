# SPDX-License-Identifier: Apache-2.0
"""Two benchmarks compared: how many times as long does the second take?

Two intervals exist. With several runs of each side, each run gives one statistic, and Welch's t interval of the mean
logarithms is the answer: it holds what differs from one process to the next (memory layout, other work on the machine),
which no single run knows. With one run of a side there is only what varies within it: a moving-block bootstrap, as
latencies that follow each other resemble each other. Blocks of a fiftieth of a run are drawn, with replacement, until a
run is full; the statistic of 2,000 such runs of each side gives 2,000 ratios, and their 2.5th and 97.5th percentiles
the interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from arenite._reports import plain
from arenite.errors import UsageError
from arenite.metering import student_95

if TYPE_CHECKING:
    from arenite.benchmark import BenchReport

    Benchmark: TypeAlias = BenchReport | Path | str
    Benchmarks: TypeAlias = Benchmark | Sequence[Benchmark]

__all__ = ["ComparisonReport", "FORMAT", "Ratio", "STATISTICS", "compare_reports", "ratio_interval"]

FORMAT = "arenite-bench-1"
Array = npt.NDArray[np.float64]
_RESAMPLED, _BLOCKS, _SEED = 2000, 50, 1
_LEAST = 20
# What LoadGen leaves beside `bench.json`.
_LOADGEN_LOGS = "mlperf_log_"


def _percentile(part: float) -> Callable[[Array], float]:
    def statistic(run: Array) -> float:
        rank = math.ceil(len(run) * part) - 1
        return float(np.partition(run, rank)[rank])

    return statistic


def _mean(run: Array) -> float:
    return float(run.mean())


STATISTICS = {"mean": _mean, "p50": _percentile(0.50), "p90": _percentile(0.90), "p99": _percentile(0.99)}
# A percentile p needs 1 / (1 - p) latencies.
_NEEDED = {"mean": 1, "p50": 2, "p90": 10, "p99": 100}


@dataclass(frozen=True)
class Ratio:
    """One statistic of both runs.

    Attributes:
        name: `mean`, `p50`, `p90` or `p99`.
        before_ms: Of the first side; of several runs the geometric mean.
        after_ms: Of the second.
        ratio: Second over first.
        interval: 95 % confidence interval of the ratio.
        verdict: `faster`, `slower` or `no difference`: the interval lies below 1, above 1, or holds it.
    """

    name: str
    before_ms: float
    after_ms: float
    ratio: float
    interval: tuple[float, float]
    verdict: str


@dataclass(frozen=True)
class ComparisonReport:
    """Two benchmarks compared.

    Attributes:
        by: The statistic that decides.
        verdict: Its verdict.
        max_ratio: What was allowed.
        within_limit: The interval of the deciding ratio does not lie above `max_ratio`.
        rows: All statistics that both runs resolve.
        differences: What else differs between the runs: name, before, after.
        runs: How many runs of each side.
    """

    model_sha256: str
    scenario: str
    by: str
    verdict: str
    max_ratio: float
    within_limit: bool
    rows: tuple[Ratio, ...]
    differences: tuple[tuple[str, str, str], ...]
    runs: tuple[int, int]


def compare_reports(
    before: Benchmarks, after: Benchmarks, *, by: str = "p50", max_ratio: float = 1.0
) -> ComparisonReport:
    """See `arenite.compare`."""
    if by not in STATISTICS:
        raise UsageError(f"there is no statistic '{by}'", cure=f"Choose one of {', '.join(STATISTICS)}.")
    if not 0 < max_ratio < math.inf:
        raise UsageError(f"a limit of {max_ratio:g} makes no sense", cure="Give a ratio above 0, such as 1.05.")
    runs_a, runs_b = _contents(before), _contents(after)
    first, second = runs_a[0], runs_b[0]
    for content in (*runs_a[1:], *runs_b):
        _refuse(first, content)
    times_a, times_b = ([np.array(run["times_ms"]) for run in runs] for runs in (runs_a, runs_b))
    fewest = min(map(len, (*times_a, *times_b)))
    if fewest < max(_LEAST, _NEEDED[by]):
        needed = max(_LEAST, _NEEDED[by])
        raise UsageError(f"{fewest} latencies are too few for {by}, {needed} are needed", cure="Measure for longer.")
    rows = tuple(_ratio(name, times_a, times_b) for name in STATISTICS if fewest >= _NEEDED[name])
    decisive = next(row for row in rows if row.name == by)
    return ComparisonReport(
        model_sha256=first["model_sha256"],
        scenario=first["scenario"],
        by=by,
        verdict=decisive.verdict,
        max_ratio=max_ratio,
        within_limit=decisive.interval[0] <= max_ratio,
        rows=rows,
        differences=tuple(_differences(first, second)),
        runs=(len(runs_a), len(runs_b)),
    )


def ratio_interval(before: list[Array], after: list[Array], statistic: Callable[[Array], float]) -> tuple[float, float]:
    """95 % interval of `statistic(after) / statistic(before)`.

    Args:
        before: The latencies of each run, in the order in which they were measured.
        after: As `before`.
        statistic: Of one run.
    """
    if min(len(before), len(after)) > 1:
        return _between_runs(before, after, statistic)
    random = np.random.default_rng(_SEED)
    ratios = _resampled(np.concatenate(after), statistic, random) / _resampled(
        np.concatenate(before), statistic, random
    )
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(low), float(high)


def _between_runs(
    before: list[Array], after: list[Array], statistic: Callable[[Array], float]
) -> tuple[float, float]:
    """Welch's t interval: B. L. Welch, Biometrika 34 (1947)."""
    logs = [np.log([statistic(run) for run in runs]) for runs in (before, after)]
    errors = [float(values.var(ddof=1)) / len(values) for values in logs]
    error = sum(errors)
    middle = float(logs[1].mean() - logs[0].mean())
    if error == 0:
        return math.exp(middle), math.exp(middle)
    parts = (part**2 / (len(values) - 1) for part, values in zip(errors, logs, strict=True))
    half = student_95(int(error**2 / sum(parts))) * math.sqrt(error)
    return math.exp(middle - half), math.exp(middle + half)


def _resampled(values: Array, statistic: Callable[[Array], float], random: np.random.Generator) -> Array:
    """The statistic of runs that are made of blocks of one run."""
    length = -(-len(values) // _BLOCKS)
    count = -(-len(values) // length)
    found = np.empty(_RESAMPLED)
    for i in range(_RESAMPLED):
        starts = random.integers(0, len(values) - length + 1, (count, 1))
        found[i] = statistic(values[(starts + np.arange(length)).ravel()[: len(values)]])
    return found


def _ratio(name: str, before: list[Array], after: list[Array]) -> Ratio:
    statistic = STATISTICS[name]
    low, high = ratio_interval(before, after, statistic)
    verdict = "faster" if high < 1 else "slower" if low > 1 else "no difference"
    a, b = (math.exp(float(np.mean([math.log(statistic(run)) for run in runs]))) for runs in (before, after))
    return Ratio(name, a, b, b / a, (low, high), verdict)


def _contents(reports: Benchmarks) -> list[Mapping[str, Any]]:
    """The JSON of one report or of several."""
    if isinstance(reports, str | Path) and Path(reports).is_dir():
        found = sorted(p for p in Path(reports).rglob("*.json") if not p.name.startswith(_LOADGEN_LOGS))
        if not found:
            cure = "Give a folder with what `arenite bench --json` or `--out` wrote."
            raise UsageError("the folder holds no benchmark", where=str(reports), cure=cure)
        return [_content(path) for path in found]
    if isinstance(reports, Sequence) and not isinstance(reports, str):
        return [_content(report) for report in reports]
    return [_content(reports)]


def _content(report: Benchmark) -> Mapping[str, Any]:
    """A report's JSON.

    Raises:
        UsageError: It is none.
    """
    if not isinstance(report, str | Path):
        return dict(plain(report))
    where, cure = str(report), "Give what `arenite bench --json` or `--out` wrote."
    try:
        content = json.loads(Path(report).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the file: {error.strerror or error}", where=where, cure=cure) from error
    except ValueError as error:
        raise UsageError(f"this is no JSON: {error}", where=where, cure=cure) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UsageError(f"this is no benchmark of the format {FORMAT}", where=where, cure=cure)
    shape = {"model_sha256": str, "scenario": str, "workload": str, "machine": dict, "engine": dict, "times_ms": list}
    wrong = [name for name, kind in shape.items() if not isinstance(content.get(name), kind)]
    if wrong or not all(isinstance(time_ms, float | int) and time_ms > 0 for time_ms in content["times_ms"]):
        field = wrong[0] if wrong else "times_ms"
        raise UsageError(f"field '{field}' is missing or wrong", where=where, cure=cure)
    return content


def _refuse(first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    """Raises when a ratio would say nothing."""
    same = {
        "model": [content["model_sha256"] for content in (first, second)],
        "scenario": [content["scenario"] for content in (first, second)],
        "workload": [content["workload"] for content in (first, second)],
        "pictures": [content.get("pictures_sha256") for content in (first, second)],
    }
    for name in ("cpu", "cores", "system"):
        same[f"machine ({name})"] = [content["machine"].get(name) for content in (first, second)]
    for name, (a, b) in same.items():
        if a != b:
            what = f"the two are not comparable, the {name} differs: {a} and {b}"
            raise UsageError(what, cure="Compare runs of one model on one kind of machine with one workload.")


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What may explain a ratio."""
    for part, names in {
        "": ("driver", "warm_up"),
        "engine": ("engine", "version", "kernels", "threads"),
        "machine": ("name", "kernel", "governor", "max_frequency_mhz", "python", "versions"),
    }.items():
        a, b = (content.get(part, {}) if part else content for content in (first, second))
        for name in names:
            if a.get(name) != b.get(name):
                yield f"{part} {name}".strip(), str(a.get(name)), str(b.get(name))
