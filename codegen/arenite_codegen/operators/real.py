# SPDX-License-Identifier: Apache-2.0
"""float32: what a float head behind an INT8 body needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, refuse
from arenite_codegen.operators.binary import binary_layer
from arenite_codegen.operators.conversion import elementwise_layer
from arenite_codegen.operators.windowed import window_read

__all__ = [
    "is_real",
    "lower_arithmetic",
    "lower_conv_2d",
    "lower_curve",
    "lower_depthwise_conv_2d",
    "lower_fully_connected",
    "lower_log_softmax",
    "lower_softmax",
]

_MOST = float(np.finfo(np.float32).max)
_ACTIVATIONS = {0: (-_MOST, _MOST), 1: (0.0, _MOST), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
_OPERATIONS = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")
_CLAMPS = {"RELU": (0.0, _MOST), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}
_CURVES = {"LOGISTIC": 1, "TANH": 2}


def is_real(context: Context) -> bool:
    """Whether the operator is one between float32 tensors."""
    return context.output.dtype == "float32" and context.input(0).dtype == "float32"


def lower_arithmetic(context: Context) -> Layer:
    """ADD, SUB, MUL, DIV, MAXIMUM and MINIMUM."""
    _check(context, 2)
    operation = _OPERATIONS.index(context.operator.kind)
    return binary_layer(context, "arithmetic_f32", {"operation": operation, **_clamp(context)})


def lower_curve(context: Context) -> Layer:
    """LOGISTIC, TANH and the clamps."""
    kind = context.operator.kind
    low, high = _CLAMPS.get(kind, (0.0, 0.0))
    return elementwise_layer(context, "curve_f32", {"curve": _CURVES.get(kind, 0), "low": low, "high": high})


def lower_softmax(context: Context) -> Layer:
    """Over the channels."""
    return _channels_layer(context, "softmax_f32", {"beta": float(np.float32(context.operator.attributes["beta"]))})


def lower_log_softmax(context: Context) -> Layer:
    """Over the channels."""
    return _channels_layer(context, "log_softmax_f32", {})


def _channels_layer(context: Context, kernel: str, parameters: dict[str, Any]) -> Layer:
    source = context.input(0)
    rows = context.rows(source)
    return context.build.layer(
        context,
        kernel=kernel,
        reads=(Read(context.build.value(source), rows.height, rows.row_bytes),),
        parameters={"width": rows.width, "channels": rows.channels, **parameters},
    )


def lower_conv_2d(context: Context) -> Layer:
    """In groups too; a PAD before it is folded in."""
    return _conv_layer(context, _real_weights(context, 4))


def lower_depthwise_conv_2d(context: Context) -> Layer:
    """Each output channel reads one input channel."""
    weights = _real_weights(context, 4)
    if weights.shape[0] != 1:
        raise refuse(context, f"its weights have the shape {weights.shape}, expected 1×h×w×channels")
    return _conv_layer(context, np.moveaxis(weights[0], -1, 0)[..., None])


def _conv_layer(context: Context, by_channel: Array) -> Layer:
    """Args: by_channel: float32[out_c, kernel_h, kernel_w, group_in]."""
    _check_island(context)
    source, *before = context.build.through_pad(context)
    attributes = context.operator.attributes
    dilation = (attributes["dilation_h_factor"], attributes["dilation_w_factor"])
    out_c, kernel_h, kernel_w, group_in = by_channel.shape
    read, geometry = window_read(context, source, (kernel_h, kernel_w), dilation, (before[0], before[1]))
    in_c, out = context.rows(source).channels, context.rows(context.output)
    groups = in_c // group_in if group_in else 0
    if not groups or groups * group_in != in_c or out_c % groups or out.channels != out_c:
        raise refuse(context, f"{in_c} input and {out_c} output channels do not divide into groups of {group_in}")
    return context.build.layer(
        context,
        kernel="conv_2d_f32",
        reads=(read,),
        macs=out.height * out.width * by_channel.size,
        parameters={
            "weights": np.ascontiguousarray(by_channel),
            "bias": _real_bias(context, out_c),
            **geometry,
            "in_c": in_c,
            "out_c": out_c,
            "dilation_w": dilation[1],
            "group_in": group_in,
            "group_out": out_c // groups,
            **_clamp(context),
        },
    )


def lower_fully_connected(context: Context) -> Layer:
    """A matrix of float32 constants."""
    weights, source, output = _real_weights(context, 2), context.input(0), context.output
    if int(context.operator.attributes["weights_format"]):
        raise refuse(context, f"its weights, {context.input(1)}, are no plain matrix")
    out_c, in_c = weights.shape
    rows = source.elements // context.batch // in_c
    if rows * in_c * context.batch != source.elements or output.elements != context.batch * rows * out_c:
        raise refuse(context, f"{source} does not divide into rows of {in_c}, or {output} into rows of {out_c}")
    bias = _real_bias(context, out_c)
    return context.build.layer(
        context,
        kernel="fully_connected_f32",
        reads=(Read(context.build.value(source), rows, 4 * in_c),),
        out_rows=rows,
        macs=rows * weights.size,
        parameters={"weights": weights, "bias": bias, "in_c": in_c, "out_c": out_c, **_clamp(context)},
    )


def _check_island(context: Context) -> None:
    """A convolution of float32 beside integers is meant so; where all is float32, quantising was forgotten."""
    if not any(t.dtype in ("int8", "uint8", "int16") and not t.is_constant for t in context.graph.tensors):
        cure = "Convert it to full INT8: arenite convert MODEL --calibration PICTURES -o model.tflite"
        raise refuse(context, f"{context.input(0)} is float32, as all of the model is", cure)


def _real_weights(context: Context, dimensions: int) -> Array:
    weights = context.constant(1)
    if weights.ndim != dimensions or weights.dtype != np.float32 or not weights.size:
        raise refuse(context, f"its weights, {context.input(1)}, are not float32 of {dimensions} dimensions")
    return weights


def _real_bias(context: Context, channels: int) -> Array:
    """Zeros when the operator has none."""
    if context.optional_input(2) is None:
        return np.zeros(channels, np.float32)
    bias = context.constant(2).ravel()
    if bias.dtype != np.float32 or bias.size != channels:
        raise refuse(context, f"its bias must be float32[{channels}]")
    return bias


def _check(context: Context, inputs: int) -> None:
    if any(context.input(position).dtype != "float32" for position in range(inputs)):
        raise refuse(context, "its inputs differ in type")


def _clamp(context: Context) -> dict[str, Any]:
    code = int(context.operator.attributes.get("fused_activation_function", 0))
    if code not in _ACTIVATIONS:
        raise refuse(context, f"the fused activation {code} has no float kernel")
    low, high = _ACTIVATIONS[code]
    return {"act_min": low, "act_max": high}
