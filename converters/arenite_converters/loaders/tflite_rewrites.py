# SPDX-License-Identifier: Apache-2.0
"""TFLite to TFLite: the float model that an INT8 model stands for, a signature for a model without one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.tflite_graph import Graph, Tensor
from arenite_converters.tflite_builder import tflite_schema

__all__ = ["dequantised", "signed"]


def dequantised(content: bytes, graph: Graph) -> bytes:
    """The same operators in float32.

    Args:
        content: An INT8 TFLite file.
        graph: The same, read.
    """
    schema = tflite_schema()
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    subgraph = model.subgraphs[0]
    for tensor, known in zip(subgraph.tensors, graph.tensors, strict=True):
        if known.quantisation is None:
            continue
        tensor.type, tensor.quantization = schema.TensorType.FLOAT32, None
        if known.data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(_real(known).tobytes(), np.uint8)
            model.buffers.append(buffer)
            tensor.buffer = len(model.buffers) - 1
    _drop_rescaling(subgraph, graph)
    return _packed(model, 4 * len(content))


def signed(content: bytes) -> bytes:
    """The same model with a signature, which calibration calls it by; unchanged when it has one.

    Args:
        content: A TFLite file with one input and one output.
    """
    schema = tflite_schema()
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    if model.signatureDefs:
        return content
    subgraph, signature = model.subgraphs[0], schema.SignatureDefT()
    signature.signatureKey = "serving_default"
    signature.inputs, signature.outputs = (
        [_end(schema, subgraph, int(index)) for index in ends] for ends in (subgraph.inputs, subgraph.outputs)
    )
    model.signatureDefs = [signature]
    return _packed(model, len(content) + 4096)


def _end(schema: Any, subgraph: Any, index: int) -> Any:
    end = schema.TensorMapT()
    end.name, end.tensorIndex = subgraph.tensors[index].name, index
    return end


def _packed(model: Any, size_bytes: int) -> bytes:
    builder = import_module("flatbuffers").Builder(size_bytes)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


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
