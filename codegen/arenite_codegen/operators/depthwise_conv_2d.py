# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D, any multiplier. A PAD before it is folded into the window."""

from __future__ import annotations

import numpy as np

from arenite_codegen.network import Layer
from arenite_codegen.operators.base import Context, refuse
from arenite_codegen.operators.windowed import lower_windowed

__all__ = ["lower"]


def lower(context: Context) -> Layer:
    """Output channel ic·multiplier + m reads input channel ic; weights become [out_c][kernel_h][kernel_w]."""
    weights = context.constant(1)
    if weights.ndim != 4 or weights.shape[0] != 1:
        raise refuse(context, f"its weights have the shape {weights.shape}, expected 1×h×w×channels")
    _, kernel_h, kernel_w, out_c = weights.shape
    in_c = context.rows(context.input(0)).channels
    depth_multiplier = out_c // in_c
    if depth_multiplier * in_c != out_c or context.rows(context.output).channels != out_c:
        raise refuse(context, f"{in_c} input channels do not divide its {out_c} output channels")
    own = {"in_c": in_c, "depth_multiplier": depth_multiplier}
    by_channel = np.moveaxis(weights[0], -1, 0)
    return lower_windowed(context, "depthwise_conv_2d_s8", (kernel_h, kernel_w), by_channel, own)
