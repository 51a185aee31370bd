# SPDX-License-Identifier: Apache-2.0
"""Random graphs of what int16 activations need beside convolutions and sums: functions, reductions, softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import GraphCase, case

__all__ = ["INT16"]


def _function(choices: Choices, kind: str) -> GraphCase:
    """One in, one out; scales that may differ where the kind requantises."""
    shape, scale = _shape(choices), choices.real(1e-5, 1e-3)
    out_scale = scale if kind == "RELU6" or choices.chance(30) else float(np.float32(scale * choices.real(0.3, 3.0)))
    alpha = choices.pick([0.01, 0.1, 0.3, 1.5, -0.25, 0.0])
    options: dict[str, Any] = {"options": "LeakyReluOptions", "alpha": alpha} if kind == "LEAKY_RELU" else {}
    text = f"{kind}_S16 {shape} {scale:.4g} -> {out_scale:.4g} {options}"
    return _graph(choices, kind, text, shape, (scale, out_scale), options)


def _softmax(choices: Choices, kind: str) -> GraphCase:
    """Few and many channels, from flat to a single winner."""
    shape, scale, beta = _shape(choices), choices.real(1e-6, 1e-2), choices.pick([1.0, 1.0, 0.5, 2.0])
    text = f"{kind}_S16 {shape} {scale:.4g} beta {beta}"
    return _graph(choices, kind, text, shape, (scale, 2.0**-15), {"options": "SoftmaxOptions", "beta": beta})


def _reduction(choices: Choices, kind: str) -> GraphCase:
    """Any axes but the batch."""
    rank = choices.pick([4, 4, 3, 2])
    shape = (choices.batch(), *(choices.integer(1, 9) for _ in range(rank - 2)), choices.channels())
    axes = [axis for axis in range(1, rank) if choices.chance(50)] or [rank - 1]
    keep, scale = choices.chance(50), choices.real(1e-5, 1e-3)
    spread = math.sqrt(math.prod(shape[axis] for axis in axes)) ** (1 if kind == "SUM" else -1)
    out_scale = scale if choices.chance(40) else float(np.float32(scale * spread * choices.real(0.3, 1.5)))
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int16", scales=[scale], zero_points=[0])
    axis = builder.tensor("axis", (len(axes),), "int32", data=np.array(axes, np.int32))
    out_shape = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
    y = builder.tensor("y", out_shape, "int16", scales=[out_scale], zero_points=[0])
    builder.operator(kind, [x, axis], [y], version=2, options="ReducerOptions", keepDims=keep)
    text = f"{kind}_S16 {shape} axes{axes} keep={keep} {scale:.4g} -> {out_scale:.4g}"
    return case(choices, text, builder, [(x, shape, "int16", 0)], y)


def _graph(
    choices: Choices, kind: str, text: str, shape: tuple[int, ...], scales: tuple[float, float], options: dict[str, Any]
) -> GraphCase:
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int16", scales=[scales[0]], zero_points=[0])
    y = builder.tensor("y", shape, "int16", scales=[scales[1]], zero_points=[0])
    builder.operator(kind, [x], [y], version=2, **options)
    found = case(choices, text, builder, [(x, shape, "int16", 0)], y)
    near = (choices.near(shape, 0, 2000.0, "int16"),)
    return found.with_vectors((*found.vectors, near))


def _shape(choices: Choices) -> tuple[int, ...]:
    middle = [choices.integer(1, 9) for _ in range(choices.integer(0, 2))]
    return (choices.batch(), *middle, choices.channels())


def _of(kind: str, make: Callable[[Choices, str], GraphCase]) -> Callable[[Choices], GraphCase]:
    return lambda choices: make(choices, kind)


INT16: dict[str, Callable[[Choices], GraphCase]] = {
    **{f"{kind}_S16": _of(kind, _function) for kind in ("ABS", "LEAKY_RELU", "RELU", "RELU6")},
    **{f"{kind}_S16": _of(kind, _reduction) for kind in ("MEAN", "SUM")},
    "SOFTMAX_S16": _of("SOFTMAX", _softmax),
}
