# SPDX-License-Identifier: Apache-2.0
"""The operators that have kernels. To add one: a module with a lowering, a row in this table, a kernel, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from arenite_codegen.network import Layer
from arenite_codegen.operators import (
    activations,
    arithmetic,
    concatenation,
    conv_2d,
    depthwise_conv_2d,
    fully_connected,
    lookup,
    movement,
    pooling,
    rearranging,
    reduction,
    softmax,
)
from arenite_codegen.operators.base import Context

__all__ = ["LOWERINGS"]

Lowering = Callable[[Context], "Layer | tuple[Layer, ...] | None"]

LOWERINGS: Mapping[str, Lowering] = {
    "ABS": activations.lower_abs,
    "ADD": arithmetic.lower_add,
    "AVERAGE_POOL_2D": pooling.lower_average,
    "BATCH_TO_SPACE_ND": rearranging.lower_batch_to_space,
    "BROADCAST_TO": rearranging.lower_broadcast_to,
    "CONCATENATION": concatenation.lower,
    "CONV_2D": conv_2d.lower,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d.lower,
    "DEPTH_TO_SPACE": rearranging.lower_depth_to_space,
    "DIV": arithmetic.lower_div,
    "ELU": activations.lower_elu,
    "EXP": activations.lower_exp,
    "EXPAND_DIMS": movement.lower_reshape,
    "FULLY_CONNECTED": fully_connected.lower,
    "GATHER": rearranging.lower_gather,
    "GATHER_ND": rearranging.lower_gather_nd,
    "GELU": activations.lower_gelu,
    "HARD_SWISH": activations.lower_hard_swish,
    "LEAKY_RELU": activations.lower_leaky_relu,
    "LOG": activations.lower_log,
    "LOGISTIC": activations.lower_logistic,
    "MAXIMUM": arithmetic.lower_maximum,
    "MAX_POOL_2D": pooling.lower_max,
    "MEAN": reduction.lower_mean,
    "MINIMUM": arithmetic.lower_minimum,
    "MIRROR_PAD": rearranging.lower_mirror_pad,
    "MUL": arithmetic.lower_mul,
    "NEG": activations.lower_neg,
    "PACK": concatenation.lower_pack,
    "PAD": movement.lower_pad,
    "PADV2": movement.lower_pad,
    "PRELU": arithmetic.lower_prelu,
    "QUANTIZE": lookup.lower_quantize,
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
    "SOFTMAX": softmax.lower,
    "SPACE_TO_BATCH_ND": rearranging.lower_space_to_batch,
    "SPACE_TO_DEPTH": rearranging.lower_space_to_depth,
    "SQRT": activations.lower_sqrt,
    "SQUARED_DIFFERENCE": arithmetic.lower_squared_difference,
    "SQUEEZE": movement.lower_reshape,
    "SUB": arithmetic.lower_sub,
    "SUM": reduction.lower_sum,
    "TANH": activations.lower_tanh,
    "TILE": rearranging.lower_tile,
    "TRANSPOSE": movement.lower_transpose,
    "UNPACK": rearranging.lower_unpack,
}
