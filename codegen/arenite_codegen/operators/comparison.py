# SPDX-License-Identifier: Apache-2.0
"""Comparisons, logical operators and SELECT: bytes of 0 or 1, and what they choose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from arenite.graph import Graph, Operator, Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import MOVED_DTYPES, Context, multiplier, quantisation, refuse, same_quantisation
from arenite_codegen.operators.binary import binary_layer, operand_steps
from arenite_codegen.operators.conversion import DTYPE_CODES

__all__ = ["COMPARISONS", "chooses_slices", "lower_and", "lower_comparison", "lower_not", "lower_or", "lower_select"]

_EQUAL, _LESS, _GREATER = range(3)
COMPARISONS = {
    "EQUAL": (_EQUAL, 0),
    "NOT_EQUAL": (_EQUAL, 1),
    "LESS": (_LESS, 0),
    "GREATER_EQUAL": (_LESS, 1),
    "GREATER": (_GREATER, 0),
    "LESS_EQUAL": (_GREATER, 1),
}
_AND, _OR, _NOT = range(3)


def lower_comparison(context: Context) -> Layer:
    """Integers, float32 and bool as they are; int8 by the real numbers that both sides stand for."""
    a, b = context.input(0), context.input(1)
    equality = context.operator.kind in ("EQUAL", "NOT_EQUAL")
    dtypes = ("int8", "int32", "float32", *(("bool",) if equality else ()))
    if a.dtype != b.dtype or a.dtype not in dtypes:
        raise refuse(context, f"it compares {a} with {b}; kernels take two of {' or '.join(dtypes)}")
    relation, negated = COMPARISONS[context.operator.kind]
    own: dict[str, Any] = {"type": DTYPE_CODES[a.dtype], "relation": relation, "negated": negated}
    for side, tensor in (("a", a), ("b", b)):
        factor, shift, zero_point = _scaling(context, tensor)
        own |= {f"{side}_multiplier": factor, f"{side}_shift": shift, f"{side}_zero_point": zero_point}
    _check_bool(context, context.output)
    return _apart(binary_layer(context, "compare", own))


def _scaling(context: Context, tensor: Tensor) -> tuple[int, int, int]:
    if tensor.dtype != "int8":
        return 0, 0, 0
    quant = quantisation(context, tensor)
    factor, shift = multiplier(context, float(quant.scale), "comparison's")
    if shift > 0:
        raise refuse(context, f"{tensor} has a scale of 1 or more, beyond the reference's range")
    return factor, shift, quant.zero_point


def lower_and(context: Context) -> Layer:
    """Both."""
    return _logical(context, _AND)


def lower_or(context: Context) -> Layer:
    """Either."""
    return _logical(context, _OR)


def lower_not(context: Context) -> Layer:
    """The only input is both sides."""
    doubled = replace(context.operator, inputs=context.operator.inputs[:1] * 2)
    return _logical(replace(context, operator=doubled), _NOT)


def _logical(context: Context, operation: int) -> Layer:
    for tensor in (context.input(0), context.input(1), context.output):
        _check_bool(context, tensor)
    return _apart(binary_layer(context, "logical", {"operation": operation}))


def _apart(layer: Layer) -> Layer:
    """An output that may not lie over an input, whose elements can be wider."""
    return replace(layer, in_place=())


def _check_bool(context: Context, tensor: Tensor) -> None:
    if tensor.dtype != "bool":
        raise refuse(context, f"{tensor} is not bool")


def chooses_slices(graph: Graph, operator: Operator) -> bool:
    """Whether bools of one dimension choose slices along the first axis: SELECT_V2 takes them along the last."""
    return operator.kind == "SELECT" and any(len(graph.tensors[i].shape) == 1 for i in operator.inputs[:1])


def _condition(context: Context) -> Tensor:
    """The bools, with as many dimensions as what they choose where they choose slices."""
    which = context.input(0)
    if not chooses_slices(context.graph, context.operator):
        return which
    return replace(which, shape=(*which.shape, *(1,) * (len(context.output.shape) - 1)))


def lower_select(context: Context) -> Layer:
    """Element by element from one of two tensors that share a type and a grid."""
    sides = (_condition(context), context.input(1), context.input(2))
    output = context.output
    _check_bool(context, sides[0])
    for side in sides[1:]:
        same_quantisation(context, side, output, MOVED_DTYPES)
    width, channels, shapes, steps = operand_steps(context, sides)
    out = context.rows(output)
    names = ("which", "a", "b")
    own = {f"{n}_pixel_step": s[0] for n, s in zip(names, steps, strict=True)}
    own |= {f"{n}_channel_step": s[1] for n, s in zip(names, steps, strict=True)}
    reads = tuple(
        Read(context.build.value(t), s.height, s.row_bytes, stride=1 if s.height == out.height else 0)
        for t, s in zip(sides, shapes, strict=True)
    )
    parameters = {"width": width, "channels": channels, "element_bytes": output.element_bytes, **own}
    return context.build.layer(context, kernel="select", reads=reads, parameters=parameters)
