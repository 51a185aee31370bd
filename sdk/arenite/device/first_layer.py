# SPDX-License-Identifier: Apache-2.0
"""Finds the first layer, row and channel where a board does not compute what the reference kernels do.

One traced run gives the checksum of every layer's rows; layers are in the order of the data, so the first that differs
had right inputs. A second run gives the checksums of its rows, a third the first row that differs.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite._ulps import MOST_ULPS, ulps_apart
from arenite.authority import Authority, authority_of, is_uint8_born
from arenite.device.client import Device
from arenite.device.rounding_rules import values_by_rule
from arenite.device.tracing import read_row, row_checksums, trace_run
from arenite.errors import MissingToolError, UsageError
from arenite.graph import Graph, Tensor
from arenite.tflite_graph import parse_graph

__all__ = ["LayerDifference", "ReferenceModel", "first_wrong_layer"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LayerDifference:
    """Where a model's computation first goes wrong.

    Attributes:
        layer: As the firmware numbers it; `operators` are those of the file that run in it.
        rows_made, rows_expected: Of its output; where they differ, the row schedule is at fault.
        row, column, channel: Of the first byte that differs, in a map of height × width × channels; `column` is 0 where
            the value has no width. None where every row that was made is right.
        expected, got: Both values there, on the tensor's own grid.
        explanation: Which rounding rule makes the board's value, or that none does.
    """

    layer: int
    operators: tuple[int, ...]
    kind: str
    output: str
    variants: tuple[str, ...]
    rows_made: int
    rows_expected: int
    row: int | None
    column: int | None
    channel: int | None
    expected: float | None
    got: float | None
    explanation: str


class ReferenceModel:
    """The model file of a bundle, and what the reference kernels make of it.

    Raises:
        UsageError: The file is missing or is another model.
    """

    def __init__(self, bundle_dir: Path, model: Mapping[str, Any]) -> None:
        path = bundle_dir / str(model.get("reference", ""))
        cure = "Bundle the model again with this version"
        try:
            self._content = path.read_bytes()
        except OSError as error:
            raise UsageError("the bundle lacks its model file", where=str(path), cure=cure) from error
        self.graph: Graph = parse_graph(self._content, str(path))
        if self.graph.sha256 != model["sha256"]:
            raise UsageError("the bundle's model file is another model", where=str(path), cure=cure)
        self._authority = authority_of(self.graph)

    @property
    def can_compare_layers(self) -> bool:
        """Whether there is an authority here on what is inside the model; of one that was uint8 there is none."""
        return self._authority is not None and self._authority.available and not is_uint8_born(self.graph)

    @property
    def why_no_outputs(self) -> str:
        """What to do about an authority that is missing; empty where it is not."""
        if self._authority is None:
            return "Its operators need both reference kernels and keep state: so that nothing stands in for them here"
        missing = " and ".join(self._authority.missing)
        return f"Install {missing}: pip install 'arenite[firmware]'" if missing else ""

    def arrays(self, inputs: Sequence[bytes]) -> list[Array]:
        """The bytes of the link as the model's inputs."""
        tensors = [self.graph.tensors[i] for i in self.graph.inputs]
        return [np.frombuffer(data, t.dtype).reshape(t.shape) for data, t in zip(inputs, tensors, strict=True)]

    def random_inputs(self, generator: np.random.Generator) -> list[bytes]:
        """Bytes for each input: any bits for integers, a normal distribution for floats."""
        return [_random(self.graph.tensors[i], generator).tobytes() for i in self.graph.inputs]

    def outputs(self, vectors: Sequence[Sequence[bytes]]) -> list[list[bytes]]:
        """The bytes of each output for each vector."""
        authority = self._checked()
        found = authority.outputs(self._content, [self.arrays(inputs) for inputs in vectors], self.graph.path)
        return [[output.tobytes() for output in outputs] for outputs in found]

    def tensors(self, inputs: Sequence[bytes], wanted: Sequence[int]) -> dict[int, Array]:
        """Values of tensors inside the model; inputs are what they are."""
        arrays = self.arrays(inputs)
        given = dict(zip(self.graph.inputs, arrays, strict=True))
        made = sorted({index for index in wanted if index not in given})
        if not made:
            return given
        return given | dict(self._checked().tensors(self._content, arrays, made, self.graph.path))

    def _checked(self) -> Authority:
        if self._authority is None:
            raise MissingToolError("no reference kernels give the outputs of this model", cure=self.why_no_outputs)
        return self._authority


def _random(tensor: Tensor, generator: np.random.Generator) -> Array:
    kind = np.dtype(tensor.dtype)
    if kind.kind == "f":
        return generator.standard_normal(tensor.shape).astype(kind)
    if kind.kind == "b":
        return generator.integers(0, 2, tensor.shape).astype(kind)
    return np.frombuffer(generator.bytes(tensor.elements * kind.itemsize), kind)


def first_wrong_layer(
    device: Device,
    reference: ReferenceModel,
    layers: Sequence[Mapping[str, Any]],
    inputs: Sequence[bytes],
    timeout_s: float,
) -> LayerDifference | None:
    """Runs one input on the board, traced, and compares layer by layer; None when every layer is right.

    Args:
        device: The board, with the model selected.
        reference: Its model file.
        layers: The manifest's layers of the model.
        inputs: The bytes of each input.
        timeout_s: For each of at most about three runs.

    Raises:
        LinkError: The board does not answer.
        MissingToolError: The reference kernels are not installed.
    """
    _, records = trace_run(device, inputs, timeout_s=timeout_s)
    values = reference.tensors(inputs, [int(layer["tensor"]) for layer in layers if layer["tensor"] is not None])
    for index, (layer, record) in enumerate(zip(layers, records, strict=True)):
        if layer["tensor"] is None:
            continue
        tensor = reference.graph.tensors[layer["tensor"]]
        rows = _rows(values[tensor.index], layer)
        if record.rows == len(rows) and record.checksum == zlib.crc32(b"".join(rows)):
            continue
        got = row_checksums(device, inputs, index, min(record.rows, len(rows)), timeout_s)
        wrong, found = None, b""
        for y in (y for y, row in enumerate(rows[: len(got)]) if zlib.crc32(row) != got[y]):
            wrong, found = y, read_row(device, inputs, index, y, layer["row_bytes"], timeout_s)
            if not _is_near(tensor, rows[y], found):
                break
        else:
            if wrong is not None and record.rows == len(rows):
                continue
        return _difference(reference, values, index, layer, tensor, rows, record.rows, wrong, found)
    return None


def _is_near(tensor: Tensor, expected: bytes, got: bytes) -> bool:
    """Whether a row of floats differs in its last bits alone."""
    if tensor.dtype != "float32" or len(expected) != len(got):
        return False
    return bool((ulps_apart(*(np.frombuffer(row, np.float32) for row in (expected, got))) <= MOST_ULPS).all())


def _rows(value: Array, layer: Mapping[str, Any]) -> list[bytes]:
    """A tensor's rows as the layer makes them; of each item the first, where nobody reads the last ones."""
    data, size = value.tobytes(), int(layer["row_bytes"])
    items = value.shape[0] if value.ndim > 0 and layer["rows"] % max(1, value.shape[0]) == 0 else 1
    if layer["rows"] * size == len(data):
        items = 1
    made, whole = layer["rows"] // items, len(data) // items
    starts = [item * whole + y * size for item in range(items) for y in range(made)]
    return [data[start : start + size] for start in starts]


def _difference(
    reference: ReferenceModel,
    values: Mapping[int, Array],
    index: int,
    layer: Mapping[str, Any],
    tensor: Tensor,
    rows: Sequence[bytes],
    rows_made: int,
    wrong: int | None,
    found: bytes,
) -> LayerDifference:
    place: tuple[int | None, ...] = (None, None, None)
    expected: float | None = None
    got: float | None = None
    explanation = f"it made {rows_made} rows, the schedule has {len(rows)}: look at the row schedule"
    if wrong is not None:
        at = next((i for i, (a, b) in enumerate(zip(rows[wrong], found, strict=True)) if a != b), None)
        if at is None:
            explanation = "the row differs from run to run: look for memory that two things share"
        else:
            kind = np.dtype(tensor.dtype)
            flat = (wrong * int(layer["row_bytes"]) + at) // kind.itemsize
            place = _place(tensor, flat)
            expected, got = (np.frombuffer(row, kind)[at // kind.itemsize].item() for row in (rows[wrong], found))
            explanation = _explain(reference, values, layer, flat, rows_made == len(rows), got)
    row, column, channel = place
    return LayerDifference(
        layer=index,
        operators=tuple(layer["operators"]),
        kind=str(layer["kind"]),
        output=str(layer["output"]),
        variants=tuple(layer["variants"]),
        rows_made=rows_made,
        rows_expected=len(rows),
        row=row,
        column=column,
        channel=channel,
        expected=expected,
        got=got,
        explanation=explanation,
    )


def _place(tensor: Tensor, flat: int) -> tuple[int, int, int]:
    """Row, column and channel of an element; a shape of fewer dimensions has no width, or no height."""
    *outer, channels = tensor.shape or (1,)
    channel, pixel = flat % channels, flat // channels
    width = outer[-1] if len(outer) >= 3 else 1
    height = outer[-2] if len(outer) >= 3 else max(1, outer[-1] if outer else 1)
    return pixel // width % height, pixel % width, channel


def _explain(
    reference: ReferenceModel,
    values: Mapping[int, Array],
    layer: Mapping[str, Any],
    flat: int,
    whole: bool,
    got: float | None,
) -> str:
    operator = reference.graph.operators[layer["operators"][-1]]
    source = operator.inputs[0] if operator.inputs else -1
    if not whole:
        return "the layer did not make all its rows: look at the row schedule"
    if len(layer["operators"]) > 1 or source not in values:
        return "unknown: the input of the operator is not kept"
    rules = values_by_rule(reference.graph, operator, values[source], flat)
    if not rules:
        return f"unknown: no other rounding is known of {operator.kind}"
    matching = [rule for rule, value in rules.items() if value == got]
    if matching:
        return f"rounding rule {' or '.join(matching)} makes this value"
    return "no known rounding rule makes this value: look at weights, multipliers and the kernel"
