# SPDX-License-Identifier: Apache-2.0
"""AVERAGE_POOL_2D and MAX_POOL_2D. An average over the whole map accumulates rows and stores none."""

from __future__ import annotations

from arenite_codegen.network import Layer, Mode, Read
from arenite_codegen.operators.base import Context, activation_range, refuse, same_quantisation
from arenite_codegen.operators.windowed import window_read
from arenite_codegen.uint8 import FROM_UINT8

__all__ = ["lower_average", "lower_max"]

# Sums of bytes fit int32.
MAX_PIXELS = 1 << 24


def lower_average(context: Context) -> Layer:
    """Rows of the window are summed; the divisor counts only what is inside the map."""
    source = context.rows(context.input(0))
    attributes = context.operator.attributes
    window = (attributes["filter_height"], attributes["filter_width"])
    if window[0] * window[1] > MAX_PIXELS:
        raise refuse(context, f"an average over {window[0] * window[1]:,} pixels; sums hold {MAX_PIXELS:,}")
    out = context.rows(context.output)
    if context.output.dtype == "int16":
        return _lower_window(context, "average_pool_s16")
    if context.operator.attributes.get(FROM_UINT8):
        return _lower_window(context, "average_pool_half_up_s8")
    if (out.height, out.width) == (1, 1) and window == (source.height, source.width):
        return _lower_global(context)
    return _lower_window(context, "average_pool_s8")


def lower_max(context: Context) -> Layer:
    """The greatest byte of each window."""
    return _lower_window(context, "max_pool_s16" if context.output.dtype == "int16" else "max_pool_s8")


def _lower_global(context: Context) -> Layer:
    same_quantisation(context, context.input(0), context.output)
    source = context.rows(context.input(0))
    act_min, act_max = activation_range(context, context.output)
    return context.build.layer(
        context,
        kernel="average_pool_global_s8",
        reads=(Read(context.build.value(context.input(0)), source.height, source.row_bytes),),
        mode=Mode.ACCUMULATE,
        steps=source.height,
        scratch_bytes=4 * source.channels,
        parameters={
            "rows": source.height,
            "width": source.width,
            "channels": source.channels,
            "act_min": act_min,
            "act_max": act_max,
        },
    )


def _lower_window(context: Context, kernel: str) -> Layer:
    same_quantisation(context, context.input(0), context.output, ("int8", "int16"))
    attributes = context.operator.attributes
    window = (attributes["filter_height"], attributes["filter_width"])
    read, geometry = window_read(context, context.input(0), window)
    act_min, act_max = activation_range(context, context.output)
    return context.build.layer(
        context,
        kernel=kernel,
        reads=(read,),
        parameters={
            **geometry,
            "channels": context.rows(context.input(0)).channels,
            "act_min": act_min,
            "act_max": act_max,
        },
    )
