# SPDX-License-Identifier: Apache-2.0
"""What convolutions and poolings share: a window that slides over rows and pixels."""

from __future__ import annotations

from collections.abc import Mapping

from arenite.tflite_graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, channel_multipliers, mac_parameters, padding

__all__ = ["lower_windowed", "window_read"]


def window_read(
    context: Context,
    source: Tensor,
    window: tuple[int, int],
    dilation: tuple[int, int] = (1, 1),
    before: tuple[int, int] = (0, 0),
) -> tuple[Read, dict[str, int]]:
    """The rows that each step reads, and the kernel parameters of the window's way along a row.

    Args:
        source: What is read: the operator's input, or what a PAD before it reads.
        window, dilation: Vertical and horizontal.
        before: Rows and pixels that such a PAD puts before the source.
    """
    padded, rows_in, rows_out = (context.rows(t) for t in (context.input(0), source, context.output))
    stride_h, stride_w = context.operator.attributes["stride_h"], context.operator.attributes["stride_w"]
    pad_top = padding(context, padded.height, window[0], stride_h, dilation[0], rows_out.height)
    pad_left = padding(context, padded.width, window[1], stride_w, dilation[1], rows_out.width)
    read = Read(
        value=context.build.value(source),
        rows=rows_in.height,
        row_bytes=rows_in.row_bytes,
        window=window[0],
        stride=stride_h,
        dilation=dilation[0],
        pad_top=before[0] + pad_top,
    )
    geometry = {
        "in_w": rows_in.width,
        "out_w": rows_out.width,
        "kernel_h": window[0],
        "kernel_w": window[1],
        "stride_w": stride_w,
        "pad_left": before[1] + pad_left,
    }
    return read, geometry


def lower_windowed(
    context: Context, kernel: str, window: tuple[int, int], by_channel: Array, own: Mapping[str, int]
) -> Layer:
    """A layer whose every output pixel sums products over a window of the input; a PAD before it is folded in.

    Args:
        kernel: Its name.
        window: Height and width.
        by_channel: int8 weights, output channel first.
        own: Parameters that only this kernel has.
    """
    source, *before = context.build.through_pad(context)
    attributes = context.operator.attributes
    dilation = (attributes["dilation_h_factor"], attributes["dilation_w_factor"])
    read, geometry = window_read(context, source, window, dilation, (before[0], before[1]))
    scales = channel_multipliers(context, source, context.input(1), context.output, len(by_channel))
    rows_out = context.rows(context.output)
    return context.build.layer(
        context,
        kernel=kernel,
        reads=(read,),
        macs=rows_out.height * rows_out.width * by_channel.size,
        parameters={
            "weights": by_channel,
            **mac_parameters(context, source, by_channel, scales),
            **geometry,
            "dilation_w": dilation[1],
            **own,
        },
    )
