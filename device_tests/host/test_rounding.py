# SPDX-License-Identifier: Apache-2.0
"""The generator's fixed-point arithmetic against exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite_codegen.rounding import (
    INT32_MAX,
    INT32_MIN,
    exp_on_negative,
    multiply_by_quantised_multiplier,
    quantise_multiplier,
    rounding_divide_by_pot,
    rounding_doubling_high_mul,
    wrap_int32,
)

INT32 = st.integers(INT32_MIN, INT32_MAX)


def half_away(value: Fraction) -> int:
    magnitude = math.floor(abs(value) + Fraction(1, 2))
    return magnitude if value >= 0 else -magnitude


@given(INT32, st.integers(0, 31))
def test_division_by_a_power_of_two_rounds_half_away_from_zero(value: int, exponent: int) -> None:
    assert rounding_divide_by_pot(value, exponent) == half_away(Fraction(value, 1 << exponent))


@given(INT32, INT32)
def test_high_mul_is_the_rounded_product(a: int, b: int) -> None:
    if (a, b) == (INT32_MIN, INT32_MIN):
        assert rounding_doubling_high_mul(a, b) == INT32_MAX
        return
    exact = Fraction(a * b, 1 << 31)
    # Halves of negative products go up: the reference adds 1 - 2^30 and truncates.
    assert rounding_doubling_high_mul(a, b) == math.floor(exact + Fraction(1, 2))


@given(st.floats(1e-9, 1e6))
def test_a_multiplier_is_near_its_real_number(real: float) -> None:
    multiplier, shift = quantise_multiplier(real)
    assert (1 << 30) <= multiplier <= INT32_MAX
    assert multiplier * 2.0 ** (shift - 31) == pytest.approx(real, rel=2**-30)


@pytest.mark.parametrize("real", [0.0, 2.0**-33, 1e-300])
def test_a_scale_of_nothing_is_a_multiplier_of_nothing(real: float) -> None:
    assert quantise_multiplier(real) == (0, 0)


def test_the_smallest_shift_is_minus_31() -> None:
    assert quantise_multiplier(2.0**-32) == (1 << 30, -31)


def test_rounding_up_to_a_power_of_two_carries() -> None:
    assert quantise_multiplier(1.0 - 2.0**-40) == (1 << 30, 1)


@given(INT32, st.integers(1 << 30, INT32_MAX), st.integers(-31, 0))
def test_requantisation_rounds_twice(value: int, multiplier: int, shift: int) -> None:
    once = rounding_doubling_high_mul(value, multiplier)
    assert multiply_by_quantised_multiplier(value, multiplier, shift) == half_away(Fraction(once, 1 << -shift))


@pytest.mark.parametrize(("value", "wrapped"), [(1 << 31, INT32_MIN), (-(1 << 31) - 1, INT32_MAX), (5, 5)])
def test_wrapping(value: int, wrapped: int) -> None:
    assert wrap_int32(value) == wrapped


@given(st.integers(-(31 << 26), 0))
def test_exp_is_exp(raw: int) -> None:
    exact = math.exp(raw / (1 << 26))
    assert exp_on_negative(raw) / (1 << 31) == pytest.approx(exact, abs=5e-7)
