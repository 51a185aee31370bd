# SPDX-License-Identifier: Apache-2.0
"""Mend and compress a float16 program: 8-bit weights, 8-bit weights and activations, or weights from a palette.

The passes are our own, on coremltools' graph, so that what they round is known and can be mended:

- int8 weights have one scale for each output channel and are rounded by least squares over the layer's input.
- Rounded weights, float16 too, leave a mean error in a layer's output: their rounding error times the mean of the
  layer's input. It is taken off the bias.
- Activations are quantised where a layer reads them, once, with a scale and zero point for the tensor; sums of
  branches stay float16, so that noise does not pile up along them.
- A palette is found by Lloyd's k-means over the sorted weights, from quantiles, and so the same at each run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.coreml.input_statistics import LAYERS, InputStatistics
from arenite_converters.least_squares import rounded_levels

__all__ = ["LayerValues", "compressed", "int8_weights", "layer_values", "palette"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Layer = Callable[[Any, Any], Mapping[str, Any]]
_PALETTE_BITS = 6
# A smaller weight costs more as a palette with its table than as it is.
_LEAST_WEIGHTS = 2048
_LLOYD_ROUNDS = 30
_IOS_17 = 8
_HALF_SUFFIX = "_cast_fp16"


@dataclass(frozen=True, eq=False)
class LayerValues:
    """A layer's weights and bias before they were rounded to float16.

    Attributes:
        weight: [outputs, inputs of a group, taps...].
        bias: [outputs].
    """

    weight: Floats
    bias: Floats


def layer_values(model: Any) -> dict[str, LayerValues]:
    """What each layer of a float32 program holds, by the name that the layer has in the float16 one.

    Args:
        model: coremltools' MLModel, float32.
    """
    found = {}
    for op in model._mil_program.functions["main"].operations:
        if op.op_type in LAYERS and op.weight.val is not None:
            weight = op.weight.val.astype(np.float32)
            bias = np.zeros(len(weight), np.float32) if op.bias is None else op.bias.val.astype(np.float32)
            found[op.outputs[0].name + _HALF_SUFFIX] = LayerValues(weight, bias)
    return found


def compressed(
    model: Any,
    precision: str,
    statistics: Mapping[str, InputStatistics],
    exact: Mapping[str, LayerValues],
    keep_float: Collection[str] = (),
    biases: Mapping[str, Array] | None = None,
) -> Any:
    """The model in a precision, its biases mended.

    Args:
        model: coremltools' MLModel, float16.
        precision: One of `arenite.coreml_package.PRECISIONS`.
        statistics: Of the layers' inputs, by the layer's name.
        exact: What the layers held before float16, by the layer's name.
        keep_float: Layers that read float16 in `w8a8` too.
        biases: Those that are known, by the layer's name; the others are mended for the rounding of their own weights.
    """
    makers = {"float16": _half, "palettised": _palettised}

    def change(op: Any, mb: Any) -> Mapping[str, Any]:
        name = op.outputs[0].name
        if name not in statistics:
            return {}
        values = _values(op, exact.get(name))
        seen = statistics[name]
        weight = makers[precision](op, mb, values.weight) if precision in makers else _int8(mb, values.weight, seen)
        parts = _mended(weight, values, seen.mean)
        if biases and name in biases:
            parts["bias"] = biases[name]
        if precision == "w8a8" and name not in keep_float:
            parts["x"] = _eight_bit(op, mb, seen)
        return parts

    return _with_layers_changed(model, change)


def _with_layers_changed(model: Any, change: Layer) -> Any:
    """The model with some inputs of its layers replaced; `change` returns them by parameter."""
    mb = import_module("coremltools.converters.mil.mil").Builder
    base = import_module("coremltools.converters.mil.mil.passes.graph_pass").AbstractGraphPass
    helper = import_module("coremltools.converters.mil.mil.passes.helper")
    utils = import_module("coremltools.models.utils")

    class Pass(base):  # type: ignore[misc, valid-type]
        def apply(self, prog: Any) -> None:
            for function in prog.functions.values():
                rewrite(function)

    @helper.block_context_manager  # type: ignore[untyped-decorator]
    def rewrite(block: Any) -> None:
        for op in [op for op in block.operations if op.op_type in LAYERS]:
            with mb.set_before_op(op):
                parts = dict(change(op, mb))
                if parts:
                    made = getattr(mb, op.op_type)(**{**op.inputs, **parts, "name": op.name})
            if parts:
                made.set_name(op.outputs[0].name)
                block.replace_uses_of_var_after_op(anchor_op=op, old_var=op.outputs[0], new_var=made)
                block.remove_ops([op])

    return utils._apply_graph_pass(model, Pass(), spec_version=_IOS_17, skip_model_load=True)


def _values(op: Any, exact: LayerValues | None) -> LayerValues:
    """The layer's exact values; those that it holds where the float32 program has no such layer."""
    held = op.weight.val.astype(np.float32)
    if exact is not None and exact.weight.shape == held.shape:
        return exact
    return LayerValues(held, np.zeros(len(held), np.float32) if op.bias is None else op.bias.val.astype(np.float32))


def _mended(weight: Any, values: LayerValues, mean: Array) -> dict[str, Any]:
    """The rounded weight, and the bias without the mean error that it makes; the mean is groups × terms."""
    made = weight if isinstance(weight, np.ndarray) else weight.op.materialized_val_inference()
    error = (values.weight - made.astype(np.float64)).reshape(len(mean), -1, mean.shape[1])
    lost = np.einsum("gok,gk->go", error, mean).reshape(-1)
    return {"weight": weight, "bias": (values.bias + lost).astype(np.float16)}


def _half(op: Any, mb: Any, weight: Floats) -> Any:
    return weight.astype(np.float16)


def _int8(mb: Any, weight: Floats, seen: InputStatistics) -> Any:
    steps, scales = int8_weights(weight, seen.moment)
    return mb.constexpr_affine_dequantize(quantized_data=steps, zero_point=np.int8(0), scale=scales, axis=0)


def int8_weights(
    weight: Floats, moment: Array | None = None
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float16]]:
    """Steps within -127..127 and the float16 scale of each output channel; a channel of zeros has a scale of 1.

    Args:
        weight: [outputs, inputs of a group, taps...].
        moment: Second moment of what the weights are multiplied with, groups × terms × terms; without it each weight is
            rounded to the nearest step.
    """
    largest = np.abs(weight.reshape(len(weight), -1)).max(axis=1)
    # The scale is rounded up, or the largest weight would be cut off.
    scales = (largest / np.float32(127)).astype(np.float16)
    scales = np.where(scales.astype(np.float32) * 127 < largest, np.nextafter(scales, np.float16(np.inf)), scales)
    scales = np.where(largest == 0, np.float16(1), scales).astype(np.float16)
    groups = 1 if moment is None else len(moment)
    split = weight.astype(np.float64).reshape(groups, len(weight) // groups, -1)
    wide = scales.astype(np.float64).reshape(groups, -1, 1)
    steps = np.rint(split / wide) if moment is None else rounded_levels(split, wide, moment)
    return np.clip(steps, -127, 127).astype(np.int8).reshape(weight.shape), scales


def _eight_bit(op: Any, mb: Any, seen: InputStatistics) -> Any:
    """The layer's input through 8 bits: quantised and made real again."""
    scale, zero_point = seen.eight_bits()
    steps = mb.quantize(input=op.x, scale=scale, zero_point=zero_point, output_dtype="uint8")
    return mb.dequantize(input=steps, scale=scale, zero_point=zero_point)


def _palettised(op: Any, mb: Any, weight: Floats) -> Any:
    """Float16 where a palette does not pay, or where each channel has its own range and one palette serves none."""
    if weight.size < _LEAST_WEIGHTS or (op.op_type == "conv" and weight.shape[1] == 1):
        return _half(op, mb, weight)
    values, indices = palette(weight.reshape(-1), _PALETTE_BITS)
    bits = np.unpackbits(indices[:, None], axis=1, bitorder="little")[:, :_PALETTE_BITS]
    packed = np.packbits(bits.reshape(-1), bitorder="little")
    shape = np.array(weight.shape, np.uint32)
    return mb.constexpr_lut_to_dense(indices=packed, lut=values.astype(np.float16), shape=shape)


def palette(weights: Floats, bits: int) -> tuple[Floats, npt.NDArray[np.uint8]]:
    """2^bits values that leave little squared error, sorted, and for each weight the nearest one's index."""
    count = 1 << bits
    ordered = np.sort(weights.astype(np.float64))
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    values = np.quantile(ordered, (np.arange(count) + 0.5) / count)
    for _ in range(_LLOYD_ROUNDS):
        edges = np.concatenate([[0], np.searchsorted(ordered, (values[1:] + values[:-1]) / 2), [len(ordered)]])
        sizes = np.diff(edges)
        # A value that no weight is near stays where it is.
        values = np.where(sizes > 0, np.diff(sums[edges]) / np.maximum(sizes, 1), values)
    indices = np.searchsorted((values[1:] + values[:-1]) / 2, weights)
    return values.astype(np.float32), indices.astype(np.uint8)
