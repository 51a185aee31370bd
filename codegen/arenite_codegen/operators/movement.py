# SPDX-License-Identifier: Apache-2.0
"""Operators that move bytes: PAD, TRANSPOSE, and RESHAPE with its kin, which need no code at all."""

from __future__ import annotations

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import MOVED_DTYPES, Context, refuse, same_quantisation

__all__ = ["lower_pad", "lower_reshape", "lower_transpose", "pad_amounts"]

_BYTES = ("int8", "uint8")


def pad_amounts(context: Context) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """(before, after) of rows, pixels and channels.

    Raises:
        UnsupportedOperatorError: The batch is padded, or an amount is negative.
    """
    amounts = context.constant(1)
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
    """A row outside the input is all zero point."""
    source, output = context.input(0), context.output
    quant = same_quantisation(context, source, output, MOVED_DTYPES)
    if source.element_bytes > 1 and quant.zero_point:
        raise refuse(context, "a zero point other than 0 of a type wider than a byte has no kernel")
    if context.optional_input(2) is not None:
        raise refuse(context, "a pad value other than the zero point has no kernel")
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
            "value": quant.zero_point,
        },
    )


def lower_transpose(context: Context) -> Layer:
    """Any permutation of up to three dimensions that are not 1, beside a batch that stays first.

    One output row gathers bytes of the whole input. The rows that it needs are still told apart, so that a planar
    picture is released as it is consumed.
    """
    source, output = context.input(0), context.output
    same_quantisation(context, source, output, _BYTES)
    order = [int(i) for i in context.constant(1).ravel()]
    if sorted(order) != list(range(len(source.shape))) or source.elements != output.elements:
        raise refuse(context, f"the permutation {order} does not suit {source} and {output}")
    shape, order = _three_dimensions(context, source.shape, order)
    steps = [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in order]
    out_shape = [shape[axis] for axis in order]
    return context.build.layer(
        context,
        kernel="transpose_s8",
        reads=(_transpose_read(context.build.value(source), shape, order),),
        out_rows=out_shape[0],
        parameters={
            "width": out_shape[1],
            "channels": out_shape[2],
            "row_step": steps[0],
            "pixel_step": steps[1],
            "channel_step": steps[2],
        },
    )


def _three_dimensions(context: Context, shape: tuple[int, ...], order: list[int]) -> tuple[tuple[int, ...], list[int]]:
    """The same permutation of one item, dimensions of 1 taken out or filled in until three are left.

    Two dimensions are rows and channels.
    """
    if context.batch > 1:
        if order[0] != 0 or shape[0] != context.batch:
            raise refuse(context, f"it does not keep the batch of {context.batch}")
        shape, order = shape[1:], [axis - 1 for axis in order[1:]]
    kept = [axis for axis in range(len(shape)) if shape[axis] > 1]
    if len(kept) > 3:
        raise refuse(context, f"it permutes {len(kept)} dimensions, at most 3 have a kernel")
    order = [kept.index(axis) for axis in order if axis in kept]
    shape = tuple(shape[axis] for axis in kept)
    if len(shape) == 2:
        return (shape[0], 1, shape[1]), [2 * order[0], 1, 2 * order[1]]
    missing = 3 - len(shape)
    return (1,) * missing + shape, [*range(missing), *(axis + missing for axis in order)]


def _transpose_read(value: int, shape: tuple[int, ...], order: list[int]) -> Read:
    planes, height, width = shape
    if order == [1, 2, 0]:
        # Planar to interleaved: output row y takes row y of every plane.
        return Read(value, planes * height, width, window=planes, dilation=height, whole=True)
    if order[0] == 0:
        return Read(value, planes, height * width, whole=True)
    return Read(value, 1, planes * height * width, stride=0, whole=True)


def lower_reshape(context: Context) -> Layer | None:
    """Bytes stay where they are."""
    source, output = context.input(0), context.output
    same_quantisation(context, source, output, MOVED_DTYPES)
    if source.elements != output.elements:
        raise refuse(context, f"{source} and {output} differ in size")
    context.build.alias(context, source, output)
    return None
