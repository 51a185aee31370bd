# SPDX-License-Identifier: Apache-2.0
"""ADD as a linear function of its two bytes, where all pairs of bytes prove that it is the reference's.

The reference rounds each side and the sum. Its results lie so close to the exact ones that a single rounding of
`a * a_factor + b * b_factor + offset` nearly always gives the same bytes; there are few enough pairs to try all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from arenite_codegen.rounding import multiply_by_quantised_multiplier
from arenite_codegen.variants.base import Array, Parameters

__all__ = ["Linear", "linear_addition"]

_LEFT_SHIFT = 20  # as ARENITE_ADD_S8_LEFT_SHIFT
_BYTES = np.arange(-128, 128, dtype=np.int64)
_NEARBY = 2  # units by which the factors of a candidate differ from the nearest ones, at most
_SIDE = ("multiplier", "right_shift", "zero_point")
_NAMES = (*(f"{side}_{name}" for side in ("a", "b", "out") for name in _SIDE), "act_min", "act_max")


@dataclass(frozen=True)
class Linear:
    """The sum of bytes a and b is (a * a_factor + b * b_factor + offset) >> right_shift, clamped."""

    a_factor: int
    b_factor: int
    offset: int
    right_shift: int


def linear_addition(parameters: Parameters) -> Linear | None:
    """The linear function that gives the reference's byte for every pair, or None if none was found."""
    return _find(tuple((name, int(parameters[name])) for name in _NAMES))


@lru_cache(maxsize=256)
def _find(items: tuple[tuple[str, int], ...]) -> Linear | None:
    own = dict(items)
    expected = _reference(own)
    a_scale, b_scale, zero = _real_function(own)
    # Of a sum, offset included, this is the greatest magnitude, or nearly; the fewer bits it leaves free, the better.
    finest = 31 - math.floor(math.log2(255 * (a_scale + b_scale) + 128))
    for right_shift, (a_step, b_step) in product((finest, finest - 1), _steps()):
        factors = round(math.ldexp(a_scale, right_shift)) + a_step, round(math.ldexp(b_scale, right_shift)) + b_step
        nearest = round(math.ldexp(zero + 0.5, right_shift))
        offset = _offset(own, expected, factors, right_shift, nearest)
        if offset is not None:
            return Linear(*factors, offset, right_shift)
    return None


def _steps() -> list[tuple[int, int]]:
    """What to add to both factors, small ones first."""
    steps = range(-_NEARBY, _NEARBY + 1)
    return sorted(product(steps, steps), key=lambda pair: max(map(abs, pair)))


def _reference(own: dict[str, int]) -> Array:
    """The bytes of all pairs, [a][b]."""
    a, b = (_on_shared_grid(own, side) for side in "ab")
    # The reference's two roundings in one, as arenite_avx512.h proves.
    products = (a[:, None] + b) * own["out_multiplier"]
    right = own["out_right_shift"]
    if right > 0:
        products += (1 << (30 + right)) - np.where(products < 0, np.int64(1) << 31, 0)
    values = (products + (1 << 30) >> (31 + right)) + own["out_zero_point"]
    bytes_: Array = np.clip(values, own["act_min"], own["act_max"])
    return bytes_


def _on_shared_grid(own: dict[str, int], side: str) -> Array:
    multiplier, right_shift, zero_point = (own[f"{side}_{name}"] for name in _SIDE)
    grid = [
        multiply_by_quantised_multiplier((byte - zero_point) << _LEFT_SHIFT, multiplier, -right_shift)
        for byte in range(-128, 128)
    ]
    return np.array(grid, np.int64)


def _real_function(own: dict[str, int]) -> tuple[float, float, float]:
    """Both factors and the constant without any rounding."""
    a, b, out = (math.ldexp(own[f"{side}_multiplier"], -31 - own[f"{side}_right_shift"]) for side in ("a", "b", "out"))
    a_scale, b_scale = (math.ldexp(scale * out, _LEFT_SHIFT) for scale in (a, b))
    return a_scale, b_scale, own["out_zero_point"] - a_scale * own["a_zero_point"] - b_scale * own["b_zero_point"]


def _offset(
    own: dict[str, int], expected: Array, factors: tuple[int, int], right_shift: int, nearest: int
) -> int | None:
    """The offset closest to `nearest` with which the factors give every byte, or None."""
    sums = _BYTES[:, None] * factors[0] + _BYTES * factors[1]
    floor = (expected << right_shift) - sums
    above, below = expected > own["act_min"], expected < own["act_max"]
    least = floor[above].max(initial=-(2**62))
    greatest = (floor[below] + (1 << right_shift) - 1).min(initial=2**62)
    offset = max(min(nearest, int(greatest)), int(least))
    fits = all(-(2**31) <= value < 2**31 for value in (offset, int(sums.min()) + offset, int(sums.max()) + offset))
    return offset if least <= greatest and fits else None
