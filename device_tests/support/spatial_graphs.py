# SPDX-License-Identifier: Apache-2.0
"""Random graphs of operators over height and width: convolutions, pools, padding, mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import (
    ACTIVATIONS,
    PADDINGS,
    GraphCase,
    MacQuantisation,
    Window,
    case,
    mac_quantisation,
)

__all__ = [
    "average_pool_2d",
    "conv_2d",
    "conv_2d_of",
    "conv_chain",
    "depthwise_conv_2d",
    "max_pool_2d",
    "mobile_blocks",
    "pad",
    "pad_conv",
    "wide_chain",
]

# A 1×1 convolution.
POINT = Window((1, 1), (1, 1), (1, 1), "SAME")


def conv_2d(choices: Choices) -> GraphCase:
    """CONV_2D with per-channel weights."""
    shape = _input_shape(choices)
    quantisation, window, channels = _draw_conv(choices, shape)
    return _conv_case(choices, shape, window, channels, quantisation)


def conv_2d_of(choices: Choices, shape: tuple[int, int, int, int], window: Window, channels: int) -> GraphCase:
    """CONV_2D of a given shape, all else as drawn."""
    terms = window.kernel[0] * window.kernel[1] * shape[3]
    return _conv_case(choices, shape, window, channels, mac_quantisation(choices, terms, channels, per_channel=True))


def _conv_case(
    choices: Choices,
    shape: tuple[int, int, int, int],
    window: Window,
    channels: int,
    quantisation: MacQuantisation,
) -> GraphCase:
    builder = ModelBuilder()
    x = builder.tensor(
        "x",
        shape,
        "int8",
        scales=[quantisation.input_scale],
        zero_points=[quantisation.input_zero_point],
    )
    y = _add_conv(builder, choices, x, shape, window, channels, quantisation)
    text = f"CONV_2D {shape}->{channels} {window} {quantisation.summary}"
    return case(choices, text, builder, [(x, shape, "int8", quantisation.input_zero_point)], y)


def depthwise_conv_2d(choices: Choices) -> GraphCase:
    """DEPTHWISE_CONV_2D with a channel multiplier of 1 to 4."""
    multiplier = choices.pick([1, 1, 1, 2, 3, 4])
    shape = _input_shape(choices, 33 // multiplier)
    window = Window.draw(choices, (shape[1], shape[2]), dilate=choices.chance(25))
    return depthwise_conv_2d_of(choices, shape, window, multiplier)


def depthwise_conv_2d_of(
    choices: Choices, shape: tuple[int, int, int, int], window: Window, multiplier: int = 1
) -> GraphCase:
    """DEPTHWISE_CONV_2D of a given shape, all else as drawn."""
    channels = shape[3] * multiplier
    terms = window.kernel[0] * window.kernel[1]
    quantisation = mac_quantisation(choices, terms, channels, per_channel=True)
    builder = ModelBuilder()
    x = builder.tensor(
        "x",
        shape,
        "int8",
        scales=[quantisation.input_scale],
        zero_points=[quantisation.input_zero_point],
    )
    y = _add_depthwise(builder, choices, x, shape, window, multiplier, quantisation)
    text = f"DEPTHWISE_CONV_2D {shape} x{multiplier} {window} {quantisation.summary}"
    return case(choices, text, builder, [(x, shape, "int8", quantisation.input_zero_point)], y)


def average_pool_2d(choices: Choices) -> GraphCase:
    """AVERAGE_POOL_2D, rounding half away from zero."""
    return _pool(choices, "AVERAGE_POOL_2D")


def max_pool_2d(choices: Choices) -> GraphCase:
    """MAX_POOL_2D with activations that bind."""
    return _pool(choices, "MAX_POOL_2D")


def pad(choices: Choices) -> GraphCase:
    """PAD of height and width, sometimes of channels."""
    shape = _input_shape(choices)
    amounts = _pad_amounts(choices, channels=choices.chance(15))
    scale, point = choices.real(1e-3, 0.5), choices.zero_point()
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    y = _add_pad(builder, x, shape, amounts, scale, point)
    text = f"PAD {shape} {amounts} zero_point {point}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y)


def pad_conv(choices: Choices) -> GraphCase:
    """PAD and then a VALID convolution, ordinary or depthwise, which a compiler folds into one."""
    shape = _input_shape(choices, 16)
    amounts = _pad_amounts(choices, channels=False)
    padded = _padded(shape, amounts)
    quantisation, window, channels = _draw_conv(choices, padded, padding="VALID")
    return _pad_conv_case(choices, shape, amounts, window, channels, quantisation)


def padded_rows_conv_of(choices: Choices, shape: tuple[int, int, int, int], rows: int, channels: int) -> GraphCase:
    """PAD of `rows` rows above and below and a CONV_2D of 1×1, all else as drawn."""
    quantisation = mac_quantisation(choices, shape[3], channels, per_channel=True)
    window = Window((1, 1), (1, 1), (1, 1), "VALID")
    return _pad_conv_case(choices, shape, ((0, 0), (rows, rows), (0, 0), (0, 0)), window, channels, quantisation)


def _pad_conv_case(
    choices: Choices,
    shape: tuple[int, int, int, int],
    amounts: tuple[tuple[int, int], ...],
    window: Window,
    channels: int,
    quantisation: MacQuantisation,
) -> GraphCase:
    padded = _padded(shape, amounts)
    builder = ModelBuilder()
    scale, point = quantisation.input_scale, quantisation.input_zero_point
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    middle = _add_pad(builder, x, shape, amounts, scale, point)
    y = _add_conv(builder, choices, middle, padded, window, channels, quantisation)
    text = f"PAD_CONV {shape} {amounts} ->{channels} {window} {quantisation.summary}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y)


def conv_chain(choices: Choices) -> GraphCase:
    """Two to five convolutions, ordinary, 1×1 or depthwise, each reading the one before it."""
    shape = _input_shape(choices, 9)
    chain = _Chain(choices, shape)
    for _ in range(choices.integer(2, 5)):
        kind = choices.pick(["conv", "point", "depthwise", "depthwise"])
        window = Window.draw(choices, chain.shape[1:3], dilate=choices.chance(15))
        if kind == "depthwise":
            chain.add_depthwise(window, choices.pick([1, 1, 2]) if chain.shape[3] <= 12 else 1)
        else:
            chain.add_conv(POINT if kind == "point" else window, choices.channels(17))
    return chain.case("CONV_CHAIN")


def mobile_blocks(choices: Choices) -> GraphCase:
    """A strided convolution, then two inverted bottlenecks, the first strided: how mobile image networks begin."""
    chain = _Chain(choices, (1, 64, 96, 3))
    chain.add_conv(Window((3, 3), (2, 2), (1, 1), "SAME"), 8)
    for stride in (2, 1):
        chain.add_conv(POINT, 96)
        chain.add_depthwise(Window((3, 3), (stride, stride), (1, 1), "SAME"), 1)
        chain.add_conv(POINT, 8)
    return chain.case("MOBILE_BLOCKS")


def wide_chain(choices: Choices) -> GraphCase:
    """A depthwise convolution, one with a window of many bytes and a 1×1 one, with up to 257 channels."""
    wide = [63, 64, 65, 128, 129, 255, 256, 257]
    chain = _Chain(choices, (1, choices.integer(2, 5), choices.integer(2, 8), choices.pick(wide)))
    three = Window((3, 3), (1, 1), (1, 1), choices.pick(["SAME", "SAME", "VALID"])) if chain.shape[1] > 2 else POINT
    chain.add_depthwise(Window((2, 2), (1, 1), (1, 1), "SAME"), 1)
    chain.add_conv(three if min(chain.shape[1:3]) > 2 else POINT, choices.channels(33))
    chain.add_conv(POINT, choices.pick(wide))
    return chain.case("WIDE_CHAIN")


class _Chain:
    """Convolutions one after the other, each on the grid of the one before it."""

    def __init__(self, choices: Choices, shape: tuple[int, int, int, int]) -> None:
        self.shape = self._input_shape = shape
        self._choices, self._builder = choices, ModelBuilder()
        self._quantisation: MacQuantisation | None = None
        self._input = self._output = self._zero_point = -1
        self._text = ""

    def add_conv(self, window: Window, channels: int) -> None:
        quantisation = self._quantised(window, window.kernel[0] * window.kernel[1] * self.shape[3], channels)
        y = _add_conv(self._builder, self._choices, self._output, self.shape, window, channels, quantisation)
        self._go_on(y, window, channels, quantisation)

    def add_depthwise(self, window: Window, multiplier: int) -> None:
        channels = self.shape[3] * multiplier
        quantisation = self._quantised(window, window.kernel[0] * window.kernel[1], channels)
        y = _add_depthwise(self._builder, self._choices, self._output, self.shape, window, multiplier, quantisation)
        self._go_on(y, window, channels, quantisation)

    def case(self, kind: str) -> GraphCase:
        inputs = [(self._input, self._input_shape, "int8", self._zero_point)]
        return case(self._choices, f"{kind} {self._input_shape}{self._text}", self._builder, inputs, self._output)

    def _quantised(self, window: Window, terms: int, channels: int) -> MacQuantisation:
        drawn = mac_quantisation(self._choices, terms, channels, per_channel=True)
        if self._quantisation is not None:
            return drawn.reading(self._quantisation)
        scale, self._zero_point = drawn.input_scale, drawn.input_zero_point
        x = self._builder.tensor("x", self.shape, "int8", scales=[scale], zero_points=[self._zero_point])
        self._input = self._output = x
        return drawn

    def _go_on(self, output: int, window: Window, channels: int, quantisation: MacQuantisation) -> None:
        self._text += f" {window} ->{channels} {quantisation.summary};"
        self._output, self._quantisation = output, quantisation
        self.shape = (self.shape[0], *window.output(self.shape[1:3]), channels)


def _input_shape(choices: Choices, channel_limit: int = 33) -> tuple[int, int, int, int]:
    height, width = choices.integer(1, 13), choices.integer(1, 13)
    return (choices.batch(), height, width, choices.channels(channel_limit))


def _draw_conv(
    choices: Choices, shape: tuple[int, int, int, int], padding: str | None = None
) -> tuple[MacQuantisation, Window, int]:
    window = Window.draw(choices, (shape[1], shape[2]), dilate=choices.chance(25))
    if padding is not None:
        kernel = window.kernel
        reach = [max(1, (e - 1) // (k - 1)) if k > 1 else 3 for e, k in zip(shape[1:3], kernel, strict=True)]
        dilation = (min(window.dilation[0], reach[0]), min(window.dilation[1], reach[1]))
        window = Window(kernel, window.stride, dilation, padding)
    channels = choices.channels(130 if choices.chance(25) else 33)
    terms = window.kernel[0] * window.kernel[1] * shape[3]
    return mac_quantisation(choices, terms, channels, per_channel=True), window, channels


def _add_conv(
    builder: ModelBuilder,
    choices: Choices,
    x: int,
    shape: tuple[int, int, int, int],
    window: Window,
    channels: int,
    quantisation: MacQuantisation,
) -> int:
    filter_shape = (channels, *window.kernel, shape[3])
    operands = [x, *_add_weights(builder, choices, filter_shape, 0, quantisation)]
    y = _add_output(builder, (shape[0], *window.output((shape[1], shape[2])), channels), quantisation)
    builder.operator(
        "CONV_2D",
        operands,
        [y],
        version=3,
        options="Conv2DOptions",
        **_window_options(window),
        **_dilation_options(window),
        fusedActivationFunction=ACTIVATIONS[quantisation.activation],
    )
    return y


def _add_depthwise(
    builder: ModelBuilder,
    choices: Choices,
    x: int,
    shape: tuple[int, int, int, int],
    window: Window,
    multiplier: int,
    quantisation: MacQuantisation,
) -> int:
    channels = shape[3] * multiplier
    operands = [x, *_add_weights(builder, choices, (1, *window.kernel, channels), 3, quantisation)]
    y = _add_output(builder, (shape[0], *window.output((shape[1], shape[2])), channels), quantisation)
    builder.operator(
        "DEPTHWISE_CONV_2D",
        operands,
        [y],
        version=3,
        options="DepthwiseConv2DOptions",
        depthMultiplier=multiplier,
        **_window_options(window),
        **_dilation_options(window),
        fusedActivationFunction=ACTIVATIONS[quantisation.activation],
    )
    return y


def _add_weights(
    builder: ModelBuilder,
    choices: Choices,
    shape: tuple[int, ...],
    axis: int,
    quantisation: MacQuantisation,
) -> list[int]:
    weights = builder.tensor(
        "weights",
        shape,
        "int8",
        scales=quantisation.weight_scales,
        axis=axis,
        data=choices.weights(shape),
    )
    if quantisation.bias is None:
        return [weights]
    bias = builder.tensor(
        "bias", quantisation.bias.shape, "int32", scales=quantisation.bias_scales, data=quantisation.bias
    )
    return [weights, bias]


def _add_output(builder: ModelBuilder, shape: tuple[int, ...], quantisation: MacQuantisation) -> int:
    return builder.tensor(
        "y",
        shape,
        "int8",
        scales=[quantisation.output_scale],
        zero_points=[quantisation.output_zero_point],
    )


def _window_options(window: Window) -> dict[str, Any]:
    return {"padding": PADDINGS[window.padding], "strideH": window.stride[0], "strideW": window.stride[1]}


def _dilation_options(window: Window) -> dict[str, Any]:
    return {"dilationHFactor": window.dilation[0], "dilationWFactor": window.dilation[1]}


def _pool(choices: Choices, kind: str) -> GraphCase:
    shape = _input_shape(choices)
    window = Window.draw(choices, (shape[1], shape[2]), dilate=False)
    activation = choices.pick(["none", "none", "relu", "relu6", "relu_n1_to_1"])
    scale, point = choices.real(0.015, 0.2), choices.zero_point()
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    out_shape = (shape[0], *window.output((shape[1], shape[2])), shape[3])
    y = builder.tensor("y", out_shape, "int8", scales=[scale], zero_points=[point])
    builder.operator(
        kind,
        [x],
        [y],
        version=2,
        options="Pool2DOptions",
        filterHeight=window.kernel[0],
        filterWidth=window.kernel[1],
        **_window_options(window),
        fusedActivationFunction=ACTIVATIONS[activation],
    )
    text = f"{kind} {shape} {window} {activation} zero point {point}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y)


def _pad_amounts(choices: Choices, channels: bool) -> tuple[tuple[int, int], ...]:
    def pair(limit: int) -> tuple[int, int]:
        return (choices.integer(0, limit), choices.integer(0, limit))

    return ((0, 0), pair(3), pair(3), pair(2) if channels else (0, 0))


def _padded(shape: tuple[int, int, int, int], amounts: tuple[tuple[int, int], ...]) -> tuple[int, int, int, int]:
    n, h, w, c = (extent + sum(pair) for extent, pair in zip(shape, amounts, strict=True))
    return (n, h, w, c)


def _add_pad(
    builder: ModelBuilder,
    x: int,
    shape: tuple[int, int, int, int],
    amounts: tuple[tuple[int, int], ...],
    scale: float,
    point: int,
) -> int:
    paddings = builder.tensor("paddings", (4, 2), "int32", data=np.array(amounts, np.int32))
    y = builder.tensor("padded", _padded(shape, amounts), "int8", scales=[scale], zero_points=[point])
    builder.operator("PAD", [x, paddings], [y], version=2, options="PadOptions")
    return y
