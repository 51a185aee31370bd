# SPDX-License-Identifier: Apache-2.0
"""Activations and other functions of one byte: curves, as tables.

Where TFLM's kernel computes in integers, so does the table; where it computes in float32, as for ELU, so does the
table. Functions that TFLM has for no byte follow LiteRT's reference kernels, which fill such tables in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from arenite_codegen.curves import hard_swish_16, inverse_square_root, logistic_q0, tanh_q0
from arenite_codegen.network import Layer
from arenite_codegen.operators.base import Context, multiplier, quantisation, refuse, same_quantisation
from arenite_codegen.operators.lookup import table_layer, table_of
from arenite_codegen.rounding import (
    multiply_by_quantised_multiplier,
    quantise_multiplier,
    rounding_divide_by_pot,
)

__all__ = [
    "leaky_slopes",
    "lower_abs",
    "lower_elu",
    "lower_exp",
    "lower_gelu",
    "lower_hard_swish",
    "lower_leaky_relu",
    "lower_log",
    "lower_logistic",
    "lower_neg",
    "lower_rsqrt",
    "lower_sqrt",
    "lower_tanh",
]

_INTEGER_BITS = 4
_MOST_16 = (1 << 15) - 1


def lower_logistic(context: Context) -> Layer:
    """The output's scale is 1/256 and its zero point -128, whatever the file's scale says: the reference's rule."""
    _check_grid(context, 1 / 256, -128)
    return table_layer(context, table_of(context, _curve(context, logistic_q0, 8, -128)))


def lower_tanh(context: Context) -> Layer:
    """The output's scale is 1/128 and its zero point 0."""
    _check_grid(context, 1 / 128, 0)
    return table_layer(context, table_of(context, _curve(context, tanh_q0, 7, 0)))


def _check_grid(context: Context, scale: float, zero_point: int) -> None:
    quant = quantisation(context, context.output)
    if quant.scale != np.float32(scale) or quant.zero_point != zero_point:
        what = f"its output has scale {quant.scale} and zero point {quant.zero_point}, not {scale} and {zero_point}"
        raise refuse(context, what)


def _curve(context: Context, curve: Callable[[int], int], fraction_bits: int, zero_point: int) -> Callable[[int], int]:
    """The byte of a curve that is computed from Q4 to Q0; beyond the range of Q4 it is at its ends.

    Source: CalculateArithmeticOpData of TFLM's tanh and logistic, CalculateInputRadius.
    """
    quant = quantisation(context, context.input(0))
    factor, shift = quantise_multiplier(float(quant.scale) * (1 << (31 - _INTEGER_BITS)))
    radius = math.floor(((1 << _INTEGER_BITS) - 1) * (1 << (31 - _INTEGER_BITS)) / 2.0**shift)
    if factor == 0 or shift > 31 or radius > np.iinfo(np.int32).max:
        raise refuse(context, f"its input scale {quant.scale} is beyond the reference's range")

    def answer(byte: int) -> int:
        value = byte - quant.zero_point
        if abs(value) >= radius:
            return 127 if value > 0 else -128
        found = curve(multiply_by_quantised_multiplier(value, factor, shift))
        return rounding_divide_by_pot(found, 31 - fraction_bits) + zero_point

    return answer


def lower_hard_swish(context: Context) -> Layer:
    """x · relu6(x + 3) / 6. Source: HardSwishPrepare: scales in float32, multipliers of 16 bits."""
    quant_in, quant_out = quantisation(context, context.input(0)), quantisation(context, context.output)
    fine = np.float32(1 / 128) * quant_in.scale
    output = _multiplier_16(context, float(fine / quant_out.scale))
    ramp = _multiplier_16(context, float(fine / np.float32(3 / 32768)))
    if output[1] > 0 or min(output[1], ramp[1]) < -31:
        raise refuse(context, f"from scale {quant_in.scale} to {quant_out.scale} is beyond the reference's range")

    def answer(byte: int) -> int:
        return hard_swish_16(byte - quant_in.zero_point, output, ramp) + quant_out.zero_point

    return table_layer(context, table_of(context, answer))


def _multiplier_16(context: Context, real: float) -> tuple[int, int]:
    factor, shift = multiplier(context, real, "16-bit")
    return min(_MOST_16, (factor + (1 << 15)) >> 16), shift


def lower_leaky_relu(context: Context) -> Layer:
    """Negative values times alpha."""
    quant_in, quant_out = quantisation(context, context.input(0)), quantisation(context, context.output)
    above, below = leaky_slopes(context)

    def answer(byte: int) -> int:
        value = byte - quant_in.zero_point
        return multiply_by_quantised_multiplier(value, *(above if value >= 0 else below)) + quant_out.zero_point

    return table_layer(context, table_of(context, answer))


def leaky_slopes(context: Context, dtypes: tuple[str, ...] = ("int8",)) -> tuple[tuple[int, int], tuple[int, int]]:
    """LEAKY_RELU's (multiplier, shift) above and below zero. Source: CalculateOpDataLeakyRelu."""
    quant_in, quant_out = (quantisation(context, t, dtypes) for t in (context.input(0), context.output))
    alpha = np.float32(context.operator.attributes["alpha"])
    if not np.isfinite(alpha):
        raise refuse(context, f"its alpha is {alpha}")
    above = multiplier(context, float(quant_in.scale) / float(quant_out.scale), "output")
    slope = float(quant_in.scale) * float(alpha) / float(quant_out.scale)
    factor, shift = multiplier(context, abs(slope), "negative side's")
    # The reference rounds a negative multiplier by adding a half and cutting off, one step short of its magnitude.
    return above, ((1 - factor if slope < 0 else factor), shift)


def lower_abs(context: Context) -> Layer:
    """The distance from zero, requantised where the scales differ."""
    quant_in, quant_out = quantisation(context, context.input(0)), quantisation(context, context.output)
    scales = multiplier(context, float(quant_in.scale) / float(quant_out.scale), "output")
    rescales = quant_in.scale != quant_out.scale

    def answer(byte: int) -> int:
        value = abs(byte - quant_in.zero_point)
        return (multiply_by_quantised_multiplier(value, *scales) if rescales else value) + quant_out.zero_point

    return table_layer(context, table_of(context, answer))


def lower_neg(context: Context) -> Layer:
    """The reference negates the byte itself, modulo 256, which is right only around a zero point of 0."""
    quant = same_quantisation(context, context.input(0), context.output)
    if quant.zero_point != 0:
        raise refuse(context, f"its zero point is {quant.zero_point}, the reference's kernel is right for 0 only")
    return table_layer(context, table_of(context, lambda byte: -128 if byte == -128 else -byte))


def lower_rsqrt(context: Context) -> Layer:
    """1 / sqrt(x). The reference stops at a byte below zero; here it answers as zero does, with the greatest byte.

    Source: RsqrtEvalQuantized, SetRsqrtOutputMultiplier.
    """
    quant_in, quant_out = quantisation(context, context.input(0)), quantisation(context, context.output)
    real = 1.0 / (math.sqrt(float(quant_in.scale)) * float(quant_out.scale))
    factor, shift = multiplier(context, real, "output")
    kept_bits = 20

    def answer(byte: int) -> int:
        value = byte - quant_in.zero_point
        if value <= 0:
            return 127
        inverse, inverse_shift = inverse_square_root(value)
        fine = multiply_by_quantised_multiplier(1, inverse, inverse_shift + kept_bits)
        return multiply_by_quantised_multiplier(fine, factor, shift - kept_bits) + quant_out.zero_point

    return table_layer(context, table_of(context, answer))


def _float_layer(context: Context, function: Callable[[float], float]) -> Layer:
    """A function of real numbers, to the nearest byte in float32, half away from zero."""
    quant_in, quant_out = quantisation(context, context.input(0)), quantisation(context, context.output)
    with np.errstate(over="ignore", invalid="ignore"):
        inverse = np.float32(1) / quant_out.scale

    def answer(byte: int) -> int:
        with np.errstate(over="ignore", invalid="ignore"):
            real = np.float32(quant_in.scale * np.float32(byte - quant_in.zero_point))
            scaled = float(np.float32(function(float(real))) * inverse)
        # Beyond 512 steps the answer is at a rail whatever the number.
        steps = math.copysign(math.floor(min(512.0, abs(scaled)) + 0.5), scaled)
        return int(steps) + quant_out.zero_point

    return table_layer(context, table_of(context, answer))


def lower_elu(context: Context) -> Layer:
    """exp(x) - 1 below zero. TFLM fills the same table when it starts."""
    return _float_layer(context, lambda x: float(np.float32(math.exp(x)) - np.float32(1)) if x < 0 else x)


def lower_exp(context: Context) -> Layer:
    """The exponential function."""
    return _float_layer(context, lambda x: math.exp(min(x, 88.0)))


def lower_log(context: Context) -> Layer:
    """The natural logarithm; the least byte where there is none."""
    return _float_layer(context, lambda x: math.log(x) if x > 0 else -math.inf)


def lower_sqrt(context: Context) -> Layer:
    """The square root. The reference cuts off what is behind the point; here a byte below zero answers as zero does."""
    quant_in, quant_out = quantisation(context, context.input(0)), quantisation(context, context.output)

    def answer(byte: int) -> int:
        with np.errstate(over="ignore", invalid="ignore"):
            real = np.float32(quant_in.scale * np.float32(max(0, byte - quant_in.zero_point)))
            return int(min(512.0, float(np.sqrt(real) / quant_out.scale))) + quant_out.zero_point

    return table_layer(context, table_of(context, answer))


def lower_gelu(context: Context) -> Layer:
    """x times the normal distribution's share below x, or the usual approximation of it by a tanh."""
    if context.operator.attributes["approximate"]:
        return _float_layer(context, _gelu_by_tanh)
    return _float_layer(context, lambda x: 0.5 * x * math.erfc(-x * math.sqrt(0.5)))


def _gelu_by_tanh(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
