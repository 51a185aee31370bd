# SPDX-License-Identifier: Apache-2.0
"""Small networks of every kind of operator, built tensor by tensor: their shapes are real, their weights random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import PADDINGS

__all__ = ["OPERATOR_NETWORKS"]

_SPREAD = 60.0  # steps of the output's grid that a sum of random products typically reaches
_TANH = 4


@dataclass(frozen=True)
class _T:
    """A tensor with its shape and grid."""

    index: int
    shape: tuple[int, ...]
    scale: float
    point: int


class _Net:
    """Adds operators; every method returns what it makes."""

    def __init__(self, seed: int, dtype: str = "int8") -> None:
        self.builder = ModelBuilder()
        self.choices = Choices.seeded(seed)
        self.dtype = dtype
        self.weights_point = 0

    def tensor(self, shape: Sequence[int], scale: float, point: int = 0, dtype: str = "", **more: Any) -> _T:
        scale = float(np.float32(scale))
        index = self.builder.tensor(
            f"t{len(self.builder._tensors)}",
            tuple(shape),
            dtype or self.dtype,
            scales=[scale],
            zero_points=[point],
            **more,
        )
        return _T(index, tuple(shape), scale, point)

    def operator(self, kind: str, inputs: Sequence[int], out: _T, version: int = 1, **options: Any) -> _T:
        self.builder.operator(kind, list(inputs), [out.index], version=version, **options)
        return out

    def constant(self, values: Any, dtype: str = "int32") -> int:
        data = np.asarray(values, dtype)
        return self.builder.tensor(f"c{len(self.builder._tensors)}", data.shape, dtype, data=data)

    def point(self) -> int:
        return {"int8": -3, "uint8": 125, "int16": 0}[self.dtype]

    def _weights(self, x: _T, shape: tuple[int, ...], terms: int, out_scale: float) -> list[int]:
        """Weights and a bias, scaled so that the sums spread over the output's grid."""
        fine = 256.0 if self.dtype == "int16" else 1.0
        spread = 74.0 * 73.0 * math.sqrt(terms) * fine
        scale = float(np.float32(out_scale * _SPREAD * fine / (spread * x.scale)))
        grid: dict[str, Any] = {"scales": [scale], "zero_points": [self.weights_point]}
        kind = "uint8" if self.dtype == "uint8" else "int8"
        data = self.choices.bytes_of(shape, kind)
        units = shape[-1] if shape[0] == 1 and len(shape) == 4 else shape[0]
        bias = np.rint(self.choices.normal(units, spread / 4)).astype("int64" if self.dtype == "int16" else "int32")
        w = self.builder.tensor(f"w{len(self.builder._tensors)}", shape, kind, **grid, data=data)
        bias_scale = [float(np.float32(x.scale * scale))]
        b = self.builder.tensor(f"b{w}", bias.shape, str(bias.dtype), scales=bias_scale, data=bias)
        return [w, b]

    def _out_scale(self) -> float:
        return 0.05 / (256.0 if self.dtype == "int16" else 1.0)

    def conv(self, x: _T, units: int, kernel: int = 3, stride: int = 1) -> _T:
        n, h, w, c = x.shape
        out = self.tensor((n, -(-h // stride), -(-w // stride), units), self._out_scale(), self.point())
        operands = [x.index, *self._weights(x, (units, kernel, kernel, c), kernel * kernel * c, out.scale)]
        window = {"strideH": stride, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1}
        options = {"padding": PADDINGS["SAME"], "fusedActivationFunction": 1, **window}
        return self.operator(
            "CONV_2D", operands, out, 1 if self.dtype == "uint8" else 3, options="Conv2DOptions", **options
        )

    def depthwise(self, x: _T) -> _T:
        out = self.tensor(x.shape, self._out_scale(), self.point())
        operands = [x.index, *self._weights(x, (1, 3, 3, x.shape[3]), 9, out.scale)]
        window = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, "depthMultiplier": 1}
        options = {"padding": PADDINGS["SAME"], "fusedActivationFunction": 1, **window}
        version = 1 if self.dtype == "uint8" else 3
        return self.operator("DEPTHWISE_CONV_2D", operands, out, version, options="DepthwiseConv2DOptions", **options)

    def transpose_conv(self, x: _T, units: int) -> _T:
        n, h, w, c = x.shape
        out = self.tensor((n, 2 * h, 2 * w, units), self._out_scale(), self.point())
        weights = self._weights(x, (units, 3, 3, c), 3 * c, out.scale)
        operands = [self.constant(out.shape), weights[0], x.index, weights[1]]
        options = {"padding": PADDINGS["SAME"], "strideH": 2, "strideW": 2}
        return self.operator("TRANSPOSE_CONV", operands, out, 3, options="TransposeConvOptions", **options)

    def dense(self, x: _T, units: int, activation: int = 0) -> _T:
        depth = x.shape[-1]
        out = self.tensor((*x.shape[:-1], units), self._out_scale(), self.point())
        operands = [x.index, *self._weights(x, (units, depth), depth, out.scale)]
        options = {"keepNumDims": len(x.shape) > 2, "fusedActivationFunction": activation}
        version = {"uint8": 2, "int16": 7}.get(self.dtype, 5)
        return self.operator("FULLY_CONNECTED", operands, out, version, options="FullyConnectedOptions", **options)

    def pair(self, kind: str, a: _T, b: _T, scale: float, point: int | None = None) -> _T:
        shape = np.broadcast_shapes(a.shape, b.shape)
        out = self.tensor(shape, scale, self.point() if point is None else point)
        options = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}
        named = {"options": options[kind]} if kind in options else {"options": "SquaredDifferenceOptions"}
        if self.dtype == "int16" and kind in ("ADD", "SUB"):
            named["potScaleInt16"] = False  # type: ignore[assignment]
        return self.operator(kind, [a.index, b.index], out, {"int16": 4, "uint8": 1}.get(self.dtype, 2), **named)

    def mean(self, x: _T, axes: Sequence[int], keep: bool, scale: float) -> _T:
        shape = (
            [e for a, e in enumerate(x.shape) if a not in axes]
            if not keep
            else [1 if a in axes else e for a, e in enumerate(x.shape)]
        )
        out = self.tensor(shape, scale, self.point())
        return self.operator(
            "MEAN", [x.index, self.constant(list(axes))], out, 2, options="ReducerOptions", keepDims=keep
        )

    def reshape(self, x: _T, shape: Sequence[int]) -> _T:
        out = self.tensor(shape, x.scale, x.point)
        return self.operator(
            "RESHAPE", [x.index, self.constant(list(shape))], out, options="ReshapeOptions", newShape=list(shape)
        )

    def concat(self, a: _T, b: _T) -> _T:
        out = self.tensor((*a.shape[:-1], a.shape[-1] + b.shape[-1]), a.scale, a.point)
        return self.operator("CONCATENATION", [a.index, b.index], out, 2, options="ConcatenationOptions", axis=3)

    def softmax(self, x: _T) -> _T:
        out = self.tensor(x.shape, 1 / 256, {"int8": -128, "uint8": 0}[self.dtype])
        return self.operator(
            "SOFTMAX", [x.index], out, {"uint8": 1}.get(self.dtype, 2), options="SoftmaxOptions", beta=1.0
        )

    def matmul(self, a: _T, b: _T, transposed: bool, scale: float) -> _T:
        columns = b.shape[-2] if transposed else b.shape[-1]
        out = self.tensor((*a.shape[:-1], columns), scale, self.point())
        return self.operator("BATCH_MATMUL", [a.index, b.index], out, 2, options="BatchMatMulOptions", adjY=transposed)

    def finish(self, x: _T, *outputs: _T) -> bytes:
        return self.builder.finish([x.index], [out.index for out in outputs])


def _unet() -> bytes:
    """Down twice, up twice by transposed convolutions, with skips."""
    net = _Net(1)
    x = net.tensor((1, 24, 20, 3), 0.02, -5)
    first = net.conv(x, 8)
    second = net.conv(first, 12, stride=2)
    bottom = net.conv(second, 16, stride=2)
    up = net.concat(net.transpose_conv(bottom, 12), second)
    up = net.concat(net.transpose_conv(net.conv(up, 12), 8), first)
    return net.finish(x, net.softmax(net.conv(up, 3, kernel=1)))


def _lstm() -> bytes:
    """Twelve steps of eight numbers, a recurrent layer, a classifier of all its states."""
    net = _Net(2)
    x = net.tensor((1, 12, 8), 0.03, 4)
    units, hidden_scale = 16, 1 / 128
    matrices = [
        net.tensor((units, depth), 0.01, data=net.choices.weights((units, depth))).index
        for depth in [8] * 4 + [units] * 4
    ]
    biases = [net.constant(np.rint(net.choices.normal(units, 2000.0))) for _ in range(4)]
    h = net.tensor((1, units), hidden_scale, 0, variable=True)
    c = net.tensor((1, units), 2.0**-11, 0, "int16", variable=True)
    y = net.tensor((1, 12, units), hidden_scale, 0)
    operands = [x.index, *matrices, -1, -1, -1, *biases, -1, -1, h.index, c.index, -1, -1, -1, -1]
    options = {"options": "UnidirectionalSequenceLSTMOptions", "fusedActivationFunction": _TANH}
    net.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, y, 1, **options)
    return net.finish(x, net.softmax(net.dense(net.reshape(y, (1, 12 * units)), 5)))


def _transformer() -> bytes:
    """One block: attention of one head, layer normalisation, two dense layers, residuals."""
    net = _Net(3)
    x = net.tensor((1, 10, 16), 0.05, 2)
    query, key, value = (net.dense(x, 16) for _ in range(3))
    weights = net.softmax(net.matmul(query, key, True, 0.3))
    mixed = net.dense(net.matmul(weights, value, False, 0.03), 16)
    normal = _layer_norm(net, net.pair("ADD", x, mixed, 0.08))
    out = net.dense(net.dense(normal, 32, activation=1), 16)
    return net.finish(x, net.pair("ADD", normal, out, 0.06))


def _layer_norm(net: _Net, x: _T) -> _T:
    mean = net.mean(x, [2], True, 0.02)
    variance = net.mean(net.pair("SQUARED_DIFFERENCE", x, mean, 0.2, -128), [2], True, 0.1)
    floor = net.tensor((1,), 1e-3, 0, data=np.array([1], np.int8))
    safe = net.pair("ADD", variance, floor, 0.1, -128)
    inverse = net.operator("RSQRT", [safe.index], net.tensor(safe.shape, 0.02, -128))
    scaled = net.pair("MUL", net.pair("SUB", x, mean, 0.08), inverse, 0.03)
    gamma, beta = (net.tensor((16,), 0.01, 0, data=net.choices.weights((16,))) for _ in range(2))
    return net.pair("ADD", net.pair("MUL", scaled, gamma, 0.04), beta, 0.05)


def _int16() -> bytes:
    """16x8: int16 activations and int8 weights from end to end."""
    net = _Net(4, "int16")
    x = net.tensor((1, 16, 12, 3), 1e-4)
    first = net.conv(x, 8, stride=2)
    second = net.pair("ADD", first, net.depthwise(first), 0.0003)
    n, h, w, c = second.shape
    pooled = net.tensor((n, h // 2, w // 2, c), second.scale)
    window = {"filterHeight": 2, "filterWidth": 2, "strideH": 2, "strideW": 2, "padding": PADDINGS["VALID"]}
    net.operator("AVERAGE_POOL_2D", [second.index], pooled, 3, options="Pool2DOptions", **window)
    logits = net.dense(net.reshape(pooled, (1, h // 2 * (w // 2) * c)), 6)
    answer = net.operator("LOGISTIC", [logits.index], net.tensor(logits.shape, 2.0**-15), 3)
    return net.finish(x, answer, logits)


def _uint8() -> bytes:
    """As old converters made them: uint8 throughout, weights with a zero point."""
    net = _Net(5, "uint8")
    net.weights_point = 121
    x = net.tensor((1, 16, 16, 3), 0.02, 128)
    body = net.conv(net.depthwise(net.conv(x, 8, stride=2)), 12, stride=2)
    n, h, w, c = body.shape
    pooled = net.tensor((n, 1, 1, c), body.scale, body.point)
    window = {"filterHeight": h, "filterWidth": w, "strideH": 1, "strideW": 1, "padding": PADDINGS["VALID"]}
    net.operator("AVERAGE_POOL_2D", [body.index], pooled, 1, options="Pool2DOptions", **window)
    return net.finish(x, net.softmax(net.dense(net.reshape(pooled, (1, c)), 5)))


def _float_head() -> bytes:
    """An INT8 body with a classifier in float32."""
    net = _Net(6)
    x = net.tensor((1, 12, 12, 3), 0.02, -1)
    features = net.mean(net.conv(net.conv(x, 8, stride=2), 16), [1, 2], False, 0.02)
    real = net.builder.tensor("real", features.shape, "float32")
    net.builder.operator("DEQUANTIZE", [features.index], [real], version=2, options="DequantizeOptions")
    data = [net.choices.bytes_of(shape, "float32") for shape in ((5, 16), (5,))]
    w, b = (net.builder.tensor(f"f{i}", d.shape, "float32", data=d) for i, d in enumerate(data))
    logits, relu = (net.builder.tensor(name, (1, 5), "float32") for name in ("logits", "relu"))
    net.builder.operator("FULLY_CONNECTED", [real, w, b], [logits], options="FullyConnectedOptions")
    net.builder.operator("RELU", [logits], [relu])
    return net.builder.finish([x.index], [logits, relu])


OPERATOR_NETWORKS: dict[str, Callable[[], bytes]] = {
    "U-Net": _unet,
    "LSTM": _lstm,
    "transformer block": _transformer,
    "int16 activations": _int16,
    "uint8-born": _uint8,
    "float head": _float_head,
}
