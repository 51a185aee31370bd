# SPDX-License-Identifier: Apache-2.0
"""An ONNX graph as plain data: nodes that compute with the input, shapes of all values, constants."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import ModelError, UnsupportedOperatorError
from arenite.graph import printable
from arenite_converters.float_model import first_line
from arenite_converters.onnx_import.source import infer, onnx_package

__all__ = ["Node", "OnnxGraph", "described", "read_onnx_graph"]

Array = npt.NDArray[Any]
# These depend on their input's shape alone, which is static.
_SHAPE_READERS = ("Shape", "Size")
_OWN_DOMAINS = ("", "ai.onnx")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n\s*(.+)')


@dataclass(frozen=True)
class Node:
    """One operator.

    Attributes:
        kind: ONNX operator type; with its domain when it is not ONNX's own.
        name: Of the node, or of its output when it has none.
        inputs: Names of values; "" is an absent optional input.
        outputs: Names of values.
        attributes: Plain values; tensors as arrays.
        origin: Module path and source line of the trained model, as far as the exporter wrote them, as text that
            goes on after the node's name.
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    origin: str

    def __str__(self) -> str:
        return f"{self.kind} (node '{printable(self.name)}'{self.origin})"


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """A static graph with one input and one output.

    Attributes:
        nodes: Those between the input and the output, in execution order.
        shapes: Of every value, constants included.
        constants: Values that do not depend on the input's numbers.
        opset: Version of ONNX's own operators.
        where: For messages.
    """

    nodes: tuple[Node, ...]
    input: str
    output: str
    shapes: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, Array]
    opset: int
    where: str


def read_onnx_graph(model: Any, supported: Collection[str], where: str) -> OnnxGraph:
    """Read a model that `fixed_model` made.

    Args:
        model: ONNX ModelProto with a static input.
        supported: Operator types that have a lowering.
        where: For messages.

    Raises:
        UnsupportedOperatorError: An operator has no lowering; every such kind is named with its first node.
        ModelError: ONNX Runtime cannot run the model.
    """
    graph = model.graph
    initial = {tensor.name: _array(tensor) for tensor in graph.initializer}
    source = next(value.name for value in graph.input if value.name not in initial)
    target = graph.output[0].name
    opset = next((o.version for o in model.opset_import if o.domain in _OWN_DOMAINS), 1)
    nodes, folded = _split(_live([_node(raw) for raw in graph.node], target), set(initial))
    _refuse_unsupported(nodes, supported, where)
    computed = [name for node in (*folded, *nodes) for name in node.outputs if name]
    values = _run_once(model, source, computed, where)
    constant = {name for node in folded for name in node.outputs}
    shapes = {name: value.shape for name, value in {**initial, **values}.items()}
    shapes[source] = tuple(axis.dim_value for axis in _input(graph, source).type.tensor_type.shape.dim)
    constants = {**initial, **{name: value for name, value in values.items() if name in constant}}
    return OnnxGraph(tuple(nodes), source, target, shapes, constants, opset, where)


def _input(graph: Any, name: str) -> Any:
    return next(value for value in graph.input if value.name == name)


def _array(tensor: Any) -> Array:
    found = np.asarray(onnx_package().numpy_helper.to_array(tensor))
    return found.astype(np.float32) if found.dtype in (np.float16, np.float64) else found


def _node(raw: Any) -> Node:
    kind = raw.op_type if raw.domain in _OWN_DOMAINS else f"{raw.domain}.{raw.op_type}"
    name = raw.name or (raw.output[0] if raw.output else kind)
    return Node(kind, name, tuple(raw.input), tuple(raw.output), _attributes(raw), _origin(raw))


def _attributes(raw: Any) -> dict[str, Any]:
    onnx = onnx_package()
    found = {}
    for attribute in raw.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if attribute.type == onnx.AttributeProto.TENSOR:
            value = _array(value)
        found[attribute.name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return found


def _origin(raw: Any) -> str:
    """What PyTorch's exporter wrote about a node."""
    notes = {entry.key: entry.value for entry in raw.metadata_props}
    scopes = re.findall(r"'([^']*)'", notes.get("pkg.torch.onnx.name_scopes", ""))
    return _place(scopes[-2] if len(scopes) > 1 else "", notes.get("pkg.torch.onnx.stack_trace", ""))


def described(kind: str, name: str, module: str, trace: str) -> str:
    """A node of a PyTorch program, as messages name it.

    Args:
        kind: Operator.
        name: Of the node.
        module: Path of the module that it belongs to, or "".
        trace: Python's stack trace of the line that made it, or "".
    """
    return str(Node(kind, name, (), (), {}, _place(module, trace)))


def _place(module: str, trace: str) -> str:
    """The module's path and the line of the user's own code."""
    place = f", module {printable(module)}" if module else ""
    frames = _FRAME.findall(trace)
    own = [frame for frame in frames if "site-packages" not in frame[0]] or frames
    if own:
        file, line, function, code = own[-1]
        place += f", {PurePath(file).name} line {line} in {function}: {printable(code.strip())}"
    return place


def _live(nodes: list[Node], target: str) -> list[Node]:
    wanted, live = {target}, []
    for node in reversed(nodes):
        if wanted.intersection(node.outputs):
            live.append(node)
            wanted.update(node.inputs)
    return live[::-1]


def _split(nodes: list[Node], constants: set[str]) -> tuple[list[Node], list[Node]]:
    """Nodes that compute with the input, and those whose results are constants."""
    known = {"", *constants}
    dynamic: list[Node] = []
    folded: list[Node] = []
    for node in nodes:
        is_constant = node.kind in _SHAPE_READERS or known.issuperset(node.inputs)
        (folded if is_constant else dynamic).append(node)
        if is_constant:
            known.update(node.outputs)
    return dynamic, folded


def _refuse_unsupported(nodes: list[Node], supported: Collection[str], where: str) -> None:
    first: dict[str, Node] = {}
    for node in nodes:
        if node.kind not in supported:
            first.setdefault(node.kind, node)
    if first:
        raise UnsupportedOperatorError(
            "no conversion for " + "; ".join(str(node) for node in first.values()),
            where=where,
            cure="Replace the operators that are named by ordinary ones and export the model again.",
        )


def _run_once(model: Any, source: str, names: list[str], where: str) -> dict[str, Array]:
    """Every computed value for an input of zeros: their shapes, and the contents of those that are constants."""
    onnx = onnx_package()
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = infer(probe.SerializeToString(), where)
    shape = [axis.dim_value for axis in _input(model.graph, source).type.tensor_type.shape.dim]
    try:
        found = session.run(names, {source: np.zeros(shape, np.float32)})
    except Exception as error:  # whatever ONNX Runtime raises when shapes do not fit
        raise ModelError(
            f"ONNX Runtime cannot run the model with a batch of 1 ({first_line(error)})",
            where=where,
            cure="Export it with a batch of 1.",
        ) from error
    return {name: np.asarray(value) for name, value in zip(names, found, strict=True)}
