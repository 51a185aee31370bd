# SPDX-License-Identifier: Apache-2.0
"""Operators of one byte in, one byte out: their 256 answers are computed here and the device looks them up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, multiplier, quantisation, refuse, same_quantisation
from arenite_codegen.rounding import multiply_by_quantised_multiplier

__all__ = [
    "lower_quantize",
    "lower_relu",
    "lower_relu6",
    "lower_relu_0_to_1",
    "lower_relu_n1_to_1",
    "requantise_table",
    "table_layer",
    "table_of",
]

_BYTES = ("int8", "uint8")


def table_of(context: Context, answer: Callable[[int], int]) -> Array:
    """The output byte of each input byte, indexed by the input's bits as uint8.

    Args:
        answer: From the input's value to the output's, before it is clamped to the output's type.
    """
    low, high = (-128, 127) if context.output.dtype == "int8" else (0, 255)
    values = [b - 256 if context.input(0).dtype == "int8" and b > 127 else b for b in range(256)]
    return np.array([max(low, min(high, answer(value))) & 255 for value in values], np.uint8).view(np.int8)


def table_layer(context: Context, table: Array) -> Layer:
    """A layer that replaces every byte by its entry in the table."""
    rows = context.rows(context.output)
    return context.build.layer(
        context,
        kernel="lookup_s8",
        reads=(Read(context.build.value(context.input(0)), rows.height, rows.row_bytes),),
        in_place=(0,),
        parameters={"table": table, "count": rows.row_bytes},
    )


def lower_quantize(context: Context) -> Layer:
    """QUANTIZE between two grids of bytes; nothing is left of it where every byte keeps its bits."""
    if context.input(0).dtype == context.output.dtype == "uint8":
        raise refuse(context, "the reference has no QUANTIZE from uint8 to uint8")
    return table_layer(context, requantise_table(context, -(1 << 31), (1 << 31) - 1))


def lower_relu(context: Context) -> Layer:
    """RELU that stands alone."""
    return _lower_clamp(context, 0.0, None)


def lower_relu_n1_to_1(context: Context) -> Layer:
    """RELU_N1_TO_1 that stands alone."""
    return _lower_clamp(context, -1.0, 1.0)


def lower_relu_0_to_1(context: Context) -> Layer:
    """RELU_0_TO_1 that stands alone."""
    return _lower_clamp(context, 0.0, 1.0)


def lower_relu6(context: Context) -> Layer:
    """RELU6 that stands alone.

    The reference clamps on the input's grid and never looks at the output's, so the two must be one.
    """
    same_quantisation(context, context.input(0), context.output)
    return _lower_clamp(context, 0.0, 6.0)


def _lower_clamp(context: Context, low: float, high: float | None) -> Layer:
    """Between two real numbers, rounded to the output's grid in float32, half away from zero."""
    quantisation(context, context.input(0))
    quant = quantisation(context, context.output)

    def on_the_grid(real: float) -> int:
        steps = float(np.float32(real) / quant.scale)
        # Beyond 256 steps the clamp is at a rail whatever the number, which may be infinite.
        return quant.zero_point + int(np.copysign(np.floor(min(256.0, abs(steps)) + 0.5), steps))

    limits = on_the_grid(low), 127 if high is None else min(127, on_the_grid(high))
    return table_layer(context, requantise_table(context, *limits))


def requantise_table(context: Context, low: int, high: int) -> Array:
    """From the input's grid to the output's, clamped between two bytes of the output."""
    quant_in = quantisation(context, context.input(0), _BYTES)
    quant_out = quantisation(context, context.output, _BYTES)
    factor, shift = multiplier(context, float(quant_in.scale) / float(quant_out.scale), "output")

    def answer(value: int) -> int:
        scaled = multiply_by_quantised_multiplier(value - quant_in.zero_point, factor, shift)
        return max(low, min(high, scaled + quant_out.zero_point))

    return table_of(context, answer)
