# SPDX-License-Identifier: Apache-2.0
"""Cross-layer equalisation: the channels between two layers get like ranges, and the network stays the same function.

A channel that one layer makes and only the next one reads may be divided by s, weights and bias, when the next layer's
weights for it are multiplied by s. With r1 and r2 the largest absolute weight of the channel in both layers,
s = sqrt(r1 / r2) makes them equal (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias
Correction, 2019). No activation or a ReLU may lie between; ReLU6 may not: 6 does not scale with its channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.graph import Graph, Operator
from arenite.tflite_graph import parse_graph
from arenite_converters.correction import WEIGHTED
from arenite_converters.flatbuffer import pack, replace_constant, unpack

__all__ = ["equalised"]

Array = npt.NDArray[Any]
_HOMOGENEOUS = (0, 1)  # no activation, ReLU
_ROUNDS = 20
_CONVERGED = 1e-3
# A channel this much smaller than the layer's largest says nothing; scaling it up would only spread its noise.
_DEAD = 1e-4


@dataclass(frozen=True)
class _Pair:
    first: Operator
    second: Operator


def equalised(content: bytes) -> bytes:
    """A float model with its chains of layers equalised; the same bytes when it has none."""
    graph = parse_graph(content)
    pairs = _pairs(graph)
    if not pairs:
        return content
    used = {i for pair in pairs for op in (pair.first, pair.second) for i in op.inputs[1:] if i >= 0}
    constants = {i: np.array(graph.tensors[i].data, np.float64) for i in used}
    for _ in range(_ROUNDS):
        changes = [_equalise(pair, constants) for pair in pairs]
        if max(changes) < _CONVERGED:
            break
    model = unpack(content)
    for index, values in constants.items():
        replace_constant(model, index, values.astype(np.float32))
    return pack(model)


def _pairs(graph: Graph) -> list[_Pair]:
    readers: dict[int, list[Operator]] = {}
    for op in graph.operators:
        for index in op.inputs:
            readers.setdefault(index, []).append(op)
    found = []
    for op in graph.operators:
        after = readers.get(op.outputs[0], [])
        is_inner = len(after) == 1 and op.outputs[0] not in graph.outputs
        if is_inner and _is_layer(graph, op, readers) and _is_layer(graph, after[0], readers):
            scales_along = op.attributes["fused_activation_function"] in _HOMOGENEOUS
            if scales_along and _reads_channels(graph, op, after[0]):
                found.append(_Pair(op, after[0]))
    return found


def _is_layer(graph: Graph, operator: Operator, readers: dict[int, list[Operator]]) -> bool:
    if operator.kind not in WEIGHTED:
        return False
    constants = [i for i in operator.inputs[1:] if i >= 0]
    return all(
        graph.tensors[i].dtype == "float32" and graph.tensors[i].data is not None and len(readers[i]) == 1
        for i in constants
    )


def _reads_channels(graph: Graph, first: Operator, second: Operator) -> bool:
    """The second layer's input channels are the first one's output channels, one to one."""
    made = graph.tensors[first.outputs[0]].shape[-1]
    weights = graph.tensors[second.inputs[1]].shape
    if second.kind == "DEPTHWISE_CONV_2D":
        return int(second.attributes["depth_multiplier"]) == 1
    return weights[-1] == made


def _equalise(pair: _Pair, constants: dict[int, Array]) -> float:
    """Balance one pair in place; the largest change of a channel, as a logarithm."""
    first, second = constants[pair.first.inputs[1]], constants[pair.second.inputs[1]]
    made, read = _largest(first, _made_axis(pair.first)), _largest(second, second.ndim - 1)
    alive = (made > _DEAD * made.max()) & (read > _DEAD * read.max())
    scale = np.ones_like(made)
    scale[alive] = np.sqrt(made[alive] / read[alive])
    # Between the two only ratios matter: the channels' mean size stays.
    scale[alive] /= np.exp(np.log(scale[alive]).mean()) if alive.any() else 1.0
    first /= scale if _made_axis(pair.first) else scale.reshape(-1, *[1] * (first.ndim - 1))
    for bias in pair.first.inputs[2:]:
        if bias >= 0:
            constants[bias] /= scale
    second *= scale
    return float(np.abs(np.log(scale)).max())


def _made_axis(operator: Operator) -> int:
    """The axis of the weights that counts the layer's output channels."""
    return 3 if operator.kind == "DEPTHWISE_CONV_2D" else 0


def _largest(weights: Array, axis: int) -> Array:
    return np.asarray(np.abs(weights).max(axis=tuple(i for i in range(weights.ndim) if i != axis)))
