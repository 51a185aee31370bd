# SPDX-License-Identifier: Apache-2.0
"""Random graphs of reductions over any axes but the batch."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

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


def _generator(kind: str) -> Callable[[Choices], GraphCase]:
    return lambda choices: _reduction(choices, kind)


REDUCTIONS: dict[str, Callable[[Choices], GraphCase]] = {kind: _generator(kind) for kind in _KINDS}
