# SPDX-License-Identifier: Apache-2.0
"""What shape an operator makes out of its inputs, so that a file that says otherwise is refused.

Everything after this trusts shapes: the arena's size, the row schedule, the kernels' loops. A corrupt or careless file
whose output is declared larger than what is computed would read and write past the arena.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from arenite_codegen.operators.base import PADDING_SAME, PADDING_VALID, Context, refuse

__all__ = [
    "ShapeRule",
    "broadcast",
    "check_output_shape",
    "conv",
    "depthwise",
    "joined",
    "named",
    "pad",
    "pool",
    "reduced",
    "same",
    "selected",
    "transposed",
]

Shape = tuple[int, ...]
ShapeRule = Callable[[Context], Shape]
# The reference keeps paddings in 16 bits.
_MAX_SPAN = 0x7FFF


def check_output_shape(context: Context, rule: ShapeRule | None) -> None:
    """Compare the declared output with what the operator makes.

    Args:
        rule: None for those that keep or divide a number of elements, which their lowerings check.

    Raises:
        UnsupportedOperatorError: They differ, or a window, stride or axis is out of range.
    """
    if rule is None:
        return
    expected = rule(context)
    if expected != tuple(context.output.shape):
        cure = "The file is corrupt or was made by a faulty converter: convert the model again."
        raise refuse(context, f"it makes {list(expected)}, but its output is {context.output}", cure)


def same(context: Context) -> Shape:
    """That of the input."""
    return tuple(context.input(0).shape)


def broadcast(context: Context) -> Shape:
    """What all inputs make together."""
    inputs = [context.input(position) for position in range(len(context.operator.inputs))]
    try:
        return np.broadcast_shapes(*(tensor.shape for tensor in inputs))
    except ValueError:
        raise refuse(context, f"{' and '.join(map(str, inputs))} do not broadcast") from None


def selected(context: Context) -> Shape:
    """SELECT: of both sides; its condition has it too, or is one for all, or for each slice along the first axis."""
    which, first, second = (tuple(context.input(position).shape) for position in range(3))
    if first != second or which not in (first, first[:1], ()):
        shapes = f"{context.input(0)}, {context.input(1)} and {context.input(2)}"
        raise refuse(context, f"{shapes} do not suit each other", "Convert with SELECT_V2, which broadcasts.")
    return first


def joined(context: Context) -> Shape:
    """The inputs one behind the other along an axis."""
    inputs = [context.input(position) for position in range(len(context.operator.inputs))]
    if not inputs:
        raise refuse(context, "it has no inputs")
    first = inputs[0].shape
    axis = _axis(context, int(context.operator.attributes["axis"]), len(first))
    for tensor in inputs[1:]:
        beside = (tensor.shape[:axis], tensor.shape[axis + 1 :])
        if len(tensor.shape) != len(first) or beside != (first[:axis], first[axis + 1 :]):
            raise refuse(context, f"{inputs[0]} and {tensor} cannot be joined along axis {axis}")
    return (*first[:axis], sum(tensor.shape[axis] for tensor in inputs), *first[axis + 1 :])


def conv(context: Context) -> Shape:
    """CONV_2D."""
    filters, batch, extents = _convolved(context)
    return (batch, *extents, filters[0])


def depthwise(context: Context) -> Shape:
    """DEPTHWISE_CONV_2D."""
    filters, batch, extents = _convolved(context)
    factor, channels = context.operator.attributes["depth_multiplier"], _image(context)[3]
    if factor * channels != filters[3]:
        raise refuse(context, f"{channels} channels times its multiplier {factor} are not {filters[3]} filters")
    return (batch, *extents, filters[3])


def _convolved(context: Context) -> tuple[Shape, int, Shape]:
    attributes = context.operator.attributes
    filters = tuple(context.input(1).shape)
    if len(filters) != 4:
        raise refuse(context, f"its weights, {context.input(1)}, must have 4 dimensions")
    dilations = (attributes["dilation_h_factor"], attributes["dilation_w_factor"])
    batch, *_ = _image(context)
    return filters, batch, _extents(context, filters[1:3], dilations)


def pool(context: Context) -> Shape:
    """Of a window that slides."""
    attributes = context.operator.attributes
    batch, _, _, channels = _image(context)
    window = (attributes["filter_height"], attributes["filter_width"])
    return (batch, *_extents(context, window, (1, 1)), channels)


def _image(context: Context) -> Shape:
    shape = tuple(context.input(0).shape)
    if len(shape) != 4:
        raise refuse(context, f"{context.input(0)} must have 4 dimensions")
    return shape


def _extents(context: Context, window: Sequence[int], dilations: Sequence[int]) -> Shape:
    attributes = context.operator.attributes
    strides = (attributes["stride_h"], attributes["stride_w"])
    if min(*window, *dilations, *strides) < 1:
        raise refuse(context, f"window {window}, stride {strides} and dilation {dilations} must be at least 1")
    if max(k * d for k, d in zip(window, dilations, strict=True)) > _MAX_SPAN:
        raise refuse(context, f"window {window} with dilation {dilations} spans more than {_MAX_SPAN}")
    if attributes["padding"] not in (PADDING_SAME, PADDING_VALID):
        raise refuse(context, f"padding {attributes['padding']} is neither SAME nor VALID")
    same = attributes["padding"] == PADDING_SAME
    found = []
    for size, kernel, dilation, stride in zip(_image(context)[1:3], window, dilations, strides, strict=True):
        span = 1 if same else (kernel - 1) * dilation + 1
        found.append(-(-(size - span + 1) // stride))
    return tuple(found)


def reduced(context: Context) -> Shape:
    """What is left when axes are reduced."""
    shape = context.input(0).shape
    axes = {_axis(context, int(axis), len(shape)) for axis in context.whole_numbers(1).ravel()}
    if context.operator.attributes["keep_dims"]:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _axis(context: Context, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise refuse(context, f"axis {axis} is out of range for {context.input(0)}")
    return axis % rank


def pad(context: Context) -> Shape:
    """The input and its paddings."""
    shape, amounts = context.input(0).shape, context.whole_numbers(1)
    if amounts.shape != (len(shape), 2) or amounts.min() < 0:
        raise refuse(context, f"its paddings {amounts.tolist()} do not suit {context.input(0)}")
    return tuple(extent + int(before) + int(after) for extent, (before, after) in zip(shape, amounts, strict=True))


def named(context: Context) -> Shape:
    """What a constant input, the first, says: TRANSPOSE_CONV could make several shapes."""
    return tuple(int(extent) for extent in context.whole_numbers(0).ravel())


def transposed(context: Context) -> Shape:
    """The input's dimensions in another order."""
    shape, order = context.input(0).shape, [int(axis) for axis in context.whole_numbers(1).ravel()]
    if sorted(order) != list(range(len(shape))):
        raise refuse(context, f"{order} is no order of the {len(shape)} dimensions of {context.input(0)}")
    return tuple(shape[axis] for axis in order)
