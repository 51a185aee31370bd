# SPDX-License-Identifier: Apache-2.0
"""Samples of one meter over time, and what they say of any window: energy, seen time, peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.meters.base import JOULES, Samples

__all__ = ["Portion", "Trace", "join"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Portion:
    """What a trace says of a window.

    Attributes:
        joules: Energy of the seen part.
        seen_s: Length of the seen part.
        peak_w: Highest power between two samples that touch the window, 0 when none does.
        samples: How many lie in it.
    """

    joules: float
    seen_s: float
    peak_w: float
    samples: int


class Trace:
    """Integrates samples. Between two samples of a counter the power is taken as constant, between two of a sensor as
    a straight line; over a gap nothing is taken.

    Args:
        quantity: What the values are, `JOULES` or `WATTS`.
        samples: In order of time.
    """

    def __init__(self, quantity: str, samples: Samples) -> None:
        valid = ~np.isnan(samples.values)
        # A failed reading is no point. A counter's next reading covers its time, a sensor's does not.
        broken = np.cumsum(samples.gaps if quantity == JOULES else samples.gaps | ~valid)
        self._times_s = samples.times_s[valid]
        values = samples.values[valid]
        unseen = np.diff(broken[valid]) > 0
        steps_s = np.diff(self._times_s)
        means_w = np.diff(values) / np.maximum(steps_s, 1e-9) if quantity == JOULES else (values[1:] + values[:-1]) / 2
        seen_s = np.where(unseen, 0.0, steps_s)
        self._powers_w = np.where(unseen, 0.0, means_w)
        self._joules = np.concatenate([[0.0], np.cumsum(self._powers_w * seen_s)])
        self._seen_s = np.concatenate([[0.0], np.cumsum(seen_s)])

    @property
    def end_s(self) -> float:
        """When the last good sample was taken; minus infinity without any."""
        return float(self._times_s[-1]) if len(self._times_s) else -np.inf

    def portion(self, start_s: float, end_s: float) -> Portion:
        """The window from `start_s` to `end_s`; what lies before the first and after the last sample is not seen."""
        if len(self._times_s) < 2 or end_s <= start_s:
            return Portion(0.0, 0.0, 0.0, 0)
        ends = [start_s, end_s]
        joules = np.diff(np.interp(ends, self._times_s, self._joules))[0]
        seen_s = np.diff(np.interp(ends, self._times_s, self._seen_s))[0]
        first, last = np.searchsorted(self._times_s, ends)
        powers_w = self._powers_w[max(0, first - 1) : last]
        return Portion(float(joules), float(seen_s), float(powers_w.max(initial=0.0)), int(last - first))


def join(blocks: list[Samples]) -> Samples:
    """Blocks as one."""
    if not blocks:
        return Samples.none()
    return Samples(
        np.concatenate([block.times_s for block in blocks]),
        np.concatenate([block.values for block in blocks]),
        np.concatenate([block.gaps for block in blocks]).astype(bool),
    )
