# SPDX-License-Identifier: Apache-2.0
"""The ONNX operators that convert. To add one: a function, a row in this table, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from arenite_converters.onnx_import.graph import Node
from arenite_converters.onnx_import.lowering import Lowering
from arenite_converters.onnx_import.operators import convolution, elementwise, matrix, movement, pooling, reduction

__all__ = ["TABLE"]

TABLE: Mapping[str, Callable[[Lowering, Node], None]] = {
    **dict.fromkeys(elementwise.UNARY, elementwise.unary),
    **dict.fromkeys(elementwise.BINARY, elementwise.binary),
    **dict.fromkeys(reduction.KINDS, reduction.reduce),
    **dict.fromkeys(movement.VIEWS, movement.view),
    "AveragePool": pooling.average,
    "BatchNormalization": elementwise.batch_normalisation,
    "Cast": elementwise.cast,
    "Clip": elementwise.clip,
    "Concat": movement.concat,
    "Conv": convolution.conv,
    "ConvTranspose": convolution.transposed,
    "DepthToSpace": movement.depth_to_space,
    "Gather": movement.gather,
    "Gemm": matrix.gemm,
    "GlobalAveragePool": pooling.global_average,
    "GlobalMaxPool": pooling.global_max,
    "HardSigmoid": elementwise.hard_sigmoid,
    "LeakyRelu": elementwise.leaky_relu,
    "LogSoftmax": reduction.softmax,
    "MatMul": matrix.matmul,
    "MaxPool": pooling.maximum,
    "PRelu": elementwise.prelu,
    "Pad": movement.pad,
    "Pow": elementwise.power,
    "Relu": elementwise.clip,
    "Resize": movement.resize,
    "Slice": movement.slices,
    "Softmax": reduction.softmax,
    "SpaceToDepth": movement.space_to_depth,
    "Split": movement.split,
    "Transpose": movement.transpose,
    "Upsample": movement.resize,
}
