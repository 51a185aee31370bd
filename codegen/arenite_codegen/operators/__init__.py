# SPDX-License-Identifier: Apache-2.0
"""The operators that have kernels. To add one: a module with a lowering, a row in this table, a kernel, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from arenite_codegen.network import Layer
from arenite_codegen.operators import (
    add,
    batch_matmul,
    concatenation,
    conv_2d,
    curve_16,
    depthwise_conv_2d,
    fully_connected,
    lookup,
    lstm,
    mean,
    movement,
    pooling,
    slices,
    softmax,
    state,
    svdf,
    transpose_conv,
)
from arenite_codegen.operators.base import Context

__all__ = ["LOWERINGS"]

Lowering = Callable[[Context], "Layer | tuple[Layer, ...] | None"]

LOWERINGS: Mapping[str, Lowering] = {
    "ADD": add.lower,
    "ASSIGN_VARIABLE": state.lower_assign,
    "AVERAGE_POOL_2D": pooling.lower_average,
    "BATCH_MATMUL": batch_matmul.lower,
    "CALL_ONCE": state.lower_call_once,
    "CONCATENATION": concatenation.lower,
    "CONV_2D": conv_2d.lower,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d.lower,
    "EXPAND_DIMS": movement.lower_reshape,
    "FULLY_CONNECTED": fully_connected.lower,
    "LOGISTIC": curve_16.lower_logistic,
    "MAX_POOL_2D": pooling.lower_max,
    "MEAN": mean.lower,
    "PAD": movement.lower_pad,
    "QUANTIZE": lookup.lower_quantize,
    "READ_VARIABLE": state.lower_read,
    "RELU": lookup.lower_relu,
    "RELU6": lookup.lower_relu6,
    "RESHAPE": movement.lower_reshape,
    "SLICE": slices.lower_slice,
    "SOFTMAX": softmax.lower,
    "SPLIT": slices.lower_split,
    "SPLIT_V": slices.lower_split_v,
    "SQUEEZE": movement.lower_reshape,
    "STRIDED_SLICE": slices.lower_strided_slice,
    "SVDF": svdf.lower,
    "TANH": curve_16.lower_tanh,
    "TRANSPOSE": movement.lower_transpose,
    "TRANSPOSE_CONV": transpose_conv.lower,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm.lower,
    "VAR_HANDLE": state.lower_handle,
}
