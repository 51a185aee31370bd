# SPDX-License-Identifier: Apache-2.0
"""Random graphs of functions of one byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arenite.authority import ONLY_LITERT
from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import LITERT, TFLM, GraphCase, case

__all__ = ["CURVES"]

# Kinds whose output grid the operator fixes.
_FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
# Kinds that are only defined above the zero point, or on it.
_POSITIVE = {"LOG": 1, "RSQRT": 0, "SQRT": 0}
_KINDS = (
    "ABS", "ELU", "EXP", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG", "LOGISTIC", "NEG", "RELU_0_TO_1", "RELU_N1_TO_1",
    "RSQRT", "SQRT", "TANH",
)  # fmt: skip


def _curve(choices: Choices, kind: str) -> GraphCase:
    """Any scales and zero points that the kind allows."""
    middle = [choices.integer(1, 9) for _ in range(choices.integer(0, 2))]
    shape = (choices.batch(), *middle, choices.channels(128))
    scale, point = _input_grid(choices, kind)
    out_scale, out_point = _output_grid(choices, kind, scale, point)
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    y = builder.tensor("y", shape, "int8", scales=[out_scale], zero_points=[out_point])
    options = _options(choices, kind)
    builder.operator(kind, [x], [y], **options)
    text = f"{kind} {shape} {scale:.4g}/{point} -> {out_scale:.4g}/{out_point} {options}"
    authority = LITERT if kind in ONLY_LITERT else TFLM
    found = case(choices, text, builder, [(x, shape, "int8", point)], y, authority=authority)
    if kind not in _POSITIVE:
        return found
    low = min(127, point + _POSITIVE[kind])
    return found.with_vectors(tuple(tuple(np.maximum(a, np.int8(low)) for a in vector) for vector in found.vectors))


def _input_grid(choices: Choices, kind: str) -> tuple[float, int]:
    point = 0 if kind == "NEG" else choices.zero_point()
    if kind in _POSITIVE and point == 127:
        point = -128
    return choices.real(1e-3, 0.5), point


def _output_grid(choices: Choices, kind: str, scale: float, point: int) -> tuple[float, int]:
    if kind in _FIXED:
        return _FIXED[kind]
    if kind == "NEG" or choices.chance(25):
        return scale, point
    if kind in ("EXP", "LOG", "RSQRT", "SQRT"):
        return choices.real(5e-3, 0.5), choices.zero_point()
    return float(np.float32(scale * choices.real(0.3, 3.0))), choices.matching_zero_point(point)


def _options(choices: Choices, kind: str) -> dict[str, Any]:
    if kind == "LEAKY_RELU":
        return {"options": "LeakyReluOptions", "alpha": choices.pick([0.01, 0.1, 0.3, 1.5, -0.25, 0.0])}
    if kind == "GELU":
        return {"options": "GeluOptions", "approximate": choices.chance(50)}
    return {}


def _generator(kind: str) -> Callable[[Choices], GraphCase]:
    return lambda choices: _curve(choices, kind)


CURVES: dict[str, Callable[[Choices], GraphCase]] = {kind: _generator(kind) for kind in _KINDS}
