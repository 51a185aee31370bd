# SPDX-License-Identifier: Apache-2.0
"""Make a quantised model's weights and biases fit what really flows through it.

Layer by layer, in order: what reaches the layer in the quantised model, so far corrected, is known from calibration
samples, and so is what the float layer would have given. With x the float layer's input, x' the quantised one's, W and
b the trained weights:

- **Rounding.** By least squares over x', with the second moment of x' about its mean as the Hessian; see
  `arenite_converters.least_squares`.
- **Bias.** b' = b + W mean(x) - W' mean(x'): no channel is shifted on average (Nagel et al., Data-Free Quantization
  Through Weight Equalization and Bias Correction, 2019, with measured means).

Both leave types, scales and shapes as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from arenite.graph import Graph, Operator, Tensor
from arenite.progress import Step
from arenite_converters.calibration import spread
from arenite_converters.flatbuffer import pack, replace_constant
from arenite_converters.least_squares import MOST_TERMS, rounded_levels
from arenite_converters.walk import Walk, is_walkable

__all__ = ["WEIGHTED", "corrected"]

Array = npt.NDArray[Any]
WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_SAME = 0
# More of either changes little and costs time: samples that pass the network, rows of a layer's least squares.
_SAMPLES = 50
_ROWS = 8192


@dataclass(frozen=True)
class _Layer:
    """One layer of both models.

    Attributes:
        quantised: Its operator in the quantised model.
        original: The same in the float model.
    """

    quantised: Operator
    original: Operator


def corrected(
    quantised: bytes,
    original: bytes,
    samples: Sequence[npt.NDArray[np.float32]],
    *,
    rounding: bool = False,
    bias: bool = True,
    step: Step | None = None,
) -> bytes:
    """The quantised model with corrected weights and biases.

    A layer that the float model has under another name or form stays as it is, as does a model with state.

    Args:
        quantised: TFLite with INT8 weights.
        original: Float TFLite that it was made from.
        samples: Calibration inputs in real values; 50 of them, evenly spread, are used.
        rounding: Round weights by least squares.
        bias: Take out each channel's mean error.
        step: Told about each layer.
    """
    if not (rounding or bias) or not is_walkable(quantised) or not is_walkable(original):
        return quantised
    chosen = spread(samples, _SAMPLES)
    walks = Walk(quantised, chosen), Walk(original, chosen)
    for layer in _layers(walks[0].graph, walks[1].graph):
        _correct(layer, *walks, rounding=rounding, bias=bias)
        if step is not None:
            step.advance()
    return pack(walks[0].model)


def _layers(quantised: Graph, original: Graph) -> list[_Layer]:
    by_name = {original.tensors[op.outputs[0]].name: op for op in original.operators if op.kind in WEIGHTED}
    found = []
    shared = _used_twice(quantised) | _used_twice(original)
    for op in quantised.operators:
        other = by_name.get(quantised.tensors[op.outputs[0]].name)
        if other is None or other.kind != op.kind or {op.inputs[1], *op.inputs[2:]} & shared:
            continue
        weights, trained = quantised.tensors[op.inputs[1]], original.tensors[other.inputs[1]]
        source = quantised.tensors[op.inputs[0]]
        is_integer = weights.dtype == "int8" and source.dtype in ("int8", "int16") and weights.data is not None
        if is_integer and trained.dtype == "float32" and trained.data is not None and weights.shape == trained.shape:
            found.append(_Layer(op, other))
    return found


def _used_twice(graph: Graph) -> set[int]:
    uses = [i for op in graph.operators for i in op.inputs if i >= 0 and graph.tensors[i].is_constant]
    return {i for i in uses if uses.count(i) > 1}


def _correct(layer: _Layer, quantised: Walk, original: Walk, *, rounding: bool, bias: bool) -> None:
    tensors = quantised.graph.tensors
    weights, source = tensors[layer.quantised.inputs[1]], tensors[layer.quantised.inputs[0]]
    trained = original.graph.tensors[layer.original.inputs[1]].data
    assert weights.quantisation and source.quantisation and trained is not None and weights.data is not None
    zero_point = source.quantisation.zero_points[0]
    real = _rows(layer.original, trained.shape, original.inputs_of(layer.original), 0)
    seen = _rows(layer.quantised, trained.shape, quantised.inputs_of(layer.quantised), zero_point)
    seen = (seen.astype(np.float64) - zero_point) * source.quantisation.scales[0]
    group = _Grouping(layer.quantised, trained.shape)
    wanted = group.split(trained.astype(np.float64))
    scales = np.broadcast_to(np.asarray(weights.quantisation.scales), group.channels).reshape(*wanted.shape[:2], 1)
    real, seen = group.split_rows(real), group.split_rows(seen)
    means = real.mean(axis=1), seen.mean(axis=1)
    levels = group.split(weights.data.astype(np.float64))
    if rounding and wanted.shape[2] <= MOST_TERMS:
        centred = seen - means[1][:, None] if bias else seen
        levels = rounded_levels(wanted, scales, centred.transpose(0, 2, 1) @ centred / centred.shape[1])
        replace_constant(quantised.model, weights.index, group.join(levels).astype(np.int8))
    if bias and len(layer.quantised.inputs) > 2 and layer.quantised.inputs[2] >= 0:
        shift = _product(wanted, means[0]) - _product(levels * scales, means[1])
        target = tensors[layer.quantised.inputs[2]]
        replace_constant(quantised.model, target.index, _bias(layer, original.graph, target, shift))


def _product(weights: Array, vectors: Array) -> Array:
    """Each group's weights times its vector, one value a channel."""
    return np.asarray(np.einsum("gok,gk->go", weights, vectors).reshape(-1))


def _bias(layer: _Layer, original: Graph, target: Tensor, shift: Array) -> Array:
    index = layer.original.inputs[2] if len(layer.original.inputs) > 2 else -1
    trained = original.tensors[index].data if index >= 0 else None
    assert target.quantisation is not None
    limits = np.iinfo(target.dtype)
    steps = (shift + (0.0 if trained is None else trained.reshape(-1))) / np.asarray(target.quantisation.scales)
    # float64 has no value at int64's end.
    whole: Array = np.clip(np.round(steps), max(limits.min, -(2**62)), min(limits.max, 2**62))
    return whole.astype(target.dtype)


class _Grouping:
    """Weights as groups × channels × terms: a depthwise layer has a group for each input channel, others have one."""

    def __init__(self, operator: Operator, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._is_depthwise = operator.kind == "DEPTHWISE_CONV_2D"
        self.channels = shape[-1] if self._is_depthwise else shape[0]
        self._groups = self.channels // int(operator.attributes["depth_multiplier"]) if self._is_depthwise else 1

    def split(self, weights: Array) -> Array:
        """Weights as the file has them, split."""
        if not self._is_depthwise:
            return weights.reshape(1, self.channels, -1)
        terms = weights.reshape(-1, self._groups, self.channels // self._groups)
        return np.ascontiguousarray(terms.transpose(1, 2, 0))

    def join(self, weights: Array) -> Array:
        """Undo `split`."""
        return (weights.transpose(2, 0, 1) if self._is_depthwise else weights).reshape(self._shape)

    def split_rows(self, rows: Array) -> Array:
        """Rows of input values as groups × rows × terms, float64."""
        rows = rows.reshape(len(rows), -1, self._groups).transpose(2, 0, 1)
        return np.ascontiguousarray(rows, np.float64)


def _rows(operator: Operator, shape: tuple[int, ...], inputs: Sequence[Array], fill: int) -> Array:
    """What the layer's weights are multiplied with, some positions of every sample: rows × terms.

    Inputs of the same shapes give the same positions.

    Args:
        operator: The layer.
        shape: Of its weights.
        inputs: One array a sample.
        fill: What stands for zero outside the input.
    """
    generator = np.random.default_rng(0)
    each = -(-_ROWS // len(inputs))

    def pick(count: int) -> Array:
        return np.arange(count) if count <= each else np.sort(generator.choice(count, each, replace=False))

    found = []
    for values in inputs:
        if operator.kind == "FULLY_CONNECTED":
            rows = values.reshape(-1, shape[-1])
            found.append(rows[pick(len(rows))])
        else:
            windows = _windows(operator, shape, values, fill)
            across = windows.shape[1]
            chosen = pick(windows.shape[0] * across)
            found.append(windows[chosen // across, chosen % across].reshape(len(chosen), -1))
    return np.concatenate(found)


def _windows(operator: Operator, shape: tuple[int, ...], values: Array, fill: int) -> Array:
    """Every window of a convolution: output rows × output columns × kernel rows × kernel columns × channels."""
    options = operator.attributes
    padding, reach = [], []
    for axis, letter in ((1, "h"), (2, "w")):
        stride, extent = int(options[f"stride_{letter}"]), values.shape[axis]
        reach.append((shape[axis] - 1) * int(options[f"dilation_{letter}_factor"]) + 1)
        missing = max(((extent - 1) // stride) * stride + reach[-1] - extent, 0)
        before = missing // 2 if options["padding"] == _SAME else 0
        padding.append((before, missing - before if options["padding"] == _SAME else 0))
    padded = np.pad(values[0], (*padding, (0, 0)), constant_values=fill)
    windows: Any = sliding_window_view
    found: Array = windows(padded, reach, axis=(0, 1))[:: options["stride_h"], :: options["stride_w"]]
    dilated: Array = found[..., :: options["dilation_h_factor"], :: options["dilation_w_factor"]]
    return np.asarray(dilated.transpose(0, 1, 3, 4, 2))
