# SPDX-License-Identifier: Apache-2.0
"""From an ONNX graph to a TFLite file: values in channel-last order, operators by the table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import UnsupportedOperatorError
from arenite_converters.flatbuffer import schema
from arenite_converters.onnx_import.axes import Order, Shuffle, channel_last, natural, same_bytes
from arenite_converters.onnx_import.graph import Node, OnnxGraph
from arenite_converters.tflite_builder import ModelBuilder

__all__ = ["Imported", "Lowering", "Value", "lower"]

Array = npt.NDArray[Any]
# Operators that leave every axis where it is: what comes behind them says in which order the input's axes are.
_PER_ELEMENT = ("Add", "BatchNormalization", "Cast", "Clip", "Div", "Identity", "Mul", "Pad", "Relu", "Sub")
_PICTURE_CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class Value:
    """A value in the TFLite graph.

    Attributes:
        tensor: Its tensor.
        order: Memory axis i holds the ONNX value's axis order[i].
        shuffle: Given when the last axis in memory is a flattened map that stayed in its order.
        is_positive: No element is below 0.
    """

    tensor: int
    order: Order
    shuffle: Shuffle | None = None
    is_positive: bool = False


@dataclass(frozen=True)
class Imported:
    """A float TFLite model and how its ends relate to the source's.

    Attributes:
        content: The file's bytes.
        shape: Of the input, as the TFLite model takes it.
        input_order: Axis i of the TFLite input is axis input_order[i] of the ONNX input.
        output_order: The same of the output.
    """

    content: bytes
    shape: tuple[int, ...]
    input_order: Order
    output_order: Order


def lower(graph: OnnxGraph, table: Mapping[str, Callable[[Lowering, Node], None]]) -> Imported:
    """Write the graph as a TFLite model.

    Args:
        graph: Every node's kind is in the table.
        table: By operator type, what adds the TFLite operators of a node.

    Raises:
        UnsupportedOperatorError: A node has attributes that TFLite's operators cannot express; it is named.
    """
    return Lowering(graph).run(table)


class Lowering:
    """State of one import: the file so far, the values in it, the nodes that are already part of others."""

    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self.builder = ModelBuilder()
        self.values: dict[str, Value] = {}
        self._schema = schema()
        self._absorbed: set[int] = set()
        self._readers: dict[str, list[Node]] = {}
        self._names: Counter[str] = Counter()
        for node in graph.nodes:
            for name in set(node.inputs):
                self._readers.setdefault(name, []).append(node)

    def run(self, table: Mapping[str, Callable[[Lowering, Node], None]]) -> Imported:
        """Add the input, every node and the output."""
        order = self._input_order()
        given = self.graph.shapes[self.graph.input]
        shape = tuple(given[axis] for axis in order)
        entry = self.builder.tensor(self._name(self.graph.input), shape, "float32")
        self.values[self.graph.input] = Value(entry, order)
        for node in self.graph.nodes:
            if id(node) not in self._absorbed:
                table[node.kind](self, node)
        output, output_order = self._output()
        return Imported(self.builder.finish([entry], [output], "serving_default"), shape, order, output_order)

    def _input_order(self) -> Order:
        """A map whose channels are its second axis is taken channel-last."""
        shape = self.graph.shapes[self.graph.input]
        found = self._axes_wanted(self.graph.input)
        if found is None:
            found = len(shape) == 4 and shape[1] in _PICTURE_CHANNELS and shape[3] not in _PICTURE_CHANNELS
        return channel_last(len(shape)) if found else natural(len(shape))

    def _axes_wanted(self, name: str) -> bool | None:
        """True when a value goes into an operator of channel-first maps, False when it is transposed first."""
        for node in self._readers.get(name, ()):
            if node.kind == "Transpose":
                return False
            if node.kind.endswith(("Conv", "Pool", "ConvTranspose")):
                return True
            found = self._axes_wanted(node.outputs[0]) if node.kind in _PER_ELEMENT else None
            if found is not None:
                return found
        return None

    def _output(self) -> tuple[int, Order]:
        """Maps and sequences stay channel-last when they are; everything else goes out in its own order."""
        name = self.graph.output
        order = natural(len(self.shape(name)))
        if name in self.values and self.values[name].order == channel_last(len(order)):
            order = self.values[name].order
        return self.operand(name, order), order

    # Reading the graph

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a value, in ONNX's order."""
        return self.graph.shapes[name]

    def constant(self, name: str) -> Array | None:
        """Contents of a value that does not depend on the input; None for others."""
        return self.graph.constants.get(name)

    def required(self, node: Node, position: int, what: str) -> Array:
        """Contents of an input that must be a constant."""
        found = self.constant(node.inputs[position]) if position < len(node.inputs) else None
        if found is None:
            raise self.refuse(node, f"whose {what} is no constant")
        return found

    def optional(self, node: Node, position: int) -> Array | None:
        """Contents of an input that may be absent.

        Raises:
            UnsupportedOperatorError: It is there and no constant.
        """
        if position >= len(node.inputs) or not node.inputs[position]:
            return None
        found = self.constant(node.inputs[position])
        if found is None:
            raise self.refuse(node, f"whose input {position} is no constant")
        return found

    def refuse(self, node: Node, why: str) -> UnsupportedOperatorError:
        """The error of a node that a lowering cannot express."""
        return UnsupportedOperatorError(
            f"no conversion for {node} {why}",
            where=self.graph.where,
            cure="Replace the operator by ordinary ones and export the model again.",
        )

    def only_reader(self, name: str) -> Node | None:
        """The one node that reads a value, when nothing else does."""
        readers = self._readers.get(name, [])
        return readers[0] if len(readers) == 1 and name != self.graph.output else None

    def absorb(self, node: Node) -> None:
        """A node is part of what was added already."""
        self._absorbed.add(id(node))

    # Writing the file

    def add(self, array: Array, name: str = "constant") -> int:
        """A constant tensor."""
        data = np.ascontiguousarray(array)
        if data.dtype not in (np.int32, np.float32):
            data = data.astype(np.int32 if data.dtype.kind in "iu" else np.float32)
        # ascontiguousarray makes a scalar an array of one.
        data = data.reshape(np.shape(array))
        return self.builder.tensor(self._name(name), data.shape, str(data.dtype), data=data)

    def emit(
        self,
        kind: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        name: str,
        options: str | None = None,
        **attributes: Any,
    ) -> int:
        """An operator with one output.

        Args:
            kind: TFLite operator.
            inputs: Tensors.
            shape: Of the output, in memory order.
            name: Of the output tensor; made unique.
            options: TFLite options table.
            attributes: Its fields; `padding` and `fusedActivationFunction` by name.

        Returns:
            The output tensor.
        """
        output = self.builder.tensor(self._name(name), shape, "float32")
        if "padding" in attributes:
            attributes["padding"] = getattr(self._schema.Padding, attributes["padding"])
        if "fusedActivationFunction" in attributes:
            kinds = self._schema.ActivationFunctionType
            attributes["fusedActivationFunction"] = getattr(kinds, attributes["fusedActivationFunction"])
        self.builder.operator(kind, inputs, [output], options=options, **attributes)
        return output

    def _name(self, name: str) -> str:
        self._names[name] += 1
        return name if self._names[name] == 1 else f"{name};{self._names[name] - 1}"

    def reshape(self, tensor: int, shape: Sequence[int], name: str) -> int:
        """A RESHAPE."""
        wanted = self.add(np.array(shape, np.int32), f"{name}/shape")
        return self.emit("RESHAPE", [tensor, wanted], shape, name, "ReshapeOptions", newShape=list(shape))

    def transpose(self, tensor: int, shape: Sequence[int], permutation: Sequence[int], name: str) -> int:
        """A TRANSPOSE of a tensor of this shape; a RESHAPE where that gives the same bytes."""
        result = [shape[axis] for axis in permutation]
        if same_bytes(shape, natural(len(shape)), tuple(permutation)):
            return tensor if result == list(shape) else self.reshape(tensor, result, name)
        wanted = self.add(np.array(permutation, np.int32), f"{name}/permutation")
        return self.emit("TRANSPOSE", [tensor, wanted], result, name, "TransposeOptions")

    # Values

    def value(self, name: str) -> Value:
        """A value whose axes are each in sequence; a constant becomes a tensor in its own order."""
        if name not in self.values:
            array = self.graph.constants[name]
            return Value(self.add(array, name), natural(array.ndim), None, bool((array >= 0).all()))
        value = self.values[name]
        if value.shuffle is None:
            return value
        kept = [self.shape(name)[axis] for axis in value.order[:-1]]
        lying = [value.shuffle.extents[axis] for axis in value.shuffle.order]
        tensor = self.reshape(value.tensor, [*kept, *lying], name)
        back = [len(kept) + value.shuffle.order.index(axis) for axis in range(len(lying))]
        tensor = self.transpose(tensor, [*kept, *lying], [*range(len(kept)), *back], name)
        tensor = self.reshape(tensor, [*kept, math.prod(lying)], name)
        self.values[name] = Value(tensor, value.order, None, value.is_positive)
        return self.values[name]

    def operand(self, name: str, order: Order) -> int:
        """The tensor of a value in a wanted order, transposed when it must be."""
        if name not in self.values:
            return self.add(self.graph.constants[name].transpose(order), name)
        value = self.value(name)
        if value.order == order:
            return value.tensor
        shape = [self.shape(name)[axis] for axis in value.order]
        permutation = [value.order.index(axis) for axis in order]
        return self.transpose(value.tensor, shape, permutation, name)

    def map(self, name: str) -> int:
        """The tensor of a value in channel-last order."""
        return self.operand(name, channel_last(len(self.shape(name))))

    def memory_shape(self, name: str, order: Order) -> list[int]:
        """Shape of a value as it lies in memory in this order."""
        return [self.shape(name)[axis] for axis in order]

    def activation(self, name: str) -> tuple[str, str]:
        """The activation that TFLite's operators bring along, when it comes right behind a value.

        Returns:
            Its name in TFLite, and the value behind it.
        """
        node = self.only_reader(name)
        limits = None if node is None else self.clip_limits(node)
        fused = {(0.0, math.inf): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}
        if node is None or limits not in fused:
            return "NONE", name
        self.absorb(node)
        return fused[limits], node.outputs[0]

    def clip_limits(self, node: Node) -> tuple[float, float] | None:
        """Lower and upper limit of a Relu or a Clip with constant limits; None for another node."""
        if node.kind == "Relu":
            return 0.0, math.inf
        if node.kind != "Clip":
            return None
        if self.graph.opset < 11:
            return float(node.attributes.get("min", -math.inf)), float(node.attributes.get("max", math.inf))
        low, high = self.optional(node, 1), self.optional(node, 2)
        return (
            -math.inf if low is None else float(low.flat[0]),
            math.inf if high is None else float(high.flat[0]),
        )
