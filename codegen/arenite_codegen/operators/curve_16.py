# SPDX-License-Identifier: Apache-2.0
"""LOGISTIC and TANH of int16: the reference draws lines between 256 points of the logistic function."""

from __future__ import annotations

import math

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, quantisation, refuse

__all__ = ["curve_table", "log2_of", "lower_logistic", "lower_tanh"]

# The reference's table is that of the function, but for these entries, which are one above the nearest number: measured
# by running its TANH on inputs that fall on the entries.
_ONE_ABOVE = (
    *(4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41, 43, 44, 45, 46),
    *(49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255),
)
_UNIT = 12288.0  # steps of the table's input in 1
_MAX_LEFT_SHIFT = 30


def curve_table() -> Array:
    """uint16[256]: the logistic function of i/24 in Q0.16, as the reference has it."""
    table = np.array([math.floor(65536 / (1 + math.exp(-i / 24)) + 0.5) for i in range(256)], np.uint16)
    table[list(_ONE_ABOVE)] += 1
    return table


def log2_of(scale: float) -> int | None:
    """The exponent of a scale that is a power of two within the reference's tolerance, else None."""
    exact = float(np.log2(np.float32(scale))) if scale > 0 else math.inf
    return round(exact) if math.isfinite(exact) and abs(exact - round(exact)) < 1e-3 else None


def lower_logistic(context: Context) -> Layer:
    """The output is in Q0.15."""
    return _lower(context, is_tanh=False)


def lower_tanh(context: Context) -> Layer:
    """The output is in Q0.15."""
    return _lower(context, is_tanh=True)


def _lower(context: Context, is_tanh: bool) -> Layer:
    source, output = context.input(0), context.output
    quant_in, quant_out = (quantisation(context, tensor, ("int16",)) for tensor in (source, output))
    if quant_in.zero_point or quant_out.zero_point or log2_of(float(quant_out.scale)) != -15:
        raise refuse(context, "an int16 zero point other than 0, or an output scale other than 2^-15, has no kernel")
    factor, right_shift = _scaling(float(quant_in.scale), (0, 1) if is_tanh else (0,))
    if factor == 0:
        raise refuse(context, f"its input scale {quant_in.scale} is below the reference's range")
    rows = context.rows(source)
    return context.build.layer(
        context,
        kernel="curve_s16",
        reads=(Read(context.build.value(source), rows.height, rows.row_bytes),),
        in_place=(0,),
        parameters={
            "table": curve_table(),
            "count": rows.row_elements,
            "multiplier": factor,
            "right_shift": right_shift,
            "is_tanh": int(is_tanh),
        },
    )


def _scaling(scale: float, plain_shifts: tuple[int, ...]) -> tuple[int, int]:
    """Source: LogisticPrepare and TanhPrepare: powers of two near 2^-12 need no multiplier of their own."""
    exponent = log2_of(scale)
    if exponent is not None and 12 + exponent in plain_shifts:
        return 3 << (12 + exponent), 0
    real, shift = scale * _UNIT, 0
    while real <= 32767.0 / 2.0 and shift <= _MAX_LEFT_SHIFT:
        real, shift = real * 2.0, shift + 1
    return int(real), shift
