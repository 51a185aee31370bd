# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of two tensors, each as the reference rounds it."""

from __future__ import annotations

from collections.abc import Callable

from arenite.graph import Quantisation
from arenite_codegen.network import Layer
from arenite_codegen.operators.base import (
    Context,
    activation_range,
    multiplier,
    quantisation,
    refuse,
    same_quantisation,
)
from arenite_codegen.operators.binary import binary_layer

__all__ = [
    "lower_add",
    "lower_div",
    "lower_maximum",
    "lower_minimum",
    "lower_mul",
    "lower_prelu",
    "lower_squared_difference",
    "lower_sub",
]

# Bits by which sums are finer than twice the larger input's scale, and squares of differences than its square.
_SUM_BITS, _DIFFERENCE_BITS = 20, 7
_SUM_BITS_16 = 15
_OF_INT16 = ("add_s8", "sub_s8", "mul_s8", "maximum_s8", "minimum_s8", "squared_difference_s8")
_MAX_DIV_SHIFT = 22
_DTYPES = ("int8", "int16")

Scales = tuple[float, float, float]


def lower_add(context: Context) -> Layer:
    """Both sides on a grid finer than twice the larger scale, added, rounded once. All scales in double."""
    return _sum_layer(context, "add_s8")


def lower_sub(context: Context) -> Layer:
    """As ADD, the second side taken away."""
    return _sum_layer(context, "sub_s8")


def _sum_bits(context: Context) -> int:
    return _SUM_BITS_16 if context.output.dtype == "int16" else _SUM_BITS


def _sum_layer(context: Context, kernel: str) -> Layer:
    a, b, out = _scales(context)
    twice, bits = 2.0 * max(a, b), _sum_bits(context)
    scales = (a / twice, b / twice, twice / ((1 << bits) * out))
    if scales[2] >= 1.0:
        raise refuse(context, f"its output scale is below 2^-{bits} of its inputs', the reference's limit")
    left, right, output = (multiplier(context, real, "sum's") for real in scales)
    parameters = {
        "a_multiplier": left[0],
        "b_multiplier": right[0],
        "a_right_shift": -left[1],
        "b_right_shift": -right[1],
        "out_multiplier": output[0],
        "out_right_shift": -output[1],
        **_zero_points(context),
        **_clamp(context),
    }
    return binary_layer(context, _of_type(context, kernel), parameters)


def _of_type(context: Context, kernel: str) -> str:
    """The kernel for the element type, which all three tensors share."""
    tensors = (context.input(0), context.input(1), context.output)
    if len({tensor.dtype for tensor in tensors}) != 1:
        raise refuse(context, f"{tensors[0]}, {tensors[1]} and {tensors[2]} differ in type")
    if context.output.dtype != "int16":
        return kernel
    if kernel not in _OF_INT16 or any(tensor.quantisation and tensor.quantisation.zero_point for tensor in tensors):
        raise refuse(context, "it has no int16 kernel, or a zero point other than 0")
    return kernel.replace("_s8", "_s16")


def lower_mul(context: Context) -> Layer:
    """The product of what lies above the zero points, requantised once."""
    a, b, out = _scales(context)
    return _requantised_layer(context, "mul_s8", a * b / out)


def lower_div(context: Context) -> Layer:
    """The quotient through a reciprocal by Newton's method, as the reference takes it."""
    a, b, out = _scales(context)
    layer = _requantised_layer(context, "div_s8", a / (b * out))
    if layer.parameters["shift"] > _MAX_DIV_SHIFT:
        raise refuse(context, "its output scale is too small beside its inputs'")
    return layer


def _requantised_layer(context: Context, kernel: str, real: float) -> Layer:
    factor, shift = multiplier(context, real, "output")
    parameters = {"multiplier": factor, "shift": shift, **_zero_points(context), **_clamp(context)}
    return binary_layer(context, _of_type(context, kernel), parameters)


def lower_squared_difference(context: Context) -> Layer:
    """Both sides times 2^7 on twice the larger scale, subtracted, squared, requantised; int16 as it is."""
    a, b, out = _scales(context)
    bits = 0 if context.output.dtype == "int16" else _DIFFERENCE_BITS
    twice = 2.0 * max(a, b)
    left, right = (multiplier(context, real, "input") for real in (a / twice, b / twice))
    factor, shift = multiplier(context, twice * twice / ((1 << 2 * bits) * out), "output")
    parameters = {
        "a_multiplier": left[0],
        "b_multiplier": right[0],
        "a_right_shift": -left[1],
        "b_right_shift": -right[1],
        "multiplier": factor,
        "shift": shift,
        **_zero_points(context),
    }
    return binary_layer(context, _of_type(context, "squared_difference_s8"), parameters)


def lower_maximum(context: Context) -> Layer:
    """The reference compares bytes, which is right only where all three share one grid."""
    return _extreme_layer(context, "maximum_s8")


def lower_minimum(context: Context) -> Layer:
    """As MAXIMUM."""
    return _extreme_layer(context, "minimum_s8")


def _extreme_layer(context: Context, kernel: str) -> Layer:
    for position in (0, 1):
        same_quantisation(context, context.input(position), context.output, _DTYPES)
    return binary_layer(context, _of_type(context, kernel), {})


def lower_prelu(context: Context) -> Layer:
    """Values below zero times a slope, which has a grid of its own and usually one entry a channel."""
    value, slope, out = _scales(context)
    above, below = (multiplier(context, real, "output") for real in (value / out, value * slope / out))
    parameters = {
        "positive_multiplier": above[0],
        "negative_multiplier": below[0],
        "positive_shift": above[1],
        "negative_shift": below[1],
        **_zero_points(context),
    }
    return binary_layer(context, "prelu_s8", parameters)


def _scales(context: Context) -> Scales:
    a, b, out = _each(context, lambda quant: float(quant.scale))
    return a, b, out


def _zero_points(context: Context) -> dict[str, int]:
    points = _each(context, lambda quant: float(quant.zero_point))
    return dict(zip(("a_zero_point", "b_zero_point", "out_zero_point"), map(int, points), strict=True))


def _each(context: Context, of: Callable[[Quantisation], float]) -> list[float]:
    return [of(quantisation(context, t, _DTYPES)) for t in (context.input(0), context.input(1), context.output)]


def _clamp(context: Context) -> dict[str, int]:
    low, high = activation_range(context, context.output)
    return {"act_min": low, "act_max": high}
