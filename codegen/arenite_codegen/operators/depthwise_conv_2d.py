# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D, any multiplier. A PAD before it is folded into the window."""

from __future__ import annotations

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import (
    Context,
    activation_range,
    bias_values,
    channel_multipliers,
    folded_bias,
    padding,
    quantisation,
    refuse,
)

__all__ = ["lower"]


def lower(context: Context) -> Layer:
    """Output channel ic·multiplier + m reads input channel ic; weights stay [kernel_h][kernel_w][out_c]."""
    weights = context.constant(1)
    if weights.ndim != 4 or weights.shape[0] != 1:
        raise refuse(context, f"its weights have the shape {weights.shape}, expected 1×h×w×channels")
    _, kernel_h, kernel_w, out_c = weights.shape
    source, pad_top, pad_left = context.build.through_pad(context)
    padded = context.rows(context.input(0))
    rows_in, rows_out = context.rows(source), context.rows(context.output)
    depth_multiplier = out_c // padded.channels
    if depth_multiplier * padded.channels != out_c or rows_out.channels != out_c:
        raise refuse(context, f"{padded.channels} input channels do not divide its {out_c} output channels")
    attributes = context.operator.attributes
    stride_h, stride_w = attributes["stride_h"], attributes["stride_w"]
    dilation_h, dilation_w = attributes["dilation_h_factor"], attributes["dilation_w_factor"]
    pad_top += padding(context, padded.height, kernel_h, stride_h, dilation_h, rows_out.height)
    pad_left += padding(context, padded.width, kernel_w, stride_w, dilation_w, rows_out.width)
    quant_in, quant_out = quantisation(context, source), quantisation(context, context.output)
    multipliers, shifts = channel_multipliers(context, source, context.input(1), context.output, out_c)
    act_min, act_max = activation_range(context, context.output)
    by_channel = np.moveaxis(weights[0], -1, 0)
    read = Read(
        value=context.build.value(source),
        rows=rows_in.height,
        row_bytes=rows_in.row_bytes,
        window=kernel_h,
        stride=stride_h,
        dilation=dilation_h,
        pad_top=pad_top,
    )
    return context.build.layer(
        context,
        kernel="depthwise_conv_2d_s8",
        reads=(read,),
        macs=rows_out.height * rows_out.width * weights.size,
        parameters={
            "weights": weights[0],
            "bias": folded_bias(bias_values(context, 2, out_c), by_channel, quant_in.zero_point),
            "multiplier": multipliers,
            "shift": shifts,
            "per_channel": int(multipliers.size > 1),
            "in_w": rows_in.width,
            "in_c": padded.channels,
            "out_w": rows_out.width,
            "depth_multiplier": depth_multiplier,
            "kernel_h": kernel_h,
            "kernel_w": kernel_w,
            "stride_w": stride_w,
            "dilation_w": dilation_w,
            "pad_left": pad_left,
            "in_zero_point": quant_in.zero_point,
            "out_zero_point": quant_out.zero_point,
            "act_min": act_min,
            "act_max": act_max,
        },
    )
