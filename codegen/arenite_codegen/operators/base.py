# SPDX-License-Identifier: Apache-2.0
"""What every operator's lowering shares: views of shapes as rows, quantisation checks, clamps, multipliers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from arenite.errors import UnsupportedOperatorError
from arenite.graph import Graph, Operator, Quantisation, Tensor
from arenite_codegen.rounding import MAX_SHIFT, quantise_multiplier
from arenite_codegen.uint8 import FROM_UINT8

if TYPE_CHECKING:
    from arenite_codegen.legalise import Builder

__all__ = [
    "ACTIVATION_NONE",
    "Array",
    "Context",
    "MOVED_DTYPES",
    "PADDING_SAME",
    "PADDING_VALID",
    "PLAIN_DTYPES",
    "RowShape",
    "activation_range",
    "channel_multipliers",
    "is_on_a_grid",
    "mac_parameters",
    "multiplier",
    "padding",
    "quantisation",
    "refuse",
    "row_shape",
    "same_quantisation",
    "weight_scales",
]

Array = npt.NDArray[Any]

PADDING_SAME, PADDING_VALID = 0, 1
PLAIN_DTYPES = ("int32", "float32", "bool")
"""Element types that are not quantised."""
MOVED_DTYPES = ("int8", "uint8", "int16", *PLAIN_DTYPES)
"""Element types that kernels which only move bytes take."""
ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_RELU_N1_TO_1, ACTIVATION_RELU6 = 0, 1, 2, 3
_ACTIVATION_LIMITS: dict[int, tuple[float | None, float | None]] = {
    ACTIVATION_NONE: (None, None),
    ACTIVATION_RELU: (0.0, None),
    ACTIVATION_RELU_N1_TO_1: (-1.0, 1.0),
    ACTIVATION_RELU6: (0.0, 6.0),
}


@dataclass(frozen=True)
class RowShape:
    """One batch item of a tensor as rows of pixels of channels."""

    height: int
    width: int
    channels: int
    element_bytes: int = 1

    @property
    def row_elements(self) -> int:
        """Elements of a row."""
        return self.width * self.channels

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.row_elements * self.element_bytes


@dataclass(frozen=True)
class Context:
    """An operator with the graph around it, as its lowering function sees it."""

    graph: Graph
    operator: Operator
    batch: int
    build: Builder

    def input(self, position: int) -> Tensor:
        """The tensor at an input position that must be there."""
        tensor = self.optional_input(position)
        if tensor is None:
            raise refuse(self, f"input {position} is missing")
        return tensor

    def optional_input(self, position: int) -> Tensor | None:
        """The tensor at an input position, or None when it is absent."""
        if position >= len(self.operator.inputs) or self.operator.inputs[position] < 0:
            return None
        return self.graph.tensors[self.operator.inputs[position]]

    @property
    def output(self) -> Tensor:
        """The only output."""
        if len(self.operator.outputs) != 1:
            raise refuse(self, f"it has {len(self.operator.outputs)} outputs, expected 1")
        return self.graph.tensors[self.operator.outputs[0]]

    def constant(self, position: int) -> Array:
        """The values of an input that must be a constant."""
        tensor = self.input(position)
        if tensor.data is None:
            raise refuse(self, f"{tensor} is computed at run time, it must be a constant")
        return tensor.data

    def whole_numbers(self, position: int) -> npt.NDArray[np.int64]:
        """An input that must be a constant of integers: axes, extents, positions, paddings."""
        values = self.constant(position)
        if not np.issubdtype(values.dtype, np.signedinteger):
            raise refuse(self, f"{self.input(position)} must hold int32 or int64")
        return values.astype(np.int64)

    def whole_number(self, position: int) -> int:
        """An input that must be a constant of one integer."""
        values = self.whole_numbers(position)
        if values.size != 1:
            raise refuse(self, f"{self.input(position)} must hold one number")
        return int(values.ravel()[0])

    def rows(self, tensor: Tensor) -> RowShape:
        """How one batch item of a tensor divides into rows."""
        return row_shape(tensor, self.batch, self)


def refuse(
    context: Context, what: str, cure: str = "Change the model or convert it without this."
) -> UnsupportedOperatorError:
    """The error for an operator that no kernel covers."""
    return UnsupportedOperatorError(f"{context.operator}: {what}", where=context.graph.path, cure=cure)


def row_shape(tensor: Tensor, batch: int, context: Context) -> RowShape:
    """Strip the batch and divide the rest: the last dimension is the channels, the one before it the width.

    A tensor of rank 3 is a signal: its time steps are rows of one pixel.
    """
    shape = tensor.shape
    if batch > 1 or (len(shape) > 1 and shape[0] == 1):
        if not shape or shape[0] != batch:
            raise refuse(context, f"{tensor} does not keep the batch of {batch}")
        shape = shape[1:]
    if len(tensor.shape) == 4 and len(shape) == 4:
        raise refuse(context, f"{tensor} has a batch of {shape[0]}, the network's inputs have not")
    if len(shape) == 2:
        return RowShape(shape[0], 1, shape[1], tensor.element_bytes)
    padded = (1, 1, *shape)[-max(3, len(shape)) :]
    return RowShape(int(np.prod(padded[:-2], dtype=np.int64)), padded[-2], padded[-1], tensor.element_bytes)


def is_on_a_grid(tensor: Tensor) -> bool:
    """Whether a tensor of bytes has one scale, positive and finite, and a zero point in its range."""
    quant = tensor.quantisation
    if quant is None or len(quant.scales) != 1 or tensor.dtype in ("float32", "bool"):
        return False
    limits = np.iinfo(tensor.dtype)
    return bool(np.isfinite(quant.scale) and quant.scale > 0 and limits.min <= quant.zero_point <= limits.max)


def quantisation(context: Context, tensor: Tensor, dtypes: tuple[str, ...] = ("int8",)) -> Quantisation:
    """The per-tensor quantisation of an activation, checked against what the kernels take."""
    if tensor.dtype not in dtypes:
        cure = "Convert it to full INT8: arenite convert MODEL --calibration PICTURES -o model.tflite"
        raise refuse(context, f"{tensor} is {tensor.dtype}, the kernels take {' or '.join(dtypes)}", cure)
    found = tensor.quantisation
    if found is None:
        raise refuse(context, f"{tensor} has no quantisation", "Convert it with full-INT8 quantisation.")
    if len(found.scales) != 1:
        raise refuse(context, f"{tensor} is quantised per channel, activations must have one scale")
    if not is_on_a_grid(tensor):
        raise refuse(context, f"{tensor} has scale {found.scale} and zero point {found.zero_point}")
    return found


def same_quantisation(context: Context, a: Tensor, b: Tensor, dtypes: tuple[str, ...] = ("int8",)) -> Quantisation:
    """Data movement must not change the meaning of a byte: both ends have one scale and one zero point.

    Types without a quantisation pass where `dtypes` has them.
    """
    if a.dtype != b.dtype:
        raise refuse(context, f"{a} and {b} differ in type; it only moves bytes")
    if a.dtype in dtypes and a.dtype in PLAIN_DTYPES:
        return Quantisation((1.0,), (0,))
    left, right = quantisation(context, a, dtypes), quantisation(context, b, dtypes)
    if left.scale != right.scale or left.zero_point != right.zero_point:
        raise refuse(
            context,
            f"its input has scale {left.scale} and zero point {left.zero_point}, "
            f"its output {right.scale} and {right.zero_point}; it only moves bytes",
            "Quantise both ends alike.",
        )
    return left


def activation_range(context: Context, tensor: Tensor) -> tuple[int, int]:
    """The clamp of a fused activation on the output's grid, as the reference rounds it (float32, half away)."""
    code = int(context.operator.attributes.get("fused_activation_function", 0))
    if code not in _ACTIVATION_LIMITS:
        raise refuse(context, f"the fused activation {code} has no integer kernel")
    quant = quantisation(context, tensor, ("int8", "int16"))
    rails = np.iinfo(tensor.dtype)
    steps = float(rails.max) - float(rails.min) + 1.0
    bounds = []
    for limit, rail in zip(_ACTIVATION_LIMITS[code], (int(rails.min), int(rails.max)), strict=True):
        if limit is None:
            bounds.append(rail)
            continue
        scaled = float(np.float32(limit) / quant.scale)
        # Beyond all steps of the grid the clamp is at a rail whatever the number, which may be infinite.
        rounded = int(np.floor(min(steps, abs(scaled)) + 0.5)) * (1 if scaled >= 0 else -1)
        bounds.append(quant.zero_point + rounded)
    return max(int(rails.min), bounds[0]), min(int(rails.max), bounds[1])


def multiplier(context: Context, real: float, what: str) -> tuple[int, int]:
    """`quantise_multiplier` that refuses what the reference leaves undefined."""
    found = quantise_multiplier(real) if math.isfinite(real) else (0, MAX_SHIFT + 1)
    if found[1] > MAX_SHIFT:
        raise refuse(context, f"the {what} multiplier {real:.6g} is beyond 2^{MAX_SHIFT}", "Check the model's scales.")
    return found


def channel_multipliers(
    context: Context, source: Tensor, weights: Tensor, output: Tensor, channels: int
) -> tuple[Array, Array]:
    """Requantisation of a convolution: one (multiplier, shift) for each output channel, or one for all.

    Source: PopulateConvolutionQuantizationParams: input_scale × filter_scale / output_scale, all in double.
    """
    scales = weight_scales(context, weights, channels)
    in_scale = float(quantisation(context, source, ("int8", "int16")).scale)
    out_scale = float(quantisation(context, output, ("int8", "int16")).scale)
    # Of uint8 the product of the scales is a float32: GetQuantizedConvolutionMultipler.
    product = np.float32 if context.operator.attributes.get(FROM_UINT8) else float
    pairs = [multiplier(context, float(product(in_scale * float(np.float32(s)))) / out_scale, "output") for s in scales]
    return np.array([m for m, _ in pairs], np.int32), np.array([s for _, s in pairs], np.int8)


def weight_scales(context: Context, weights: Tensor, channels: int) -> tuple[float, ...]:
    """Scales of int8 weights: one, or one for each output channel."""
    quant = weights.quantisation
    if weights.dtype != "int8" or quant is None:
        cure = "Convert it to full INT8: arenite convert MODEL --calibration PICTURES -o model.tflite"
        raise refuse(context, f"its weights, {weights}, are not quantised to int8", cure)
    if any(zero_point != quant.zero_points[0] for zero_point in quant.zero_points):
        cure = "Convert with symmetric weights."
        raise refuse(context, f"its weights, {weights}, have a zero point for each channel", cure)
    if len(quant.scales) not in (1, channels):
        raise refuse(context, f"its weights, {weights}, have {len(quant.scales)} scales for {channels} channels")
    if not all(np.isfinite(s) and s >= 0 for s in quant.scales):
        raise refuse(context, f"its weights, {weights}, have a scale that is negative or not finite")
    return quant.scales


def bias_values(context: Context, position: int, channels: int, dtypes: tuple[str, ...] = ("int32",)) -> Array:
    """The bias as int64, zeros when the operator has none.

    Args:
        dtypes: What the reference reads it as; of another type it would take the wrong bytes.
    """
    tensor = context.optional_input(position)
    if tensor is None:
        return np.zeros(channels, np.int64)
    values = context.constant(position)
    if tensor.dtype not in dtypes or values.size != channels:
        raise refuse(context, f"its bias, {tensor}, must be {' or '.join(dtypes)}[{channels}]")
    return values.astype(np.int64).ravel()


def folded_bias(bias: Array, weights: Array, zero_point: int) -> Array:
    """bias - zero_point × Σ weights, modulo 2^32: with it the kernels need no input offset.

    Args:
        bias: int64[channels].
        weights: int8[channels, ...].
        zero_point: Of the input.
    """
    sums = weights.reshape(weights.shape[0], -1).astype(np.int64).sum(axis=1)
    folded: Array = (bias - zero_point * sums).astype(np.uint64).astype(np.uint32).view(np.int32)
    return folded


def mac_parameters(
    context: Context, source: Tensor, by_channel: Array, scales: tuple[Array, Array]
) -> dict[str, Array | int]:
    """Kernel parameters from the accumulator to the output byte.

    Args:
        by_channel: int8 weights, output channel first.
        scales: Multipliers and shifts, one for each output channel or one for all.
    """
    zero_point = quantisation(context, source).zero_point
    act_min, act_max = activation_range(context, context.output)
    return {
        "bias": folded_bias(bias_values(context, 2, len(by_channel)), by_channel, zero_point),
        "multiplier": scales[0],
        "shift": scales[1],
        "per_channel": int(scales[0].size > 1),
        "in_zero_point": zero_point,
        "out_zero_point": quantisation(context, context.output).zero_point,
        "act_min": act_min,
        "act_max": act_max,
    }


def padding(context: Context, size: int, kernel: int, stride: int, dilation: int, out: int) -> int:
    """Rows or columns padded before the first, SAME or VALID, checked against the output's extent."""
    span = (kernel - 1) * dilation + 1
    same = context.operator.attributes["padding"] == PADDING_SAME
    expected = -(-size // stride) if same else -(-(size - span + 1) // stride)
    if expected != out or out < 1:
        what = f"an extent of {size} with kernel {kernel} and stride {stride} gives {expected}, not {out}"
        raise refuse(context, what)
    return max(0, (out - 1) * stride + span - size) // 2 if same else 0
