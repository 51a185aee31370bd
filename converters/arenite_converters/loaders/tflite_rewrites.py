# SPDX-License-Identifier: Apache-2.0
"""TFLite to TFLite: the float model that an INT8 model stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.graph import Graph, Tensor
from arenite_converters.flatbuffer import pack, schema, unpack

__all__ = ["dequantised"]


def dequantised(content: bytes, graph: Graph) -> bytes:
    """The same operators in float32.

    Args:
        content: An INT8 TFLite file.
        graph: The same, read.
    """
    model = unpack(content)
    subgraph = model.subgraphs[0]
    for tensor, known in zip(subgraph.tensors, graph.tensors, strict=True):
        if known.quantisation is None:
            continue
        tensor.type, tensor.quantization = schema().TensorType.FLOAT32, None
        if known.data is not None:
            buffer = schema().BufferT()
            buffer.data = np.frombuffer(_real(known).tobytes(), np.uint8)
            model.buffers.append(buffer)
            tensor.buffer = len(model.buffers) - 1
    _drop_rescaling(subgraph, graph)
    return pack(model)


def _real(tensor: Tensor) -> npt.NDArray[np.float32]:
    assert tensor.quantisation is not None and tensor.data is not None  # the caller looked
    shape = [1] * len(tensor.shape)
    if len(tensor.quantisation.scales) > 1:
        shape[tensor.quantisation.axis] = -1
    scales = np.array(tensor.quantisation.scales, np.float64).reshape(shape)
    zeros = np.array(tensor.quantisation.zero_points, np.int64).reshape(shape)
    return np.asarray((tensor.data.astype(np.int64) - zeros) * scales, np.float32)


def _drop_rescaling(subgraph: Any, graph: Graph) -> None:
    """QUANTIZE from one grid to another does nothing without grids."""
    instead: dict[int, int] = {}
    kept = []
    for operator, known in zip(subgraph.operators, graph.operators, strict=True):
        operator.inputs = [instead.get(index, index) for index in operator.inputs]
        if known.kind == "QUANTIZE":
            instead[known.outputs[0]] = int(operator.inputs[0])
        else:
            kept.append(operator)
    subgraph.operators = kept
    subgraph.outputs = [instead.get(index, index) for index in subgraph.outputs]
