# SPDX-License-Identifier: Apache-2.0
"""ADD on the reference's shared grid: both sides times 2^20, each brought to twice the larger scale, one rounding."""

from __future__ import annotations

from arenite.tflite_graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Context, RowShape, activation_range, multiplier, quantisation, refuse

__all__ = ["lower"]

LEFT_SHIFT = 20


def lower(context: Context) -> Layer:
    """Either side may be broadcast over rows, pixels or channels, or be a constant."""
    left, right = context.input(0), context.input(1)
    out = context.rows(context.output)
    shapes = (_operand_shape(context, left, out), _operand_shape(context, right, out))
    quants = (quantisation(context, left), quantisation(context, right))
    quant_out = quantisation(context, context.output)
    twice_max = 2.0 * float(max(quants[0].scale, quants[1].scale))
    scales = [multiplier(context, float(q.scale) / twice_max, "input") for q in quants]
    out_real = twice_max / ((1 << LEFT_SHIFT) * float(quant_out.scale))
    if out_real >= 1.0:
        raise refuse(context, f"its output scale is below 2^-{LEFT_SHIFT} of its inputs', the reference's limit")
    out_multiplier, out_shift = multiplier(context, out_real, "output")
    act_min, act_max = activation_range(context, context.output)
    width, channels, steps = _loops(shapes, out)
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
        kernel="add_s8",
        reads=reads,
        in_place=tuple(i for i, shape in enumerate(shapes) if shape == out),
        parameters={
            "width": width,
            "channels": channels,
            "a_pixel_step": steps[0][0],
            "a_channel_step": steps[0][1],
            "b_pixel_step": steps[1][0],
            "b_channel_step": steps[1][1],
            "a_zero_point": quants[0].zero_point,
            "b_zero_point": quants[1].zero_point,
            "a_multiplier": scales[0][0],
            "b_multiplier": scales[1][0],
            "a_right_shift": -scales[0][1],
            "b_right_shift": -scales[1][1],
            "out_multiplier": out_multiplier,
            "out_right_shift": -out_shift,
            "out_zero_point": quant_out.zero_point,
            "act_min": act_min,
            "act_max": act_max,
        },
    )


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
    if rank > 4:
        raise refuse(context, f"it has {rank} dimensions, at most 4 have a kernel")
    rows = RowShape(*_strip(shape, context.output.shape, context.batch))
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


def _loops(
    shapes: tuple[RowShape, RowShape], out: RowShape
) -> tuple[int, int, tuple[tuple[int, int], tuple[int, int]]]:
    """Loop counts over pixels and channels, and each operand's steps; one flat loop where nothing is broadcast."""
    if all((s.width, s.channels) == (out.width, out.channels) for s in shapes):
        return 1, out.row_bytes, ((0, 1), (0, 1))
    a, b = ((0 if s.width == 1 else s.channels, 0 if s.channels == 1 else 1) for s in shapes)
    return out.width, out.channels, (a, b)
