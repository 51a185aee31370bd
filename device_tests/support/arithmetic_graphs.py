# SPDX-License-Identifier: Apache-2.0
"""Random graphs of two operands with every broadcast, either side a constant or an input."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import ACTIVATIONS, GraphCase, case

__all__ = ["ARITHMETIC"]

_OPTIONS = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
_OF_BYTES = ("MAXIMUM", "MINIMUM")
_KINDS = ("ADD", "SUB", "MUL", "DIV", *_OF_BYTES, "SQUARED_DIFFERENCE", "PRELU")
_VERSIONS = {"ADD": 2, "SUB": 2, "MUL": 2, "DIV": 2}


def _binary(choices: Choices, kind: str) -> GraphCase:
    first, second = _shapes(choices, slope=kind == "PRELU")
    scales, points, out_scale, out_point = _grids(choices, kind)
    constant = choices.pick([1, 1, None]) if kind == "PRELU" else choices.pick([None, None, 0, 1])
    builder = ModelBuilder()
    shapes = [first, second]
    contents = [_contents(choices, kind, side, shapes[side], points[side]) for side in (0, 1)]
    tensors = [
        builder.tensor(
            "ab"[side],
            shapes[side],
            "int8",
            scales=[scales[side]],
            zero_points=[points[side]],
            data=contents[side] if side == constant else None,
        )
        for side in (0, 1)
    ]
    out_shape = np.broadcast_shapes(first, second)
    y = builder.tensor("y", out_shape, "int8", scales=[out_scale], zero_points=[out_point])
    options: dict[str, Any] = {}
    activation = choices.pick(["none", "none", "relu", "relu6", "relu_n1_to_1"])
    if kind in _OPTIONS:
        options = {"options": _OPTIONS[kind], "fusedActivationFunction": ACTIVATIONS[activation]}
    builder.operator(kind, tensors, [y], version=_VERSIONS.get(kind, 1), **options)
    manner = f"constant={constant} {options and activation}"
    text = f"{kind} {first} {second} {manner} {scales}/{points}->{out_scale:.4g}/{out_point}"
    given = [side for side in (0, 1) if side != constant]
    found = case(choices, text, builder, [(tensors[s], shapes[s], "int8", points[s]) for s in given], y)
    if kind != "DIV" or 1 not in given:
        return found
    return found.with_vectors(tuple((*vector[:-1], _without(vector[-1], points[1])) for vector in found.vectors))


def _contents(choices: Choices, kind: str, side: int, shape: Sequence[int], point: int) -> Any:
    found = choices.bytes_of(shape)
    return _without(found, point) if (kind, side) == ("DIV", 1) else found


def _without(values: Any, point: int) -> Any:
    """The same bytes, none of them zero: the reference leaves a division by it undefined."""
    beside = np.int8(point - 1 if point > 0 else point + 1)
    return np.where(values == point, beside, values).astype(np.int8)


def _grids(choices: Choices, kind: str) -> tuple[list[float], list[int], float, int]:
    scales = [choices.real(0.004, 0.1), choices.real(0.004, 0.1)]
    points = [choices.zero_point(), choices.zero_point()]
    if kind in _OF_BYTES:
        return scales[:1] * 2, points[:1] * 2, scales[0], points[0]
    sum_scale = math.hypot(*scales)
    typical = {
        "MUL": scales[0] * scales[1] * 100,
        # The reference shifts by more than 31 bits, which is undefined, unless this is above 64.
        "DIV": scales[0] / scales[1] / 100,
        "SQUARED_DIFFERENCE": sum_scale**2 * 100,
        "PRELU": scales[0],
    }.get(kind, sum_scale)
    out_scale = float(np.float32(typical * choices.real(0.4, 1.5)))
    wanted = max(-128, min(127, sum(points)))
    return scales, points, out_scale, choices.matching_zero_point(wanted)


def _shapes(choices: Choices, slope: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast; a slope is never the larger."""
    n, h, w, c = choices.batch(), choices.integer(1, 9), choices.integer(1, 9), choices.channels()
    full = (n, h, w, c)
    other: Sequence[tuple[int, ...]] = [
        full,
        full,
        (1, 1, 1, c),
        (n, 1, 1, c),
        (c,),
        (1,),
        (),
        (n, 1, w, c),
        (n, h, 1, c),
        (n, h, w, 1),
        (n, h, 1, 1),
        (n, 1, w, 1),
        (1, h, w, c),
        *([(h, w, c), (w, c), (h, 1, 1)] if n == 1 else []),
    ]
    pair: tuple[tuple[int, ...], tuple[int, ...]] = (full, choices.pick(other))
    if slope:
        return (full, choices.pick([(1, 1, c), (1, 1, 1), (c,), *([(h, w, c), (1, w, c)] if n == 1 else [])]))
    if choices.chance(15):
        pair = choices.pick([((n, 1, w, c), (n, h, 1, c)), ((n, h, w, 1), (n, 1, 1, c)), ((n, h, 1, c), (n, 1, w, 1))])
    if choices.chance(15):
        pair = ((n, c), choices.pick([(n, c), (1, c), (c,)]))
    return pair[::-1] if choices.chance(40) else pair


def _generator(kind: str) -> Callable[[Choices], GraphCase]:
    return lambda choices: _binary(choices, kind)


ARITHMETIC: dict[str, Callable[[Choices], GraphCase]] = {kind: _generator(kind) for kind in _KINDS}
