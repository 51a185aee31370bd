# SPDX-License-Identifier: Apache-2.0
"""L2_NORMALIZATION over the channels."""

from __future__ import annotations

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import ACTIVATION_NONE, Context, quantisation, refuse

__all__ = ["lower_l2"]

MAX_CHANNELS = 1 << 15


def lower_l2(context: Context) -> Layer:
    """The output's scale is fixed by the reference at 1/128 with zero point 0."""
    source, output = context.input(0), context.output
    quant_in, quant_out = quantisation(context, source), quantisation(context, output)
    if quant_out.scale != np.float32(1 / 128) or quant_out.zero_point != 0:
        what = f"its output has scale {quant_out.scale} and zero point {quant_out.zero_point}, not 1/128 and 0"
        raise refuse(context, what)
    if int(context.operator.attributes["fused_activation_function"]) != ACTIVATION_NONE:
        raise refuse(context, "a fused activation has no kernel")
    rows = context.rows(source)
    if rows.channels > MAX_CHANNELS:
        raise refuse(context, f"{rows.channels} channels, the reference's sum of squares holds {MAX_CHANNELS}")
    return context.build.layer(
        context,
        kernel="l2_normalization_s8",
        reads=(Read(context.build.value(source), rows.height, rows.row_bytes),),
        in_place=(0,),
        parameters={"width": rows.width, "channels": rows.channels, "in_zero_point": quant_in.zero_point},
    )
