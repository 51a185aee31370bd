# SPDX-License-Identifier: Apache-2.0
"""Stage times and percentiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

__all__ = ["Percentiles", "StageRow", "Timing", "percentiles", "stage_table"]


@dataclass(frozen=True)
class Timing:
    """Wall time of each stage of one inference, in milliseconds."""

    read_ms: float = 0.0
    decode_ms: float = 0.0
    resize_ms: float = 0.0
    invoke_ms: float = 0.0
    post_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        """Sum of all stages."""
        return float(sum(getattr(self, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Percentiles:
    """Nearest-rank percentiles in milliseconds. One that so few samples cannot resolve is None.

    Percentile p needs at least 1 / (1 - p) samples: 2 for p50, 10 for p90, 100 for p99, 1000 for p99.9.
    """

    count: int
    min_ms: float
    mean_ms: float
    max_ms: float
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    p99_9_ms: float | None


@dataclass(frozen=True)
class StageRow:
    """One stage over many inferences.

    Attributes:
        stage: read, decode, resize, invoke, post or total.
        times: Its percentiles.
        share: Part of the mean total time, 0..1.
        best_gain: How many times faster the whole would be if this stage took no time (Amdahl);
            inf for `total`.
    """

    stage: str
    times: Percentiles
    share: float
    best_gain: float


def percentiles(times_ms: Iterable[float]) -> Percentiles:
    """Percentiles of at least one time.

    Raises:
        ValueError: No times were given.
    """
    ordered = sorted(times_ms)
    if not ordered:
        raise ValueError("no times were given")
    return Percentiles(
        count=len(ordered),
        min_ms=ordered[0],
        mean_ms=math.fsum(ordered) / len(ordered),
        max_ms=ordered[-1],
        p50_ms=_rank(ordered, 500),
        p90_ms=_rank(ordered, 900),
        p99_ms=_rank(ordered, 990),
        p99_9_ms=_rank(ordered, 999),
    )


def _rank(ordered: Sequence[float], per_mille: int) -> float | None:
    if len(ordered) * (1000 - per_mille) < 1000:
        return None
    return ordered[-(-len(ordered) * per_mille // 1000) - 1]


def stage_table(timings: Sequence[Timing]) -> tuple[StageRow, ...]:
    """Each stage's percentiles and share, `total` last."""
    stages = {f.name.removesuffix("_ms"): [getattr(t, f.name) for t in timings] for f in fields(Timing)}
    stages["total"] = [t.total_ms for t in timings]
    rows = {name: percentiles(times) for name, times in stages.items()}
    whole = rows["total"].mean_ms or math.inf
    shares = {name: row.mean_ms / whole for name, row in rows.items()}
    return tuple(
        StageRow(name, row, shares[name], 1 / (1 - shares[name]) if shares[name] < 1 else math.inf)
        for name, row in rows.items()
    )
