# SPDX-License-Identifier: Apache-2.0
"""The operators that have kernels. To add one: a module with a lowering, a row in this table, a kernel, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from arenite_codegen.network import Layer
from arenite_codegen.operators import (
    activations,
    arithmetic,
    batch_matmul,
    comparison,
    concatenation,
    conv_2d,
    conversion,
    depthwise_conv_2d,
    fully_connected,
    lookup,
    lstm,
    movement,
    normalisation,
    pooling,
    real,
    rearranging,
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

_QUANTISED: Mapping[str, Lowering] = {
    "ABS": activations.lower_abs,
    "ADD": arithmetic.lower_add,
    "ARG_MAX": reduction.lower_arg_max,
    "ARG_MIN": reduction.lower_arg_min,
    "ASSIGN_VARIABLE": state.lower_assign,
    "AVERAGE_POOL_2D": pooling.lower_average,
    "BATCH_MATMUL": batch_matmul.lower,
    "BATCH_TO_SPACE_ND": rearranging.lower_batch_to_space,
    "BROADCAST_TO": rearranging.lower_broadcast_to,
    "CALL_ONCE": state.lower_call_once,
    "CAST": conversion.lower_cast,
    "CONCATENATION": concatenation.lower,
    "CONV_2D": conv_2d.lower,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d.lower,
    "DEPTH_TO_SPACE": rearranging.lower_depth_to_space,
    "DEQUANTIZE": conversion.lower_dequantize,
    "DIV": arithmetic.lower_div,
    "ELU": activations.lower_elu,
    "EQUAL": comparison.lower_comparison,
    "EXP": activations.lower_exp,
    "EXPAND_DIMS": movement.lower_reshape,
    "FULLY_CONNECTED": fully_connected.lower,
    "GATHER": rearranging.lower_gather,
    "GATHER_ND": rearranging.lower_gather_nd,
    "GELU": activations.lower_gelu,
    "GREATER": comparison.lower_comparison,
    "GREATER_EQUAL": comparison.lower_comparison,
    "HARD_SWISH": activations.lower_hard_swish,
    "L2_NORMALIZATION": normalisation.lower_l2,
    "LEAKY_RELU": activations.lower_leaky_relu,
    "LESS": comparison.lower_comparison,
    "LESS_EQUAL": comparison.lower_comparison,
    "LOG": activations.lower_log,
    "LOGICAL_AND": comparison.lower_and,
    "LOGICAL_NOT": comparison.lower_not,
    "LOGICAL_OR": comparison.lower_or,
    "LOGISTIC": activations.lower_logistic,
    "MAXIMUM": arithmetic.lower_maximum,
    "MAX_POOL_2D": pooling.lower_max,
    "MEAN": reduction.lower_mean,
    "MINIMUM": arithmetic.lower_minimum,
    "MIRROR_PAD": rearranging.lower_mirror_pad,
    "MUL": arithmetic.lower_mul,
    "NEG": activations.lower_neg,
    "NOT_EQUAL": comparison.lower_comparison,
    "PACK": concatenation.lower_pack,
    "PAD": movement.lower_pad,
    "PADV2": movement.lower_pad,
    "PRELU": arithmetic.lower_prelu,
    "QUANTIZE": conversion.lower_quantize,
    "READ_VARIABLE": state.lower_read,
    "REDUCE_MAX": reduction.lower_maximum,
    "REDUCE_MIN": reduction.lower_minimum,
    "RELU": lookup.lower_relu,
    "RELU6": lookup.lower_relu6,
    "RELU_0_TO_1": lookup.lower_relu_0_to_1,
    "RELU_N1_TO_1": lookup.lower_relu_n1_to_1,
    "RESHAPE": movement.lower_reshape,
    "RESIZE_BILINEAR": rearranging.lower_resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": rearranging.lower_resize_nearest,
    "REVERSE_V2": rearranging.lower_reverse,
    "RSQRT": activations.lower_rsqrt,
    "SELECT": comparison.lower_select,
    "SELECT_V2": comparison.lower_select,
    "SLICE": slices.lower_slice,
    "SOFTMAX": softmax.lower,
    "SPACE_TO_BATCH_ND": rearranging.lower_space_to_batch,
    "SPACE_TO_DEPTH": rearranging.lower_space_to_depth,
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
    "TILE": rearranging.lower_tile,
    "TRANSPOSE": movement.lower_transpose,
    "TRANSPOSE_CONV": transpose_conv.lower,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm.lower,
    "UNPACK": rearranging.lower_unpack,
    "VAR_HANDLE": state.lower_handle,
}
# The same operators between float32 tensors.
_REAL: Mapping[str, Lowering] = {
    **dict.fromkeys(("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SUB"), real.lower_arithmetic),
    **dict.fromkeys(("LOGISTIC", "RELU", "RELU6", "RELU_N1_TO_1", "TANH"), real.lower_curve),
    "FULLY_CONNECTED": real.lower_fully_connected,
    "SOFTMAX": real.lower_softmax,
}


def _of_either_type(kind: str) -> Lowering:
    quantised, of_reals = _QUANTISED[kind], _REAL[kind]
    return lambda context: of_reals(context) if real.is_real(context) else quantised(context)


LOWERINGS: Mapping[str, Lowering] = {
    kind: _of_either_type(kind) if kind in _REAL else lowering for kind, lowering in _QUANTISED.items()
}
