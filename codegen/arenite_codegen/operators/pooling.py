# SPDX-License-Identifier: Apache-2.0
"""AVERAGE_POOL_2D and MAX_POOL_2D. An average over the whole map accumulates rows and stores none."""

from __future__ import annotations

from arenite_codegen.network import Layer, Mode, Read
from arenite_codegen.operators.base import Context, activation_range, padding, refuse, same_quantisation

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
    if (out.height, out.width) == (1, 1) and window == (source.height, source.width):
        return _lower_global(context)
    return _lower_window(context, "average_pool_s8")


def lower_max(context: Context) -> Layer:
    """The greatest byte of each window."""
    return _lower_window(context, "max_pool_s8")


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
    same_quantisation(context, context.input(0), context.output)
    source, out = context.rows(context.input(0)), context.rows(context.output)
    attributes = context.operator.attributes
    kernel_h, kernel_w = attributes["filter_height"], attributes["filter_width"]
    stride_h, stride_w = attributes["stride_h"], attributes["stride_w"]
    pad_top = padding(context, source.height, kernel_h, stride_h, 1, out.height)
    pad_left = padding(context, source.width, kernel_w, stride_w, 1, out.width)
    act_min, act_max = activation_range(context, context.output)
    read = Read(
        value=context.build.value(context.input(0)),
        rows=source.height,
        row_bytes=source.row_bytes,
        window=kernel_h,
        stride=stride_h,
        pad_top=pad_top,
    )
    return context.build.layer(
        context,
        kernel=kernel,
        reads=(read,),
        parameters={
            "in_w": source.width,
            "channels": source.channels,
            "out_w": out.width,
            "kernel_h": kernel_h,
            "kernel_w": kernel_w,
            "stride_w": stride_w,
            "pad_left": pad_left,
            "act_min": act_min,
            "act_max": act_max,
        },
    )
