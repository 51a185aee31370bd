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
_PEAK_S = 0.05


@dataclass(frozen=True)
class Portion:
    """What a trace says of a window.

    Attributes:
        joules: Energy of the seen part.
        seen_s: Length of the seen part.
        peak_w: Highest power in it: the highest sample of a sensor, the highest mean over 50 ms of a counter, whose
            ticks make shorter ones a matter of chance.
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
        self._counts = quantity == JOULES
        valid = ~np.isnan(samples.values)
        # A failed reading is no point. A counter's next reading covers its time, a sensor's does not.
        broken = np.cumsum(samples.gaps if self._counts else samples.gaps | ~valid)
        self._times_s = samples.times_s[valid]
        self._values = values = samples.values[valid]
        unseen = np.diff(broken[valid]) > 0
        steps_s = np.diff(self._times_s)
        steps_j = np.diff(values) if self._counts else (values[1:] + values[:-1]) / 2 * steps_s
        seen_s = np.where(unseen, 0.0, steps_s)
        self._joules = np.concatenate([[0.0], np.cumsum(np.where(unseen, 0.0, steps_j))])
        self._seen_s = np.concatenate([[0.0], np.cumsum(seen_s)])

    def portion(self, start_s: float, end_s: float) -> Portion:
        """The window from `start_s` to `end_s`; what lies before the first and after the last sample is not seen."""
        if len(self._times_s) < 2 or end_s <= start_s:
            return Portion(0.0, 0.0, 0.0, 0)
        ends = [start_s, end_s]
        joules = np.diff(np.interp(ends, self._times_s, self._joules))[0]
        seen_s = np.diff(np.interp(ends, self._times_s, self._seen_s))[0]
        first, last = (int(i) for i in np.searchsorted(self._times_s, ends))
        return Portion(float(joules), float(seen_s), self._peak_w(first, last), last - first)

    def _peak_w(self, first: int, last: int) -> float:
        """The peak over the samples from `first` to before `last`."""
        if not self._counts:
            return float(self._values[first:last].max(initial=0.0))
        starts = np.arange(first, last)
        ends = np.searchsorted(self._times_s[:last], self._times_s[first:last] + _PEAK_S)
        starts, ends = starts[ends < last], ends[ends < last]
        seen_s = self._seen_s[ends] - self._seen_s[starts]
        joules = self._joules[ends] - self._joules[starts]
        return float((joules[seen_s > 0] / seen_s[seen_s > 0]).max(initial=0.0))


def join(blocks: list[Samples]) -> Samples:
    """Blocks as one."""
    if not blocks:
        return Samples.none()
    return Samples(
        np.concatenate([block.times_s for block in blocks]),
        np.concatenate([block.values for block in blocks]),
        np.concatenate([block.gaps for block in blocks]).astype(bool),
    )
