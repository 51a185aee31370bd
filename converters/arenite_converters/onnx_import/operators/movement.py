# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements without computing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from arenite_converters.onnx_import.axes import channel_last, natural, regroup, transposed
from arenite_converters.onnx_import.graph import Node
from arenite_converters.onnx_import.lowering import Lowering, Value

__all__ = [
    "VIEWS",
    "concat",
    "depth_to_space",
    "gather",
    "pad",
    "resize",
    "slices",
    "space_to_depth",
    "split",
    "strided_slice",
    "transpose",
    "view",
]

VIEWS = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")

def view(to: Lowering, node: Node) -> None:
    """The same elements in another shape: a RESHAPE at most, unless their sequence in memory contradicts it."""
    source, name = node.inputs[0], node.outputs[0]
    old, new = to.shape(source), to.shape(name)
    value = to.value(source)
    found = regroup(old, value.order, new)
    if found is None:
        tensor = to.reshape(to.operand(source, natural(len(old))), new, name)
        to.values[name] = Value(tensor, natural(len(new)), None, value.is_positive)
        return
    order, shuffle = found
    tensor = value.tensor
    if to.memory_shape(source, value.order) != to.memory_shape(name, order):
        tensor = to.reshape(tensor, to.memory_shape(name, order), name)
    to.values[name] = Value(tensor, order, shuffle, value.is_positive)


def transpose(to: Lowering, node: Node) -> None:
    """Nothing yet: the value's axes have other names."""
    value = to.value(node.inputs[0])
    permutation = node.attributes.get("perm", natural(len(value.order))[::-1])
    order = transposed(value.order, permutation)
    to.values[node.outputs[0]] = Value(value.tensor, order, None, value.is_positive)


def concat(to: Lowering, node: Node) -> None:
    """CONCATENATION."""
    name = node.outputs[0]
    computed = [to.values[source] for source in node.inputs if source in to.values]
    orders = [value.order for value in computed]
    rank = len(to.shape(name))
    order = channel_last(rank) if channel_last(rank) in orders else orders[0]
    tensors = [to.operand(source, order) for source in node.inputs]
    axis = order.index(node.attributes["axis"] % rank)
    shape = to.memory_shape(name, order)
    result = to.emit("CONCATENATION", tensors, shape, name, "ConcatenationOptions", axis=axis)
    positive = len(computed) == len(node.inputs) and all(value.is_positive for value in computed)
    to.values[name] = Value(result, order, None, positive)


def strided_slice(
    to: Lowering, tensor: int, start: Sequence[int], stop: Sequence[int], steps: Sequence[int], name: str
) -> int:
    """A STRIDED_SLICE with limits inside the tensor and positive steps."""
    limits = [to.add(np.array(values, np.int32), f"{name}/slice") for values in (start, stop, steps)]
    shape = [-(-(last - first) // step) for first, last, step in zip(start, stop, steps, strict=True)]
    return to.emit("STRIDED_SLICE", [tensor, *limits], shape, name, "StridedSliceOptions")


def _part(to: Lowering, source: str, name: str, parts: dict[int, tuple[int, int, int]]) -> None:
    """Part of a value along some axes: first, one past the last, step."""
    value, shape = to.value(source), to.shape(source)
    chosen = [parts.get(axis, (0, shape[axis], 1)) for axis in value.order]
    start, stop, steps = zip(*chosen, strict=True)
    result = strided_slice(to, value.tensor, start, stop, steps, name)
    to.values[name] = Value(result, value.order, None, value.is_positive)


def slices(to: Lowering, node: Node) -> None:
    """STRIDED_SLICE."""
    shape = to.shape(node.inputs[0])
    starts, ends, axes, steps = _limits(to, node)
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    parts = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 0:
            raise to.refuse(node, "backwards")
        first, last, stride = slice(int(start), int(end), int(step)).indices(shape[int(axis)])
        parts[int(axis) % len(shape)] = (first, last, stride)
    _part(to, node.inputs[0], node.outputs[0], parts)


def _limits(to: Lowering, node: Node) -> tuple[Any, Any, Any, Any]:
    """Starts, ends, axes, steps; the last two may be absent."""
    if to.graph.opset < 10:
        starts, ends, axes = (node.attributes.get(name) for name in ("starts", "ends", "axes"))
        return starts, ends, axes, None
    limits = to.required(node, 1, "start"), to.required(node, 2, "end")
    return (*limits, to.optional(node, 3), to.optional(node, 4))


def split(to: Lowering, node: Node) -> None:
    """One STRIDED_SLICE a part."""
    axis = node.attributes.get("axis", 0) % len(to.shape(node.inputs[0]))
    start = 0
    for name in node.outputs:
        end = start + to.shape(name)[axis]
        _part(to, node.inputs[0], name, {axis: (start, end, 1)})
        start = end


def gather(to: Lowering, node: Node) -> None:
    """A slice for one constant index, GATHER for several."""
    source, name = node.inputs[0], node.outputs[0]
    if source not in to.values:
        raise to.refuse(node, "from a constant")
    indices, shape = to.required(node, 1, "index"), to.shape(source)
    axis = node.attributes.get("axis", 0) % len(shape)
    if indices.ndim > 1:
        raise to.refuse(node, "with indices of several dimensions")
    value = to.value(source)
    if indices.ndim == 0:
        _one(to, source, name, axis, int(indices) % shape[axis])
        return
    chosen = to.add((indices % shape[axis]).astype(np.int32), f"{name}/indices")
    inputs, position = [value.tensor, chosen], value.order.index(axis)
    result = to.emit("GATHER", inputs, to.memory_shape(name, value.order), name, "GatherOptions", axis=position)
    to.values[name] = Value(result, value.order, None, value.is_positive)


def _one(to: Lowering, source: str, name: str, axis: int, index: int) -> None:
    value, shape = to.value(source), to.shape(source)
    chosen = [(index, index + 1) if a == axis else (0, shape[a]) for a in value.order]
    start, stop = zip(*chosen, strict=True)
    tensor = strided_slice(to, value.tensor, start, stop, [1] * len(shape), f"{name}/slice")
    left = [a for a in value.order if a != axis]
    order = tuple(sorted(left).index(a) for a in left)
    to.values[name] = Value(to.reshape(tensor, to.memory_shape(name, order), name), order, None, value.is_positive)


def pad(to: Lowering, node: Node) -> None:
    """PAD, PADV2 or MIRROR_PAD."""
    source, name = node.inputs[0], node.outputs[0]
    rank = len(to.shape(source))
    mode = node.attributes.get("mode", "constant")
    old = to.graph.opset < 11
    pads = node.attributes["pads"] if old else to.required(node, 1, "width")
    filling = node.attributes.get("value", 0.0) if old else to.optional(node, 2)
    number = 0.0 if filling is None else float(np.asarray(filling).flat[0])
    axes = None if old else to.optional(node, 3)
    places = [int(axis) % rank for axis in (range(rank) if axes is None else axes)]
    amounts = {axis: (int(pads[i]), int(pads[i + len(places)])) for i, axis in enumerate(places)}
    if mode not in ("constant", "reflect") or min(map(min, amounts.values())) < 0:
        raise to.refuse(node, f"with mode '{mode}' or negative pads")
    value = to.value(source)
    widths = np.array([amounts.get(axis, (0, 0)) for axis in value.order], np.int32)
    inputs, shape = [value.tensor, to.add(widths, f"{name}/pads")], to.memory_shape(name, value.order)
    if mode == "reflect":
        result = to.emit("MIRROR_PAD", inputs, shape, name, "MirrorPadOptions", mode=0)
    elif number == 0:
        result = to.emit("PAD", inputs, shape, name, "PadOptions")
    else:
        result = to.emit("PADV2", [*inputs, to.add(np.float32(number))], shape, name, "PadV2Options")
    to.values[name] = Value(result, value.order, None, value.is_positive and number >= 0)


def resize(to: Lowering, node: Node) -> None:
    """RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR of a map."""
    source, name = node.inputs[0], node.outputs[0]
    old, new = to.shape(source), to.shape(name)
    mode = node.attributes.get("mode", "nearest")
    rule = node.attributes.get("coordinate_transformation_mode", "half_pixel").removeprefix("pytorch_")
    rule = "asymmetric" if to.graph.opset < 11 else rule
    if (
        len(old) != 4
        or old[:2] != new[:2]
        or mode not in ("linear", "nearest")
        or rule not in ("align_corners", "asymmetric", "half_pixel")
    ):
        raise to.refuse(node, f"with mode '{mode}', rule '{rule}', from {list(old)} to {list(new)}")
    kind = "RESIZE_BILINEAR" if mode == "linear" else "RESIZE_NEAREST_NEIGHBOR"
    table = "ResizeBilinearOptions" if mode == "linear" else "ResizeNearestNeighborOptions"
    options = {"alignCorners": rule == "align_corners", "halfPixelCenters": rule == "half_pixel"}
    size = to.add(np.array(new[2:], np.int32), f"{name}/size")
    result = to.emit(kind, [to.map(source), size], to.memory_shape(name, channel_last(4)), name, table, **options)
    to.values[name] = Value(result, channel_last(4), None, to.values[source].is_positive)


def depth_to_space(to: Lowering, node: Node) -> None:
    """DEPTH_TO_SPACE, its channels brought into TFLite's order first where ONNX has them block by block."""
    source, name, block = node.inputs[0], node.outputs[0], node.attributes["blocksize"]
    tensor, shape = to.map(source), to.memory_shape(source, channel_last(4))
    if node.attributes.get("mode", "DCR") == "CRD":
        depth = shape[3] // block**2
        split_channels = [*shape[:3], depth, block * block]
        tensor = to.reshape(tensor, split_channels, f"{name}/split")
        tensor = to.transpose(tensor, split_channels, [0, 1, 2, 4, 3], f"{name}/turned")
        tensor = to.reshape(tensor, shape, f"{name}/joined")
    result = to.memory_shape(name, channel_last(4))
    tensor = to.emit("DEPTH_TO_SPACE", [tensor], result, name, "DepthToSpaceOptions", blockSize=block)
    to.values[name] = Value(tensor, channel_last(4), None, to.values[source].is_positive)


def space_to_depth(to: Lowering, node: Node) -> None:
    """SPACE_TO_DEPTH."""
    source, name = node.inputs[0], node.outputs[0]
    shape, block = to.memory_shape(name, channel_last(4)), node.attributes["blocksize"]
    tensor = to.emit("SPACE_TO_DEPTH", [to.map(source)], shape, name, "SpaceToDepthOptions", blockSize=block)
    to.values[name] = Value(tensor, channel_last(4), None, to.values[source].is_positive)
