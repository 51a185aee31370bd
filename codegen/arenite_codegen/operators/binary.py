# SPDX-License-Identifier: Apache-2.0
"""What operators of two inputs share: either side may be broadcast over rows, pixels or channels, or be a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arenite.graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Context, RowShape, refuse

__all__ = ["BROADCASTING", "binary_layer", "operand_steps"]

BROADCASTING = frozenset(
    (
        *("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "PRELU", "SQUARED_DIFFERENCE", "SUB"),
        *("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"),
        *("LOGICAL_AND", "LOGICAL_OR", "SELECT", "SELECT_V2"),
    )
)
"""Operators whose inputs may lack the batch."""

MAX_RANK = 4


def binary_layer(context: Context, kernel: str, parameters: Mapping[str, Any]) -> Layer:
    """A layer of a kernel whose struct begins with the steps of `arenite_binary.h`.

    Args:
        parameters: What the kernel needs beside its loops.

    Raises:
        UnsupportedOperatorError: A side cannot be broadcast, or its batch is in the way.
    """
    left, right = context.input(0), context.input(1)
    out = context.rows(context.output)
    width, channels, shapes, steps = operand_steps(context, (left, right))
    reads = tuple(
        Read(
            value=context.build.value(tensor),
            rows=shape.height,
            row_bytes=shape.row_bytes,
            stride=1 if shape.height == out.height else 0,
        )
        for tensor, shape in zip((left, right), shapes, strict=True)
    )
    return context.build.layer(
        context,
        kernel=kernel,
        reads=reads,
        in_place=tuple(i for i, shape in enumerate(shapes) if shape == out),
        parameters={
            "width": width,
            "channels": channels,
            "a_pixel_step": steps[0][0],
            "a_channel_step": steps[0][1],
            "b_pixel_step": steps[1][0],
            "b_channel_step": steps[1][1],
            **parameters,
        },
    )


def operand_steps(
    context: Context, operands: Sequence[Tensor]
) -> tuple[int, int, tuple[RowShape, ...], tuple[tuple[int, int], ...]]:
    """Loop counts over pixels and channels, the operands as rows, and their steps over pixels and channels."""
    out = context.rows(context.output)
    shapes = tuple(_operand_shape(context, tensor, out) for tensor in operands)
    return (*_loops(shapes, out)[:2], shapes, _loops(shapes, out)[2])


def _operand_shape(context: Context, tensor: Tensor, out: RowShape) -> RowShape:
    """Rows of an operand; dimensions that it lacks on the left count as 1."""
    shape = tensor.shape
    rank = len(context.output.shape)
    shape = (1,) * (rank - len(shape)) + shape
    if context.batch > 1 and shape[0] not in (1, context.batch):
        raise refuse(context, f"{tensor} does not keep the batch of {context.batch}")
    if context.batch > 1 and shape[0] == 1 and not tensor.is_constant and tensor.index not in context.graph.inputs:
        raise refuse(context, f"{tensor} is broadcast over the batch of {context.batch}")
    if len(tensor.shape) < rank and context.build.items(tensor) > 1:
        raise refuse(context, f"{tensor} has fewer dimensions than {context.output} and its first is no batch")
    if rank > MAX_RANK:
        raise refuse(context, f"it has {rank} dimensions, at most {MAX_RANK} have a kernel")
    rows = RowShape(*_strip(shape, context.output.shape, context.batch), tensor.element_bytes)
    for have, want in zip((rows.height, rows.width, rows.channels), (out.height, out.width, out.channels), strict=True):
        if have not in (1, want):
            raise refuse(context, f"{tensor} cannot be broadcast to {context.output}")
    return rows


def _strip(shape: tuple[int, ...], like: tuple[int, ...], batch: int) -> tuple[int, int, int]:
    """Divide a broadcast operand exactly as `row_shape` divides the output that it is broadcast to."""
    if batch > 1 or (len(like) > 1 and like[0] == 1):
        shape = shape[1:]
    if len(shape) == 2:
        return shape[0], 1, shape[1]
    padded = (1, 1, 1, *shape)[-3:]
    return padded[0], padded[1], padded[2]


def _loops(shapes: tuple[RowShape, ...], out: RowShape) -> tuple[int, int, tuple[tuple[int, int], ...]]:
    """Loop counts over pixels and channels, and each operand's steps; one flat loop where nothing is broadcast."""
    if all((s.width, s.channels) == (out.width, out.channels) for s in shapes):
        return 1, out.row_elements, ((0, 1),) * len(shapes)
    steps = tuple((0 if s.width == 1 else s.channels, 0 if s.channels == 1 else 1) for s in shapes)
    return out.width, out.channels, steps
