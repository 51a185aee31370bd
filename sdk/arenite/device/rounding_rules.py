# SPDX-License-Identifier: Apache-2.0
"""Which rounding rule makes a value: one output of a convolution, computed as each known library would.

The sum of products is exact in all of them; they differ in how it becomes eight bits. `double` is the TFLite
reference's (gemmlowp), `single` that of builds with TFLITE_SINGLE_ROUNDING and of CMSIS-NN with the same option,
`float` XNNPACK's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.graph import Graph, Operator

__all__ = ["RULES", "values_by_rule"]

Array = npt.NDArray[Any]
RULES = ("double", "single", "float", "truncated")
_WINDOWED = ("CONV_2D", "DEPTHWISE_CONV_2D")
# Numbers of the schema's enumerations Padding and ActivationFunctionType.
_SAME = 0
_BOUNDS: Mapping[int, tuple[float | None, float | None]] = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}


def values_by_rule(graph: Graph, operator: Operator, inputs: Array, index: int) -> Mapping[str, int]:
    """What an element of an operator's output is by each rule.

    Args:
        graph: The model.
        operator: A CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED of int8.
        inputs: The operator's first input, right to the last bit.
        index: Of the element, in the flat output.

    Returns:
        A value by rule; empty for any other operator.
    """
    tensors = [graph.tensors[i] if i >= 0 else None for i in operator.inputs]
    out = graph.tensors[operator.outputs[0]]
    kinds = (*_WINDOWED, "FULLY_CONNECTED")
    if operator.kind not in kinds or len(tensors) < 2 or tensors[0] is None or tensors[1] is None:
        return {}
    data, weights = tensors[0], tensors[1]
    if weights.data is None or out.dtype != "int8":
        return {}
    if data.quantisation is None or out.quantisation is None or weights.quantisation is None:
        return {}
    bias = tensors[2].data if len(tensors) > 2 and tensors[2] is not None else None
    offset = data.quantisation.zero_point
    place = np.unravel_index(index, out.shape)
    channel = int(place[-1])
    if operator.kind in _WINDOWED:
        total = _windowed(operator, inputs.astype(np.int64) - offset, weights.data.astype(np.int64), place, out.shape)
    else:
        rows = inputs.reshape(-1, weights.shape[1]).astype(np.int64) - offset
        total = int(rows[index // weights.shape[0]] @ weights.data[channel].astype(np.int64))
    total += 0 if bias is None else int(bias.ravel()[channel])
    scales = weights.quantisation.scales
    real = float(np.float64(data.quantisation.scale) * np.float64(np.float32(scales[channel % len(scales)])))
    real /= float(np.float64(out.quantisation.scale))
    low, high = _clamp(operator.attributes.get("fused_activation_function"), out.quantisation)
    return {
        rule: max(low, min(high, requantise(total, real) + out.quantisation.zero_point))
        for rule, requantise in _REQUANTISE.items()
    }


def _windowed(
    operator: Operator, data: Array, weights: Array, place: tuple[Any, ...], out_shape: tuple[int, ...]
) -> int:
    """The sum of products at one place; taps outside the input are zero points, so nothing."""
    item, y, x, channel = map(int, place)
    taps = weights[channel] if operator.kind == "CONV_2D" else weights[0, :, :, channel : channel + 1]
    first = 0 if operator.kind == "CONV_2D" else channel * data.shape[3] // weights.shape[3]
    total = 0
    for ky, kx in np.ndindex(*taps.shape[:2]):
        row = _source(operator, "h", y, ky, taps.shape[0], data.shape[1], out_shape[1])
        column = _source(operator, "w", x, kx, taps.shape[1], data.shape[2], out_shape[2])
        if 0 <= row < data.shape[1] and 0 <= column < data.shape[2]:
            pixel = data[item, row, column, first : first + taps.shape[2]]
            total += int(pixel @ taps[ky, kx])
    return int(total)


def _source(operator: Operator, axis: str, out: int, tap: int, window: int, size: int, out_size: int) -> int:
    stride = int(operator.attributes[f"stride_{axis}"])
    dilation = int(operator.attributes.get(f"dilation_{axis}_factor", 1))
    pad = 0
    if operator.attributes.get("padding") == _SAME:
        pad = max(0, (out_size - 1) * stride + (window - 1) * dilation + 1 - size) // 2
    return out * stride - pad + tap * dilation


def _clamp(activation: Any, quantisation: Any) -> tuple[int, int]:
    """The bounds of a fused activation, quantised as the reference does."""
    low, high = _BOUNDS.get(activation, (None, None))

    def quantised(real: float) -> int:
        steps = float(np.float32(real) / quantisation.scale)
        return int(quantisation.zero_point) + int(math.copysign(math.floor(abs(steps) + 0.5), steps))

    return (
        -128 if low is None else max(-128, quantised(low)),
        127 if high is None else min(127, quantised(high)),
    )


def _fixed(real: float) -> tuple[int, int]:
    """A real factor as a 31-bit multiplier and a power of two."""
    mantissa, exponent = math.frexp(real)
    multiplier = math.floor(mantissa * (1 << 31) + 0.5)
    return (multiplier // 2, exponent + 1) if multiplier == 1 << 31 else (multiplier, exponent)


def _half_away(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2)) if value >= 0 else -math.floor(-value + Fraction(1, 2))


def _double(total: int, real: float) -> int:
    multiplier, exponent = _fixed(real)
    # The first rounding is at the product's high word, to the nearest and up at a half; the second is away from zero.
    high = math.floor(Fraction(total * multiplier << max(exponent, 0), 1 << 31) + Fraction(1, 2))
    return _half_away(Fraction(high, 1 << max(-exponent, 0)))


def _single(total: int, real: float) -> int:
    multiplier, exponent = _fixed(real)
    return math.floor(Fraction(total * multiplier, 1 << (31 - exponent)) + Fraction(1, 2))


def _float(total: int, real: float) -> int:
    return int(np.rint(np.float32(total) * np.float32(real)))


def _truncated(total: int, real: float) -> int:
    multiplier, exponent = _fixed(real)
    return total * multiplier >> (31 - exponent)


_REQUANTISE: Mapping[str, Callable[[int, float], int]] = dict(
    zip(RULES, (_double, _single, _float, _truncated), strict=True)
)
