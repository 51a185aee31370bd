# SPDX-License-Identifier: Apache-2.0
"""What every generator of graphs shares: the case itself, activations, padding and accumulator scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert import schema_py_generated as schema

from support.builder import ModelBuilder
from support.choices import Choices

__all__ = [
    "ACTIVATIONS",
    "LITERT",
    "PADDINGS",
    "TFLM",
    "GraphCase",
    "MacQuantisation",
    "Window",
    "case",
    "mac_quantisation",
]

Array = npt.NDArray[Any]

ACTIVATIONS = {
    "none": schema.ActivationFunctionType.NONE,
    "relu": schema.ActivationFunctionType.RELU,
    "relu6": schema.ActivationFunctionType.RELU6,
    "relu_n1_to_1": schema.ActivationFunctionType.RELU_N1_TO_1,
}
TFLM, LITERT = "TFLM", "LiteRT"
PADDINGS = {"SAME": schema.Padding.SAME, "VALID": schema.Padding.VALID}


@dataclass(frozen=True)
class GraphCase:
    """A model and inputs for it.

    Attributes:
        kind: The generator's name, usually the operator's.
        description: Shapes and options in one line.
        model_bytes: The TFLite file.
        vectors: Several sets of inputs; each set has one array for each graph input.
        authority: Whose reference kernels it must equal: TFLM's, or LiteRT's where TFLM has none.
        outputs: How many the graph has.
        remembers: The model keeps state: the vectors are one stream.
        ulps: Of float outputs, how many units in the last place they may be off: where the authority uses libm.
    """

    kind: str
    description: str
    model_bytes: bytes
    vectors: tuple[tuple[Array, ...], ...]
    authority: str = TFLM
    outputs: int = 1
    remembers: bool = False
    ulps: int = 0

    def with_vectors(self, vectors: tuple[tuple[Array, ...], ...]) -> GraphCase:
        """The same model with other inputs."""
        return replace(self, vectors=vectors)

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The first set of inputs."""
        return self.vectors[0]


def case(
    choices: Choices,
    description: str,
    builder: ModelBuilder,
    inputs: Sequence[tuple[int, Sequence[int], str, int]],
    output: int | Sequence[int],
    authority: str = TFLM,
) -> GraphCase:
    """Packs the model and draws its input vectors: whole range, rails, a bell around the zero point.

    Args:
        choices: Where contents come from.
        description: Shapes and options in one line; its first word becomes the kind.
        builder: The finished graph.
        inputs: For each graph input its tensor index, shape, type and zero point.
        output: The graph output's tensor index, or those of several.
        authority: Whose reference kernels it must equal.
    """
    outputs = [output] if isinstance(output, int) else list(output)
    model_bytes = builder.finish([index for index, _, _, _ in inputs], outputs)
    whole = tuple(choices.bytes_of(shape, dtype) for _, shape, dtype, _ in inputs)
    rails = tuple(choices.bytes_of(shape, dtype, rails=True) for _, shape, dtype, _ in inputs)
    bell = tuple(choices.near(shape, point, 20.0, dtype) for _, shape, dtype, point in inputs)
    kind = description.split()[0]
    return GraphCase(kind, description, model_bytes, (whole, rails, bell), authority, len(outputs))


@dataclass(frozen=True)
class Window:
    """A sliding window over height and width."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: str

    def output(self, extents: tuple[int, int]) -> tuple[int, int]:
        """Output height and width over an input of these extents."""
        return (self._extent(0, extents[0]), self._extent(1, extents[1]))

    def _extent(self, axis: int, extent: int) -> int:
        if self.padding == "SAME":
            return -(-extent // self.stride[axis])
        span = (self.kernel[axis] - 1) * self.dilation[axis] + 1
        return (extent - span) // self.stride[axis] + 1

    def __str__(self) -> str:
        parts = (("k", self.kernel), ("s", self.stride), ("d", self.dilation))
        return " ".join(f"{name}{a}x{b}" for name, (a, b) in parts) + f" {self.padding}"

    @classmethod
    def draw(cls, choices: Choices, extents: tuple[int, int], dilate: bool) -> Window:
        """A window that fits: even, odd, non-square, or as large as the input."""
        padding = choices.pick(["SAME", "VALID"])
        kernel, dilation = [], []
        for extent in extents:
            size = extent if choices.chance(12) else choices.integer(1, min(5, extent))
            reach = max(1, (extent - 1) // (size - 1)) if size > 1 else 3
            limit = 3 if padding == "SAME" else min(3, reach)
            kernel.append(size)
            dilation.append(choices.integer(1, limit) if dilate else 1)
        stride = (choices.integer(1, 3), choices.integer(1, 3))
        if dilate and max(dilation) > 1 and choices.chance(70):
            stride = (1, 1)
        return cls((kernel[0], kernel[1]), stride, (dilation[0], dilation[1]), padding)


@dataclass(frozen=True)
class MacQuantisation:
    """Scales, zero points and bias of an operator that multiplies and accumulates."""

    input_scale: float
    input_zero_point: int
    weight_scales: list[float]
    bias: npt.NDArray[np.int32] | None
    output_scale: float
    output_zero_point: int
    activation: str

    @property
    def bias_scales(self) -> list[float]:
        """The scale of each accumulator, rounded to float32 as converters do."""
        return [float(np.float32(np.float32(self.input_scale) * np.float32(s))) for s in self.weight_scales]

    def reading(self, before: MacQuantisation) -> MacQuantisation:
        """The same spread of outputs for an input that another operator quantised."""
        factor = self.input_scale / before.output_scale
        return replace(
            self,
            input_scale=before.output_scale,
            input_zero_point=before.output_zero_point,
            weight_scales=[float(np.float32(scale * factor)) for scale in self.weight_scales],
        )

    @property
    def summary(self) -> str:
        """Activation, bias and zero points in a few words."""
        bias = "bias" if self.bias is not None else "no bias"
        return f"{self.activation} {bias} zero points {self.input_zero_point},{self.output_zero_point}"


def mac_quantisation(choices: Choices, terms: int, channels: int, per_channel: bool) -> MacQuantisation:
    """Draws scales so that outputs spread over the whole range, saturate sometimes, and activations bind.

    Args:
        choices: Where choices come from.
        terms: Products summed into one output.
        channels: Output channels.
        per_channel: One weight scale a channel, up to two orders of magnitude apart, instead of one in all.
    """
    activation = choices.pick(["none", "none", "relu", "relu6", "relu_n1_to_1"])
    output_scale = _output_scale(choices, activation)
    input_scale = choices.real(1e-3, 0.5)
    accumulator_spread = 74.0 * 73.0 * math.sqrt(terms)
    wanted_spread = choices.real(20.0, 150.0)
    typical = output_scale * wanted_spread / (accumulator_spread * input_scale)
    apart = choices.pick([0.2, 0.7, 1.6]) if per_channel else 0.0
    count = channels if per_channel else 1
    scales = [float(np.float32(typical * math.exp(x))) for x in choices.normal(count, apart)]
    bias = None
    if not choices.chance(10):
        bias = np.rint(choices.normal(channels, accumulator_spread * choices.real(0.1, 2.0))).astype(np.int32)
    return MacQuantisation(
        input_scale, choices.zero_point(), scales, bias, output_scale, choices.zero_point(), activation
    )


def _output_scale(choices: Choices, activation: str) -> float:
    if activation == "relu6":
        return choices.real(6 / 400, 6 / 60)
    if activation == "relu_n1_to_1":
        return choices.real(1 / 100, 1 / 20)
    return choices.real(5e-3, 0.5)
