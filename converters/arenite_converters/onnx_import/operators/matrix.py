# SPDX-License-Identifier: Apache-2.0
"""Gemm and MatMul."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.onnx_import.axes import natural
from arenite_converters.onnx_import.graph import Node
from arenite_converters.onnx_import.lowering import Lowering, Value
from arenite_converters.onnx_import.operators.affine import absorb_affine

__all__ = ["gemm", "matmul"]

Array = npt.NDArray[Any]


def gemm(to: Lowering, node: Node) -> None:
    """FULLY_CONNECTED."""
    if node.attributes.get("transA", 0):
        raise to.refuse(node, "with a transposed input")
    weights = to.required(node, 1, "weight") * node.attributes.get("alpha", 1.0)
    if not node.attributes.get("transB", 0):
        weights = weights.T
    bias = to.optional(node, 2)
    bias = np.zeros(1) if bias is None else bias * node.attributes.get("beta", 1.0)
    if bias.size not in (1, len(weights)):
        raise to.refuse(node, "whose bias differs from row to row")
    _dense(to, node, weights, np.broadcast_to(bias.reshape(-1), (len(weights),)))


def matmul(to: Lowering, node: Node) -> None:
    """FULLY_CONNECTED for constant weights, BATCH_MATMUL for two values."""
    weights = to.constant(node.inputs[1])
    if weights is not None and weights.ndim == 2 and node.inputs[0] in to.values:
        _dense(to, node, weights.T, np.zeros(weights.shape[1]))
        return
    name = node.outputs[0]
    ranks = [len(to.shape(operand)) for operand in node.inputs]
    if min(ranks) < 2:
        raise to.refuse(node, "of a vector")
    operands = [to.operand(operand, natural(rank)) for operand, rank in zip(node.inputs, ranks, strict=True)]
    shape = to.shape(name)
    to.values[name] = Value(to.emit("BATCH_MATMUL", operands, shape, name, "BatchMatMulOptions"), natural(len(shape)))


def _dense(to: Lowering, node: Node, weights: Array, bias: Array) -> None:
    """A dense layer over the last axis.

    Args:
        to: The import.
        node: Its first input is multiplied.
        weights: Outputs × inputs.
        bias: One number an output.
    """
    rank = len(to.shape(node.inputs[0]))
    value = to.values[node.inputs[0]]
    if value.shuffle is not None and value.order == natural(rank):
        weights, source = weights[:, value.shuffle.indices()], value.tensor
    else:
        source = to.operand(node.inputs[0], natural(rank))
    scale, offset, name = absorb_affine(to, node.outputs[0], -1)
    activation, name = to.activation(name)
    inputs = [
        source,
        to.add(weights * scale[:, np.newaxis], node.inputs[1]),
        to.add(bias * scale + offset, f"{node.inputs[1]}/bias"),
    ]
    result = to.emit(
        "FULLY_CONNECTED",
        inputs,
        to.shape(name),
        name,
        "FullyConnectedOptions",
        fusedActivationFunction=activation,
        keepNumDims=rank > 2,
    )
    to.values[name] = Value(result, natural(rank), None, activation in ("RELU", "RELU6"))
