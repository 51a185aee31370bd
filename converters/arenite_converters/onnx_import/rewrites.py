# SPDX-License-Identifier: Apache-2.0
"""ONNX to ONNX, before the lowering: zeros around a map belong to the convolution that reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from arenite_converters.onnx_import.graph import Node, OnnxGraph

__all__ = ["merge_pads"]


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
