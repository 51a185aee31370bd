# SPDX-License-Identifier: Apache-2.0
"""Operators that move bytes: PAD, PADV2, TRANSPOSE, and RESHAPE with its kin, which need no code at all."""

from __future__ import annotations

from dataclasses import replace

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import MOVED_DTYPES, Context, refuse, same_quantisation
from arenite_codegen.operators.moving import indices_of, move

__all__ = ["lower_pad", "lower_reshape", "lower_transpose", "pad_amounts"]


def pad_amounts(context: Context) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """(before, after) of rows, pixels and channels.

    Raises:
        UnsupportedOperatorError: The batch is padded, or an amount is negative.
    """
    amounts = context.whole_numbers(1)
    rank = len(context.input(0).shape)
    if amounts.shape != (rank, 2) or amounts.min() < 0:
        raise refuse(context, f"its paddings {amounts.tolist()} do not suit an input of {rank} dimensions")
    if rank > 4 or (rank == 4 and amounts[0].any()):
        raise refuse(context, "it pads the batch or more than 4 dimensions")
    pairs = [(int(a), int(b)) for a, b in amounts]
    has_batch = context.batch > 1 or (rank > 1 and context.input(0).shape[0] == 1 and pairs[0] == (0, 0))
    stripped = pairs[1:] if has_batch else pairs
    if len(stripped) == 2:
        return stripped[0], (0, 0), stripped[1]
    rows, pixels, channels = [(0, 0)] * (3 - len(stripped)) + stripped
    return rows, pixels, channels


def lower_pad(context: Context) -> Layer:
    """A row outside the input is all zero point, or all the value that PADV2 gives."""
    source, output = context.input(0), context.output
    quant = same_quantisation(context, source, output, MOVED_DTYPES)
    value = quant.zero_point
    if context.optional_input(2) is not None:
        same_quantisation(context, context.input(2), output, MOVED_DTYPES)
        if context.constant(2).size != 1:
            raise refuse(context, f"{context.input(2)} must hold one number")
        value = int(context.constant(2).ravel()[0])
    if source.element_bytes > 1 and value:
        raise refuse(context, f"padding a type wider than a byte with {value}, not 0, has no kernel")
    rows_pad, pixels_pad, channels_pad = pad_amounts(context)
    rows = context.rows(source)
    out = context.rows(output)
    if out.height != rows.height + sum(rows_pad):
        raise refuse(context, f"{output} is not {source} with its paddings")
    read = Read(context.build.value(source), rows.height, rows.row_bytes, pad_top=rows_pad[0])
    return context.build.layer(
        context,
        kernel="pad_s8",
        reads=(read,),
        parameters={
            "in_w": rows.width,
            "in_c": rows.channels * source.element_bytes,
            "left": pixels_pad[0],
            "right": pixels_pad[1],
            "before": channels_pad[0] * source.element_bytes,
            "after": channels_pad[1] * source.element_bytes,
            "value": value,
        },
    )


def lower_transpose(context: Context) -> Layer:
    """Any order of any number of dimensions.

    A planar picture that becomes interleaved is released row by row: output row y takes row y of every plane.
    """
    source = context.input(0)
    order = [int(axis) for axis in context.whole_numbers(1).ravel()]
    layer = move(context, indices_of(context, source).transpose(order))
    if len(source.shape) != 4 or order != [0, 2, 3, 1]:
        return layer
    _, planes, height, width = source.shape
    read = Read(layer.reads[0].value, planes * height, width, window=planes, dilation=height, whole=True)
    return replace(layer, reads=(read,)) if layer.reads[0].whole else layer


def lower_reshape(context: Context) -> Layer | None:
    """Bytes stay where they are."""
    source, output = context.input(0), context.output
    same_quantisation(context, source, output, MOVED_DTYPES)
    if source.elements != output.elements:
        raise refuse(context, f"{source} and {output} differ in size")
    context.build.alias(context, source, output)
    return None
