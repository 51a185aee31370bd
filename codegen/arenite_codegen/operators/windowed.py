# SPDX-License-Identifier: Apache-2.0
"""What convolutions and poolings share: a window that slides over rows and pixels."""

from __future__ import annotations

from collections.abc import Mapping

from arenite.graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, channel_multipliers, mac_parameters, padding, refuse
from arenite_codegen.operators.mac_any import is_plain, lower_any

__all__ = ["lower_windowed", "window_read"]

# int16_t in the kernels' structs.
_SHORTS = ("kernel_h", "kernel_w", "stride_w", "pad_left")
_MAX_SHORT = 0x7FFF


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
    group = by_channel.shape[-1] if by_channel.ndim == 4 else 1
    is_wide = max(*(geometry[name] for name in _SHORTS), dilation[1]) > _MAX_SHORT
    if is_wide or not is_plain(source, context.input(1)) or (group > 1 and group != own["in_c"]):
        return _lower_any(context, source, read, by_channel, scales, {**geometry, "dilation_w": dilation[1]})
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


def _lower_any(
    context: Context,
    source: Tensor,
    read: Read,
    by_channel: Array,
    scales: tuple[Array, Array],
    geometry: Mapping[str, int],
) -> Layer:
    """The same with int16 activations, weights that have a zero point, or groups."""
    in_c, out_c = context.rows(source).channels, len(by_channel)
    group_in = by_channel.shape[-1] if by_channel.ndim == 4 else 1
    groups = in_c // group_in
    if groups * group_in != in_c or out_c % groups:
        raise refuse(context, f"{in_c} input and {out_c} output channels do not divide into groups of {group_in}")
    kernel = "conv_2d" if source.dtype == "int16" else "conv_2d_any"
    own = {"in_c": in_c, "group_in": group_in, "group_out": out_c // groups}
    wide = by_channel.ndim == 3  # the reference has no depthwise convolution of int16 with an int32 bias
    return lower_any(
        context, kernel, source, read, by_channel, scales, {**geometry, **own}, context.input(1), always_wide=wide
    )
