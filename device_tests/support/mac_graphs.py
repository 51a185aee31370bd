# SPDX-License-Identifier: Apache-2.0
"""Random graphs of products and sums beyond plain int8: transposed, grouped, int16 activations, matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import ACTIVATIONS, LITERT, PADDINGS, GraphCase, MacQuantisation, Window, case, mac_quantisation

__all__ = [
    "batch_matmul",
    "conv_2d_s16",
    "depthwise_conv_2d_s16",
    "fully_connected_s16",
    "grouped_conv_2d",
    "transpose_conv",
]


@dataclass(frozen=True)
class _Net:
    """A graph of one operator while it is built, its activations int8 or int16."""

    builder: ModelBuilder
    choices: Choices
    dtype: str
    q: MacQuantisation

    @classmethod
    def draw(cls, choices: Choices, dtype: str, terms: int, channels: int, per_channel: bool = True) -> _Net:
        q = mac_quantisation(choices, terms, channels, per_channel)
        return cls(ModelBuilder(), choices, dtype, q if dtype == "int8" else _widened(q))

    def input(self, shape: tuple[int, ...]) -> int:
        grid: dict[str, Any] = {"scales": [self.q.input_scale], "zero_points": [self.q.input_zero_point]}
        return self.builder.tensor("x", shape, self.dtype, **grid)

    def weights(self, shape: tuple[int, ...], axis: int = 0) -> int:
        data = self.choices.weights(shape)
        return self.builder.tensor("w", shape, "int8", scales=self.q.weight_scales, axis=axis, data=data)

    def bias(self, dtype: str) -> list[int]:
        if self.q.bias is None:
            return []
        data = self.q.bias.astype(dtype)
        return [self.builder.tensor("b", data.shape, dtype, scales=self.q.bias_scales, data=data)]

    def output(self, shape: tuple[int, ...]) -> int:
        grid: dict[str, Any] = {"scales": [self.q.output_scale], "zero_points": [self.q.output_zero_point]}
        return self.builder.tensor("y", shape, self.dtype, **grid)

    def case(self, text: str, x: int, shape: tuple[int, ...], y: int) -> GraphCase:
        ends = [(x, shape, self.dtype, self.q.input_zero_point)]
        return case(self.choices, f"{text} {self.dtype} {self.q.summary}", self.builder, ends, y)


def _widened(q: MacQuantisation) -> MacQuantisation:
    """The same real numbers on grids 256 times as fine, around 0."""
    bias: Any = None if q.bias is None else (q.bias.astype(np.int64) * 256)
    fine: dict[str, Any] = {"input_scale": q.input_scale / 256, "output_scale": q.output_scale / 256}
    return replace(q, **fine, input_zero_point=0, output_zero_point=0, bias=bias)


def transpose_conv(choices: Choices) -> GraphCase:
    """TRANSPOSE_CONV: kernels and strides that are not square, more or less than each other, with and without bias."""
    shape = (choices.batch(), choices.integer(1, 7), choices.integer(1, 7), choices.channels(17))
    kernel, stride = ((choices.integer(1, 5), choices.integer(1, 5)), (choices.integer(1, 4), choices.integer(1, 4)))
    padding, units = choices.pick(["SAME", "VALID"]), choices.channels(17)
    made = tuple(_upsampled(choices, *one, padding) for one in zip(shape[1:3], kernel, stride, strict=True))
    net = _Net.draw(choices, choices.pick(["int8", "int8", "int16"]), 4 * shape[3], units)
    net = replace(net, q=replace(net.q, activation="none"))
    x, w, y = net.input(shape), net.weights((units, *kernel, shape[3])), net.output((shape[0], *made, units))
    wanted = net.builder.tensor("shape", (4,), "int32", data=np.array((shape[0], *made, units), np.int32))
    bias = net.bias("int32" if net.dtype == "int8" else "int64")
    options = {"padding": PADDINGS[padding], "strideH": stride[0], "strideW": stride[1]}
    net.builder.operator(
        "TRANSPOSE_CONV", [wanted, w, x, *bias], [y], version=3, options="TransposeConvOptions", **options
    )
    return net.case(f"TRANSPOSE_CONV {shape} k{kernel} s{stride} {padding} -> {made}", x, shape, y)


def _upsampled(choices: Choices, size: int, kernel: int, stride: int, padding: str) -> int:
    """An extent of which the convolution that this reverses makes `size`; several do."""
    if padding == "SAME":
        return choices.integer((size - 1) * stride + 1, size * stride)
    return (size - 1) * stride + kernel + choices.integer(0, stride - 1)


def conv_2d_s16(choices: Choices) -> GraphCase:
    """CONV_2D of int16, its bias int64, int32 or none."""
    shape, window = _map(choices)
    units = choices.channels(17)
    net = _Net.draw(choices, "int16", window.kernel[0] * window.kernel[1] * shape[3], units)
    x, w = net.input(shape), net.weights((units, *window.kernel, shape[3]))
    y = net.output((shape[0], *window.output(shape[1:3]), units))
    bias = choices.pick(["int64", "int64", "int32"])
    operands = [x, w, *net.bias(bias)]
    net.builder.operator("CONV_2D", operands, [y], version=3, options="Conv2DOptions", **_options(window, net.q))
    return net.case(f"CONV_2D_S16 {shape}->{units} {window} {bias}", x, shape, y)


def depthwise_conv_2d_s16(choices: Choices) -> GraphCase:
    """DEPTHWISE_CONV_2D of int16, with a channel multiplier."""
    shape, window = _map(choices)
    multiplier = choices.integer(1, 3)
    units = shape[3] * multiplier
    net = _Net.draw(choices, "int16", window.kernel[0] * window.kernel[1], units)
    x, w = net.input(shape), net.weights((1, *window.kernel, units), axis=3)
    y = net.output((shape[0], *window.output(shape[1:3]), units))
    options = {**_options(window, net.q), "depthMultiplier": multiplier}
    operands = [x, w, *net.bias("int64")]
    net.builder.operator("DEPTHWISE_CONV_2D", operands, [y], version=3, options="DepthwiseConv2DOptions", **options)
    return net.case(f"DEPTHWISE_CONV_2D_S16 {shape} x{multiplier} {window}", x, shape, y)


def grouped_conv_2d(choices: Choices) -> GraphCase:
    """CONV_2D in groups: each output channel reads a part of the input's."""
    groups, (shape, window) = choices.integer(2, 4), _map(choices)
    shape = (*shape[:3], groups * choices.integer(2, 6))
    units = groups * choices.integer(1, 5)
    part = shape[3] // groups
    net = _Net.draw(choices, "int8", window.kernel[0] * window.kernel[1] * part, units)
    x, w = net.input(shape), net.weights((units, *window.kernel, part))
    y = net.output((shape[0], *window.output(shape[1:3]), units))
    operands = [x, w, *net.bias("int32")]
    net.builder.operator("CONV_2D", operands, [y], version=3, options="Conv2DOptions", **_options(window, net.q))
    return net.case(f"GROUPED_CONV_2D {shape}->{units} {groups} groups {window}", x, shape, y)


def fully_connected_s16(choices: Choices) -> GraphCase:
    """FULLY_CONNECTED of int16, its bias int64, int32 or none."""
    depth, units = choices.pick([choices.channels(), choices.integer(34, 300)]), choices.channels()
    shape = (choices.batch(), depth)
    net = _Net.draw(choices, "int16", depth, units, per_channel=False)
    x, w, y = net.input(shape), net.weights((units, depth)), net.output((shape[0], units))
    bias = choices.pick(["int64", "int32"])
    operands = [x, w, *(net.bias(bias) or [-1])]
    activation = ACTIVATIONS[net.q.activation]
    net.builder.operator(
        "FULLY_CONNECTED",
        operands,
        [y],
        version=4,
        options="FullyConnectedOptions",
        fusedActivationFunction=activation,
    )
    return net.case(f"FULLY_CONNECTED_S16 {shape}->{units} {bias}", x, shape, y)


def batch_matmul(choices: Choices) -> GraphCase:
    """BATCH_MATMUL: ranks 2 to 4, broadcast either way, either side transposed, constant or computed, int8 or int16."""
    dtype = choices.pick(["int8", "int8", "int16"])
    rows, depth, columns = choices.integer(1, 9), choices.channels(), choices.channels(17)
    n = choices.batch()
    a_batch, b_batch = choices.pick(
        [((n,), (n,)), ((n, 2), (n, 2)), ((n, 3), (n, 1)), ((n, 1), (n, 4)), ((1, 2), (1, 2)), ((), ())]
    )
    adj_x, adj_y = choices.chance(30), choices.chance(50)
    a = (*a_batch, depth, rows) if adj_x else (*a_batch, rows, depth)
    b = (*b_batch, columns, depth) if adj_y else (*b_batch, depth, columns)
    out = (*np.broadcast_shapes(a_batch, b_batch), rows, columns)
    builder = ModelBuilder()
    fine = 256 if dtype == "int16" else 1
    scales = [choices.real(1e-3, 0.1) / fine, choices.real(1e-3, 0.1) / fine]
    spread = 74.0 * 74.0 * fine * fine * np.sqrt(depth) * scales[0] * scales[1]
    scales.append(float(np.float32(spread / (choices.real(20.0, 150.0) * fine))))
    points = [choices.zero_point() if dtype == "int8" else 0 for _ in range(3)]
    constant = choices.bytes_of(b, dtype) if choices.chance(30) else None
    x, w, y = (
        builder.tensor(name, shape, dtype, scales=[scale], zero_points=[point], data=data)
        for name, shape, scale, point, data in zip(
            "abc", (a, b, out), scales, points, (None, constant, None), strict=True
        )
    )
    builder.operator("BATCH_MATMUL", [x, w], [y], version=2, options="BatchMatMulOptions", adjX=adj_x, adjY=adj_y)
    ends = [(x, a, dtype, points[0])] + ([(w, b, dtype, points[1])] if constant is None else [])
    text = (
        f"BATCH_MATMUL {a} x {b} {'t' if adj_x else '-'}{'t' if adj_y else '-'} {dtype} constant {constant is not None}"
    )
    return case(choices, text, builder, ends, y)


def dilated_triple(choices: Choices) -> GraphCase:
    """A dilated convolution as SPACE_TO_BATCH_ND, CONV_2D or DEPTHWISE_CONV_2D, and BATCH_TO_SPACE_ND."""
    n, h, w = choices.pick([1, 1, 3]), choices.integer(2, 9), choices.integer(2, 9)
    channels, is_depthwise, padding = choices.channels(17), choices.chance(40), choices.pick(["SAME", "VALID", "VALID"])
    blocks, kernel = (choices.integer(1, 3), choices.integer(1, 3)), (choices.integer(1, 3), choices.integer(1, 3))
    axes = [_divided(choices, *one, padding) for one in zip((h, w), blocks, kernel, strict=True)]
    pads, crops = ([pair[side] for pair in axes] for side in (0, 1))
    phases = [(e + sum(p)) // b for e, p, b in zip((h, w), pads, blocks, strict=True)]
    window = Window(kernel, (1, 1), (1, 1), padding)
    units = channels if is_depthwise else choices.channels(17)
    net = _Net.draw(choices, "int8", kernel[0] * kernel[1] * (1 if is_depthwise else channels), units)
    if net.q.bias is None:  # which LiteRT's convolutions do not take
        net = replace(net, q=replace(net.q, bias=np.zeros(units, np.int32)))
    count = n * blocks[0] * blocks[1]
    made = window.output((phases[0], phases[1]))
    out = (n, *(m * b - sum(c) for m, b, c in zip(made, blocks, crops, strict=True)), units)
    x = net.input((n, h, w, channels))
    inner, convolved, y = net.input((count, *phases, channels)), net.output((count, *made, units)), net.output(out)
    block, *around = (
        net.builder.tensor(name, np.shape(values), "int32", data=np.array(values, np.int32))
        for name, values in (("blocks", blocks), ("pads", pads), ("crops", crops))
    )
    shape = (1, *kernel, units) if is_depthwise else (units, *kernel, channels)
    operands = [inner, net.weights(shape, axis=3 if is_depthwise else 0), *net.bias("int32")]
    kind, table = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if is_depthwise else ("CONV_2D", "Conv2DOptions")
    options = {**_options(window, net.q), **({"depthMultiplier": 1} if is_depthwise else {})}
    net.builder.operator("SPACE_TO_BATCH_ND", [x, block, around[0]], [inner])
    net.builder.operator(kind, operands, [convolved], version=3, options=table, **options)
    net.builder.operator("BATCH_TO_SPACE_ND", [convolved, block, around[1]], [y])
    text = f"DILATED_TRIPLE {kind} {(n, h, w, channels)}->{out} k{kernel} {padding} blocks{blocks} {pads} {crops}"
    return replace(net.case(text, x, (n, h, w, channels), y), authority=LITERT)


def _divided(
    choices: Choices, extent: int, block: int, kernel: int, padding: str
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Paddings and crops of an axis; the crops are what the paddings are too much, or less."""
    before = choices.integer(0, 4)
    behind = choices.integer(0, 2) * block
    behind += -(extent + before + behind) % block
    while padding == "VALID" and (extent + before + behind) // block < kernel:
        behind += block
    made = (extent + before + behind) // block - (kernel - 1 if padding == "VALID" else 0)
    first = choices.integer(0, min(before, made * block - 1))
    return (before, behind), (first, choices.integer(0, min(behind, made * block - 1 - first)))


def conv_2d_f32(choices: Choices) -> GraphCase:
    """CONV_2D of float32, in groups too, its bias there or not."""
    shape, window = _map(choices)
    groups = choices.pick([1, 1, 2, 3])
    shape, units = (*shape[:3], groups * choices.integer(1, 6)), groups * choices.integer(1, 6)
    weights = (units, *window.kernel, shape[3] // groups)
    text = f"CONV_2D_F32 {shape}->{units} {groups} groups {window}"
    return _conv_f32(choices, "CONV_2D", text, (shape, weights, units), window, {"options": "Conv2DOptions"})


def depthwise_conv_2d_f32(choices: Choices) -> GraphCase:
    """DEPTHWISE_CONV_2D of float32, with a channel multiplier."""
    shape, window = _map(choices)
    multiplier = choices.integer(1, 3)
    units = shape[3] * multiplier
    options = {"options": "DepthwiseConv2DOptions", "depthMultiplier": multiplier}
    text = f"DEPTHWISE_CONV_2D_F32 {shape} x{multiplier} {window}"
    return _conv_f32(choices, "DEPTHWISE_CONV_2D", text, (shape, (1, *window.kernel, units), units), window, options)


def _conv_f32(
    choices: Choices,
    kind: str,
    text: str,
    shapes: tuple[tuple[int, ...], tuple[int, ...], int],
    window: Window,
    options: dict[str, Any],
) -> GraphCase:
    """A float island behind int8.

    Args:
        shapes: Of the input and the weights, and the output's channels.
    """
    (shape, weights, units), builder = shapes, ModelBuilder()
    activation = choices.pick(["none", "none", "relu", "relu6", "relu_n1_to_1"])
    scale, point = choices.real(0.01, 0.1), choices.zero_point()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    real = builder.tensor("real", shape, "float32")
    builder.operator("DEQUANTIZE", [x], [real], version=2, options="DequantizeOptions")
    w = builder.tensor("w", weights, "float32", data=choices.bytes_of(weights, "float32"))
    bias = builder.tensor("b", (units,), "float32", data=choices.bytes_of((units,), "float32"))
    y = builder.tensor("y", (shape[0], *window.output((shape[1], shape[2])), units), "float32")
    operands = [real, w, *([bias] if choices.chance(70) else [])]
    builder.operator(kind, operands, [y], **_window_options(window, activation), **options)
    return case(choices, f"{text} {activation}", builder, [(x, shape, "int8", point)], y)


def _map(choices: Choices) -> tuple[tuple[int, int, int, int], Window]:
    shape = (choices.batch(), choices.integer(1, 9), choices.integer(1, 9), choices.channels(17))
    return shape, Window.draw(choices, shape[1:3], dilate=choices.chance(25))


def _options(window: Window, q: MacQuantisation) -> dict[str, Any]:
    return _window_options(window, q.activation)


def _window_options(window: Window, activation: str) -> dict[str, Any]:
    return {
        "padding": PADDINGS[window.padding],
        "strideH": window.stride[0],
        "strideW": window.stride[1],
        "dilationHFactor": window.dilation[0],
        "dilationWFactor": window.dilation[1],
        "fusedActivationFunction": ACTIVATIONS[activation],
    }
