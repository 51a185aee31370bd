# SPDX-License-Identifier: Apache-2.0
"""The reference's fixed-point arithmetic, in exact Python integers.

Everything that the firmware would compute from constants alone is computed here once, with the same rounding as the
TFLite reference kernels (gemmlowp double rounding), so that the device only sees the results.
"""

from __future__ import annotations

import math

INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1

# QuantizeMultiplier's exponent range in which the reference is defined.
MAX_SHIFT = 30
MIN_SHIFT = -31

__all__ = [
    "INT32_MAX",
    "INT32_MIN",
    "MAX_SHIFT",
    "MIN_SHIFT",
    "exp_on_negative",
    "multiply_by_quantised_multiplier",
    "quantise_multiplier",
    "rounding_divide_by_pot",
    "rounding_doubling_high_mul",
    "wrap_int32",
]


def wrap_int32(value: int) -> int:
    """Two's complement truncation to 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _saturate(value: int) -> int:
    return max(INT32_MIN, min(INT32_MAX, value))


def quantise_multiplier(real: float) -> tuple[int, int]:
    """A positive real number as (multiplier, shift): real ≈ multiplier × 2^(shift-31), multiplier in [2^30, 2^31).

    Zero gives (0, 0), as does anything below 2^-32.
    """
    if real == 0.0:
        return 0, 0
    mantissa, shift = math.frexp(real)
    # The product is exact in a double, so only this rounding (half away from zero) happens.
    multiplier = math.floor(mantissa * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier //= 2
        shift += 1
    if shift < MIN_SHIFT:
        return 0, 0
    return multiplier, shift


def rounding_doubling_high_mul(a: int, b: int) -> int:
    """The high 32 bits of 2ab, rounded half away from zero; the one overflow saturates."""
    if a == INT32_MIN and b == INT32_MIN:
        return INT32_MAX
    product = a * b
    nudged = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    # Division by 2^31 that truncates towards zero.
    return nudged >> 31 if nudged >= 0 else -((-nudged) >> 31)


def rounding_divide_by_pot(value: int, exponent: int) -> int:
    """value / 2^exponent, rounded half away from zero."""
    mask = (1 << exponent) - 1
    remainder = value & mask
    threshold = (mask >> 1) + (1 if value < 0 else 0)
    return (value >> exponent) + (1 if remainder > threshold else 0)


def multiply_by_quantised_multiplier(value: int, multiplier: int, shift: int) -> int:
    """value × multiplier × 2^(shift-31) with the reference's two roundings."""
    left, right = max(shift, 0), max(-shift, 0)
    return rounding_divide_by_pot(rounding_doubling_high_mul(wrap_int32(value << left), multiplier), right)


def exp_on_negative(raw: int, integer_bits: int = 5) -> int:
    """exp(x) in Q0.31 for x <= 0, by the polynomial and barrel shifter of gemmlowp's fixed-point exp.

    Args:
        raw: x with `integer_bits` bits before the point, 4 or 5, and 31 bits in all.
    """
    if raw == 0:
        return INT32_MAX
    quarter_bit = 29 - integer_bits
    quarter = 1 << quarter_bit
    rest = (raw & (quarter - 1)) - quarter
    result = _exp_between_minus_quarter_and_zero(_saturate(rest << integer_bits))
    remainder = rest - raw
    # exp(-2^k) in Q0.31 for k = -2 .. 4, one for each bit of the whole quarters.
    factors = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
    for bit, factor in enumerate(factors[: 2 + integer_bits], start=quarter_bit):
        if remainder & (1 << bit):
            result = rounding_doubling_high_mul(result, factor)
    return result


def _exp_between_minus_quarter_and_zero(a: int) -> int:
    exp_minus_eighth = 1895147668
    one_third = 715827883
    x = wrap_int32(a + (1 << 28))
    x2 = rounding_doubling_high_mul(x, x)
    x3 = rounding_doubling_high_mul(x2, x)
    x4 = rounding_doubling_high_mul(x2, x2)
    x4_over_4 = rounding_divide_by_pot(x4, 2)
    tail = rounding_divide_by_pot(wrap_int32(rounding_doubling_high_mul(wrap_int32(x4_over_4 + x3), one_third) + x2), 1)
    return wrap_int32(exp_minus_eighth + rounding_doubling_high_mul(exp_minus_eighth, wrap_int32(x + tail)))
