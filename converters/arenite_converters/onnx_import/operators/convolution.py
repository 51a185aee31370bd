# SPDX-License-Identifier: Apache-2.0
"""Conv and ConvTranspose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.onnx_import.graph import Node
from arenite_converters.onnx_import.lowering import Lowering
from arenite_converters.onnx_import.operators.affine import absorb_affine
from arenite_converters.onnx_import.operators.movement import strided_slice
from arenite_converters.onnx_import.operators.windows import from_plane, padded, to_plane, window_of

__all__ = ["conv", "transposed"]

Array = npt.NDArray[Any]
_POSITIVE = ("RELU", "RELU6")


def conv(to: Lowering, node: Node) -> None:
    """CONV_2D or DEPTHWISE_CONV_2D; grouped convolutions are a CONV_2D whose filters see fewer channels."""
    weights = to.required(node, 1, "weight")
    window = window_of(to, node, weights.shape[2:])
    scale, offset, name = absorb_affine(to, node.outputs[0], 1)
    activation, name = to.activation(name)
    bias = _bias(to, node, len(weights)) * scale + offset
    weights = _plane_weights(weights * scale.reshape(-1, *(1,) * (weights.ndim - 1)))
    tensor, shape = to_plane(to, node.inputs[0])
    tensor = padded(to, tensor, shape, window, node.outputs[0])
    depthwise = node.attributes.get("group", 1) == shape[3] > 1
    options = {
        **window.options,
        "dilationHFactor": window.dilations[0],
        "dilationWFactor": window.dilations[1],
        "fusedActivationFunction": activation,
    }
    if depthwise:
        options["depthMultiplier"] = len(weights) // shape[3]
    # Channel-last: O×H×W×I, or 1×H×W×O for depthwise.
    packed = weights.transpose(1, 2, 3, 0) if depthwise else weights.transpose(0, 2, 3, 1)
    inputs = [tensor, to.add(packed, node.inputs[1]), to.add(bias, f"{node.inputs[1]}/bias")]
    kind = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    result = to.emit(kind, inputs, _plane_shape(to, name), name, table, **options)
    from_plane(to, name, result, is_positive=activation in _POSITIVE)


def _bias(to: Lowering, node: Node, channels: int) -> Array:
    found = to.optional(node, 2)
    return np.zeros(channels) if found is None else found.astype(np.float64)


def _plane_weights(weights: Array) -> Array:
    return weights if weights.ndim == 4 else weights[:, :, np.newaxis, :]


def _plane_shape(to: Lowering, name: str) -> list[int]:
    batch, channels, *spatial = to.shape(name)
    return [batch, *(1,) * (2 - len(spatial)), *spatial, channels]


def transposed(to: Lowering, node: Node) -> None:
    """TRANSPOSE_CONV over the whole reach of the input, cut to the part that is asked for."""
    weights = to.required(node, 1, "weight")
    if node.attributes.get("group", 1) != 1 or set(node.attributes.get("dilations", (1,))) != {1}:
        raise to.refuse(node, "in groups or with dilations")
    scale, offset, name = absorb_affine(to, node.outputs[0], 1)
    activation, name = to.activation(name)
    bias = _bias(to, node, weights.shape[1]) * scale + offset
    weights = _plane_weights(weights * scale.reshape(1, -1, *(1,) * (weights.ndim - 2)))
    tensor, shape = to_plane(to, node.inputs[0])
    wanted = _plane_shape(to, name)
    strides = (1, *node.attributes.get("strides", (1,) * (weights.ndim - 2)))[-2:]
    before = _cut_before(to, node, shape, wanted, strides, weights.shape[2:])
    same = _is_same(shape, wanted, strides, weights.shape[2:], before)
    reach = [
        max(stride * (size - 1) + kernel, cut + out)
        for stride, size, kernel, cut, out in zip(
            strides, shape[1:3], weights.shape[2:], before, wanted[1:3], strict=True
        )
    ]
    whole = wanted if same else [wanted[0], *reach, wanted[3]]
    inputs = [
        to.add(np.array(whole, np.int32), f"{name}/shape"),
        to.add(weights.transpose(1, 2, 3, 0), node.inputs[1]),
        tensor,
        to.add(bias, f"{node.inputs[1]}/bias"),
    ]
    options = {
        "strideH": strides[0],
        "strideW": strides[1],
        "padding": "SAME" if same else "VALID",
        "fusedActivationFunction": activation,
    }
    result = to.emit("TRANSPOSE_CONV", inputs, whole, name, "TransposeConvOptions", **options)
    if whole != wanted:
        start = [0, *before, 0]
        stop = [first + extent for first, extent in zip(start, wanted, strict=True)]
        result = strided_slice(to, result, start, stop, [1] * 4, name)
    from_plane(to, name, result, is_positive=activation in _POSITIVE)


def _cut_before(
    to: Lowering, node: Node, shape: Any, wanted: list[int], strides: Any, kernel: Any
) -> list[int]:
    rule = node.attributes.get("auto_pad", "NOTSET")
    reaches = [s * (size - 1) + k for s, size, k in zip(strides, shape[1:3], kernel, strict=True)]
    totals = [max(reach - out, 0) for reach, out in zip(reaches, wanted[1:3], strict=True)]
    if rule in ("SAME_UPPER", "SAME_LOWER") or "output_shape" in node.attributes:
        upper = rule == "SAME_UPPER"
        return [total // 2 if upper else total - total // 2 for total in totals]
    spatial = len(to.shape(node.inputs[0])) - 2
    pads = node.attributes.get("pads", (0,) * (2 * spatial)) if rule == "NOTSET" else (0,) * (2 * spatial)
    return [0, *pads[:spatial]][-2:]


def _is_same(shape: Any, wanted: list[int], strides: Any, kernel: Any, before: list[int]) -> bool:
    return all(
        out == size * stride and cut == max((size - 1) * stride + k - out, 0) // 2 and k >= stride
        for out, size, stride, k, cut in zip(wanted[1:3], shape[1:3], strides, kernel, before, strict=True)
    ) and math.prod(strides) > 0
