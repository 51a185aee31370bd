# SPDX-License-Identifier: Apache-2.0
"""The scenarios of MLPerf Inference, and when a run of one is valid.

The minima and seeds are those of `loadgen/mlperf.conf` in github.com/mlcommons/inference. SingleStream and MultiStream
stop early: a percentile p is not read off the sorted latencies but estimated from above. Of n queries the t slowest are
set aside, t as large as it can be while at most t of n independent queries exceed the true percentile with a
probability below 1 % (binomial, 1 - p each); the fastest of those t bounds the percentile with 99 % confidence. That
wants at least 64 queries for p = 0.90 and 662 for p = 0.99.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["DRIVERS", "Outcome", "SCENARIOS", "Scenario", "judge", "least_queries", "sample_order", "set_aside"]

# What issues the queries.
DRIVERS = ("loadgen", "python")
_RISK = 0.01
# One round of the benchmark's seeds: they fix which sample is drawn when.
QSL_SEED = 1780908523862526354
SAMPLE_SEED = 14771362308971278857
SCHEDULE_SEED = 18209322760996052031


@dataclass(frozen=True)
class Scenario:
    """How queries arrive.

    Attributes:
        name: SingleStream, MultiStream or Offline.
        percentile: Of the query's latency, 0..1, that is the scenario's figure; None when the rate is.
        samples_per_query: Samples in one query; None: all in one.
        min_duration_s: A valid run lasts at least so long.
        min_queries: A valid run has at least so many queries.
        most_samples: Offline: a valid run has as many samples as the data set, but no more than this are asked for.
    """

    name: str
    percentile: float | None
    samples_per_query: int | None
    min_duration_s: float = 600.0
    min_queries: int = 1
    most_samples: int = 0


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("SingleStream", 0.90, 1),
        Scenario("MultiStream", 0.99, 8, min_queries=662),
        Scenario("Offline", None, None, most_samples=24576),
    )
}


@dataclass(frozen=True)
class Outcome:
    """A run judged by its scenario.

    Attributes:
        percentile: The scenario's; None for Offline.
        latency_ms: The early-stopping estimate of that percentile; None for Offline, or after too few queries.
        samples_per_s: Offline's figure; None for the others.
        set_aside: How many of the slowest queries the estimate leaves out.
        valid: By the scenario's own minima.
        why_not: What a valid run lacks.
        judged_by: `arenite`, or LoadGen and its version.
    """

    percentile: float | None
    latency_ms: float | None
    samples_per_s: float | None
    set_aside: int
    valid: bool
    why_not: tuple[str, ...]
    judged_by: str = "arenite"


def judge(scenario: Scenario, times_ms: Sequence[float], samples: int, duration_s: float, data_set: int) -> Outcome:
    """A run by the scenario's rules.

    Args:
        scenario: Its rules.
        times_ms: Latency of each query.
        samples: Inferences in all queries.
        duration_s: SingleStream and MultiStream: until the last query was issued; Offline: until the last was done.
        data_set: How many different samples there are.
    """
    queries = len(times_ms)
    why_not = []
    if duration_s < scenario.min_duration_s:
        why_not.append(f"{scenario.min_duration_s:g} s are wanted, not {duration_s:.3g}")
    if scenario.percentile is None:
        wanted = min(scenario.most_samples, data_set)
        if samples < wanted:
            why_not.append(f"{wanted:,} samples are wanted, not {samples:,}")
        return Outcome(None, None, samples / duration_s, 0, not why_not, tuple(why_not))
    wanted = max(scenario.min_queries, least_queries(scenario.percentile))
    if queries < wanted:
        why_not.append(f"{wanted:,} queries are wanted, not {queries:,}")
    aside = set_aside(queries, scenario.percentile)
    estimate = float(np.partition(np.asarray(times_ms), queries - aside)[queries - aside]) if aside else None
    return Outcome(scenario.percentile, estimate, None, max(0, aside - 1), not why_not, tuple(why_not))


def set_aside(queries: int, percentile: float) -> int:
    """Rank from the slowest of the query whose latency bounds the percentile; 0 when there are too few queries."""
    exceeding = 1 - percentile
    low, high = 0, int(queries * exceeding)
    while low < high:
        middle = (low + high + 1) // 2
        if _at_most(middle, queries, exceeding) < _RISK:
            low = middle
        else:
            high = middle - 1
    return low


def least_queries(percentile: float) -> int:
    """How many queries the estimate of a percentile needs."""
    queries = 1
    while _at_most(1, queries, 1 - percentile) >= _RISK:
        queries += 1
    return queries


def _at_most(events: int, trials: int, probability: float) -> float:
    """Binomial probability of at most `events`, which is not above the mean by much."""
    if events >= trials:
        return 1.0
    log = math.lgamma(trials + 1) - math.lgamma(events + 1) - math.lgamma(trials - events + 1)
    log += events * math.log(probability) + (trials - events) * math.log1p(-probability)
    term = total = 1.0
    for k in range(events, 0, -1):
        term *= k * (1 - probability) / ((trials - k + 1) * probability)
        total += term
        if term < 1e-17 * total:
            break
    return math.exp(log) * total


def sample_order(scenario: Scenario, data_set: int) -> Iterator[int]:
    """Which sample each inference takes: drawn with replacement by the benchmark's seed, Offline in turn.

    A MultiStream query takes neighbours from the sample that was drawn. LoadGen draws in the same way, but its order
    also depends on its version and its C++ library, so it is another one.
    """
    if scenario.samples_per_query is None:
        while True:
            yield from range(data_set)
    random = np.random.RandomState(SAMPLE_SEED % 2**32)
    while True:
        for first in random.randint(0, data_set, 1024):
            yield from ((int(first) + i) % data_set for i in range(scenario.samples_per_query))
