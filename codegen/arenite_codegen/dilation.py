# SPDX-License-Identifier: Apache-2.0
"""SPACE_TO_BATCH_ND, a convolution and BATCH_TO_SPACE_ND are one dilated convolution: as converters spell it.

Every n-th row and pixel is a picture of its own, over which the convolution runs undilated. Its window then spans what
a window dilated by n spans on the picture. What is padded before the convolution and not cropped behind it is padded;
nothing else changes, since outside lies the zero point on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from arenite.graph import Graph, Operator, Tensor
from arenite_codegen.operators.base import PADDING_SAME, PADDING_VALID, Array

__all__ = ["fold_dilation"]

_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_MAX_PAD = 1 << 16  # rows or pixels, more than any dilated window reaches
_NOTE = "folded into the dilation of operator"

Pairs = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class _Triple:
    """The three operators, and of rows and pixels the dilation and what is padded before and behind."""

    divide: Operator
    conv: Operator
    join: Operator
    blocks: tuple[int, int]
    pads: Pairs


def fold_dilation(graph: Graph) -> tuple[Graph, Mapping[int, str]]:
    """The graph with dilated convolutions for such triples, and why operators are gone, by their index."""
    tensors, operators = list(graph.tensors), {op.index: op for op in graph.operators}
    gone: dict[int, str] = {}
    added: dict[int, Operator] = {}
    for conv in graph.operators:
        triple = _triple_around(graph, conv)
        if triple is None:
            continue
        source = triple.divide.inputs[0]
        if any(amount for pair in triple.pads for amount in pair):
            number = len(graph.operators) + len(graph.inputs) + len(graph.outputs) + len(added)
            added[conv.index], source = _pad(tensors, source, triple.pads, number)
        operators[conv.index] = _dilated(triple, source)
        gone |= dict.fromkeys((triple.divide.index, triple.join.index), f"{_NOTE} {conv.index}")
    order: list[Operator] = []
    for operator in graph.operators:
        if operator.index not in gone:
            order += [added[operator.index]] if operator.index in added else []
            order.append(operators[operator.index])
    return replace(graph, tensors=tuple(tensors), operators=tuple(order)), gone


def _triple_around(graph: Graph, conv: Operator) -> _Triple | None:
    if conv.kind not in _CONVOLUTIONS or not conv.inputs or len(conv.outputs) != 1:
        return None
    attributes = conv.attributes
    plain = {attributes[name] for name in ("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")} == {1}
    divide = next((op for op in graph.operators if conv.inputs[0] in op.outputs), None)
    join = next((op for op in graph.operators if conv.outputs[0] in op.inputs), None)
    if divide is None or join is None or not plain:
        return None
    if (divide.kind, join.kind) != ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"):
        return None
    if not (_is_private(graph, divide.outputs[0]) and _is_private(graph, conv.outputs[0])):
        return None
    if not _same_grid(graph, divide.inputs[0], divide.outputs[0]):
        return None
    if not _same_grid(graph, join.inputs[0], join.outputs[0]):
        return None
    return _measured(graph, divide, conv, join)


def _measured(graph: Graph, divide: Operator, conv: Operator, join: Operator) -> _Triple | None:
    numbers = [_numbers(graph, op, position, (2,) * position) for op in (divide, join) for position in (1, 2)]
    shapes = [graph.tensors[i].shape for i in (divide.inputs[0], conv.inputs[1], conv.outputs[0], join.outputs[0])]
    if any(found is None for found in numbers) or any(len(shape) != 4 for shape in shapes):
        return None
    blocks, pads, blocks_again, crops = (np.asarray(found) for found in numbers)
    if not np.array_equal(blocks, blocks_again) or blocks.min() < 1:
        return None
    inside = np.array(shapes[1][1:3]) - 1 if conv.attributes["padding"] == PADDING_SAME else np.zeros(2, np.int64)
    own = np.stack([inside // 2, inside - inside // 2], axis=1) * blocks[:, None] + pads - crops
    if own.min() < 0 or own.max() > _MAX_PAD:
        return None
    rows, pixels = ((int(before), int(behind)) for before, behind in own)
    return _Triple(divide, conv, join, (int(blocks[0]), int(blocks[1])), (rows, pixels))


def _numbers(graph: Graph, operator: Operator, position: int, shape: tuple[int, ...]) -> Array | None:
    """A constant input of integers, if it is one of that shape."""
    data = graph.tensors[operator.inputs[position]].data if len(operator.inputs) > position else None
    known = data is not None and data.shape == shape and np.issubdtype(data.dtype, np.signedinteger)
    return data.astype(np.int64) if known and data is not None else None


def _is_private(graph: Graph, index: int) -> bool:
    """Whether one operator alone reads a tensor."""
    return index not in graph.outputs and sum(op.inputs.count(index) for op in graph.operators) == 1


def _same_grid(graph: Graph, first: int, second: int) -> bool:
    a, b = graph.tensors[first], graph.tensors[second]
    return a.dtype == b.dtype and a.quantisation == b.quantisation


def _pad(tensors: list[Tensor], source: int, pads: Pairs, number: int) -> tuple[Operator, int]:
    """A PAD in front of the convolution, which its lowering takes into the window."""
    amounts = np.array([(0, 0), *pads, (0, 0)], np.int32)
    image = tensors[source]
    shape = tuple(extent + int(sum(pair)) for extent, pair in zip(image.shape, amounts, strict=True))
    padded = replace(image, index=len(tensors), shape=shape, shape_signature=(), data=None)
    tensors.append(padded)
    constant = Tensor(len(tensors), f"{image.name} paddings", amounts.shape, "int32", None, amounts)
    tensors.append(constant)
    return Operator(number, "PAD", 1, (source, constant.index), (padded.index,), {}), padded.index


def _dilated(triple: _Triple, source: int) -> Operator:
    conv = triple.conv
    dilation = {"dilation_h_factor": triple.blocks[0], "dilation_w_factor": triple.blocks[1]}
    return replace(
        conv,
        inputs=(source, *conv.inputs[1:]),
        outputs=triple.join.outputs,
        attributes={**conv.attributes, **dilation, "padding": PADDING_VALID},
    )
