# SPDX-License-Identifier: Apache-2.0
"""Operators over whole axes: means, sums, extremes, softmax."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from arenite_converters.onnx_import.axes import natural
from arenite_converters.onnx_import.graph import Node
from arenite_converters.onnx_import.lowering import Lowering, Value

__all__ = ["KINDS", "reduce", "reduce_axes", "softmax"]

KINDS = {"ReduceMax": "REDUCE_MAX", "ReduceMean": "MEAN", "ReduceMin": "REDUCE_MIN", "ReduceSum": "SUM"}


def reduce(to: Lowering, node: Node) -> None:
    """MEAN, SUM, REDUCE_MAX, REDUCE_MIN."""
    axes = node.attributes.get("axes")
    if axes is None:
        given = to.optional(node, 1)
        axes = [] if given is None else [int(axis) for axis in given]
    rank = len(to.shape(node.inputs[0]))
    if not axes and node.attributes.get("noop_with_empty_axes", 0):
        to.values[node.outputs[0]] = to.value(node.inputs[0])
        return
    axes = [axis % rank for axis in axes] or list(range(rank))
    reduce_axes(to, node, KINDS[node.kind], axes, keep=bool(node.attributes.get("keepdims", 1)))


def reduce_axes(to: Lowering, node: Node, kind: str, axes: Iterable[int], *, keep: bool) -> None:
    """One reducing operator over some of the value's axes."""
    name, over = node.outputs[0], set(axes)
    value = to.value(node.inputs[0])
    order = value.order
    if not keep:
        left = [axis for axis in order if axis not in over]
        order = tuple(sorted(left).index(axis) for axis in left)
    positions = np.array([i for i, axis in enumerate(value.order) if axis in over], np.int32)
    inputs = [value.tensor, to.add(positions, f"{name}/axes")]
    result = to.emit(kind, inputs, to.memory_shape(name, order), name, "ReducerOptions", keepDims=keep)
    to.values[name] = Value(result, order, None, value.is_positive)


def softmax(to: Lowering, node: Node) -> None:
    """SOFTMAX or LOG_SOFTMAX over the last axis of the memory."""
    source, name = node.inputs[0], node.outputs[0]
    shape = to.shape(source)
    rank = len(shape)
    axis = node.attributes.get("axis", -1 if to.graph.opset >= 13 else 1) % rank
    # Until opset 12 all axes from this one on are one.
    joined = math.prod(shape[axis:]) if to.graph.opset < 13 else shape[axis]
    kind, table = ("SOFTMAX", "SoftmaxOptions") if node.kind == "Softmax" else ("LOG_SOFTMAX", "LogSoftmaxOptions")
    options = {"beta": 1.0} if node.kind == "Softmax" else {}
    if joined != shape[axis]:
        tensor = to.reshape(to.operand(source, natural(rank)), [math.prod(shape) // joined, joined], f"{name}/flat")
        tensor = to.emit(kind, [tensor], [math.prod(shape) // joined, joined], f"{name}/flat", table, **options)
        to.values[name] = Value(to.reshape(tensor, shape, name), natural(rank), None, node.kind == "Softmax")
        return
    value = to.values[source]
    order, shuffle, tensor = value.order, value.shuffle, value.tensor
    if order[-1] != axis:
        order, shuffle = (*(a for a in value.order if a != axis), axis), None
        tensor = to.operand(source, order)
    result = to.emit(kind, [tensor], to.memory_shape(name, order), name, table, **options)
    to.values[name] = Value(result, order, shuffle, node.kind == "Softmax")
