# SPDX-License-Identifier: Apache-2.0
"""What one inference of a model computes and moves, for models of its energy."""

from __future__ import annotations

import math

from arenite.errors import UnsupportedOperatorError
from arenite.graph import Graph, Operator, Tensor

__all__ = ["mac_count", "moved_bytes"]

# Operators that multiply and accumulate, but whose count does not follow from their shapes alone.
_UNCOUNTED = {
    "BATCH_MATMUL",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "CALL_ONCE",
    "CONV_3D",
    "CUSTOM",
    "IF",
    "LSTM",
    "RNN",
    "SVDF",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    "WHILE",
}
# Of one value, where it is not 4.
_BYTES = {
    "int4": 0.5,
    **dict.fromkeys(("int8", "uint8", "bool"), 1),
    **dict.fromkeys(("float16", "bfloat16", "int16", "uint16"), 2),
    **dict.fromkeys(("float64", "complex64", "int64", "uint64"), 8),
}


def mac_count(graph: Graph) -> int:
    """Multiply-accumulates of one inference: convolutions and dense layers by the usual formula, pads included.

    Raises:
        UnsupportedOperatorError: An operator's count is not known.
    """
    return sum(_macs(graph, op) for op in graph.operators)


def moved_bytes(graph: Graph) -> int:
    """Bytes that the operators read and write, each input, weight and output once."""
    touched = [i for op in graph.operators for i in (*op.inputs, *op.outputs) if i >= 0]
    return math.ceil(sum(_size_bytes(graph.tensors[i]) for i in touched))


def _size_bytes(tensor: Tensor) -> float:
    return math.prod(tensor.shape) * _BYTES.get(tensor.dtype, 4)


def _macs(graph: Graph, op: Operator) -> int:
    if op.kind in _UNCOUNTED:
        cure = "Measure it with a meter instead."
        raise UnsupportedOperatorError(f"the MACs of {op.kind} are not known", where=graph.path, cure=cure)
    if op.kind not in {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}:
        return 0
    weights = graph.tensors[op.inputs[1]].shape
    made = math.prod(graph.tensors[op.outputs[0]].shape)
    if op.kind == "TRANSPOSE_CONV":
        # Each input value is spread over the kernel and all output channels.
        return math.prod(graph.tensors[op.inputs[2]].shape) * math.prod(weights[:3])
    if op.kind == "DEPTHWISE_CONV_2D":
        return made * weights[1] * weights[2]
    return made * math.prod(weights[1:])
