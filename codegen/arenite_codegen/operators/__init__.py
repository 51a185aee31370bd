# SPDX-License-Identifier: Apache-2.0
"""The operators that have kernels. To add one: a module with a lowering, a row in this table, a kernel, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from arenite_codegen.network import Layer
from arenite_codegen.operators import (
    add,
    concatenation,
    conv_2d,
    depthwise_conv_2d,
    fully_connected,
    lookup,
    mean,
    movement,
    pooling,
    softmax,
)
from arenite_codegen.operators.base import Context

__all__ = ["LOWERINGS"]

Lowering = Callable[[Context], "Layer | None"]

LOWERINGS: Mapping[str, Lowering] = {
    "ADD": add.lower,
    "AVERAGE_POOL_2D": pooling.lower_average,
    "CONCATENATION": concatenation.lower,
    "CONV_2D": conv_2d.lower,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d.lower,
    "EXPAND_DIMS": movement.lower_reshape,
    "FULLY_CONNECTED": fully_connected.lower,
    "MAX_POOL_2D": pooling.lower_max,
    "MEAN": mean.lower,
    "PAD": movement.lower_pad,
    "QUANTIZE": lookup.lower_quantize,
    "RELU": lookup.lower_relu,
    "RELU6": lookup.lower_relu6,
    "RESHAPE": movement.lower_reshape,
    "SOFTMAX": softmax.lower,
    "SQUEEZE": movement.lower_reshape,
    "TRANSPOSE": movement.lower_transpose,
}
