# SPDX-License-Identifier: Apache-2.0
"""Random graphs of dense, element-wise and shape operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import ACTIVATIONS, GraphCase, case, mac_quantisation

__all__ = [
    "concatenation",
    "expand_dims",
    "fully_connected",
    "log_softmax",
    "pack",
    "quantize",
    "relu",
    "relu6",
    "reshape",
    "softmax",
    "squeeze",
    "transpose",
    "unpack",
]


def fully_connected(choices: Choices) -> GraphCase:
    """FULLY_CONNECTED: per tensor or per channel, ranks 2 to 4, with and without bias and keep_num_dims."""
    depth, units = choices.pick([choices.channels(), choices.integer(34, 300)]), choices.channels()
    batch, keep = choices.batch(), choices.chance(30)
    shape, out_shape = _dense_shapes(choices, batch, depth, units, keep)
    per_channel = choices.chance(50)
    q = mac_quantisation(choices, depth, units, per_channel)
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[q.input_scale], zero_points=[q.input_zero_point])
    weights = choices.weights((units, depth))
    w = builder.tensor("w", (units, depth), "int8", scales=q.weight_scales, data=weights)
    bias = -1
    if q.bias is not None:
        bias = builder.tensor("b", (units,), "int32", scales=q.bias_scales, data=q.bias)
    y = builder.tensor("y", out_shape, "int8", scales=[q.output_scale], zero_points=[q.output_zero_point])
    builder.operator(
        "FULLY_CONNECTED",
        [x, w, bias],
        [y],
        version=4,
        options="FullyConnectedOptions",
        keepNumDims=keep,
        fusedActivationFunction=ACTIVATIONS[q.activation],
    )
    manner = "per channel" if per_channel else "per tensor"
    text = f"FULLY_CONNECTED {shape}->{out_shape} {manner} {q.summary}"
    return case(choices, text, builder, [(x, shape, "int8", q.input_zero_point)], y)


def concatenation(choices: Choices) -> GraphCase:
    """CONCATENATION of two to four values of rank 2 to 4 along any axis but the batch."""
    shape = [choices.batch(), *(choices.integer(1, 7) for _ in range(choices.integer(0, 2))), choices.channels()]
    axis = choices.integer(1, len(shape) - 1)
    extents = [choices.integer(1, 9) for _ in range(choices.integer(2, 4))]
    dtype, point, grid = _moved_type(choices)
    builder = ModelBuilder()
    shapes = [(*shape[:axis], extent, *shape[axis + 1 :]) for extent in extents]
    out_shape = (*shape[:axis], sum(extents), *shape[axis + 1 :])
    tensors = [builder.tensor(f"x{i}", one, dtype, **grid) for i, one in enumerate(shapes)]
    y = builder.tensor("y", out_shape, dtype, **grid)
    given_axis = axis if choices.chance(50) else axis - len(shape)
    options = {"axis": given_axis, "fusedActivationFunction": 0}
    builder.operator("CONCATENATION", tensors, [y], version=2, options="ConcatenationOptions", **options)
    text = f"CONCATENATION {dtype} {shapes} along {given_axis}"
    return case(choices, text, builder, [(t, one, dtype, point) for t, one in zip(tensors, shapes, strict=True)], y)


def pack(choices: Choices) -> GraphCase:
    """PACK of one to four values along any axis behind the batch."""
    shape = (choices.batch(), *(choices.integer(1, 7) for _ in range(choices.integer(0, 1))), choices.channels())
    axis, count = choices.integer(1, len(shape)), choices.integer(1, 4)
    dtype, point, grid = _moved_type(choices)
    builder = ModelBuilder()
    tensors = [builder.tensor(f"x{i}", shape, dtype, **grid) for i in range(count)]
    out_shape = (*shape[:axis], count, *shape[axis:])
    y = builder.tensor("y", out_shape, dtype, **grid)
    given_axis = axis if choices.chance(50) else axis - len(out_shape)
    builder.operator("PACK", tensors, [y], options="PackOptions", axis=given_axis, valuesCount=count)
    text = f"PACK {dtype} {count} of {shape} along {given_axis}"
    return case(choices, text, builder, [(t, shape, dtype, point) for t in tensors], y)


def unpack(choices: Choices) -> GraphCase:
    """UNPACK along any axis behind the batch; one of its outputs is the graph's."""
    shape = (choices.batch(), *(choices.integer(1, 7) for _ in range(choices.integer(1, 2))), choices.channels())
    axis = choices.integer(1, len(shape) - 1)
    scale, point = choices.real(0.004, 0.1), choices.zero_point()
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    out_shape = (*shape[:axis], *shape[axis + 1 :])
    outputs = [
        builder.tensor(f"y{i}", out_shape, "int8", scales=[scale], zero_points=[point]) for i in range(shape[axis])
    ]
    given_axis = axis if choices.chance(50) else axis - len(shape)
    builder.operator("UNPACK", [x], outputs, options="UnpackOptions", axis=given_axis, num=shape[axis])
    wanted = choices.integer(0, shape[axis] - 1)
    text = f"UNPACK {shape} along {given_axis}, output {wanted}"
    return case(choices, text, builder, [(x, shape, "int8", point)], outputs[wanted])


def softmax(choices: Choices) -> GraphCase:
    """SOFTMAX over the last axis, ranks 2 to 4, any input scale and zero point."""
    shape = _small_shape(choices, choices.pick([2, 2, 3, 4]))
    scale, point = choices.real(1e-4, 1.0), choices.zero_point()
    beta = choices.pick([1.0, 1.0, 1.0, 0.5, 2.0])
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    y = builder.tensor("y", shape, "int8", scales=[1 / 256], zero_points=[-128])
    builder.operator("SOFTMAX", [x], [y], version=2, options="SoftmaxOptions", beta=beta)
    text = f"SOFTMAX {shape} scale {scale:.4g} zero point {point} beta {beta}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y)


def log_softmax(choices: Choices) -> GraphCase:
    """LOG_SOFTMAX over the last axis, up to some hundred channels, any input scale and zero point."""
    shape = (*_small_shape(choices, choices.pick([2, 2, 3, 4]))[:-1], choices.channels(128))
    scale, point = choices.real(1e-3, 1.0), choices.zero_point()
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    y = builder.tensor("y", shape, "int8", scales=[1 / 16], zero_points=[127])
    builder.operator("LOG_SOFTMAX", [x], [y], version=2)
    text = f"LOG_SOFTMAX {shape} scale {scale:.4g} zero point {point}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y)


def reshape(choices: Choices) -> GraphCase:
    """RESHAPE by a constant tensor, sometimes with one extent left to be inferred."""
    shape = _small_shape(choices, choices.pick([2, 3, 4]))
    size = math.prod(shape)
    target = choices.pick([(size,), (1, size), (shape[0], size // shape[0]), shape[::-1], (1, *shape)[:4]])
    if math.prod(target) != size:
        target = (1, size)
    asked = list(target)
    if choices.chance(30):
        asked[choices.integer(0, len(asked) - 1)] = -1
    scale, point = choices.real(1e-3, 0.5), choices.zero_point()
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    wanted = builder.tensor("shape", (len(asked),), "int32", data=np.array(asked, np.int32))
    y = builder.tensor("y", target, "int8", scales=[scale], zero_points=[point])
    builder.operator("RESHAPE", [x, wanted], [y], options="ReshapeOptions", newShape=asked)
    return case(choices, f"RESHAPE {shape}->{asked}", builder, [(x, shape, "int8", point)], y)


def expand_dims(choices: Choices) -> GraphCase:
    """EXPAND_DIMS by an axis anywhere behind the batch."""
    shape = _small_shape(choices, choices.pick([2, 3]))
    axis = choices.integer(1, len(shape))
    given = axis if choices.chance(50) else axis - len(shape) - 1
    out_shape = (*shape[:axis], 1, *shape[axis:])
    return _same_bytes(choices, "EXPAND_DIMS", shape, out_shape, np.array([given], np.int32), {})


def squeeze(choices: Choices) -> GraphCase:
    """SQUEEZE of some dimensions of 1."""
    n, w, c = _small_shape(choices, 3)
    options: dict[str, Any] = {"options": "SqueezeOptions", "squeezeDims": choices.pick([[1], [1, 3], [-2]])}
    gone = {axis % 5 for axis in options["squeezeDims"]}
    shape = (n, 1, w, 1, c)
    out_shape = [extent for axis, extent in enumerate(shape) if axis not in gone]
    return _same_bytes(choices, "SQUEEZE", shape, out_shape, None, options)


def _same_bytes(
    choices: Choices,
    kind: str,
    shape: Sequence[int],
    out_shape: Sequence[int],
    constant: npt.NDArray[np.int32] | None,
    options: dict[str, Any],
) -> GraphCase:
    scale, point = choices.real(1e-3, 0.5), choices.zero_point()
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    more = [] if constant is None else [builder.tensor("axis", constant.shape, "int32", data=constant)]
    y = builder.tensor("y", out_shape, "int8", scales=[scale], zero_points=[point])
    builder.operator(kind, [x, *more], [y], **options)
    text = f"{kind} {list(shape)}->{list(out_shape)}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y)


def transpose(choices: Choices) -> GraphCase:
    """TRANSPOSE: NCHW to NHWC and back, and any other order of 2 to 5 axes that leaves the batch alone."""
    rank = choices.pick([5, 4, 4, 4, 3, 2])
    shape = _small_shape(choices, rank)
    order = _permutation(choices, shape)
    dtype, point, grid = _moved_type(choices)
    builder = ModelBuilder()
    x = builder.tensor("x", shape, dtype, **grid)
    axes = builder.tensor("perm", (rank,), "int32", data=np.array(order, np.int32))
    out_shape = [shape[axis] for axis in order]
    y = builder.tensor("y", out_shape, dtype, **grid)
    builder.operator("TRANSPOSE", [x, axes], [y], version=2, options="TransposeOptions")
    return case(choices, f"TRANSPOSE {dtype} {shape} by {order}", builder, [(x, shape, dtype, point)], y)


def quantize(choices: Choices) -> GraphCase:
    """QUANTIZE between int8 and uint8, equal and unequal scales."""
    source, target = choices.pick([("int8", "int8"), ("uint8", "int8"), ("int8", "uint8")])
    shape = _small_shape(choices, choices.pick([2, 4]))
    scale, point = choices.real(1e-3, 0.5), choices.zero_point(source)
    if choices.chance(30) and source != target:
        out_scale, out_point = scale, point + (128 if target == "uint8" else -128)
    else:
        out_scale = float(np.float32(scale * choices.real(0.2, 4.0)))
        shift = 128 * ((target == "uint8") - (source == "uint8"))
        out_point = point + shift if choices.chance(50) else choices.zero_point(target)
    builder = ModelBuilder()
    x = builder.tensor("x", shape, source, scales=[scale], zero_points=[point])
    y = builder.tensor("y", shape, target, scales=[out_scale], zero_points=[out_point])
    builder.operator("QUANTIZE", [x], [y], version=2, options="QuantizeOptions")
    text = f"QUANTIZE {shape} {source} {scale:.4g}/{point} -> {target} {out_scale:.4g}/{out_point}"
    return case(choices, text, builder, [(x, shape, source, point)], y)


def relu(choices: Choices) -> GraphCase:
    """RELU by itself, scales that may differ."""
    shape = _small_shape(choices, choices.pick([2, 4]))
    scale, point = choices.real(1e-3, 0.5), _positive_zero_point(choices)
    same = choices.chance(50)
    out_scale = scale if same else float(np.float32(scale * choices.real(0.3, 3.0)))
    out_point = point if same else choices.matching_zero_point(point)
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    y = builder.tensor("y", shape, "int8", scales=[out_scale], zero_points=[out_point])
    builder.operator("RELU", [x], [y], version=2)
    text = f"RELU {shape} {scale:.4g}/{point} -> {out_scale:.4g}/{out_point}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y)


def relu6(choices: Choices) -> GraphCase:
    """RELU6 by itself; both sides share scale and zero point, as TFLite asks."""
    shape = _small_shape(choices, choices.pick([2, 4]))
    scale, point = choices.real(6 / 400, 6 / 30), _positive_zero_point(choices)
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    y = builder.tensor("y", shape, "int8", scales=[scale], zero_points=[point])
    builder.operator("RELU6", [x], [y], version=2)
    text = f"RELU6 {shape} {scale:.4g}/{point}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y)


def _positive_zero_point(choices: Choices) -> int:
    """Mostly below 127, above which no positive value exists."""
    point = choices.zero_point()
    return 0 if point == 127 and choices.chance(80) else point


def _moved_type(choices: Choices) -> tuple[str, int, dict[str, Any]]:
    """A type of elements that are only moved, its zero point, and the arguments of such a tensor."""
    dtype = choices.pick(["int8", "int8", "int8", "int16", "float32"])
    point = choices.zero_point() if dtype == "int8" else 0
    integer: dict[str, Any] = {"scales": [choices.real(0.004, 0.1)], "zero_points": [point]}
    return dtype, point, {} if dtype == "float32" else integer


def _small_shape(choices: Choices, rank: int) -> tuple[int, ...]:
    middle = [choices.integer(1, 9) for _ in range(rank - 2)]
    return (choices.batch(), *middle, choices.channels())


def _dense_shapes(
    choices: Choices, batch: int, depth: int, units: int, keep: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if keep:
        middle = [choices.integer(1, 4) for _ in range(choices.integer(1, 2))]
        return (batch, *middle, depth), (batch, *middle, units)
    if choices.chance(30) and depth % 6 == 0:
        return (batch, 2, 3, depth // 6), (batch, units)
    return (batch, depth), (batch, units)


def _permutation(choices: Choices, shape: Sequence[int]) -> tuple[int, ...]:
    rank = len(shape)
    if rank == 4 and choices.chance(60):
        return choices.pick([(0, 2, 3, 1), (0, 3, 1, 2)])
    rest = list(range(rank))
    # A leading extent that stays the same is the batch.
    first = [rest.pop(0)] if rank > 3 or shape[0] in (1, *shape[1:]) else []
    return (*first, *(rest.pop(choices.integer(0, len(rest) - 1)) for _ in range(len(rest))))
