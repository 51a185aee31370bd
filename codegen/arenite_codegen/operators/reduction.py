# SPDX-License-Identifier: Apache-2.0
"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN, ARG_MAX and ARG_MIN. Rows that are reduced are accumulated, none is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from arenite.graph import Quantisation
from arenite_codegen.network import Layer, Mode, Read
from arenite_codegen.operators.base import Context, RowShape, multiplier, quantisation, refuse, same_quantisation

__all__ = ["lower_arg_max", "lower_arg_min", "lower_maximum", "lower_mean", "lower_minimum", "lower_sum"]

# Sums of differences from the zero point, at most 255 or 65,535 each, fit int32.
_MAX_TERMS = {"int8": 1 << 23, "int16": 1 << 15}
_DTYPES = ("int8", "int16")


def lower_mean(context: Context) -> Layer:
    """The divisor is part of the multiplier, also where both ends have one quantisation."""
    plan = _plan(context)
    return _sum_layer(context, plan, _mean_multiplier(context, _ratio(context), plan.terms))


def lower_sum(context: Context) -> Layer:
    """As MEAN without the division."""
    return _sum_layer(context, _plan(context), multiplier(context, _ratio(context), "output"))


def lower_maximum(context: Context) -> Layer:
    """The greatest byte."""
    return _extreme_layer(context, flip=0)


def lower_minimum(context: Context) -> Layer:
    """The least byte: the greatest when all bits are turned over."""
    return _extreme_layer(context, flip=-1)


def _ratio(context: Context) -> float:
    quant_in, quant_out = _grids(context)
    return float(quant_in.scale) / float(quant_out.scale)


def _grids(context: Context) -> tuple[Quantisation, Quantisation]:
    source, output = context.input(0), context.output
    if source.dtype != output.dtype:
        raise refuse(context, f"{source} and {output} differ in type")
    return quantisation(context, source, _DTYPES), quantisation(context, output, _DTYPES)


def _mean_multiplier(context: Context, real: float, count: int) -> tuple[int, int]:
    """Fold the division by `count` into the multiplier, as QuantizedMeanOrSum does (truncating)."""
    base, shift = multiplier(context, real, "output")
    extra = min(count.bit_length() - 1, 32, 31 + shift)
    return (base << extra) // count, shift - extra


@dataclass(frozen=True)
class _Plan:
    """A batch item as rows of pixels of channels, and which of the three are reduced."""

    shape: RowShape
    rows: bool
    pixels: bool
    channels: bool

    @property
    def terms(self) -> int:
        """Elements that become one."""
        extents = (self.shape.height, self.shape.width, self.shape.channels)
        return math.prod(n for n, gone in zip(extents, (self.rows, self.pixels, self.channels), strict=True) if gone)

    @property
    def outputs(self) -> int:
        """Elements of an output row."""
        return (1 if self.pixels else self.shape.width) * (1 if self.channels else self.shape.channels)


def lower_arg_max(context: Context) -> Layer:
    """The first position of the greatest byte along an axis, as int32."""
    return _position_layer(context, flip=0)


def lower_arg_min(context: Context) -> Layer:
    """The first position of the least byte along an axis, as int32."""
    return _position_layer(context, flip=-1)


def _position_layer(context: Context, flip: int) -> Layer:
    quantisation(context, context.input(0))
    if context.output.dtype != "int32":
        raise refuse(context, f"{context.output} is not int32")
    plan = _plan(context)
    gone = (plan.rows, plan.pixels, plan.channels)
    steps = dict(zip(("row_index", "pixel_index", "channel_index"), map(int, gone), strict=True))
    # The best byte of each output lies behind the positions.
    return _layer(context, plan, "arg_extreme_s8", {"flip": flip, **steps}, scratch_bytes=5 * plan.outputs)


def _plan(context: Context) -> _Plan:
    source = context.input(0)
    rank = len(source.shape)
    given = [int(axis) for axis in context.whole_numbers(1).ravel()]
    if any(not -rank <= axis < rank for axis in given):
        raise refuse(context, f"its axes {given} are not all in {rank} dimensions")
    axes = {axis % rank for axis in given}
    dimensions = [(extent, axis in axes) for axis, extent in enumerate(source.shape)]
    kept = [extent for extent, gone in dimensions if not gone and extent != 1]
    if kept != [extent for extent in context.output.shape if extent != 1]:
        raise refuse(context, f"{context.output} is not what is left of {source} along {given}")
    if context.batch > 1:
        if not dimensions or dimensions[0] != (context.batch, False):
            raise refuse(context, f"it does not keep the batch of {context.batch}")
        dimensions = dimensions[1:]
    elif rank > 1 and source.shape[0] == 1:
        dimensions = dimensions[1:]
    if len(dimensions) > 3:
        runs = groupby((d for d in dimensions if d[0] > 1), key=lambda d: d[1])
        dimensions = [(math.prod(extent for extent, _ in run), gone) for gone, run in runs]
    if len(dimensions) > 3:
        raise refuse(context, "reduced and kept dimensions take turns more often than a kernel follows")
    if len(dimensions) == 2:
        dimensions.insert(1, (1, False))
    dimensions = [(1, False)] * (3 - len(dimensions)) + dimensions
    height, width, channels = (extent for extent, _ in dimensions)
    plan = _Plan(RowShape(height, width, channels, source.element_bytes), *(gone for _, gone in dimensions))
    most = _MAX_TERMS.get(source.dtype, _MAX_TERMS["int16"])
    if plan.terms > most:
        raise refuse(context, f"it reduces {plan.terms:,} elements to one; sums hold {most:,}")
    return plan


def _sum_layer(context: Context, plan: _Plan, scales: tuple[int, int]) -> Layer:
    quant_in, quant_out = _grids(context)
    parameters = {
        "offset": -quant_in.zero_point * plan.terms,
        "multiplier": scales[0],
        "shift": scales[1],
        "out_zero_point": quant_out.zero_point,
    }
    kernel = "reduce_sum_s16" if context.input(0).dtype == "int16" else "reduce_sum_s8"
    return _layer(context, plan, kernel, parameters, scratch_bytes=4 * plan.outputs)


def _extreme_layer(context: Context, flip: int) -> Layer:
    same_quantisation(context, context.input(0), context.output)
    plan = _plan(context)
    return _layer(context, plan, "reduce_extreme_s8", {"flip": flip}, scratch_bytes=plan.outputs)


def _layer(context: Context, plan: _Plan, kernel: str, parameters: Mapping[str, Any], scratch_bytes: int) -> Layer:
    shape = plan.shape
    return context.build.layer(
        context,
        kernel=kernel,
        reads=(Read(context.build.value(context.input(0)), shape.height, shape.row_bytes),),
        mode=Mode.ACCUMULATE if plan.rows else Mode.ROW,
        steps=shape.height,
        out_rows=1 if plan.rows else shape.height,
        scratch_bytes=scratch_bytes,
        parameters={
            "rows": shape.height if plan.rows else 1,
            "width": shape.width,
            "channels": shape.channels,
            "out_pixel_step": 0 if plan.pixels else (1 if plan.channels else shape.channels),
            "out_channel_step": 0 if plan.channels else 1,
            "outputs": plan.outputs,
            **parameters,
        },
    )
