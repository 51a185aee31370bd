# SPDX-License-Identifier: Apache-2.0
"""Random graphs of element-wise operators on int16, float32, int32 and bool, and of conversions between types."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import ACTIVATIONS, LITERT, PADDINGS, TFLM, GraphCase, Window, case

__all__ = ["WIDE"]

_OPTIONS = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
_EXTREMES = ("MAXIMUM", "MINIMUM")
_COMPARISONS = {
    "EQUAL": "EqualOptions",
    "NOT_EQUAL": "NotEqualOptions",
    "LESS": "LessOptions",
    "LESS_EQUAL": "LessEqualOptions",
    "GREATER": "GreaterOptions",
    "GREATER_EQUAL": "GreaterEqualOptions",
}
# A float32 whose exponential TFLM takes from libm, correct to half a unit and a bit.
_LIBM_ULPS = 2


def _curve_s16(choices: Choices, kind: str) -> GraphCase:
    shape = _shape(choices)
    scale = choices.pick([2.0**-12, 2.0**-11, 2.0 ** -choices.integer(8, 15), choices.real(1e-5, 1e-2)])
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int16", scales=[scale], zero_points=[0])
    y = builder.tensor("y", shape, "int16", scales=[2.0**-15], zero_points=[0])
    builder.operator(kind, [x], [y], version=3)
    return case(choices, f"{kind}_S16 {shape} scale {scale:.6g}", builder, [(x, shape, "int16", 0)], y)


def _arithmetic_s16(choices: Choices, kind: str) -> GraphCase:
    first, second = _broadcast(choices)
    scales = [choices.real(1e-5, 1e-3), choices.real(1e-5, 1e-3)]
    if kind in _EXTREMES:
        scales[1] = scales[0]
    typical = scales[0] * scales[1] * 2.0**14 if kind == "MUL" else math.hypot(*scales)
    if kind == "SQUARED_DIFFERENCE":
        typical = max(scales) ** 2 * 2.0**16
    out_scale = scales[0] if kind in _EXTREMES else float(np.float32(typical * choices.real(0.4, 1.5)))
    activation = choices.pick(["none", "none", "relu", "relu6", "relu_n1_to_1"])
    grids: list[dict[str, Any]] = [{"scales": [scale], "zero_points": [0]} for scale in (*scales, out_scale)]
    builder = ModelBuilder()
    a, b = (builder.tensor(n, s, "int16", **g) for n, s, g in zip("ab", (first, second), grids, strict=False))
    y = builder.tensor("y", np.broadcast_shapes(first, second), "int16", **grids[2])
    options: dict[str, Any] = {}
    if kind in _OPTIONS:
        options = {"options": _OPTIONS[kind], "fusedActivationFunction": ACTIVATIONS[activation]}
    if kind in ("ADD", "SUB"):
        options["potScaleInt16"] = False
    builder.operator(kind, [a, b], [y], version=4 if kind in _OPTIONS else 2, **options)
    ends = [(a, first, "int16", 0), (b, second, "int16", 0)]
    return case(choices, f"{kind}_S16 {first} {second} {activation}", builder, ends, y)


def _pool_s16(choices: Choices, kind: str) -> GraphCase:
    shape = (choices.batch(), choices.integer(1, 9), choices.integer(1, 9), choices.channels(17))
    window = Window.draw(choices, shape[1:3], dilate=False)
    activation, scale = choices.pick(["none", "relu", "relu6"]), choices.real(1e-4, 1e-3)
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int16", scales=[scale], zero_points=[0])
    out_shape = (shape[0], *window.output(shape[1:3]), shape[3])
    y = builder.tensor("y", out_shape, "int16", scales=[scale], zero_points=[0])
    builder.operator(
        kind,
        [x],
        [y],
        version=3,
        options="Pool2DOptions",
        filterHeight=window.kernel[0],
        filterWidth=window.kernel[1],
        strideH=window.stride[0],
        strideW=window.stride[1],
        padding=PADDINGS[window.padding],
        fusedActivationFunction=ACTIVATIONS[activation],
    )
    return case(choices, f"{kind}_S16 {shape} {window} {activation}", builder, [(x, shape, "int16", 0)], y)


def _requantize(choices: Choices) -> GraphCase:
    """QUANTIZE from one integer type to another, and from float32."""
    source, target = choices.pick(
        [
            ("int8", "int16"),
            ("int16", "int8"),
            ("int16", "int16"),
            ("int8", "int32"),
            ("int16", "int32"),
            ("float32", "int8"),
            ("float32", "int16"),
        ]
    )
    shape, builder = _shape(choices), ModelBuilder()
    steps = {"int8": 127.0, "int16": 32767.0, "int32": 1e6, "float32": 0.0}
    real = choices.real(1.0, 20.0)
    scales = [real / steps[source] if steps[source] else 0.0, real * choices.real(0.3, 2.0) / steps[target]]
    points = [choices.zero_point() if dtype == "int8" else 0 for dtype in (source, target)]
    integer: dict[str, Any] = {"scales": [float(np.float32(scales[0]))], "zero_points": points[:1]}
    grid = {} if source == "float32" else integer
    x = builder.tensor("x", shape, source, **grid)
    y = builder.tensor("y", shape, target, scales=[float(np.float32(scales[1]))], zero_points=points[1:])
    builder.operator("QUANTIZE", [x], [y], version=3, options="QuantizeOptions")
    text = f"REQUANTIZE {shape} {source}/{points[0]} -> {target}/{points[1]}"
    return case(choices, text, builder, [(x, shape, source, points[0])], y)


def _dequantize(choices: Choices) -> GraphCase:
    """DEQUANTIZE from int8, uint8 and int16."""
    source, shape = choices.pick(["int8", "uint8", "int16"]), _shape(choices)
    point = 0 if source == "int16" else choices.zero_point(source)
    builder = ModelBuilder()
    x = builder.tensor("x", shape, source, scales=[choices.real(1e-4, 0.5)], zero_points=[point])
    y = builder.tensor("y", shape, "float32")
    builder.operator("DEQUANTIZE", [x], [y], version=3, options="DequantizeOptions")
    return case(choices, f"DEQUANTIZE {shape} {source}/{point}", builder, [(x, shape, source, point)], y)


def _cast(choices: Choices) -> GraphCase:
    """CAST between numbers."""
    types = ["int8", "int16", "int32", "float32"]
    source = choices.pick(types)
    target = choices.pick([dtype for dtype in types if dtype != source])
    shape, builder = _shape(choices), ModelBuilder()
    grid: dict[str, Any] = {"scales": [0.5], "zero_points": [0]}
    grids = [grid if t in ("int8", "int16") else {} for t in (source, target)]
    x, y = (builder.tensor(n, shape, t, **g) for n, t, g in zip("xy", (source, target), grids, strict=True))
    builder.operator("CAST", [x], [y], version=1, options="CastOptions")
    return case(choices, f"CAST {shape} {source} -> {target}", builder, [(x, shape, source, 0)], y)


def _comparison(choices: Choices, kind: str) -> GraphCase:
    equality = kind in ("EQUAL", "NOT_EQUAL")
    # Random floats are never equal, and of bytes on different grids few are.
    dtype = choices.pick(["int8", "int32", "bool", "bool"] if equality else ["int8", "int8", "int32", "float32"])
    first, second = _broadcast(choices)
    points = [choices.zero_point() if dtype == "int8" else 0 for _ in range(2)]
    same = equality or choices.chance(50)
    scales = [choices.real(1e-3, 0.5)] * 2 if same else [choices.real(1e-3, 0.5), choices.real(1e-3, 0.5)]
    builder = ModelBuilder()
    grids: list[dict[str, Any]] = [{"scales": [s], "zero_points": [p]} for s, p in zip(scales, points, strict=True)]
    a, b = (
        builder.tensor(n, s, dtype, **(grid if dtype == "int8" else {}))
        for n, s, grid in zip("ab", (first, second), grids, strict=True)
    )
    y = builder.tensor("y", np.broadcast_shapes(first, second), "bool")
    builder.operator(kind, [a, b], [y], version=2, options=_COMPARISONS[kind])
    ends = [(a, first, dtype, points[0]), (b, second, dtype, points[1])]
    return case(choices, f"{kind} {first} {second} {dtype} {scales} {points}", builder, ends, y)


def _logical(choices: Choices, kind: str) -> GraphCase:
    shape, builder = _shape(choices), ModelBuilder()
    count = 1 if kind == "LOGICAL_NOT" else 2
    tensors = [builder.tensor(f"x{i}", shape, "bool") for i in range(count)]
    y = builder.tensor("y", shape, "bool")
    options = {"LOGICAL_NOT": "LogicalNotOptions", "LOGICAL_AND": "LogicalAndOptions", "LOGICAL_OR": "LogicalOrOptions"}
    builder.operator(kind, tensors, [y], options=options[kind])
    return case(choices, f"{kind} {shape}", builder, [(t, shape, "bool", 0) for t in tensors], y)


def _select_v2(choices: Choices) -> GraphCase:
    """SELECT_V2 with broadcasts on any of its three inputs."""
    first, second = _broadcast(choices)
    which = choices.pick([first, second, np.broadcast_shapes(first, second)])
    return _selected(choices, "SELECT_V2", which, first, second)


def _select(choices: Choices) -> GraphCase:
    """SELECT, whose condition has the shape of both sides, or is one for all or for each slice along the first axis."""
    shape = _broadcast(choices)[0]
    # One for each item of a batch of pictures is refused by name.
    slices = shape if len(shape) == 4 and shape[0] > 1 else shape[:1]
    return _selected(choices, "SELECT", choices.pick([shape, slices, ()]), shape, shape)


def _selected(
    choices: Choices, kind: str, which: Sequence[int], first: Sequence[int], second: Sequence[int]
) -> GraphCase:
    dtype = choices.pick(["int8", "int16", "float32"])
    point = choices.zero_point() if dtype == "int8" else 0
    integer: dict[str, Any] = {"scales": [0.25], "zero_points": [point]}
    grid = {} if dtype == "float32" else integer
    builder = ModelBuilder()
    w = builder.tensor("w", which, "bool")
    a, b = (builder.tensor(n, s, dtype, **grid) for n, s in zip("ab", (first, second), strict=True))
    made = first if kind == "SELECT" else np.broadcast_shapes(tuple(which), tuple(first), tuple(second))
    y = builder.tensor("y", made, dtype, **grid)
    options = {"SELECT": "SelectOptions", "SELECT_V2": "SelectV2Options"}
    builder.operator(kind, [w, a, b], [y], options=options[kind])
    ends = [(w, which, "bool", 0), (a, first, dtype, point), (b, second, dtype, point)]
    authority = LITERT if kind == "SELECT" else TFLM
    return case(choices, f"{kind} {which} {first} {second} {dtype}", builder, ends, y, authority)


def _arithmetic_f32(choices: Choices, kind: str) -> GraphCase:
    first, second = _broadcast(choices)
    activation = choices.pick(["none", "none", "relu", "relu6", "relu_n1_to_1"])
    builder = ModelBuilder()
    a, b = (builder.tensor(n, s, "float32") for n, s in zip("ab", (first, second), strict=True))
    y = builder.tensor("y", np.broadcast_shapes(first, second), "float32")
    options: dict[str, Any] = {"options": "MaximumMinimumOptions"}
    if kind in _OPTIONS:
        options = {"options": _OPTIONS[kind], "fusedActivationFunction": ACTIVATIONS[activation]}
    builder.operator(kind, [a, b], [y], **options)
    ends = [(a, first, "float32", 0), (b, second, "float32", 0)]
    found = case(choices, f"{kind}_F32 {first} {second} {activation}", builder, ends, y)
    if kind != "DIV":
        return found
    apart = [(one, np.where(np.abs(other) < 0.1, np.float32(0.5), other)) for one, other in found.vectors]
    return found.with_vectors(tuple(apart))


def _curve_f32(choices: Choices, kind: str) -> GraphCase:
    shape, builder = _shape(choices), ModelBuilder()
    x, y = (builder.tensor(name, shape, "float32") for name in "xy")
    softmax: dict[str, Any] = {"options": "SoftmaxOptions", "beta": choices.pick([1.0, 0.5])}
    options = softmax if kind == "SOFTMAX" else {}
    builder.operator(kind, [x], [y], **options)
    found = case(choices, f"{kind}_F32 {shape}", builder, [(x, shape, "float32", 0)], y)
    return replace(found, ulps=0 if kind.startswith("RELU") else _LIBM_ULPS + (4 if kind.endswith("SOFTMAX") else 0))


def _fully_connected_f32(choices: Choices) -> GraphCase:
    """FULLY_CONNECTED of float32, with and without bias."""
    shape, units = (choices.batch(), choices.channels()), choices.channels()
    activation = choices.pick(["none", "none", "relu", "relu6", "relu_n1_to_1"])
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "float32")
    w = builder.tensor("w", (units, shape[1]), "float32", data=choices.bytes_of((units, shape[1]), "float32"))
    bias = choices.bytes_of((units,), "float32")
    b = builder.tensor("b", (units,), "float32", data=bias) if choices.chance(70) else -1
    y = builder.tensor("y", (shape[0], units), "float32")
    options = {"fusedActivationFunction": ACTIVATIONS[activation]}
    builder.operator("FULLY_CONNECTED", [x, w, b], [y], options="FullyConnectedOptions", **options)
    text = f"FULLY_CONNECTED_F32 {shape}->{units} {activation}"
    return case(choices, text, builder, [(x, shape, "float32", 0)], y)


def _shape(choices: Choices) -> tuple[int, ...]:
    middle = [choices.integer(1, 9) for _ in range(choices.integer(0, 2))]
    return (choices.batch(), *middle, choices.channels())


def _broadcast(choices: Choices) -> tuple[tuple[int, ...], tuple[int, ...]]:
    n, h, w, c = choices.batch(), choices.integer(1, 7), choices.integer(1, 7), choices.channels(17)
    full = (n, h, w, c)
    other = choices.pick([full, full, (n, 1, 1, c), (n, h, w, 1), (n, 1, w, c), (1, 1, 1, c)])
    return (full, other) if choices.chance(60) else (other, full)


def _of(kind: str, make: Callable[[Choices, str], GraphCase]) -> Callable[[Choices], GraphCase]:
    return lambda choices: make(choices, kind)


WIDE: dict[str, Callable[[Choices], GraphCase]] = {
    **{f"{kind}_S16": _of(kind, _curve_s16) for kind in ("LOGISTIC", "TANH")},
    **{f"{kind}_S16": _of(kind, _arithmetic_s16) for kind in ("ADD", "SUB", "MUL")},
    **{f"{kind}_S16": _of(kind, _arithmetic_s16) for kind in ("SQUARED_DIFFERENCE", *_EXTREMES)},
    **{f"{kind}_S16": _of(kind, _pool_s16) for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D")},
    "REQUANTIZE": _requantize,
    "DEQUANTIZE": _dequantize,
    "CAST": _cast,
    **{kind: _of(kind, _comparison) for kind in _COMPARISONS},
    **{kind: _of(kind, _logical) for kind in ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT")},
    "SELECT": _select,
    "SELECT_V2": _select_v2,
    **{f"{kind}_F32": _of(kind, _arithmetic_f32) for kind in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")},
    **{f"{k}_F32": _of(k, _curve_f32) for k in ("LOGISTIC", "TANH", "SOFTMAX", "LOG_SOFTMAX", "RELU", "RELU6")},
    "FULLY_CONNECTED_F32": _fully_connected_f32,
}
