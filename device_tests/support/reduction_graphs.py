# SPDX-License-Identifier: Apache-2.0
"""Random graphs of reductions over any axes but the batch, and of what else looks at all channels of a pixel."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import GraphCase, case

__all__ = ["REDUCTIONS"]

_KINDS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")


def _reduction(choices: Choices, kind: str) -> GraphCase:
    """Axes in any order, negative or twice; scales that may differ where the kind computes."""
    rank = choices.pick([4, 4, 3, 2])
    shape = (choices.batch(), *(choices.integer(1, 9) for _ in range(rank - 2)), choices.channels())
    axes = [axis for axis in range(1, rank) if choices.chance(50)] or [rank - 1]
    if rank == 4 and choices.chance(40):
        axes = [1, 2]
    keep = choices.chance(50)
    scale, point = choices.real(1e-3, 0.5), choices.zero_point()
    out_scale, out_point = scale, point
    if kind in ("MEAN", "SUM") and choices.chance(60):
        spread = math.sqrt(math.prod(shape[axis] for axis in axes)) ** (1 if kind == "SUM" else -1)
        out_scale = float(np.float32(scale * spread * choices.real(0.3, 1.5)))
        out_point = choices.matching_zero_point(point)
    given = [axis - rank if choices.chance(30) else axis for axis in axes][:: choices.pick([1, -1])]
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    axis = builder.tensor("axis", (len(given),), "int32", data=np.array(given, np.int32))
    out_shape = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
    y = builder.tensor("y", out_shape, "int8", scales=[out_scale], zero_points=[out_point])
    builder.operator(kind, [x, axis], [y], version=2, options="ReducerOptions", keepDims=keep)
    text = f"{kind} {shape} axes{given} keep={keep} {scale:.4g}/{point} -> {out_scale:.4g}/{out_point}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y)


def _position(choices: Choices, kind: str) -> GraphCase:
    """Along one axis; contents with many equals."""
    rank = choices.pick([4, 4, 3, 2])
    shape = (choices.batch(), *(choices.integer(1, 9) for _ in range(rank - 2)), choices.channels())
    axis = choices.integer(1, rank - 1)
    scale, point = choices.real(1e-3, 0.5), choices.zero_point()
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    given = axis - rank if choices.chance(30) else axis
    along = builder.tensor("axis", (1,), "int32", data=np.array([given], np.int32))
    y = builder.tensor("y", (*shape[:axis], *shape[axis + 1 :]), "int32")
    table = {"ARG_MAX": "ArgMaxOptions", "ARG_MIN": "ArgMinOptions"}[kind]
    builder.operator(kind, [x, along], [y], version=2, options=table, outputType=schema.TensorType.INT32)
    return case(choices, f"{kind} {shape} along {given}", builder, [(x, shape, "int8", point)], y)


def _l2_normalization(choices: Choices) -> GraphCase:
    """Vectors of any length, of zeros too."""
    rank = choices.pick([4, 3, 2])
    shape = (choices.batch(), *(choices.integer(1, 9) for _ in range(rank - 2)), choices.channels(128))
    scale, point = choices.real(1e-3, 0.5), choices.zero_point()
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[scale], zero_points=[point])
    y = builder.tensor("y", shape, "int8", scales=[1 / 128], zero_points=[0])
    builder.operator("L2_NORMALIZATION", [x], [y], version=2, options="L2NormOptions")
    text = f"L2_NORMALIZATION {shape} zero point {point}"
    found = case(choices, text, builder, [(x, shape, "int8", point)], y)
    flat = (np.where(choices.bytes_of(shape) > 100, np.int8(point), found.vectors[0][0]),)
    near = (np.clip(choices.near(shape, point, 0.4), -128, 127).astype(np.int8),)
    return found.with_vectors((*found.vectors, flat, near))


def _generator(kind: str) -> Callable[[Choices], GraphCase]:
    return lambda choices: _reduction(choices, kind)


REDUCTIONS: dict[str, Callable[[Choices], GraphCase]] = {
    **{kind: _generator(kind) for kind in _KINDS},
    "ARG_MAX": lambda choices: _position(choices, "ARG_MAX"),
    "ARG_MIN": lambda choices: _position(choices, "ARG_MIN"),
    "L2_NORMALIZATION": _l2_normalization,
}
