# SPDX-License-Identifier: Apache-2.0
"""An image network of inverted residual blocks with random weights, built without a framework."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.builder import ModelBuilder

__all__ = ["residual_network"]

SCALE = 0.04
SAME = 0


def residual_network(size: int, width: int, blocks: int = 3, expansion: int = 6) -> bytes:
    """A full-INT8 TFLite file; the same on every run.

    Args:
        size: Height and width of its RGB input.
        width: Channels between blocks; a block has `expansion` times as many.
    """
    return _Network(size, width, expansion).build(blocks)


class _Network:
    def __init__(self, size: int, width: int, expansion: int) -> None:
        self._builder, self._chance = ModelBuilder(), np.random.default_rng(0)
        self._size, self._width, self._expansion = size, width, expansion

    def build(self, blocks: int) -> bytes:
        builder, width, wide = self._builder, self._width, self._width * self._expansion
        inputs = self._activation((1, self._size, self._size, 3))
        x = self._convolution(inputs, 3, width, kernel=3, stride=2)
        for _ in range(blocks):
            y = self._convolution(x, width, wide)
            y = self._depthwise(y, wide)
            y = self._convolution(y, wide, width)
            x = self._add(x, y)
        axes = builder.tensor("axes", (2,), "int32", data=np.array([1, 2], np.int32))
        pooled = self._activation((1, width))
        builder.operator("MEAN", [x, axes], [pooled], version=2, options="ReducerOptions", keepDims=False)
        logits = self._activation((1, 10))
        operands = [pooled, *self._weights((10, width), width, 10, 0)]
        builder.operator("FULLY_CONNECTED", operands, [logits], version=4, options="FullyConnectedOptions")
        return builder.finish([inputs], [logits])

    def _activation(self, shape: tuple[int, ...]) -> int:
        return self._builder.tensor("x", shape, "int8", scales=[SCALE], zero_points=[-3])

    def _weights(self, shape: tuple[int, ...], terms: int, channels: int, axis: int) -> list[int]:
        """Weights and bias; scaled so that outputs spread as far as inputs."""
        scale = 1 / (37 * np.sqrt(terms))
        per_channel = axis == 3 or len(shape) == 4
        scales = [float(scale * self._chance.uniform(0.5, 1.5)) for _ in range(channels if per_channel else 1)]
        data = self._chance.integers(-64, 64, shape, np.int8)
        w = self._builder.tensor("w", shape, "int8", scales=scales, zero_points=[0] * len(scales), axis=axis, data=data)
        bias = self._chance.integers(-500, 500, (channels,), np.int32)
        products = [SCALE * scale for scale in scales]
        zeros = [0] * len(scales)
        return [w, self._builder.tensor("b", (channels,), "int32", scales=products, zero_points=zeros, data=bias)]

    def _convolution(self, x: int, depth: int, channels: int, kernel: int = 1, stride: int = 1) -> int:
        side = self._side(stride)
        y = self._activation((1, side, side, channels))
        operands = [x, *self._weights((channels, kernel, kernel, depth), kernel * kernel * depth, channels, 0)]
        options: dict[str, Any] = {"padding": SAME, "strideW": stride, "strideH": stride}
        self._builder.operator("CONV_2D", operands, [y], version=3, options="Conv2DOptions", **options)
        return y

    def _depthwise(self, x: int, channels: int) -> int:
        side = self._side(1)
        y = self._activation((1, side, side, channels))
        operands = [x, *self._weights((1, 3, 3, channels), 9, channels, 3)]
        options: dict[str, Any] = {"padding": SAME, "strideW": 1, "strideH": 1, "depthMultiplier": 1}
        name = "DEPTHWISE_CONV_2D"
        self._builder.operator(name, operands, [y], version=3, options="DepthwiseConv2DOptions", **options)
        return y

    def _add(self, x: int, y: int) -> int:
        side = self._side(1)
        z = self._activation((1, side, side, self._width))
        self._builder.operator("ADD", [x, y], [z], version=2, options="AddOptions")
        return z

    def _side(self, stride: int) -> int:
        self._size = -(-self._size // stride)
        return self._size
