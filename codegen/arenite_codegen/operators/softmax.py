# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX and LOG_SOFTMAX over the channels. Exponentials come out of tables; the device computes none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, multiplier, quantisation, refuse
from arenite_codegen.rounding import (
    MAX_SHIFT,
    exp_on_negative,
    quantise_multiplier,
    rounding_doubling_high_mul,
    wrap_int32,
)

__all__ = ["lower", "lower_16", "lower_log"]

INTEGER_BITS = 5
MAX_CHANNELS = 4095
# Of int16: Q16.15 sums, inputs within 2^31 when shifted, points of a table, and how far 2^-15 may be missed.
_MAX_CHANNELS_16 = 65535
_MAX_SHIFT_16 = 14
_SEGMENTS = 512
_SCALE_TOLERANCE = 1e-3


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
    table = _exp_table(_scaling(context, _beta(context) * float(quant_in.scale)))
    return _layer(context, "softmax_s8", {"exp_table": table, "exp_count": table.size})


def lower_log(context: Context) -> Layer:
    """The reference fixes the output's scale at 1/16 and its zero point at 127.

    Source: PreprocessLogSoftmaxScalingExp.
    """
    source, output = context.input(0), context.output
    quant_in, quant_out = quantisation(context, source), quantisation(context, output)
    if quant_out.scale != np.float32(1 / 16) or quant_out.zero_point != 127:
        what = f"its output has scale {quant_out.scale} and zero point {quant_out.zero_point}, not 1/16 and 127"
        raise refuse(context, what)
    if context.rows(source).channels > MAX_CHANNELS:
        raise refuse(context, f"more than {MAX_CHANNELS} channels, which the reference's sum of exponentials holds")
    scaling = factor, shift = _scaling(context, float(quant_in.scale))
    back = (1 << (31 - shift)) / factor
    if shift > MAX_SHIFT or back >= 1.0:
        raise refuse(context, f"its input scale {quant_in.scale} is beyond the reference's range")
    back_factor, back_shift = quantise_multiplier(back)
    table = _exp_table(scaling)
    parameters = {
        "exp_table": table,
        "exp_count": table.size,
        "multiplier": factor,
        "shift": shift,
        "back_multiplier": back_factor,
        "back_shift": back_shift,
    }
    return _layer(context, "log_softmax_s8", parameters)


def lower_16(context: Context) -> Layer:
    """SOFTMAX of int16: exponential and reciprocal are lines between 513 points. The output's scale is 2^-15."""
    source, output = context.input(0), context.output
    quant_in, quant_out = (quantisation(context, tensor, ("int16",)) for tensor in (source, output))
    if abs(float(quant_out.scale) * 32768 - 1) > _SCALE_TOLERANCE or quant_out.zero_point:
        what = f"its output has scale {quant_out.scale} and zero point {quant_out.zero_point}, not 1/32768 and 0"
        raise refuse(context, what)
    if context.rows(source).channels > _MAX_CHANNELS_16:
        raise refuse(context, f"more than {_MAX_CHANNELS_16} channels, which the reference's sum holds")
    factor, shift = multiplier(context, float(quant_in.scale) * _beta(context) / (10.0 / 65535.0), "input")
    if shift > _MAX_SHIFT_16:
        raise refuse(context, f"its input scale {quant_in.scale} is beyond the reference's range")
    parameters = {
        "exp_table": _lines(lambda x: np.exp(x.astype(np.float64)), -10.0, 0.0),
        "reciprocal_table": _lines(lambda x: np.float32(1) / (np.float32(1) + x), 0.0, 1.0),
        "multiplier": factor,
        "shift": shift,
    }
    return _layer(context, "softmax_s16", parameters)


def _lines(function: Callable[[Array], Array], low: float, high: float) -> Array:
    """int16[513]: points of a function in Q0.15 between which lines are drawn.

    Each is moved by half of its line's error in the middle. Source: LUTPopulate for int16, in float32.
    """
    step = np.float32((np.float32(high) - np.float32(low)) / np.float32(_SEGMENTS))
    at = np.arange(_SEGMENTS + 1, dtype=np.float32)
    ends = function(np.float32(low) + at * step).astype(np.float32) * np.float32(32768)
    ends[-1] = function(np.array([high], np.float32)).astype(np.float32)[0] * np.float32(32768)
    middles = function(np.float32(low) + at[:-1] * step + step / np.float32(2)).astype(np.float32) * np.float32(32768)
    points = _round(ends)
    error = _round((ends[1:] + points[:-1]) / np.float32(2)) - _round(middles)
    points[:-1] -= _round(error / np.float32(2))
    return np.clip(points, -32768, 32767).astype(np.int16)


def _round(values: Array) -> Array:
    """To the nearest, half away from zero."""
    rounded: Array = np.copysign(np.floor(np.abs(values) + 0.5), values).astype(np.float32)
    return rounded


def _layer(context: Context, kernel: str, parameters: dict[str, Any]) -> Layer:
    source = context.input(0)
    rows = context.rows(source)
    return context.build.layer(
        context,
        kernel=kernel,
        reads=(Read(context.build.value(source), rows.height, rows.row_bytes),),
        parameters={"width": rows.width, "channels": rows.channels, **parameters},
    )


def _beta(context: Context) -> float:
    return float(np.float32(context.operator.attributes["beta"]))


def _scaling(context: Context, beta_scale: float) -> tuple[int, int]:
    """From differences to Q5.26. Source: PreprocessSoftmaxScaling."""
    real = min(beta_scale * (1 << (31 - INTEGER_BITS)), (1 << 31) - 1.0)
    if not real > 1.0:
        raise refuse(context, f"beta × scale is {beta_scale:.3g}, below the reference's range")
    return quantise_multiplier(real)


def _exp_table(scaling: tuple[int, int]) -> Array:
    """exp(-d × beta × scale) in Q0.31 for d = 0, 1, …, as long as the reference does not cut it to 0.

    Source: CalculateInputRadius and gemmlowp's exp_on_negative_values.
    """
    factor, left_shift = scaling
    radius = math.floor(((1 << INTEGER_BITS) - 1) * (1 << (31 - INTEGER_BITS)) / (1 << left_shift))
    entries = []
    for difference in range(min(radius, 255) + 1):
        rescaled = rounding_doubling_high_mul(wrap_int32(-difference << left_shift), factor)
        entries.append(exp_on_negative(rescaled))
    return np.array(entries, np.int32)
