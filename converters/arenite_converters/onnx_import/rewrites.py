# SPDX-License-Identifier: Apache-2.0
"""ONNX to ONNX, before the lowering, so that what belongs to a convolution stands right behind or before it.

Exporters of channel-last frameworks put a Transpose on each side of a convolution: it moves behind the operators that
compute element by element, where it meets its opposite. Zeros around a map then belong to the convolution that reads
them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.onnx_import.axes import natural
from arenite_converters.onnx_import.graph import Node, OnnxGraph

__all__ = ["VANISHING", "merge_pads", "sink_transposes"]

Array = npt.NDArray[Any]
Permutation = tuple[int, ...]
_PER_ELEMENT = (
    "Add", "Clip", "Div", "HardSigmoid", "HardSwish", "LeakyRelu",
    "Mul", "Relu", "Sigmoid", "Sub",
)
VANISHING = ("Dropout", "Identity")
_SINKABLE = (*_PER_ELEMENT, "Pad")


def sink_transposes(graph: OnnxGraph) -> OnnxGraph:
    """The graph with each Transpose as late as it can be, without those that undo each other and what does nothing."""
    return _Sink(graph).run()


@dataclass
class _Sink:
    """State of one pass.

    Attributes:
        graph: What is rewritten.
        turned: Values that are not there yet: each is a transposed other one.
        same: Values that are another one.
    """

    graph: OnnxGraph
    nodes: list[Node] = field(default_factory=list)
    turned: dict[str, tuple[str, Permutation]] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)

    def run(self) -> OnnxGraph:
        self.shapes, self.constants = dict(self.graph.shapes), dict(self.graph.constants)
        for node in self.graph.nodes:
            node = replace(node, inputs=tuple(self.same.get(name, name) for name in node.inputs))
            if node.kind == "Transpose":
                self._turn(node)
            elif node.kind in VANISHING:
                self.same[node.outputs[0]] = node.inputs[0]
            else:
                sunk = self._sunk(node)
                if sunk is None:
                    self._materialise(node.inputs)
                self.nodes.append(sunk or node)
        output = self.same.get(self.graph.output, self.graph.output)
        self._materialise([output])
        return replace(
            self.graph, nodes=tuple(self.nodes), output=output, shapes=self.shapes, constants=self.constants
        )

    def _turn(self, node: Node) -> None:
        source, name = node.inputs[0], node.outputs[0]
        permutation = tuple(node.attributes.get("perm", natural(len(self.shapes[source]))[::-1]))
        if source in self.turned:
            source, first = self.turned[source]
            permutation = tuple(first[axis] for axis in permutation)
        if permutation == natural(len(permutation)):
            self.same[name] = source
        else:
            self.turned[name] = (source, permutation)

    def _materialise(self, names: Any) -> None:
        for name in names:
            if name in self.turned:
                source, permutation = self.turned.pop(name)
                self.nodes.append(Node("Transpose", name, (source,), (name,), {"perm": permutation}, ""))

    def _sunk(self, node: Node) -> Node | None:
        """The node before the transposition of its input; the transposition is then one of its output."""
        found = [self.turned[name] for name in node.inputs if name in self.turned]
        if node.kind not in _SINKABLE or not found:
            return None
        permutation, name = found[0][1], node.outputs[0]
        if len(self.shapes[name]) != len(permutation):
            return None
        inputs = [self._before(node, position, permutation) for position in range(len(node.inputs))]
        if None in inputs:
            return None
        before = f"{name}/before"
        self.shapes[before] = tuple(self.shapes[name][permutation.index(axis)] for axis in natural(len(permutation)))
        self.turned[name] = (before, permutation)
        return replace(node, inputs=tuple(str(source) for source in inputs), outputs=(before, *node.outputs[1:]))

    def _before(self, node: Node, position: int, permutation: Permutation) -> str | None:
        """An input's name before the transposition; None when it has no such form."""
        name = node.inputs[position]
        if name in self.turned:
            source, own = self.turned[name]
            return source if own == permutation else None
        constant = self.constants.get(name)
        if not name or (constant is not None and constant.size == 1):
            return name
        if constant is None or (node.kind == "Pad" and (position > 1 or len(node.inputs) > 3)):
            return None
        before = f"{name}/before {node.name}"
        self.constants[before] = _turned_back(constant, permutation, is_pads=node.kind == "Pad")
        self.shapes[before] = self.constants[before].shape
        return before


def _turned_back(constant: Array, permutation: Permutation, *, is_pads: bool) -> Array:
    back = np.argsort(permutation)
    if is_pads:
        return np.asarray(constant.reshape(2, -1)[:, back].reshape(-1))
    full = constant.reshape((1,) * (len(permutation) - constant.ndim) + constant.shape)
    return np.asarray(full.transpose(back))


def merge_pads(graph: OnnxGraph) -> OnnxGraph:
    """The graph without those Pads of zeros, over height and width, that one convolution alone reads."""
    readers = Counter(name for node in graph.nodes for name in node.inputs)
    pads = {node.outputs[0]: node for node in graph.nodes if node.kind == "Pad" and readers[node.outputs[0]] == 1}
    nodes = []
    for node in graph.nodes:
        amounts = _spatial(graph, pads[node.inputs[0]]) if node.kind == "Conv" and node.inputs[0] in pads else None
        if amounts is not None and node.attributes.get("auto_pad", "NOTSET") == "NOTSET":
            own = node.attributes.get("pads", (0,) * len(amounts))
            summed = [first + second for first, second in zip(own, amounts, strict=True)]
            source = pads.pop(node.inputs[0]).inputs[0]
            node = replace(
                node, inputs=(source, *node.inputs[1:]), attributes={**node.attributes, "pads": summed}
            )
        nodes.append(node)
    needed = {name for node in nodes for name in node.inputs} | {graph.output}
    return replace(graph, nodes=tuple(n for n in nodes if n.kind != "Pad" or n.outputs[0] in needed))


def _spatial(graph: OnnxGraph, node: Node) -> list[int] | None:
    """The amounts before and after each spatial axis; None when it fills with something else or elsewhere."""
    if graph.opset < 11 or node.attributes.get("mode", "constant") != "constant":
        return None
    widths, filling, axes = (graph.constants.get(name) for name in (*node.inputs[1:], "", "")[:3])
    if widths is None or (filling is not None and filling.any()) or axes is not None:
        return None
    before, after = [int(n) for n in widths[: len(widths) // 2]], [int(n) for n in widths[len(widths) // 2 :]]
    return None if any(before[:2] + after[:2]) or min(before + after) < 0 else [*before[2:], *after[2:]]
