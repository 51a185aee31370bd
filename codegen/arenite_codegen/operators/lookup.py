# SPDX-License-Identifier: Apache-2.0
"""Operators of one byte in, one byte out: their 256 answers are computed here and the device looks them up."""

from __future__ import annotations

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, multiplier, quantisation, refuse, same_quantisation
from arenite_codegen.rounding import multiply_by_quantised_multiplier

__all__ = ["lower_quantize", "lower_relu", "lower_relu6"]

_BYTES = ("int8", "uint8")


def lower_quantize(context: Context) -> Layer:
    """QUANTIZE between two grids of bytes; nothing is left of it where every byte keeps its bits."""
    if context.input(0).dtype == context.output.dtype == "uint8":
        raise refuse(context, "the reference has no QUANTIZE from uint8 to uint8")
    return _lower(context, -(1 << 31), (1 << 31) - 1)


def lower_relu(context: Context) -> Layer:
    """RELU that stands alone."""
    quantisation(context, context.input(0))
    zero = quantisation(context, context.output).zero_point
    return _lower(context, zero, 127)


def lower_relu6(context: Context) -> Layer:
    """RELU6 that stands alone; six on the grid is rounded in float32, half away from zero.

    The reference clamps on the input's grid and never looks at the output's, so the two must be one.
    """
    quant = same_quantisation(context, context.input(0), context.output)
    six = np.floor(min(256.0, float(np.float32(6.0) / quant.scale)) + 0.5)
    return _lower(context, quant.zero_point, min(127, quant.zero_point + int(six)))


def _lower(context: Context, low: int, high: int) -> Layer:
    rows = context.rows(context.output)
    return context.build.layer(
        context,
        kernel="lookup_s8",
        reads=(Read(context.build.value(context.input(0)), rows.height, rows.row_bytes),),
        in_place=(0,),
        parameters={"table": requantise_table(context, low, high), "count": rows.row_bytes},
    )


def requantise_table(context: Context, low: int, high: int) -> Array:
    """The output byte of each input byte, indexed by the input's bits as uint8."""
    source, output = context.input(0), context.output
    quant_in, quant_out = quantisation(context, source, _BYTES), quantisation(context, output, _BYTES)
    factor, shift = multiplier(context, float(quant_in.scale) / float(quant_out.scale), "output")
    rails = (-128, 127) if output.dtype == "int8" else (0, 255)
    table = []
    for bits in range(256):
        value = bits - 256 if source.dtype == "int8" and bits > 127 else bits
        scaled = multiply_by_quantised_multiplier(value - quant_in.zero_point, factor, shift) + quant_out.zero_point
        table.append(max(rails[0], min(rails[1], max(low, min(high, scaled)))) & 255)
    return np.array(table, np.uint8).view(np.int8)
