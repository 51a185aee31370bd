# SPDX-License-Identifier: Apache-2.0
"""MEAN over height and width: rows are accumulated, none is stored."""

from __future__ import annotations

from arenite_codegen.network import Layer, Mode, Read
from arenite_codegen.operators.base import Context, multiplier, quantisation, refuse

__all__ = ["lower"]

# Sums of differences from the zero point, at most 255 each, fit int32.
MAX_PIXELS = 1 << 23


def lower(context: Context) -> Layer:
    """Other axes than 1 and 2 of a rank 4 input have no kernel."""
    source, output = context.input(0), context.output
    axes = {int(a) % max(1, len(source.shape)) for a in context.constant(1).ravel()}
    if len(source.shape) != 4 or axes != {1, 2}:
        what = f"a mean of {source} over the axes {sorted(axes)} has no kernel, only over height and width"
        raise refuse(context, what)
    rows = context.rows(source)
    quant_in, quant_out = quantisation(context, source), quantisation(context, output)
    count = rows.height * rows.width
    if count > MAX_PIXELS:
        raise refuse(context, f"a mean over {count:,} pixels; sums hold {MAX_PIXELS:,}")
    scale = _mean_multiplier(context, float(quant_in.scale) / float(quant_out.scale), count)
    return context.build.layer(
        context,
        kernel="mean_s8",
        reads=(Read(context.build.value(source), rows.height, rows.row_bytes),),
        mode=Mode.ACCUMULATE,
        steps=rows.height,
        scratch_bytes=4 * rows.channels,
        parameters={
            "rows": rows.height,
            "width": rows.width,
            "channels": rows.channels,
            "in_zero_point": quant_in.zero_point,
            "out_zero_point": quant_out.zero_point,
            "multiplier": scale[0],
            "shift": scale[1],
        },
    )


def _mean_multiplier(context: Context, real: float, count: int) -> tuple[int, int]:
    """Fold the division by `count` into the multiplier, as QuantizedMeanOrSum does (truncating)."""
    base, shift = multiplier(context, real, "output")
    extra = min(count.bit_length() - 1, 32, 31 + shift)
    return (base << extra) // count, shift - extra
