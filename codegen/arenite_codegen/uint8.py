# SPDX-License-Identifier: Apache-2.0
"""Models that were born uint8, as int8: values and zero points are moved by 128, which changes no number.

Inputs and outputs stay uint8: a QUANTIZE that only turns a bit over stands beside each. Weights keep their zero point,
which need not be 0. Where the reference rounds uint8 in another way than int8, operators say so by their attribute
`from_uint8`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from arenite.authority import is_uint8_born
from arenite.errors import UnsupportedOperatorError
from arenite.graph import Graph, Operator, Quantisation, Tensor

__all__ = ["FROM_UINT8", "as_int8"]

FROM_UINT8 = "from_uint8"


def as_int8(graph: Graph) -> Graph:
    """The same model on int8 inside, if some operator computes with uint8."""
    if not is_uint8_born(graph):
        return graph
    for operator in graph.operators:
        _check_types(graph, operator)
    tensors = [_moved(tensor) for tensor in graph.tensors]
    operators = [replace(op, attributes={**op.attributes, FROM_UINT8: True}) for op in graph.operators]
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    first: list[Operator] = []
    last: list[Operator] = []
    for ends, added in ((inputs, first), (outputs, last)):
        for position, index in enumerate(ends):
            if _is_uint8(graph, index):
                ends[position] = len(tensors)
                tensors.append(replace(graph.tensors[index], index=len(tensors)))
                pair = (len(tensors) - 1, index) if added is first else (index, len(tensors) - 1)
                number = len(graph.operators) + len(first) + len(last)
                added.append(Operator(number, "QUANTIZE", 1, (pair[0],), (pair[1],), {}))
    return replace(
        graph,
        tensors=tuple(tensors),
        operators=(*first, *operators, *last),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )


def _check_types(graph: Graph, operator: Operator) -> None:
    """uint8 beside int8 or int16: the reference takes the bytes of one for the other's."""
    tensors = [graph.tensors[i] for i in (*operator.inputs, *operator.outputs) if i >= 0]
    dtypes = {tensor.dtype for tensor in tensors if tensor.quantisation is not None}
    mixed = "uint8" in dtypes and not dtypes.isdisjoint(("int8", "int16"))
    if mixed and operator.kind not in ("QUANTIZE", "DEQUANTIZE"):
        raise UnsupportedOperatorError(
            f"{operator}: its tensors are of several types ({', '.join(map(str, tensors))})",
            where=graph.path,
            cure="Convert the model again, to one type.",
        )


def _is_uint8(graph: Graph, index: int) -> bool:
    return index >= 0 and graph.tensors[index].dtype == "uint8" and graph.tensors[index].quantisation is not None


def _moved(tensor: Tensor) -> Tensor:
    quant = tensor.quantisation
    if tensor.dtype != "uint8" or quant is None:
        return tensor
    data = None if tensor.data is None else (tensor.data ^ np.uint8(0x80)).view(np.int8)
    points = tuple(point - 128 for point in quant.zero_points)
    return replace(tensor, dtype="int8", data=data, quantisation=Quantisation(quant.scales, points, quant.axis))
