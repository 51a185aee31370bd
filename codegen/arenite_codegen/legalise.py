# SPDX-License-Identifier: Apache-2.0
"""Graph -> Network: exact rewrites only.

PAD goes into the convolution that follows it, SPACE_TO_BATCH_ND into its dilation, RESHAPE and its kin vanish, so does
a QUANTIZE that keeps every byte, input zero points are summed into biases, layers that nobody reads are dropped. What
has no kernel is an error that names the operator, the tensor and the cure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from arenite.errors import UnsupportedOperatorError
from arenite.graph import Graph, Operator, Tensor, printable
from arenite_codegen.dilation import fold_dilation
from arenite_codegen.network import IoTensor, Layer, Mode, Network, Read, Role, State, Value
from arenite_codegen.operators import OPERATORS, Row
from arenite_codegen.operators.base import MOVED_DTYPES, Context, is_on_a_grid, refuse, same_quantisation
from arenite_codegen.operators.binary import BROADCASTING
from arenite_codegen.operators.comparison import chooses_slices
from arenite_codegen.operators.movement import pad_amounts
from arenite_codegen.operators.shapes import check_output_shape
from arenite_codegen.states import States
from arenite_codegen.uint8 import as_int8

__all__ = ["Builder", "legalise"]

_CONTROL_FLOW = "Firmware has one straight schedule: convert the model with the loop unrolled or the branch decided."
_CURES = dict.fromkeys(("IF", "WHILE", "CALL", "STABLEHLO_WHILE"), _CONTROL_FLOW)
_GRID_DTYPES = ("int8", "uint8", "int16")
_IO_DTYPES = (*_GRID_DTYPES, "int32", "float32", "bool")
_MAX_ROWS = 0xFFFF
_MAX_PAD = 0x7FFF
_MAX_VALUE_BYTES = 1 << 28
_MAX_INPUTS, _MAX_OUTPUTS = 16, 255
# The second input of these is a shape or an axis, which the output's own shape repeats.
_SHAPE_READERS = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")


def legalise(graph: Graph) -> Network:
    """Lower every operator of a full-INT8 graph.

    Raises:
        UnsupportedOperatorError: An operator, a type or a shape has no kernel.
    """
    graph, folded = fold_dilation(as_int8(graph))
    _check_dtypes(graph)
    live = _live_operators(graph)
    batch = _batch_of(graph, live)
    _check_counts(graph, batch)
    builder = Builder(graph, batch, folded)
    for operator in live:
        builder.lower(operator)
    return builder.network()


def _live_operators(graph: Graph) -> list[Operator]:
    """Operators whose results reach an output, or that change a state.

    What only computes a shape does not, since every shape is known here.
    """
    wanted = set(graph.outputs)
    live = []
    for operator in reversed(graph.operators):
        if wanted.intersection(operator.outputs) or not operator.outputs:
            live.append(operator)
            wanted.update(operator.inputs[:1] if operator.kind in _SHAPE_READERS else operator.inputs)
    return live[::-1]


def _check_dtypes(graph: Graph) -> None:
    for index in (*graph.inputs, *graph.outputs):
        tensor = graph.tensors[index]
        if tensor.dtype not in _IO_DTYPES:
            raise UnsupportedOperatorError(
                f"{tensor} is {tensor.dtype}; inputs and outputs may be {', '.join(_IO_DTYPES)}",
                where=graph.path,
                cure="Convert it to full INT8: arenite convert MODEL --calibration PICTURES -o model.tflite",
            )
        if any(d == -1 for d in tensor.shape_signature[1:]):
            raise UnsupportedOperatorError(
                f"{tensor} has a dimension that is only known at run time ({list(tensor.shape_signature)})",
                where=graph.path,
                cure="Fix the input shape before converting.",
            )
        if tensor.elements == 0:
            raise UnsupportedOperatorError(f"{tensor} is empty", where=graph.path, cure="Fix the input shape.")
        if tensor.dtype in _GRID_DTYPES and not is_on_a_grid(tensor):
            raise UnsupportedOperatorError(
                f"{tensor} has no valid per-tensor scale and zero point",
                where=graph.path,
                cure="Convert it with full-INT8 quantisation.",
            )


def _check_counts(graph: Graph, batch: int) -> None:
    sizes = [graph.tensors[i].bytes for i in (*graph.inputs, *graph.outputs)]
    for what, count, most in (
        ("a batch", batch, _MAX_ROWS),
        ("inputs", len(graph.inputs), _MAX_INPUTS),
        ("outputs", len(graph.outputs), _MAX_OUTPUTS),
        ("an input or output in bytes", max(sizes), _MAX_VALUE_BYTES),
    ):
        if count > most:
            raise UnsupportedOperatorError(
                f"{what}: {count:,}, at most {most:,} are supported", where=graph.path, cure="Split the model."
            )


def _batch_of(graph: Graph, operators: list[Operator]) -> int:
    """The batch that every tensor shares, else 1: then a leading dimension is simply part of the shape.

    Only arithmetic may read an input that lacks the batch: it is broadcast.
    """
    broadcasts = {op.index: op.kind in BROADCASTING and not chooses_slices(graph, op) for op in operators}
    broadcast = {i for op in operators if broadcasts[op.index] for i in op.inputs}
    broadcast -= {i for op in operators if not broadcasts[op.index] for i in op.inputs}
    indices = [i for op in operators for i in op.outputs] + [i for i in graph.inputs if i not in broadcast]
    shapes = [graph.tensors[i].shape for i in indices]
    leading = {shape[0] if len(shape) > 1 else 1 for shape in shapes}
    if len(leading) == 1:
        return leading.pop()
    first = graph.tensors[graph.inputs[0]].shape
    return first[0] if len(first) == 4 else 1


def _check_limits(context: Context, layer: Layer, output: Value) -> None:
    """What the runtime's tables can hold; a corrupt file must not make the planner fill the memory either."""
    counts = [
        layer.steps,
        output.rows,
        *(n for r in layer.reads for n in (r.rows, r.window, r.stride, r.dilation, r.divisor)),
    ]
    if any(abs(read.pad_top) > _MAX_PAD for read in layer.reads):
        raise refuse(context, f"more than {_MAX_PAD:,} rows before the first that is read", "Pad or skip less.")
    if max(counts) > _MAX_ROWS:
        raise refuse(context, f"{max(counts):,} rows, at most {_MAX_ROWS:,} fit the row tables", "Use shorter windows.")
    if max(output.bytes, *(read.rows * read.row_bytes for read in layer.reads)) > _MAX_VALUE_BYTES:
        raise refuse(context, f"a tensor of over {_MAX_VALUE_BYTES:,} bytes", "Use a smaller resolution.")


def _row_of(context: Context) -> Row:
    operator = context.operator
    row = OPERATORS.get(operator.kind)
    named = f"version {operator.version}"
    if row is None:
        outputs = ", ".join(str(context.graph.tensors[index]) for index in operator.outputs[:1])
        cure = _CURES.get(operator.kind, f"These operators have one: {', '.join(sorted(OPERATORS))}.")
        raise refuse(context, f"it ({named}) has no kernel; it makes {outputs or 'nothing'}", cure)
    if operator.version > row.version:
        cure = "Convert the model with an older converter, or update arenite."
        raise refuse(context, f"{named} has no kernel; versions 1 to {row.version} have", cure)
    return row


class Builder:
    """Collects values and layers while operators are lowered one after the other."""

    def __init__(self, graph: Graph, batch: int, folded: Mapping[int, str]) -> None:
        self._graph = graph
        self._batch = batch
        self._values: list[Value] = []
        self._value_of: dict[int, int] = {}
        self._copied_to: dict[int, int] = {}
        self._layers: list[Layer] = []
        self._removed: dict[int, str] = dict(folded)
        self._producers = {index: op for op in graph.operators for index in op.outputs}
        self.states = States(graph, self._add_state)
        for index in graph.inputs:
            tensor = graph.tensors[index]
            items = self.items(tensor)
            self._add_value(tensor, 1, tensor.bytes // items, Role.INPUT, items)

    def lower(self, operator: Operator) -> None:
        """Turn one operator into a layer, or into nothing."""
        context = Context(self._graph, operator, self._batch, self)
        row = _row_of(context)
        check_output_shape(context, row.shape)
        found = row.lowering(context)(context)
        if found is None or (isinstance(found, Layer) and self._keeps_every_byte(context, found)):
            self._removed[operator.index] = "bytes stay where they are"
            return
        for layer in (found,) if isinstance(found, Layer) else found:
            _check_limits(context, layer, self._values[layer.output])
            self._layers.append(replace(layer, index=len(self._layers)))

    def value(self, tensor: Tensor) -> int:
        """The value that holds a tensor; constants are added when first read."""
        if tensor.index not in self._value_of:
            if tensor.data is None:
                raise UnsupportedOperatorError(
                    f"{tensor} is read but never written", where=self._graph.path, cure="Convert the model again."
                )
            items = self.items(tensor)
            self._add_value(tensor, 1, tensor.bytes // items, Role.CONSTANT, items, tensor.data)
        return self._value_of[tensor.index]

    def items(self, tensor: Tensor) -> int:
        """Batch items that an input or a constant holds: all, or one that every item shares."""
        return self._batch if len(tensor.shape) > 1 and tensor.shape[0] == self._batch else 1

    def _add_state(self, tensor: Tensor) -> int:
        self._add_value(tensor, 1, tensor.bytes, Role.STATE)
        return self._value_of[tensor.index]

    def alias(self, context: Context, source: Tensor, output: Tensor) -> None:
        """Let `output` be the memory of `source`."""
        self.alias_value(self.value(source), output)

    def alias_value(self, value: int, output: Tensor) -> None:
        """Let `output` be a value that exists."""
        self._value_of[output.index] = value

    def through_pad(self, context: Context) -> tuple[Tensor, int, int]:
        """The tensor that a convolution really reads, with the rows and pixels that a PAD put before it."""
        tensor = context.input(0)
        producer = self._producers.get(tensor.index)
        if producer is None or producer.kind != "PAD" or len(producer.inputs) != 2:
            return tensor, 0, 0
        pad = Context(self._graph, producer, self._batch, self)
        rows, pixels, channels = pad_amounts(pad)
        same_quantisation(pad, pad.input(0), tensor, MOVED_DTYPES)
        if channels != (0, 0):
            return tensor, 0, 0
        return pad.input(0), rows[0], pixels[0]

    def layer(
        self,
        context: Context,
        *,
        kernel: str,
        reads: tuple[Read, ...],
        parameters: Mapping[str, Any],
        macs: int = 0,
        mode: Mode = Mode.ROW,
        steps: int | None = None,
        out_rows: int | None = None,
        in_place: tuple[int, ...] = (),
        scratch_bytes: int = 0,
        output: Tensor | None = None,
    ) -> Layer:
        """A layer that writes the operator's output, whose rows are those of its shape unless `out_rows` says else.

        Args:
            output: Which one, of an operator that has several.
        """
        output = context.output if output is None else output
        rows = context.rows(output).height if out_rows is None else out_rows
        if rows < 1:
            raise refuse(context, f"{output} has no element")
        self._add_value(output, rows, output.bytes // self._batch // rows, Role.INTERNAL)
        return Layer(
            index=len(self._layers),
            operator=context.operator.index,
            kind=context.operator.kind,
            kernel=kernel,
            reads=reads,
            output=self._value_of[output.index],
            steps=rows if steps is None else steps,
            parameters=parameters,
            mode=mode,
            in_place=in_place,
            scratch_bytes=scratch_bytes,
            macs=macs,
        )

    def network(self) -> Network:
        """The finished network: outputs marked, dead layers dropped, numbers dense."""
        for index in dict.fromkeys(self._graph.outputs):
            self._finish_output(index)
        states = self.states.finished(self._finish_output, self._output_value)
        layers, states = self._live_layers(states)
        values, renumbered = self._used_values(layers, states)
        self._check_sizes(layers)
        inputs = tuple(self._io(i, renumbered[self._value_of[i]]) for i in self._graph.inputs)
        outputs = tuple(self._io(i, renumbered[self._output_value(i)]) for i in self._graph.outputs)
        dense = tuple(
            replace(
                layer,
                index=position,
                output=renumbered[layer.output],
                reads=tuple(replace(r, value=renumbered[r.value]) for r in layer.reads),
            )
            for position, layer in enumerate(layers)
        )
        own = tuple(
            replace(s, value=renumbered[s.value], next=None if s.next is None else renumbered[s.next]) for s in states
        )
        removed = self._removed
        return Network(self._graph.sha256, self._batch, values, dense, inputs, outputs, removed, states=own)

    def _check_sizes(self, layers: list[Layer]) -> None:
        """What is read, and what the caller sees, is exactly what lies in memory: no byte less, no byte more."""
        for layer in layers:
            for read in layer.reads:
                value = self._values[read.value]
                if read.rows * read.row_bytes != value.bytes:
                    reader, name = f"operator {layer.operator} {layer.kind}", printable(value.name)
                    raise self._refusal(f"{reader} reads '{name}', which lacks the batch of {self._batch}")
        for index, value_index in [(i, self._value_of[i]) for i in self._graph.inputs] + [
            (i, self._output_value(i)) for i in self._graph.outputs
        ]:
            value, tensor = self._values[value_index], self._graph.tensors[index]
            if value.items * value.bytes != tensor.bytes:
                raise self._refusal(f"{tensor} does not keep the batch of {self._batch}")

    def _refusal(self, what: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(what, where=self._graph.path, cure="Give every input and output one batch.")

    def _add_value(
        self, tensor: Tensor, rows: int, row_bytes: int, role: Role, items: int = 1, data: Any = None
    ) -> None:
        self._value_of[tensor.index] = len(self._values)
        number, name = len(self._values), tensor.name
        self._values.append(Value(number, name, rows, row_bytes, role, items, data, tensor.element_bytes))

    def _keeps_every_byte(self, context: Context, layer: Layer) -> bool:
        unchanged = np.arange(256, dtype=np.uint8).view(np.int8)
        if layer.kernel != "lookup_s8" or not np.array_equal(layer.parameters["table"], unchanged):
            return False
        self.alias(context, context.input(0), context.output)
        return True

    def _finish_output(self, index: int) -> None:
        value = self._values[self.value(self._graph.tensors[index])]
        if value.role in (Role.INPUT, Role.CONSTANT, Role.STATE):
            value = self._copy_to_output(index, value)
        self._values[value.index] = replace(value, role=Role.OUTPUT, items=self._batch)

    def _output_value(self, index: int) -> int:
        return self._copied_to.get(index, self._value_of[index])

    def _copy_to_output(self, index: int, source: Value) -> Value:
        """An output that is an input or a constant gets memory of its own; a PAD by nothing copies."""
        tensor = self._graph.tensors[index]
        size = tensor.bytes // self._batch
        self._copied_to[index] = len(self._values)
        number, width = len(self._values), tensor.element_bytes
        self._values.append(Value(number, tensor.name, 1, size, Role.OUTPUT, element_bytes=width))
        parameters = {"in_w": 1, "in_c": size, "left": 0, "right": 0, "before": 0, "after": 0, "value": 0}
        self._layers.append(
            Layer(
                index=len(self._layers),
                operator=len(self._graph.operators),
                kind="COPY",
                kernel="pad_s8",
                reads=(Read(source.index, 1, size),),
                output=self._copied_to[index],
                steps=1,
                parameters=parameters,
            )
        )
        return self._values[self._copied_to[index]]

    def _live_layers(self, states: list[State]) -> tuple[list[Layer], list[State]]:
        """What an output needs, in this run or by way of a state in a later one."""
        wanted = {self._output_value(i) for i in self._graph.outputs}
        kept: list[State] = []
        while True:
            live = self._layers_for(wanted)
            read = {read.value for layer in live for read in layer.reads}
            more = [s for s in states if s not in kept and s.value in read]
            if not more:
                break
            kept += more
            wanted.update(s.next for s in more if s.next is not None)
        alive = {layer.operator for layer in live}
        for layer in self._layers:
            if layer.operator not in alive:
                self._removed[layer.operator] = "folded into the layers that read it, or read by none"
        return live, [s for s in states if s in kept]

    def _layers_for(self, results: set[int]) -> list[Layer]:
        wanted, live = set(results), []
        for layer in reversed(self._layers):
            if layer.output in wanted:
                live.append(layer)
                wanted.update(read.value for read in layer.reads)
        return live[::-1]

    def _used_values(self, layers: list[Layer], states: list[State]) -> tuple[tuple[Value, ...], dict[int, int]]:
        used = {self._value_of[i] for i in self._graph.inputs} | {self._output_value(i) for i in self._graph.outputs}
        used.update(layer.output for layer in layers)
        used.update(value for s in states for value in (s.value, s.next) if value is not None)
        used.update(read.value for layer in layers for read in layer.reads)
        renumbered = {old: new for new, old in enumerate(sorted(used))}
        values = []
        for old in sorted(used):
            value = replace(self._values[old], index=renumbered[old])
            if value.role in (Role.INPUT, Role.STATE):
                value = _divide_like_readers(value, [r for layer in layers for r in layer.reads if r.value == old])
            values.append(value)
        return tuple(values), renumbered

    def _io(self, index: int, value: int) -> IoTensor:
        tensor = self._graph.tensors[index]
        on_a_grid = tensor.dtype in _GRID_DTYPES and tensor.quantisation is not None
        return IoTensor(
            name=tensor.name,
            value=value,
            shape=tensor.shape,
            dtype=tensor.dtype,
            scale=float(tensor.quantisation.scale) if on_a_grid and tensor.quantisation else 1.0,
            zero_point=tensor.quantisation.zero_point if on_a_grid and tensor.quantisation else 0,
        )


def _divide_like_readers(value: Value, reads: list[Read]) -> Value:
    """An input has the rows of its finest reader, so that they are released one by one."""
    if not reads:
        return value
    finest = max(reads, key=lambda read: read.rows)
    return replace(value, rows=finest.rows, row_bytes=finest.row_bytes)
