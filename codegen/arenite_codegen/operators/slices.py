# SPDX-License-Identifier: Apache-2.0
"""SLICE, STRIDED_SLICE, SPLIT and SPLIT_V: parts of a tensor, of any element type. Rows of no part are not read."""

from __future__ import annotations

import numpy as np

from arenite.graph import Tensor
from arenite_codegen.network import Layer
from arenite_codegen.operators.base import Context, refuse
from arenite_codegen.operators.moving import indices_of, move

__all__ = ["lower_slice", "lower_split", "lower_split_v", "lower_strided_slice"]

# First element, distance to the next, count; of each dimension.
Part = list[tuple[int, int, int]]


def lower_slice(context: Context) -> Layer:
    """A size of -1 is all that is left."""
    source, output = context.input(0), context.output
    begins, sizes = ([int(v) for v in context.whole_numbers(i).ravel()] for i in (1, 2))
    if not len(begins) == len(sizes) == len(source.shape):
        raise refuse(context, f"its begin and size do not have the {len(source.shape)} dimensions of {source}")
    part = [
        (first, 1, extent - first if size == -1 else size)
        for first, size, extent in zip(begins, sizes, source.shape, strict=True)
    ]
    return _layer(context, source, output, part)


def lower_strided_slice(context: Context) -> Layer:
    """Bits of the masks say which bounds are open, and which dimensions vanish."""
    source, output = context.input(0), context.output
    bounds = [[int(v) for v in context.whole_numbers(i).ravel()] for i in (1, 2, 3)]
    attributes = context.operator.attributes
    if attributes["ellipsis_mask"] or attributes["new_axis_mask"] or attributes["offset"]:
        raise refuse(context, "an ellipsis, a new axis or an end that counts from the begin has no kernel")
    if len({len(b) for b in bounds}) != 1 or len(bounds[0]) > len(source.shape):
        raise refuse(context, f"its begin, end and strides do not suit {source}")
    part: Part = []
    for axis, extent in enumerate(source.shape):
        if axis >= len(bounds[0]):
            part.append((0, 1, extent))
            continue
        begin, end, stride = (b[axis] for b in bounds)
        bit = 1 << axis
        if stride == 0:
            raise refuse(context, "a stride is 0")
        if attributes["shrink_axis_mask"] & bit:
            part.append((begin + extent if begin < 0 else begin, 1, 1))
            continue
        found = slice(
            None if attributes["begin_mask"] & bit else begin, None if attributes["end_mask"] & bit else end, stride
        ).indices(extent)
        part.append((found[0], stride, len(range(*found))))
    return _layer(context, source, output, part)


def lower_split(context: Context) -> tuple[Layer, ...]:
    """Equal parts; the axis comes first."""
    return _parts(context, context.input(1), context.whole_number(0))


def lower_split_v(context: Context) -> tuple[Layer, ...]:
    """Parts as large as the outputs say."""
    return _parts(context, context.input(0), context.whole_number(2))


def _parts(context: Context, source: Tensor, axis: int) -> tuple[Layer, ...]:
    rank = len(source.shape)
    if not -rank <= axis < rank:
        raise refuse(context, f"axis {axis} is out of range for {source}")
    axis %= rank
    outputs = [context.graph.tensors[index] for index in context.operator.outputs]
    if sum(t.shape[axis] if len(t.shape) == rank else 0 for t in outputs) != source.shape[axis]:
        raise refuse(context, f"its outputs do not make up {source} along axis {axis}")
    layers, first = [], 0
    for output in outputs:
        part = [(0, 1, extent) for extent in source.shape]
        part[axis] = (first, 1, output.shape[axis])
        first += output.shape[axis]
        layers.append(_layer(context, source, output, part))
    return tuple(layers)


def _layer(context: Context, source: Tensor, output: Tensor, part: Part) -> Layer:
    for (first, stride, count), extent in zip(part, source.shape, strict=True):
        if count < 1 or not (0 <= first < extent and 0 <= first + (count - 1) * stride < extent):
            raise refuse(context, f"it takes {count} of {source} from {first} in steps of {stride}")
    axes = (first + stride * np.arange(count) for first, stride, count in part)
    return move(context, indices_of(context, source)[np.ix_(*axes)], source, output)
