# SPDX-License-Identifier: Apache-2.0
"""float32: what a float head behind an INT8 body needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Context, refuse
from arenite_codegen.operators.binary import binary_layer
from arenite_codegen.operators.conversion import elementwise_layer

__all__ = ["is_real", "lower_arithmetic", "lower_curve", "lower_fully_connected", "lower_softmax"]

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
    source = context.input(0)
    rows = context.rows(source)
    beta = float(np.float32(context.operator.attributes["beta"]))
    return context.build.layer(
        context,
        kernel="softmax_f32",
        reads=(Read(context.build.value(source), rows.height, rows.row_bytes),),
        parameters={"width": rows.width, "channels": rows.channels, "beta": beta},
    )


def lower_fully_connected(context: Context) -> Layer:
    """A matrix of float32 constants."""
    weights, source, output = context.constant(1), context.input(0), context.output
    if weights.ndim != 2 or weights.dtype != np.float32 or int(context.operator.attributes["weights_format"]):
        raise refuse(context, f"its weights, {context.input(1)}, are no plain matrix of float32")
    out_c, in_c = weights.shape
    rows = source.elements // context.batch // in_c
    if rows * in_c * context.batch != source.elements or output.elements != context.batch * rows * out_c:
        raise refuse(context, f"{source} does not divide into rows of {in_c}, or {output} into rows of {out_c}")
    bias = np.zeros(out_c, np.float32) if context.optional_input(2) is None else context.constant(2).ravel()
    if bias.dtype != np.float32 or bias.size != out_c:
        raise refuse(context, f"its bias must be float32[{out_c}]")
    return context.build.layer(
        context,
        kernel="fully_connected_f32",
        reads=(Read(context.build.value(source), rows, 4 * in_c),),
        out_rows=rows,
        macs=rows * weights.size,
        parameters={"weights": weights, "bias": bias, "in_c": in_c, "out_c": out_c, **_clamp(context)},
    )


def _check(context: Context, inputs: int) -> None:
    if any(context.input(position).dtype != "float32" for position in range(inputs)):
        raise refuse(context, "its inputs differ in type")


def _clamp(context: Context) -> dict[str, Any]:
    code = int(context.operator.attributes.get("fused_activation_function", 0))
    if code not in _ACTIVATIONS:
        raise refuse(context, f"the fused activation {code} has no float kernel")
    low, high = _ACTIVATIONS[code]
    return {"act_min": low, "act_max": high}
