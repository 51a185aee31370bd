# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX over the channels. The exponentials of all possible differences are a table, so the device computes none."""

from __future__ import annotations

import math

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, quantisation, refuse
from arenite_codegen.rounding import exp_on_negative, quantise_multiplier, rounding_doubling_high_mul, wrap_int32

__all__ = ["exp_table", "lower"]

INTEGER_BITS = 5
MAX_CHANNELS = 4095


def lower(context: Context) -> Layer:
    """The output scale is fixed by the reference at 1/256 with zero point -128."""
    source, output = context.input(0), context.output
    quant_in, quant_out = quantisation(context, source), quantisation(context, output)
    if quant_out.scale != np.float32(1 / 256) or quant_out.zero_point != -128:
        what = f"its output has scale {quant_out.scale} and zero point {quant_out.zero_point}, not 1/256 and -128"
        raise refuse(context, what)
    rows = context.rows(source)
    if rows.channels > MAX_CHANNELS:
        raise refuse(context, f"{rows.channels} channels, the reference's sum of exponentials holds {MAX_CHANNELS}")
    beta = float(np.float32(context.operator.attributes["beta"]))
    table = exp_table(context, beta * float(quant_in.scale))
    return context.build.layer(
        context,
        kernel="softmax_s8",
        reads=(Read(context.build.value(source), rows.height, rows.row_bytes),),
        parameters={
            "exp_table": table,
            "exp_count": table.size,
            "width": rows.width,
            "channels": rows.channels,
        },
    )


def exp_table(context: Context, beta_scale: float) -> Array:
    """exp(-d × beta × scale) in Q0.31 for d = 0, 1, …, as long as the reference does not cut it to 0.

    Source: PreprocessSoftmaxScaling, CalculateInputRadius and gemmlowp's exp_on_negative_values.
    """
    real = min(beta_scale * (1 << (31 - INTEGER_BITS)), (1 << 31) - 1.0)
    if not real > 1.0:
        raise refuse(context, f"beta × scale is {beta_scale:.3g}, below the reference's range")
    multiplier, left_shift = quantise_multiplier(real)
    radius = math.floor(((1 << INTEGER_BITS) - 1) * (1 << (31 - INTEGER_BITS)) / (1 << left_shift))
    entries = []
    for difference in range(min(radius, 255) + 1):
        rescaled = rounding_doubling_high_mul(wrap_int32(-difference << left_shift), multiplier)
        entries.append(exp_on_negative(rescaled))
    return np.array(entries, np.int32)
