# SPDX-License-Identifier: Apache-2.0
"""BATCH_MATMUL: both sides may be computed, so both lie in memory as a whole."""

from __future__ import annotations

import math

import numpy as np

from arenite.graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Context, multiplier, quantisation, refuse
from arenite_codegen.operators.mac_any import MAC_DTYPES

__all__ = ["lower"]

_BATCH_INDICES = 3
# Products of differences from zero points, at most 255 x 255, fit int32.
_MAX_DEPTH = 32768
_MAX_WIDE_SHIFT = 7

Shape = tuple[int, ...]


def lower(context: Context) -> Layer:
    """Leading dimensions broadcast; either side may be transposed."""
    sides = (context.input(0), context.input(1))
    output = context.output
    quants = [quantisation(context, tensor, MAC_DTYPES) for tensor in (*sides, output)]
    if len({tensor.dtype for tensor in (*sides, output)}) != 1:
        raise refuse(context, f"{sides[0]}, {sides[1]} and {output} differ in type")
    if output.dtype == "int16" and any(quant.zero_point for quant in quants):
        raise refuse(context, "int16 with a zero point other than 0 has no kernel")
    rank = max(len(side.shape) for side in sides)
    a, b = (_item_shape(context, side, rank) for side in sides)
    a_steps, b_steps = _steps(a), _steps(b)
    adj_x, adj_y = (bool(context.operator.attributes[name]) for name in ("adj_x", "adj_y"))
    rows, depth = (a[-1], a[-2]) if adj_x else (a[-2], a[-1])
    inner, columns = (b[-1], b[-2]) if adj_y else (b[-2], b[-1])
    try:
        batches = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise refuse(context, f"{sides[0]} and {sides[1]} do not broadcast") from None
    if depth != inner or math.prod(batches) * rows * columns * context.batch != output.elements:
        raise refuse(context, f"{output} is not the product of {sides[0]} and {sides[1]}")
    if len(batches) > _BATCH_INDICES or depth > _MAX_DEPTH:
        raise refuse(context, f"matrices with {len(batches)} dimensions before them, or sums of {depth:,} products")
    # Source: GetQuantizedConvolutionMultipler: the product of the scales is a float32.
    real = float(quants[0].scale * quants[1].scale) / float(quants[2].scale)
    factor, shift = multiplier(context, real, "output")
    if output.dtype == "int16" and shift > _MAX_WIDE_SHIFT:
        raise refuse(context, f"a multiplier of 2^{_MAX_WIDE_SHIFT} or more is beyond the reference's range")
    extents = (1,) * (_BATCH_INDICES - len(batches)) + batches
    a_batch, b_batch = (_batch_steps(shape, steps) for shape, steps in ((a, a_steps), (b, b_steps)))
    return context.build.layer(
        context,
        kernel="batch_matmul_s16" if output.dtype == "int16" else "batch_matmul_s8",
        reads=tuple(_whole(context, side) for side in sides),
        out_rows=math.prod(batches) * rows,
        macs=math.prod(batches) * rows * columns * depth,
        parameters={
            "rows": rows,
            "columns": columns,
            "depth": depth,
            "batch_1": extents[1],
            "batch_2": extents[2],
            **{f"a_step_{i}": step for i, step in enumerate(a_batch)},
            "a_row_step": a_steps[-1] if adj_x else a_steps[-2],
            "a_depth_step": a_steps[-2] if adj_x else a_steps[-1],
            **{f"b_step_{i}": step for i, step in enumerate(b_batch)},
            "b_column_step": b_steps[-2] if adj_y else b_steps[-1],
            "b_depth_step": b_steps[-1] if adj_y else b_steps[-2],
            "multiplier": factor,
            "shift": shift,
            "a_zero_point": quants[0].zero_point,
            "b_zero_point": quants[1].zero_point,
            "out_zero_point": quants[2].zero_point,
        },
    )


def _item_shape(context: Context, tensor: Tensor, rank: int) -> Shape:
    """The shape of one batch item, at least two dimensions."""
    shape = tensor.shape
    if context.batch > 1 and (len(shape) < rank or shape[0] != context.batch):
        raise refuse(context, f"{tensor} does not have the batch of {context.batch}")
    if context.batch > 1:
        shape = shape[1:]
    if len(shape) < 2:
        raise refuse(context, f"{tensor} holds no matrices")
    return shape


def _steps(shape: Shape) -> Shape:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _batch_steps(shape: Shape, steps: Shape) -> Shape:
    own = tuple(step if extent > 1 else 0 for extent, step in zip(shape[:-2], steps, strict=False))
    return (0,) * (_BATCH_INDICES - len(own)) + own


def _whole(context: Context, tensor: Tensor) -> Read:
    items = context.batch if tensor.data is None else context.build.items(tensor)
    return Read(context.build.value(tensor), 1, tensor.bytes // items, stride=0, whole=True)
