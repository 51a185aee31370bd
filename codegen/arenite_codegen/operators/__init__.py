# SPDX-License-Identifier: Apache-2.0
"""The operators that have kernels. To add one: a module with a lowering, a row in this table, a kernel, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from arenite_codegen.network import Layer
from arenite_codegen.operators import (
    activations,
    arithmetic,
    batch_matmul,
    comparison,
    concatenation,
    conv_2d,
    conversion,
    curve_16,
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
    shapes,
    slices,
    softmax,
    state,
    svdf,
    transpose_conv,
    wide,
)
from arenite_codegen.operators.base import Context
from arenite_codegen.operators.shapes import ShapeRule

__all__ = ["OPERATORS", "Row"]

Lowering = Callable[[Context], "Layer | tuple[Layer, ...] | None"]


@dataclass(frozen=True)
class Row:
    """What is known of one kind of operator.

    Attributes:
        lower: From the operator to layers, whatever type its elements have that no other lowering is for.
        version: The newest of TFLite's versions of it whose meaning is known.
        shape: The shape that it makes; None where the lowering checks the number of elements.
        wide: From int16 to layers.
        real: From float32 to float32.
    """

    lower: Lowering
    version: int
    shape: ShapeRule | None = None
    wide: Lowering | None = None
    real: Lowering | None = None

    def lowering(self, context: Context) -> Lowering:
        """The one for the operator's elements."""
        if self.wide is not None and context.input(0).dtype == "int16":
            return self.wide
        return self.real if self.real is not None and real.is_real(context) else self.lower


OPERATORS: Mapping[str, Row] = {
    "ABS": Row(activations.lower_abs, version=5, shape=shapes.same, wide=wide.lower_abs),
    "ADD": Row(arithmetic.lower_add, version=6, shape=shapes.broadcast, real=real.lower_arithmetic),
    "ARG_MAX": Row(reduction.lower_arg_max, version=3),
    "ARG_MIN": Row(reduction.lower_arg_min, version=3),
    "ASSIGN_VARIABLE": Row(state.lower_assign, version=1),
    "AVERAGE_POOL_2D": Row(pooling.lower_average, version=3, shape=shapes.pool),
    "BATCH_MATMUL": Row(batch_matmul.lower, version=4),
    "BATCH_TO_SPACE_ND": Row(rearranging.lower_batch_to_space, version=4),
    "BROADCAST_TO": Row(rearranging.lower_broadcast_to, version=4),
    "CALL_ONCE": Row(state.lower_call_once, version=1),
    "CAST": Row(conversion.lower_cast, version=9, shape=shapes.same),
    "CONCATENATION": Row(concatenation.lower, version=7, shape=shapes.joined),
    "CONV_2D": Row(conv_2d.lower, version=8, shape=shapes.conv, real=real.lower_conv_2d),
    "DEPTHWISE_CONV_2D": Row(
        depthwise_conv_2d.lower, version=7, shape=shapes.depthwise, real=real.lower_depthwise_conv_2d
    ),
    "DEPTH_TO_SPACE": Row(rearranging.lower_depth_to_space, version=2),
    "DEQUANTIZE": Row(conversion.lower_dequantize, version=9, shape=shapes.same),
    "DIV": Row(arithmetic.lower_div, version=2, shape=shapes.broadcast, real=real.lower_arithmetic),
    "ELU": Row(activations.lower_elu, version=1, shape=shapes.same),
    "EQUAL": Row(comparison.lower_comparison, version=5, shape=shapes.broadcast),
    "EXP": Row(activations.lower_exp, version=2, shape=shapes.same),
    "EXPAND_DIMS": Row(movement.lower_reshape, version=1),
    "FULLY_CONNECTED": Row(fully_connected.lower, version=14, real=real.lower_fully_connected),
    "GATHER": Row(rearranging.lower_gather, version=8),
    "GATHER_ND": Row(rearranging.lower_gather_nd, version=6),
    "GELU": Row(activations.lower_gelu, version=3, shape=shapes.same),
    "GREATER": Row(comparison.lower_comparison, version=2, shape=shapes.broadcast),
    "GREATER_EQUAL": Row(comparison.lower_comparison, version=3, shape=shapes.broadcast),
    "HARD_SWISH": Row(activations.lower_hard_swish, version=1, shape=shapes.same),
    "L2_NORMALIZATION": Row(normalisation.lower_l2, version=2, shape=shapes.same),
    "LEAKY_RELU": Row(activations.lower_leaky_relu, version=2, shape=shapes.same, wide=wide.lower_leaky_relu),
    "LESS": Row(comparison.lower_comparison, version=3, shape=shapes.broadcast),
    "LESS_EQUAL": Row(comparison.lower_comparison, version=2, shape=shapes.broadcast),
    "LOG": Row(activations.lower_log, version=2, shape=shapes.same),
    "LOGICAL_AND": Row(comparison.lower_and, version=1, shape=shapes.broadcast),
    "LOGICAL_NOT": Row(comparison.lower_not, version=1, shape=shapes.same),
    "LOGICAL_OR": Row(comparison.lower_or, version=1, shape=shapes.broadcast),
    "LOGISTIC": Row(
        activations.lower_logistic, version=3, shape=shapes.same, wide=curve_16.lower_logistic, real=real.lower_curve
    ),
    "LOG_SOFTMAX": Row(softmax.lower_log, version=2, shape=shapes.same, real=real.lower_log_softmax),
    "MAXIMUM": Row(arithmetic.lower_maximum, version=4, shape=shapes.broadcast, real=real.lower_arithmetic),
    "MAX_POOL_2D": Row(pooling.lower_max, version=3, shape=shapes.pool),
    "MEAN": Row(reduction.lower_mean, version=3, shape=shapes.reduced),
    "MINIMUM": Row(arithmetic.lower_minimum, version=4, shape=shapes.broadcast, real=real.lower_arithmetic),
    "MIRROR_PAD": Row(rearranging.lower_mirror_pad, version=3),
    "MUL": Row(arithmetic.lower_mul, version=8, shape=shapes.broadcast, real=real.lower_arithmetic),
    "NEG": Row(activations.lower_neg, version=1, shape=shapes.same),
    "NOT_EQUAL": Row(comparison.lower_comparison, version=4, shape=shapes.broadcast),
    "PACK": Row(concatenation.lower_pack, version=5),
    "PAD": Row(movement.lower_pad, version=6, shape=shapes.pad),
    "PADV2": Row(movement.lower_pad, version=6, shape=shapes.pad),
    "PRELU": Row(arithmetic.lower_prelu, version=1, shape=shapes.broadcast),
    "QUANTIZE": Row(conversion.lower_quantize, version=6, shape=shapes.same),
    "READ_VARIABLE": Row(state.lower_read, version=1),
    "REDUCE_MAX": Row(reduction.lower_maximum, version=3, shape=shapes.reduced),
    "REDUCE_MIN": Row(reduction.lower_minimum, version=3, shape=shapes.reduced),
    "RELU": Row(lookup.lower_relu, version=3, shape=shapes.same, wide=wide.lower_relu, real=real.lower_curve),
    "RELU6": Row(lookup.lower_relu6, version=3, shape=shapes.same, wide=wide.lower_relu6, real=real.lower_curve),
    "RELU_0_TO_1": Row(lookup.lower_relu_0_to_1, version=1, shape=shapes.same),
    "RELU_N1_TO_1": Row(lookup.lower_relu_n1_to_1, version=1, shape=shapes.same, real=real.lower_curve),
    "RESHAPE": Row(movement.lower_reshape, version=1),
    "RESIZE_BILINEAR": Row(rearranging.lower_resize_bilinear, version=4),
    "RESIZE_NEAREST_NEIGHBOR": Row(rearranging.lower_resize_nearest, version=4),
    "REVERSE_V2": Row(rearranging.lower_reverse, version=4),
    "RSQRT": Row(activations.lower_rsqrt, version=3, shape=shapes.same),
    "SELECT": Row(comparison.lower_select, version=4, shape=shapes.selected),
    "SELECT_V2": Row(comparison.lower_select, version=2, shape=shapes.broadcast),
    "SLICE": Row(slices.lower_slice, version=8),
    "SOFTMAX": Row(softmax.lower, version=4, shape=shapes.same, wide=softmax.lower_16, real=real.lower_softmax),
    "SPACE_TO_BATCH_ND": Row(rearranging.lower_space_to_batch, version=4),
    "SPACE_TO_DEPTH": Row(rearranging.lower_space_to_depth, version=2),
    "SPLIT": Row(slices.lower_split, version=5),
    "SPLIT_V": Row(slices.lower_split_v, version=3),
    "SQRT": Row(activations.lower_sqrt, version=2, shape=shapes.same),
    "SQUARED_DIFFERENCE": Row(arithmetic.lower_squared_difference, version=2, shape=shapes.broadcast),
    "SQUEEZE": Row(movement.lower_reshape, version=2),
    "STRIDED_SLICE": Row(slices.lower_strided_slice, version=8),
    "SUB": Row(arithmetic.lower_sub, version=5, shape=shapes.broadcast, real=real.lower_arithmetic),
    "SUM": Row(reduction.lower_sum, version=2, shape=shapes.reduced),
    "SVDF": Row(svdf.lower, version=4),
    "TANH": Row(activations.lower_tanh, version=3, shape=shapes.same, wide=curve_16.lower_tanh, real=real.lower_curve),
    "TILE": Row(rearranging.lower_tile, version=3),
    "TRANSPOSE": Row(movement.lower_transpose, version=9, shape=shapes.transposed),
    "TRANSPOSE_CONV": Row(transpose_conv.lower, version=5, shape=shapes.named),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Row(lstm.lower, version=4),
    "UNPACK": Row(rearranging.lower_unpack, version=6),
    "VAR_HANDLE": Row(state.lower_handle, version=1),
}
