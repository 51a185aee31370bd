# SPDX-License-Identifier: Apache-2.0
"""What shape an operator makes out of its inputs, so that a file that says otherwise is refused.

Everything after this trusts shapes: the arena's size, the row schedule, the kernels' loops. A corrupt or careless file
whose output is declared larger than what is computed would read and write past the arena.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from arenite_codegen.operators.base import PADDING_SAME, PADDING_VALID, Context, refuse

__all__ = ["check_output_shape"]

Shape = tuple[int, ...]
# The reference keeps paddings in 16 bits.
_MAX_SPAN = 0x7FFF


def check_output_shape(context: Context) -> None:
    """Compare the declared output with what the operator makes.

    Raises:
        UnsupportedOperatorError: They differ, or a window, stride or axis is out of range.
    """
    rule = _RULES.get(context.operator.kind)
    if rule is None:
        return
    expected = rule(context)
    if expected != tuple(context.output.shape):
        cure = "The file is corrupt or was made by a faulty converter: convert the model again."
        raise refuse(context, f"it makes {list(expected)}, but its output is {context.output}", cure)


def _same(context: Context) -> Shape:
    return tuple(context.input(0).shape)


def _broadcast(context: Context) -> Shape:
    first, second = context.input(0), context.input(1)
    try:
        return np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise refuse(context, f"{first} and {second} do not broadcast") from None


def _joined(context: Context) -> Shape:
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


def _conv(context: Context) -> Shape:
    filters, batch, extents = _convolved(context)
    return (batch, *extents, filters[0])


def _depthwise(context: Context) -> Shape:
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


def _pool(context: Context) -> Shape:
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


def _reduced(context: Context) -> Shape:
    shape = context.input(0).shape
    axes = {_axis(context, int(axis), len(shape)) for axis in context.whole_numbers(1).ravel()}
    if context.operator.attributes["keep_dims"]:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _axis(context: Context, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise refuse(context, f"axis {axis} is out of range for {context.input(0)}")
    return axis % rank


def _pad(context: Context) -> Shape:
    shape, amounts = context.input(0).shape, context.whole_numbers(1)
    if amounts.shape != (len(shape), 2) or amounts.min() < 0:
        raise refuse(context, f"its paddings {amounts.tolist()} do not suit {context.input(0)}")
    return tuple(extent + int(before) + int(after) for extent, (before, after) in zip(shape, amounts, strict=True))


def _transpose(context: Context) -> Shape:
    shape, order = context.input(0).shape, [int(axis) for axis in context.whole_numbers(1).ravel()]
    if sorted(order) != list(range(len(shape))):
        raise refuse(context, f"{order} is no order of the {len(shape)} dimensions of {context.input(0)}")
    return tuple(shape[axis] for axis in order)


# FULLY_CONNECTED, RESHAPE and its kin keep or divide a number of elements; their lowerings check it.
_RULES: Mapping[str, Callable[[Context], Shape]] = {
    "ABS": _same,
    "ADD": _broadcast,
    "AVERAGE_POOL_2D": _pool,
    "CONCATENATION": _joined,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DIV": _broadcast,
    "ELU": _same,
    "EXP": _same,
    "GELU": _same,
    "HARD_SWISH": _same,
    "L2_NORMALIZATION": _same,
    "LEAKY_RELU": _same,
    "LOG": _same,
    "LOGISTIC": _same,
    "MAXIMUM": _broadcast,
    "MAX_POOL_2D": _pool,
    "MEAN": _reduced,
    "MINIMUM": _broadcast,
    "MUL": _broadcast,
    "NEG": _same,
    "PAD": _pad,
    "PADV2": _pad,
    "PRELU": _broadcast,
    "QUANTIZE": _same,
    "REDUCE_MAX": _reduced,
    "REDUCE_MIN": _reduced,
    "RELU": _same,
    "RELU6": _same,
    "RELU_0_TO_1": _same,
    "RELU_N1_TO_1": _same,
    "RSQRT": _same,
    "SOFTMAX": _same,
    "SQRT": _same,
    "SQUARED_DIFFERENCE": _broadcast,
    "SUB": _broadcast,
    "SUM": _reduced,
    "TANH": _same,
    "TRANSPOSE": _transpose,
}
