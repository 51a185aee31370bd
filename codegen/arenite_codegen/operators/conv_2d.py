# SPDX-License-Identifier: Apache-2.0
"""CONV_2D: every output pixel is a dot product over a window of rows. A PAD before it is folded into the window."""

from __future__ import annotations

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import (
    Context,
    activation_range,
    bias_values,
    channel_multipliers,
    folded_bias,
    interleaved,
    padding,
    quantisation,
    refuse,
)

__all__ = ["lower"]


def lower(context: Context) -> Layer:
    """The input zero point goes into the bias."""
    weights = context.constant(1)
    if weights.ndim != 4:
        raise refuse(context, f"its weights have {weights.ndim} dimensions, expected 4")
    out_c, kernel_h, kernel_w, in_c = weights.shape
    source, pad_top, pad_left = context.build.through_pad(context)
    padded = context.rows(context.input(0))
    rows_in, rows_out = context.rows(source), context.rows(context.output)
    if padded.channels != in_c or rows_out.channels != out_c:
        raise refuse(context, f"grouped convolution ({padded.channels} channels in, {in_c} a group) has no kernel")
    attributes = context.operator.attributes
    stride_h, stride_w = attributes["stride_h"], attributes["stride_w"]
    dilation_h, dilation_w = attributes["dilation_h_factor"], attributes["dilation_w_factor"]
    pad_top += padding(context, padded.height, kernel_h, stride_h, dilation_h, rows_out.height)
    pad_left += padding(context, padded.width, kernel_w, stride_w, dilation_w, rows_out.width)
    quant_in, quant_out = quantisation(context, source), quantisation(context, context.output)
    multipliers, shifts = channel_multipliers(context, source, context.input(1), context.output, out_c)
    act_min, act_max = activation_range(context, context.output)
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
        kernel="conv_2d_s8",
        reads=(read,),
        macs=rows_out.height * rows_out.width * weights.size,
        parameters={
            "weights": interleaved(weights),
            "bias": folded_bias(bias_values(context, 2, out_c), weights, quant_in.zero_point),
            "multiplier": multipliers,
            "shift": shifts,
            "per_channel": int(multipliers.size > 1),
            "in_w": rows_in.width,
            "in_c": in_c,
            "out_w": rows_out.width,
            "out_c": out_c,
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
