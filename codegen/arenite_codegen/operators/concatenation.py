# SPDX-License-Identifier: Apache-2.0
"""CONCATENATION along any axis, and PACK. The reference copies bytes, so all ends must share one quantisation."""

from __future__ import annotations

import math

import numpy as np

from arenite.graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import ACTIVATION_NONE, MOVED_DTYPES, Context, refuse, same_quantisation

__all__ = ["lower", "lower_pack"]

ROWS, PIXELS, CHANNELS = range(3)
MAX_VALUES = 255


def lower(context: Context) -> Layer:
    """Along rows each step takes its row from the value that has it; the others are outside."""
    output = context.output
    if int(context.operator.attributes["fused_activation_function"]) != ACTIVATION_NONE:
        raise refuse(context, "a fused activation has no kernel")
    sources = _sources(context)
    axis, out = _axis(context), context.rows(output)
    if axis is None:
        return _lower_along(context, sources, int(context.operator.attributes["axis"]) % len(output.shape))
    shapes = [context.rows(source) for source in sources]
    totals = [sum(extents) for extents in zip(*((s.height, s.width, s.channels) for s in shapes), strict=True)]
    wanted = (out.height, out.width, out.channels)
    for dimension, (total, want) in enumerate(zip(totals, wanted, strict=True)):
        if (total if dimension == axis else total // len(sources)) != want:
            raise refuse(context, f"{output} is not its inputs side by side")
    reads, first = [], 0
    for source, shape in zip(sources, shapes, strict=True):
        value = context.build.value(source)
        reads.append(Read(value, shape.height, shape.row_bytes, pad_top=first if axis == ROWS else 0))
        first += shape.height
    repeats = out.width if axis == CHANNELS else 1
    return _layer(context, reads, [shape.row_bytes // repeats for shape in shapes], repeats)


def lower_pack(context: Context) -> Layer:
    """Along a new axis."""
    rank = len(context.output.shape)
    axis = int(context.operator.attributes["axis"])
    if not -rank <= axis < rank:
        raise refuse(context, f"its axis {axis} does not exist in {context.output}")
    return _lower_along(context, _sources(context), axis % rank)


def _sources(context: Context) -> list[Tensor]:
    sources = [context.input(position) for position in range(len(context.operator.inputs))]
    for source in sources:
        same_quantisation(context, source, context.output, MOVED_DTYPES)
    if len(sources) > MAX_VALUES:
        raise refuse(context, f"more than {MAX_VALUES} inputs have no kernel")
    return sources


def _lower_along(context: Context, sources: list[Tensor], axis: int) -> Layer:
    """What lies before the axis is rows, what lies behind it is bytes side by side."""
    shape = context.output.shape
    batched = context.batch > 1 or (len(shape) > 1 and shape[0] == 1)
    if batched and axis == 0 and shape[0] > 1:
        raise refuse(context, "it joins along the batch")
    rows = math.prod(shape[1 if batched else 0 : axis])
    sizes = [source.bytes // context.batch // rows for source in sources]
    if sum(sizes) * rows * context.batch != context.output.bytes:
        raise refuse(context, f"{context.output} is not its inputs side by side")
    reads = [Read(context.build.value(source), rows, size) for source, size in zip(sources, sizes, strict=True)]
    return _layer(context, reads, sizes, 1, rows)


def _layer(context: Context, reads: list[Read], chunks: list[int], repeats: int, rows: int | None = None) -> Layer:
    return context.build.layer(
        context,
        kernel="concatenation_s8",
        reads=tuple(reads),
        out_rows=rows,
        parameters={"chunks": np.array(chunks, np.int32), "count": len(chunks), "repeats": repeats},
    )


def _axis(context: Context) -> int | None:
    """The axis among rows, pixels and channels of one batch item, divided as `RowShape` does; None if it is none."""
    shape = context.output.shape
    axis = int(context.operator.attributes["axis"])
    if not -len(shape) <= axis < len(shape):
        raise refuse(context, f"its axis {axis} does not exist in {context.output}")
    from_end = len(shape) - 1 - axis % len(shape)
    stripped = len(shape) - (1 if context.batch > 1 or (len(shape) > 1 and shape[0] == 1) else 0)
    if from_end >= stripped:
        raise refuse(context, "it joins along the batch")
    if from_end == 0:
        return CHANNELS
    if stripped == 2 or (stripped == 3 and from_end == 2):
        return ROWS
    return PIXELS if from_end == 1 else None
