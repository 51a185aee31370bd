# SPDX-License-Identifier: Apache-2.0
"""Functions of one int16, whose 65,536 answers are too many for a table: lines with a bend at zero, and clamps."""

from __future__ import annotations

import numpy as np

from arenite_codegen.network import Layer
from arenite_codegen.operators.activations import leaky_slopes
from arenite_codegen.operators.base import Context, multiplier, quantisation, refuse, same_quantisation
from arenite_codegen.operators.conversion import elementwise_layer, requantise_layer

__all__ = ["lower_abs", "lower_leaky_relu", "lower_relu", "lower_relu6"]

_LOWEST, _HIGHEST = -(1 << 15), (1 << 15) - 1


def lower_relu(context: Context) -> Layer:
    """RELU that stands alone."""
    return requantise_layer(context, max(_LOWEST, _zero_point(context)), _HIGHEST)


def lower_relu6(context: Context) -> Layer:
    """RELU6 that stands alone; the reference clamps on the input's grid."""
    quant = same_quantisation(context, context.input(0), context.output, ("int16",))
    steps = float(np.float32(6) / quant.scale)
    most = quant.zero_point + int(np.floor(min(65536.0, steps) + 0.5))
    return requantise_layer(context, max(_LOWEST, quant.zero_point), min(_HIGHEST, most))


def lower_leaky_relu(context: Context) -> Layer:
    """Negative values times alpha."""
    return _slopes_layer(context, *leaky_slopes(context, ("int16",)))


def lower_abs(context: Context) -> Layer:
    """The distance from zero, requantised."""
    quant_in, quant_out = (quantisation(context, t, ("int16",)) for t in (context.input(0), context.output))
    factor, shift = multiplier(context, float(quant_in.scale) / float(quant_out.scale), "output")
    return _slopes_layer(context, (factor, shift), (-factor, shift))


def _zero_point(context: Context) -> int:
    return quantisation(context, context.output, ("int16",)).zero_point


def _slopes_layer(context: Context, above: tuple[int, int], below: tuple[int, int]) -> Layer:
    for tensor in (context.input(0), context.output):
        if quantisation(context, tensor, ("int16",)).zero_point:
            raise refuse(context, f"{tensor} has a zero point other than 0, which has no int16 kernel")
    parameters = {
        "above_multiplier": above[0],
        "above_shift": above[1],
        "below_multiplier": below[0],
        "below_shift": below[1],
    }
    return elementwise_layer(context, "slopes_s16", parameters)
