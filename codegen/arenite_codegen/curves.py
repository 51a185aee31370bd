# SPDX-License-Identifier: Apache-2.0
"""Curves of the reference's fixed-point library in exact Python integers, so that the device only looks them up.

Names follow the number of bits before the point: Q0 has none of 31, Q4 has four.
"""

from __future__ import annotations

from arenite_codegen.rounding import (
    INT32_MAX,
    INT32_MIN,
    exp_on_negative,
    rounding_divide_by_pot,
    rounding_doubling_high_mul,
    wrap_int32,
)

__all__ = ["hard_swish_16", "inverse_square_root", "logistic_q0", "tanh_q0"]

_ONE_Q2 = 1 << 29


def _shift_left(value: int, bits: int) -> int:
    """Saturates at the ends of int32."""
    return max(INT32_MIN, min(INT32_MAX, value << bits))


def _newton_reciprocal_q2(a_q0: int) -> int:
    """2 / (1 + a) in Q2 for 0 <= a <= 1: three steps from 48/17 - 32/17 d with d = (1 + a) / 2."""
    half_denominator = (a_q0 + INT32_MAX + 1) // 2
    x = 1515870810 + rounding_doubling_high_mul(half_denominator, -1010580540)
    for _ in range(3):
        rest = wrap_int32(_ONE_Q2 - rounding_doubling_high_mul(half_denominator, x))
        x = wrap_int32(x + _shift_left(rounding_doubling_high_mul(x, rest), 2))
    return x


def logistic_q0(x_q4: int) -> int:
    """1 / (1 + exp(-x)) in Q0."""
    if x_q4 == 0:
        return 1 << 30
    of_positive = _shift_left(_newton_reciprocal_q2(exp_on_negative(-abs(x_q4), integer_bits=4)), 1)
    return of_positive if x_q4 > 0 else INT32_MAX - of_positive


def tanh_q0(x_q4: int) -> int:
    """The hyperbolic tangent in Q0, as (1 - e) / (1 + e) with e = exp(-2 |x|)."""
    if x_q4 == 0:
        return 0
    # The bits of x in Q4 are those of 2x in Q5.
    e_q0 = exp_on_negative(-abs(x_q4), integer_bits=5)
    found = _shift_left(_newton_reciprocal_q2(e_q0) - _ONE_Q2, 2)
    return found if x_q4 > 0 else -found


def inverse_square_root(value: int) -> tuple[int, int]:
    """1 / sqrt(value) as (multiplier, shift) for a non-negative integer: five steps of Newton's method in Q3.

    Source: GetInvSqrtQuantizedMultiplierExp.
    """
    if value <= 1:
        return INT32_MAX, 0
    right_shift = 11
    while value >= 1 << 29:
        value //= 4
        right_shift += 1
    pairs = (32 - value.bit_length() - 1) // 2 - 1
    right_shift -= pairs
    value <<= 2 * pairs
    x = 1 << 28
    half_value, half_three = rounding_divide_by_pot(value >> 1, 1), (1 << 28) + (1 << 27)
    for _ in range(5):
        squared = rounding_doubling_high_mul(x, x)
        cubed = _shift_left(rounding_doubling_high_mul(squared, x), 6)
        difference = rounding_doubling_high_mul(half_three, x) - rounding_doubling_high_mul(half_value, cubed)
        x = _shift_left(wrap_int32(difference), 3)
    x = rounding_doubling_high_mul(x, 1518500250)
    if right_shift < 0:
        x, right_shift = x << -right_shift, 0
    return x, -right_shift


def hard_swish_16(value: int, output: tuple[int, int], ramp: tuple[int, int]) -> int:
    """x · relu6(x + 3) / 6 on the output's scale, in the reference's 16-bit arithmetic.

    Args:
        value: The input byte less its zero point.
        output: 16-bit multiplier and exponent, at most 0, from 1/128 of the input's scale to the output's.
        ramp: The same from 1/128 of the input's scale to that on which 3 is 2^15.
    """
    fine = value << 7
    scaled = _high_mul_16(fine, output[0])
    gate = fine
    if ramp[1] > 0:
        gate = _saturate_16(gate << (ramp[1] - 1))
    gate = _high_mul_16(gate, ramp[0])
    gate = _saturate_16(gate << 1) if ramp[1] > 0 else _divide_16(gate, -ramp[1])
    gate = (gate + (1 << 15)) >> 1
    product = gate * scaled
    truncated = abs(product) >> 15
    return _divide_16(truncated if product >= 0 else -truncated, -output[1])


def _divide_16(value: int, exponent: int) -> int:
    """value / 2^exponent, rounded half away from zero; above 15 as the reference's 16-bit mask then makes it."""
    mask = ((1 << exponent) - 1 + (1 << 15)) % (1 << 16) - (1 << 15)
    threshold = (mask >> 1) + (1 if value < 0 else 0)
    return (value >> exponent) + (1 if value & mask > threshold else 0)


def _saturate_16(value: int) -> int:
    return max(-(1 << 15), min((1 << 15) - 1, value))


def _high_mul_16(a: int, b: int) -> int:
    """The high 16 bits of 2ab, rounded half away from zero."""
    product = a * b
    nudged = abs(product) + (1 << 14)
    return _saturate_16(nudged >> 15 if product >= 0 else -((nudged - 1) >> 15))
