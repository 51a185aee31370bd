# SPDX-License-Identifier: Apache-2.0
"""Random graphs of uint8, as old converters made them: int8 graphs with every value moved by 128.

The authority is LiteRT's reference kernels; TFLM has none for uint8. Weights have one scale and any zero point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from arenite.tflite_graph import parse_graph
from arenite_converters.flatbuffer import pack
from support import element_graphs, spatial_graphs
from support.arithmetic_graphs import ARITHMETIC
from support.choices import Choices
from support.graph_case import LITERT, GraphCase

__all__ = ["UINT8"]

_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_INT8, _UINT8 = schema.TensorType.INT8, schema.TensorType.UINT8


def _as_uint8(choices: Choices, make: Callable[[Choices], GraphCase]) -> GraphCase:
    found = make(choices)
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(found.model_bytes), 0))
    for index, tensor in enumerate(model.subgraphs[0].tensors):
        if tensor.type != _INT8:
            continue
        tensor.type = _UINT8
        data = model.buffers[tensor.buffer].data
        if data is not None:
            model.buffers[tensor.buffer].data = np.asarray(data, np.uint8) ^ np.uint8(0x80)
        quantisation = tensor.quantization
        scale, point = float(quantisation.scale[0]), 128
        if quantisation.zeroPoint is not None and len(quantisation.scale) == 1:
            point += int(quantisation.zeroPoint[0])
        is_weights = found.kind in _WEIGHTED and index == model.subgraphs[0].operators[0].inputs[1]
        quantisation.scale = [scale]
        quantisation.zeroPoint = [choices.integer(96, 160) if is_weights else point]
    if found.kind in _WEIGHTED:
        _one_bias_scale(model)
    for code in model.operatorCodes:
        code.version = 1
    vectors = tuple(
        tuple(v.view(np.uint8) ^ np.uint8(0x80) if v.dtype == np.int8 else v for v in one) for one in found.vectors
    )
    kind = f"{found.kind}_U8"
    text = found.description.replace(found.kind, kind, 1)
    return replace(found, kind=kind, description=text, model_bytes=pack(model), vectors=vectors, authority=LITERT)


def _one_bias_scale(model: schema.ModelT) -> None:
    """A bias of the only scale; where there is none, zeros: the reference wants one."""
    graph = model.subgraphs[0]
    operator = graph.operators[0]
    x, w = (graph.tensors[i] for i in operator.inputs[:2])
    if len(operator.inputs) < 3 or operator.inputs[2] < 0:
        channels = graph.tensors[operator.outputs[0]].shape[-1]
        bias = schema.TensorT()
        bias.name, bias.shape, bias.type = "b", [int(channels)], schema.TensorType.INT32
        bias.quantization = schema.QuantizationParametersT()
        bias.buffer = len(model.buffers)
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.zeros(4 * int(channels), np.uint8)
        operator.inputs = [*operator.inputs[:2], len(graph.tensors)]
        graph.tensors.append(bias)
    bias = graph.tensors[operator.inputs[2]]
    bias.quantization.scale = [float(np.float32(x.quantization.scale[0]) * np.float32(w.quantization.scale[0]))]
    bias.quantization.zeroPoint = [0]


def _of(make: Callable[[Choices], GraphCase]) -> Callable[[Choices], GraphCase]:
    return lambda choices: _as_uint8(choices, make)


def _of_one_batch(make: Callable[[Choices], GraphCase]) -> Callable[[Choices], GraphCase]:
    """All inputs have the batch: one that lacks it cannot be moved to int8 before it is broadcast."""

    def drawn(choices: Choices) -> GraphCase:
        while True:
            found = make(choices)
            graph = parse_graph(found.model_bytes)
            ends = [graph.tensors[i].shape for i in (*graph.inputs, *graph.outputs)]
            if len({(len(shape), *shape[:1]) for shape in ends}) == 1:
                return found

    return _of(drawn)


UINT8: dict[str, Callable[[Choices], GraphCase]] = {
    "CONV_2D_U8": _of(spatial_graphs.conv_2d),
    "DEPTHWISE_CONV_2D_U8": _of(spatial_graphs.depthwise_conv_2d),
    "FULLY_CONNECTED_U8": _of(element_graphs.fully_connected),
    "AVERAGE_POOL_2D_U8": _of(spatial_graphs.average_pool_2d),
    "MAX_POOL_2D_U8": _of(spatial_graphs.max_pool_2d),
    "CONCATENATION_U8": _of(element_graphs.concatenation),
    "SOFTMAX_U8": _of(element_graphs.softmax),
    "PAD_U8": _of(spatial_graphs.pad),
    "ADD_U8": _of_one_batch(ARITHMETIC["ADD"]),
    "MUL_U8": _of_one_batch(ARITHMETIC["MUL"]),
}
