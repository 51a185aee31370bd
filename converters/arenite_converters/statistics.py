# SPDX-License-Identifier: Apache-2.0
"""The few statistics that a conversion report needs, each with its source; all are deterministic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["energy_distance", "signal_interval_db", "sqnr_db", "wilson_interval"]

Array = npt.NDArray[Any]
# Two-sided 95 % of the normal distribution.
_Z = 1.959963984540054
_RESAMPLED, _SEED = 2000, 1


def sqnr_db(signal: Array, quantised: Array) -> float:
    """Signal to quantisation noise in decibels; inf when equal."""
    signal = signal.astype(np.float64)
    return decibels(float((signal**2).sum()), float(((signal - quantised) ** 2).sum()))


def decibels(power: float, noise: float) -> float:
    """Ratio of two powers in decibels; inf without noise, -inf of nothing but noise."""
    if noise == 0:
        return math.inf
    return 10 * math.log10(power / noise) if power > 0 else -math.inf


def wilson_interval(hits: int, count: int) -> tuple[float, float]:
    """95 % interval of a share: E. B. Wilson, JASA 22 (1927).

    It stays inside 0..1 and is right for shares near 1 and for few samples, where the usual ± is not.
    """
    share = hits / count
    middle = share + _Z**2 / (2 * count)
    half = _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    low, high = (middle - half) / (1 + _Z**2 / count), (middle + half) / (1 + _Z**2 / count)
    return max(0.0, low), min(1.0, high)


def signal_interval_db(power: Array, noise: Array) -> tuple[float, float]:
    """95 % interval of the SQNR over all samples, by the bootstrap over samples.

    Args:
        power: Signal power of each sample.
        noise: Noise power of each.
    """
    random = np.random.default_rng(_SEED)
    drawn = random.integers(0, len(power), (_RESAMPLED, len(power)))
    found = [decibels(float(p), float(n)) for p, n in zip(power[drawn].sum(1), noise[drawn].sum(1), strict=True)]
    # Ranks, not interpolation: the ends may be infinite.
    low, high = np.quantile(found, (0.025, 0.975), method="inverted_cdf")
    return float(low), float(high)


def energy_distance(first: Array, second: Array, permuted: int = 200) -> tuple[float, float]:
    """How far two samples of vectors are apart, and how likely that is by chance.

    The figure is the energy coefficient of inhomogeneity, (2 E|X-Y| - E|X-X'| - E|Y-Y'|) / 2 E|X-Y|: 0 for one
    distribution, 1 for two constants that differ (G. J. Székely and M. L. Rizzo, J. Stat. Plan. Inference 143 (2013)).

    Args:
        first: [n, features].
        second: [m, features].
        permuted: How many permutations; without any the p value is 1.

    Returns:
        The coefficient and its p value, by permutations of who belongs to which sample.
    """
    both = np.concatenate([first, second]).astype(np.float64)
    apart = np.sqrt(np.maximum(((both[:, None] - both[None]) ** 2).sum(-1), 0))
    random, members = np.random.default_rng(_SEED), np.arange(len(both))
    found = _inhomogeneity(apart, members < len(first))
    chance = [_inhomogeneity(apart, random.permutation(members) < len(first)) for _ in range(permuted)]
    return found, (1 + sum(value >= found for value in chance)) / (1 + permuted)


def _inhomogeneity(apart: Array, is_first: Array) -> float:
    between = float(apart[is_first][:, ~is_first].mean())
    if between == 0:
        return 0.0
    within = sum(_mean_of_pairs(apart[side][:, side]) for side in (is_first, ~is_first))
    return max(0.0, 1 - within / (2 * between))


def _mean_of_pairs(apart: Array) -> float:
    """Mean distance of two different members, so that few samples do not look far apart."""
    count = len(apart)
    return float(apart.sum()) / (count * (count - 1)) if count > 1 else 0.0
