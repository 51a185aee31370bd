# SPDX-License-Identifier: Apache-2.0
"""CONV_2D: every output pixel is a dot product over a window of rows. A PAD before it is folded into the window."""

from __future__ import annotations

from arenite_codegen.network import Layer
from arenite_codegen.operators.base import Context, refuse
from arenite_codegen.operators.windowed import lower_windowed

__all__ = ["lower"]


def lower(context: Context) -> Layer:
    """The input zero point goes into the bias."""
    weights = context.constant(1)
    if weights.ndim != 4:
        raise refuse(context, f"its weights have {weights.ndim} dimensions, expected 4")
    out_c, kernel_h, kernel_w, _ = weights.shape
    if context.rows(context.output).channels != out_c:
        raise refuse(context, f"{context.output} does not have its {out_c} channels")
    own = {"in_c": context.rows(context.input(0)).channels, "out_c": out_c}
    return lower_windowed(context, "conv_2d_s8", (kernel_h, kernel_w), weights, own)
