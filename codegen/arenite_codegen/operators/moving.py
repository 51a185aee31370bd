# SPDX-License-Identifier: Apache-2.0
"""Operators that pick their output's elements out of their input, whatever the rule: one kernel serves all.

A lowering says, by applying the operator to the numbers 0, 1, 2, ... in the input's shape, which element each output
element is. Here that map is divided into rows and compressed: an output row usually comes out of one input row, the
pattern repeats from row to row, and in it bytes lie side by side in runs whose starts are evenly spaced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import UnsupportedOperatorError
from arenite.graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import MOVED_DTYPES, Context, refuse, same_quantisation

__all__ = ["FILL", "indices_of", "move"]

Indices = npt.NDArray[np.int64]

FILL = -1
"""Index of an element that is not in the input."""
_MAX_TABLE_BYTES = 1 << 20
_MAX_PHASES = 64
# Of a tensor whose elements are moved: the map takes 8 bytes for each, and some more while it is compressed.
_MAX_ELEMENTS = 1 << 24
# An offset below 0 is a run of fill; within the run offsets still rise by one.
_FILL_OFFSET = -(1 << 30)


def indices_of(context: Context, tensor: Tensor) -> Indices:
    """0, 1, 2, ... in a tensor's shape.

    Raises:
        UnsupportedOperatorError: The tensor is so large that the map would not fit into memory.
    """
    if tensor.elements > _MAX_ELEMENTS:
        raise refuse(context, f"{tensor} has more than {_MAX_ELEMENTS:,} elements", "Use a smaller resolution.")
    return np.arange(tensor.elements, dtype=np.int64).reshape(tensor.shape)


def move(context: Context, picks: Indices, source: Tensor | None = None, output: Tensor | None = None) -> Layer:
    """A layer that picks elements.

    Args:
        picks: For each output element its index in the source, or FILL for the zero point.
        source, output: Unless they are the first input and the only output.

    Raises:
        UnsupportedOperatorError: Items of a batch would mix, or the map does not compress.
    """
    source = context.input(0) if source is None else source
    output = context.output if output is None else output
    quant = same_quantisation(context, source, output, MOVED_DTYPES)
    if picks.size != output.elements:
        raise refuse(context, f"{output} is not made of {picks.size} elements")
    item = _one_item(context, picks, source)
    rows = _row_count(context, output, item.size)
    pattern = _patterns(context, item.reshape(rows, -1), source)
    if source.element_bytes > 1 and quant.zero_point and (item == FILL).any():
        raise refuse(context, "a zero point other than 0 of a type wider than a byte has no kernel")
    width = source.element_bytes
    loops = _loops(context, pattern.offsets, width)
    parameters = {**loops, "row_step": pattern.row_step * width, "fill": quant.zero_point}
    read = replace(
        pattern.read, value=context.build.value(source), row_bytes=pattern.read.row_bytes * source.element_bytes
    )
    return context.build.layer(
        context, kernel="gather", reads=(read,), out_rows=rows, output=output, parameters=parameters
    )


def _one_item(context: Context, picks: Indices, source: Tensor) -> Indices:
    """The map of the first batch item, which must be that of all."""
    if picks.size % context.batch or source.elements % context.batch:
        raise refuse(context, f"it does not divide into the items of the batch of {context.batch}")
    items = picks.reshape(context.batch, -1)
    first = np.arange(context.batch)[:, None] * (source.elements // context.batch)
    if not np.array_equal(np.where(items == FILL, FILL, items - first), np.broadcast_to(items[0], items.shape)):
        raise refuse(context, f"it moves elements between the items of the batch of {context.batch}")
    item: Indices = items[0]
    return item


def _row_count(context: Context, output: Tensor, size: int) -> int:
    try:
        rows = context.rows(output).height
    except UnsupportedOperatorError:
        # A batch that only this operator makes: its items are rows of one picture below the other.
        rows = int(np.prod(output.shape[:-2], dtype=np.int64))
    return rows if rows and size % rows == 0 else 1


@dataclass(frozen=True)
class _Pattern:
    """Where each output row's elements lie.

    Attributes:
        read: How rows of the source are reached, with elements for bytes; its value is still open.
        offsets: [phases, elements]: row y has the offsets of phase y modulo phases, from its pointer.
        row_step: What is added to the offsets from row to row.
    """

    read: Read
    offsets: Indices
    row_step: int = 0


def _patterns(context: Context, picks: Indices, source: Tensor) -> _Pattern:
    size = source.elements // context.batch
    height = _row_count(context, source, size)
    width = size // height
    outside = picks == FILL
    of_row = np.where(outside, 0, picks // width).max(axis=1)
    if (outside | (picks // width == of_row[:, None])).all():
        inside = np.where(outside, _FILL_OFFSET + np.arange(picks.shape[1]), picks - of_row[:, None] * width)
        return _Pattern(_row_read(height, width, of_row), _phases(inside))
    read = Read(0, 1, size, stride=0, whole=True)
    steps = np.diff(picks[:, 0])
    if not outside.any() and (picks - picks[:, :1] == picks[0] - picks[0, 0]).all() and len(set(steps)) <= 1:
        return _Pattern(read, picks[:1], int(steps[0]) if steps.size else 0)
    return _Pattern(read, _phases(np.where(outside, _FILL_OFFSET + np.arange(picks.shape[1]), picks)))


def _row_read(height: int, width: int, of_row: Indices) -> Read:
    steps = np.diff(of_row)
    if len(set(steps)) <= 1 and (not steps.size or steps[0] > 0):
        return Read(0, height, width, stride=int(steps[0]) if steps.size else 1, pad_top=-int(of_row[0]))
    return Read(0, height, width, starts=tuple(int(row) for row in of_row))


def _phases(offsets: Indices) -> Indices:
    """The fewest rows that repeat."""
    for count in range(1, min(_MAX_PHASES, len(offsets)) + 1):
        if np.array_equal(offsets, offsets[np.arange(len(offsets)) % count]):
            return offsets[:count]
    return offsets


def _loops(context: Context, offsets: Indices, element_bytes: int) -> dict[str, Any]:
    """Runs of bytes side by side, and how their starts are found: by two steps, or in a table."""
    width = offsets.shape[1]
    breaks = np.flatnonzero((np.diff(offsets, axis=1) != 1).any(axis=0)) + 1
    run = int(np.gcd.reduce(np.append(breaks, width)))
    starts = offsets[:, ::run]
    inner = _even(starts)
    outer = starts[:, ::inner]
    loops = {
        "phases": len(outer),
        "outer": outer.shape[1],
        "inner": inner,
        "inner_step": element_bytes * int(starts[0, 1] - starts[0, 0]) if inner > 1 else 0,
        "run": element_bytes * run,
    }
    if len(outer) == 1 and outer.min() >= 0 and len(set(np.diff(outer[0]))) <= 1:
        step = int(outer[0, 1] - outer[0, 0]) if outer.shape[1] > 1 else 0
        first = element_bytes * int(outer[0, 0])
        return {"runs": 0, "first": first, "outer_step": element_bytes * step, **loops}
    if 4 * outer.size > _MAX_TABLE_BYTES:
        raise refuse(context, f"its table of {4 * outer.size:,} bytes is above {_MAX_TABLE_BYTES:,}")
    runs = (outer * np.where(outer < 0, 1, element_bytes)).astype(np.int32)
    return {"runs": runs, "first": 0, "outer_step": 0, **loops}


def _even(starts: Indices) -> int:
    """How many starts in a row are evenly spaced, everywhere alike; 1 where there are none."""
    count = starts.shape[1]
    if count < 2 or starts.min() < 0:
        return 1
    steps = np.diff(starts, axis=1)
    breaks = np.flatnonzero((steps != steps[0, 0]).any(axis=0)) + 1
    inner = int(np.gcd.reduce(np.append(breaks, count)))
    return inner if (np.diff(starts.reshape(len(starts), -1, inner), axis=2) == steps[0, 0]).all() else 1
