# SPDX-License-Identifier: Apache-2.0
"""The operators that have kernels. To add one: a module with a lowering, a row in this table, a kernel, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from arenite_codegen.network import Layer
from arenite_codegen.operators import (
    activations,
    arithmetic,
    batch_matmul,
    concatenation,
    conv_2d,
    depthwise_conv_2d,
    fully_connected,
    lookup,
    lstm,
    movement,
    pooling,
    reduction,
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
    "ABS": activations.lower_abs,
    "ADD": arithmetic.lower_add,
    "ASSIGN_VARIABLE": state.lower_assign,
    "AVERAGE_POOL_2D": pooling.lower_average,
    "BATCH_MATMUL": batch_matmul.lower,
    "CALL_ONCE": state.lower_call_once,
    "CONCATENATION": concatenation.lower,
    "CONV_2D": conv_2d.lower,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d.lower,
    "DIV": arithmetic.lower_div,
    "ELU": activations.lower_elu,
    "EXP": activations.lower_exp,
    "EXPAND_DIMS": movement.lower_reshape,
    "FULLY_CONNECTED": fully_connected.lower,
    "GELU": activations.lower_gelu,
    "HARD_SWISH": activations.lower_hard_swish,
    "LEAKY_RELU": activations.lower_leaky_relu,
    "LOG": activations.lower_log,
    "LOGISTIC": activations.lower_logistic,
    "MAXIMUM": arithmetic.lower_maximum,
    "MAX_POOL_2D": pooling.lower_max,
    "MEAN": reduction.lower_mean,
    "MINIMUM": arithmetic.lower_minimum,
    "MUL": arithmetic.lower_mul,
    "NEG": activations.lower_neg,
    "PAD": movement.lower_pad,
    "PRELU": arithmetic.lower_prelu,
    "QUANTIZE": lookup.lower_quantize,
    "READ_VARIABLE": state.lower_read,
    "REDUCE_MAX": reduction.lower_maximum,
    "REDUCE_MIN": reduction.lower_minimum,
    "RELU": lookup.lower_relu,
    "RELU6": lookup.lower_relu6,
    "RELU_0_TO_1": lookup.lower_relu_0_to_1,
    "RELU_N1_TO_1": lookup.lower_relu_n1_to_1,
    "RESHAPE": movement.lower_reshape,
    "RSQRT": activations.lower_rsqrt,
    "SLICE": slices.lower_slice,
    "SOFTMAX": softmax.lower,
    "SPLIT": slices.lower_split,
    "SPLIT_V": slices.lower_split_v,
    "SQRT": activations.lower_sqrt,
    "SQUARED_DIFFERENCE": arithmetic.lower_squared_difference,
    "SQUEEZE": movement.lower_reshape,
    "STRIDED_SLICE": slices.lower_strided_slice,
    "SUB": arithmetic.lower_sub,
    "SUM": reduction.lower_sum,
    "SVDF": svdf.lower,
    "TANH": activations.lower_tanh,
    "TRANSPOSE": movement.lower_transpose,
    "TRANSPOSE_CONV": transpose_conv.lower,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm.lower,
    "VAR_HANDLE": state.lower_handle,
}
