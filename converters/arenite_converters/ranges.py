# SPDX-License-Identifier: Apache-2.0
"""The range that each activation's INT8 grid spans, estimated from calibration samples.

Every estimator works on a histogram between the smallest and the largest value seen. Zero is always inside the range,
since padding writes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import ModelError
from arenite.progress import Step
from arenite_converters.layers import ActivationRunner

__all__ = ["ESTIMATORS", "Histogram", "activation_ranges", "estimate"]

Array = npt.NDArray[Any]
Range = tuple[float, float]

_BINS = 2048
# Values of one activation of one sample that are counted, evenly spread; smallest and largest are of all.
_COUNTED = 1 << 16
_LEVELS = 255
_TAIL = 1e-5
# Of the value range, on each side: what a search keeps at least, and how finely it looks.
_KEPT = np.linspace(1.0, 0.2, 41)


@dataclass(frozen=True)
class Histogram:
    """How often an activation's values fell into bins of equal width.

    Attributes:
        low: Lower edge of the first bin, the smallest value seen.
        high: Upper edge of the last bin, the largest value seen.
        counts: One for each bin.
    """

    low: float
    high: float
    counts: Array

    @property
    def centres(self) -> Array:
        """The value in the middle of each bin."""
        edges = np.linspace(self.low, self.high, len(self.counts) + 1)
        return np.asarray((edges[1:] + edges[:-1]) / 2)


def activation_ranges(
    content: bytes, samples: Sequence[npt.NDArray[np.float32]], estimator: str, step: Step | None = None
) -> dict[str, Range]:
    """The range of the input and of every computed tensor of a float model.

    Args:
        content: Float TFLite file's bytes.
        samples: Inputs in real values.
        estimator: One of `ESTIMATORS`.
        step: Told about each sample.

    Returns:
        Smallest and largest value of the grid, by the tensor's name.

    Raises:
        ModelError: A tensor is not finite.
    """
    runner = ActivationRunner(content)
    extent: dict[str, Range] = {}
    for sample in samples:
        for name, values in runner.activations(sample):
            low, high = float(values.min()), float(values.max())
            if not (np.isfinite(low) and np.isfinite(high)):
                cure = "Check the trained model's weights and the calibration samples."
                raise ModelError("an activation is NaN or infinite", where=name, cure=cure)
            before = extent.get(name, (low, high))
            extent[name] = min(low, before[0]), max(high, before[1])
        if step is not None:
            step.advance()
    if estimator == "min-max":
        return extent
    counts = {name: np.zeros(_BINS, np.int64) for name in extent}
    for sample in samples:
        for name, values in runner.activations(sample):
            counts[name] += _counted(values, *extent[name])
    return {name: estimate(Histogram(*extent[name], counts[name]), estimator) for name in extent}


def _counted(values: Array, low: float, high: float) -> Array:
    stride = -(-values.size // _COUNTED)
    while math.gcd(stride, values.shape[-1] if values.ndim else 1) > 1:
        stride += 1  # a stride that divides the channels would never see some of them
    some = values.reshape(-1)[::stride]
    width = max(high - low, float(np.finfo(np.float32).tiny)) / _BINS
    return np.bincount(np.minimum((some - low) / width, _BINS - 1).astype(np.int32), minlength=_BINS)


def estimate(histogram: Histogram, estimator: str) -> Range:
    """The range for one histogram.

    Args:
        histogram: Of one activation.
        estimator: `min-max` takes all values in; `percentile` leaves 1e-5 of them out on each side; `mse` makes the
            mean squared error of the 8-bit grid smallest; `entropy` the divergence between the values' distribution
            and the one that the grid can show.
    """
    if histogram.high <= histogram.low:
        return histogram.low, histogram.high
    return _ESTIMATORS[estimator](histogram)


def _min_max(histogram: Histogram) -> Range:
    return histogram.low, histogram.high


def _percentile(histogram: Histogram) -> Range:
    share = np.cumsum(histogram.counts) / histogram.counts.sum()
    edges = np.linspace(histogram.low, histogram.high, len(share) + 1)
    first = int(np.searchsorted(share, _TAIL, side="right"))
    last = int(np.searchsorted(share, 1 - _TAIL))
    return float(edges[first]), float(edges[min(last + 1, len(share))])


def _best(histogram: Histogram, cost: Callable[[Histogram, float, float], float]) -> Range:
    low, high = min(histogram.low, 0.0), max(histogram.high, 0.0)
    lows = low * _KEPT if low < 0 else np.zeros(1)
    highs = high * _KEPT if high > 0 else np.zeros(1)
    # Of equal costs the widest range wins: it comes first.
    return min(((float(a), float(b)) for a in lows for b in highs), key=lambda r: cost(histogram, *r))


def _squared_error(histogram: Histogram, low: float, high: float) -> float:
    levels, scale, zero_point = _grid(histogram.centres, low, high)
    error = (levels - zero_point) * scale - histogram.centres
    return float((histogram.counts * error**2).sum())


def _divergence(histogram: Histogram, low: float, high: float) -> float:
    """Kullback and Leibler's, of the values clipped to the range from their 8-bit picture."""
    centres, counts = histogram.centres, histogram.counts.astype(np.float64)
    # Zeros of a ReLU are exact on every grid and so many that they would hide the rest.
    zero = int(np.abs(centres).argmin())
    counts[zero] = counts[max(zero - 1, 0) : zero + 2].min()
    inside = (centres >= low) & (centres <= high)
    shown, levels = counts[inside], _grid(centres[inside], low, high)[0].astype(np.int64)
    clipped = shown.copy()
    if not len(shown) or not shown.sum():
        return float("inf")
    clipped[0] += counts[centres < low].sum()
    clipped[-1] += counts[centres > high].sum()
    filled = np.bincount(levels, shown > 0, _LEVELS + 1)
    spread = np.where(shown > 0, (np.bincount(levels, shown, _LEVELS + 1) / np.maximum(filled, 1))[levels], 0)
    p, q = clipped / clipped.sum(), spread / spread.sum()
    seen = p > 0
    return float((p[seen] * np.log(p[seen] / np.maximum(q[seen], 1e-12))).sum())


def _grid(values: Array, low: float, high: float) -> tuple[Array, float, float]:
    scale = (high - low) / _LEVELS
    zero_point = float(np.round(-low / scale))
    return np.clip(np.round(values / scale) + zero_point, 0, _LEVELS), scale, zero_point


_ESTIMATORS: dict[str, Callable[[Histogram], Range]] = {
    "min-max": _min_max,
    "percentile": _percentile,
    "mse": lambda histogram: _best(histogram, _squared_error),
    "entropy": lambda histogram: _best(histogram, _divergence),
}
ESTIMATORS = tuple(_ESTIMATORS)
