# SPDX-License-Identifier: Apache-2.0
"""CONCATENATION along rows, pixels or channels. The reference copies bytes, so all ends must share one quantisation."""

from __future__ import annotations

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import ACTIVATION_NONE, MOVED_DTYPES, Context, refuse, same_quantisation

__all__ = ["lower"]

ROWS, PIXELS, CHANNELS = range(3)
MAX_VALUES = 255


def lower(context: Context) -> Layer:
    """Along rows each step takes its row from the value that has it; the others are outside."""
    output = context.output
    sources = [context.input(position) for position in range(len(context.operator.inputs))]
    for source in sources:
        same_quantisation(context, source, output, MOVED_DTYPES)
    if int(context.operator.attributes["fused_activation_function"]) != ACTIVATION_NONE or len(sources) > MAX_VALUES:
        raise refuse(context, f"a fused activation, or more than {MAX_VALUES} inputs, has no kernel")
    axis, out = _axis(context), context.rows(output)
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
    return context.build.layer(
        context,
        kernel="concatenation_s8",
        reads=tuple(reads),
        parameters={
            "chunks": np.array([shape.row_bytes // repeats for shape in shapes], np.int32),
            "count": len(sources),
            "repeats": repeats,
        },
    )


def _axis(context: Context) -> int:
    """The axis among rows, pixels and channels of one batch item, divided as `RowShape` does."""
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
    if from_end == 1:
        return PIXELS
    raise refuse(context, f"joining {stripped} dimensions along the one {from_end} from the end has no kernel")
