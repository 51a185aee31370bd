# SPDX-License-Identifier: Apache-2.0
"""TRANSPOSE_CONV by rows: an output row needs the few input rows whose windows reach it."""

from __future__ import annotations

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import PADDING_SAME, Context, channel_multipliers, refuse
from arenite_codegen.operators.mac_any import lower_any

__all__ = ["lower"]


def lower(context: Context) -> Layer:
    """Inputs are the output's shape, the weights, the source and perhaps a bias. The output's own shape counts."""
    weights, source, output = context.constant(1), context.input(2), context.output
    attributes = context.operator.attributes
    strides = (int(attributes["stride_h"]), int(attributes["stride_w"]))
    if weights.ndim != 4 or len(source.shape) != 4 or len(output.shape) != 4 or min(strides) < 1:
        raise refuse(context, f"{source}, its weights {weights.shape} or its strides {strides} are out of range")
    out_c, kernel_h, kernel_w, in_c = weights.shape
    rows, rows_out = context.rows(source), context.rows(output)
    if (rows.channels, rows_out.channels) != (in_c, out_c):
        raise refuse(context, f"{source} and {output} do not have the channels of its weights {weights.shape}")
    before = [
        _before(context, size, made, kernel, stride)
        for size, made, kernel, stride in (
            (rows.height, rows_out.height, kernel_h, strides[0]),
            (rows.width, rows_out.width, kernel_w, strides[1]),
        )
    ]
    count = -(-kernel_h // strides[0])
    read = Read(
        value=context.build.value(source),
        rows=rows.height,
        row_bytes=rows.row_bytes,
        window=count,
        divisor=strides[0],
        pad_top=(count - 1) * strides[0] - before[0],
    )
    geometry = {
        "in_w": rows.width,
        "in_c": in_c,
        "out_w": rows_out.width,
        "kernel_h": kernel_h,
        "kernel_w": kernel_w,
        "stride_h": strides[0],
        "stride_w": strides[1],
        "pad_top": before[0],
        "pad_left": before[1],
        "group_in": in_c,
        "group_out": out_c,
    }
    return lower_any(
        context,
        "transpose_conv",
        source,
        read,
        weights,
        channel_multipliers(context, source, context.input(1), output, out_c),
        geometry,
        context.input(1),
        bias=3,
        macs=rows.height * rows.width * weights.size,
        always_wide=True,
    )


def _before(context: Context, size: int, made: int, kernel: int, stride: int) -> int:
    """What the reference cuts off before the first row or column: the padding of the convolution that this reverses."""
    same = context.operator.attributes["padding"] == PADDING_SAME
    expected = -(-made // stride) if same else -(-(made - kernel + 1) // stride)
    if expected != size:
        what = f"an extent of {made} with kernel {kernel} and stride {stride} comes from {expected}, not {size}"
        raise refuse(context, what)
    return max(0, (size - 1) * stride + kernel - made) // 2 if same else 0
