# SPDX-License-Identifier: Apache-2.0
"""What convolutions share: a window that slides over rows and pixels, with a PAD before it folded in."""

from __future__ import annotations

from collections.abc import Mapping

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, channel_multipliers, mac_parameters, padding

__all__ = ["lower_windowed"]


def lower_windowed(
    context: Context, kernel: str, window: tuple[int, int], by_channel: Array, packed: Array, own: Mapping[str, int]
) -> Layer:
    """A layer whose every output pixel sums products over a window of the input.

    Args:
        kernel: Its name.
        window: Height and width.
        by_channel: int8 weights, output channel first.
        packed: The same weights as the kernel reads them.
        own: Parameters that only this kernel has.
    """
    source, pad_top, pad_left = context.build.through_pad(context)
    padded = context.rows(context.input(0))
    rows_in, rows_out = context.rows(source), context.rows(context.output)
    attributes = context.operator.attributes
    stride_h, stride_w = attributes["stride_h"], attributes["stride_w"]
    dilation_h, dilation_w = attributes["dilation_h_factor"], attributes["dilation_w_factor"]
    pad_top += padding(context, padded.height, window[0], stride_h, dilation_h, rows_out.height)
    pad_left += padding(context, padded.width, window[1], stride_w, dilation_w, rows_out.width)
    scales = channel_multipliers(context, source, context.input(1), context.output, len(by_channel))
    read = Read(
        value=context.build.value(source),
        rows=rows_in.height,
        row_bytes=rows_in.row_bytes,
        window=window[0],
        stride=stride_h,
        dilation=dilation_h,
        pad_top=pad_top,
    )
    return context.build.layer(
        context,
        kernel=kernel,
        reads=(read,),
        macs=rows_out.height * rows_out.width * by_channel.size,
        parameters={
            "weights": packed,
            **mac_parameters(context, source, by_channel, scales),
            "in_w": rows_in.width,
            "out_w": rows_out.width,
            "kernel_h": window[0],
            "kernel_w": window[1],
            "stride_w": stride_w,
            "dilation_w": dilation_w,
            "pad_left": pad_left,
            **own,
        },
    )
