# SPDX-License-Identifier: Apache-2.0
"""Read a Core ML package's ML Program into plain frozen dataclasses.

Constants come out as arrays: those written in the program itself and those in the package's `weight.bin`, a file of
blobs with a head of 64 bytes each (sentinel, type, size, offset). Types narrower than a byte are packed, lowest bits
first. Nothing here decides what can be run. Field numbers are those of MIL.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite._protobuf import Message, fields, integers, string, text
from arenite.coreml_package import CoreMlFile, parsed, read_package

__all__ = ["Operation", "Program", "Reference", "Value", "program_of", "read_program", "unpack"]

Array = npt.NDArray[Any]
_SENTINEL = 0xDEADBEEF
_BLOB = struct.Struct("<IIQQ")
_DTYPES = {
    1: "bool", 2: "string", 10: "float16", 11: "float32", 12: "float64", 21: "int8", 22: "int16", 23: "int32",
    24: "int64", 25: "int4", 31: "uint8", 32: "uint16", 33: "uint32", 34: "uint64", 35: "uint4", 36: "uint2",
    37: "uint1", 38: "uint6", 39: "uint3",
}  # fmt: skip
# Types narrower than a byte, which NumPy lacks: their bits.
_BITS = {"int4": 4, "uint1": 1, "uint2": 2, "uint3": 3, "uint4": 4, "uint6": 6}
# Parameters that take several values even where only one is given.
_SEVERAL = ("values",)


@dataclass(frozen=True)
class Value:
    """A tensor that an operation computes, or an input; -1 is an open dimension."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Reference:
    """The value of that name."""

    name: str


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation.

    Attributes:
        kind: MIL's name, such as `conv`.
        name: Of its first output.
        inputs: Parameter name to a reference, a constant, or a tuple of them for a parameter that takes several.
        outputs: What it computes.
    """

    kind: str
    name: str
    inputs: Mapping[str, Any]
    outputs: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """The function `main` of a package.

    Attributes:
        path: The package.
        inputs: In the program's form: a picture is float32 [1, channels, height, width] of 8-bit values.
        operations: In order of execution, `const` and `constexpr_…` among them.
        outputs: Names.
    """

    path: str
    inputs: tuple[Value, ...]
    operations: tuple[Operation, ...]
    outputs: tuple[str, ...]


def read_program(path: Path | str) -> Program:
    """The program of a .mlpackage; see `program_of`."""
    return program_of(read_package(Path(path)))


def program_of(package: CoreMlFile) -> Program:
    """The program of a package.

    Raises:
        ModelError: There is no ML Program in it, or it is damaged.
    """
    return parsed(package.path, lambda: _Reader(package).program())


def unpack(content: bytes, bits: int, count: int) -> npt.NDArray[np.uint8]:
    """The first `count` numbers of `bits` bits each, lowest bits first, of packed bytes."""
    found = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")[: count * bits]
    if len(found) < count * bits:
        raise ValueError(f"{len(content)} bytes do not hold {count} numbers of {bits} bits")
    return np.packbits(found.reshape(count, bits), axis=1, bitorder="little")[:, 0]


class _Reader:
    def __init__(self, package: CoreMlFile) -> None:
        self._package = package

    def program(self) -> Program:
        if self._package.program is None:
            raise ValueError("it is no ML Program")
        function = fields(_by_name(fields(self._package.program), 2)["main"])
        block = fields(_by_name(function, 3)[text(function, 2)])
        return Program(
            path=str(self._package.path),
            inputs=tuple(_value(fields(entry)) for entry in function.get(1, [])),
            operations=tuple(self._operation(fields(entry)) for entry in block.get(3, [])),
            outputs=tuple(string(name) for name in block.get(2, [])),
        )

    def _operation(self, op: Message) -> Operation:
        inputs: dict[str, Any] = {
            name: self._argument(name, fields(entry).get(1, [])) for name, entry in _by_name(op, 2).items()
        }
        # A constant has its value among the attributes; so has `constexpr_…` in programs before iOS 18.
        attributes = _by_name(op, 5)
        inputs |= {name: self._constant(fields(value)) for name, value in attributes.items() if name != "name"}
        outputs = tuple(_value(fields(entry)) for entry in op.get(3, []))
        return Operation(text(op, 1), outputs[0].name if outputs else text(op, 1), inputs, outputs)

    def _argument(self, name: str, bindings: list[Any]) -> Any:
        found = tuple(
            Reference(text(binding, 1)) if 1 in binding else self._constant(fields(binding[2][0]))
            for binding in map(fields, bindings)
        )
        return found[0] if len(found) == 1 and name not in _SEVERAL else found

    def _constant(self, value: Message) -> Any:
        """An array, a text, or a tuple of texts."""
        dtype, shape = _type(fields(value[2][0]))
        if 5 in value:
            return _decoded(self._blob(integers(fields(value[5][0]).get(2, [0]))[0]), dtype, shape)
        immediate = fields(value[3][0])
        if 3 in immediate:  # a list
            return tuple(self._constant(fields(part)) for part in fields(immediate[3][0]).get(1, []))
        kind, content = next(iter(fields(immediate[1][0]).items()))
        return _immediate(kind, fields(content[0]).get(1, []), dtype, shape)

    def _blob(self, offset: int) -> bytes:
        weights = self._package.weights
        sentinel, _, size, start = _BLOB.unpack_from(weights, offset)
        if sentinel != _SENTINEL or start + size > len(weights):
            raise ValueError(f"weight.bin has no blob at {offset}")
        return weights[start : start + size]


def _by_name(message: Message, number: int) -> dict[str, Any]:
    """A map field: key to message."""
    return {text(entry, 1): entry[2][0] for entry in map(fields, message.get(number, []))}


def _value(entry: Message) -> Value:
    kind = fields(entry[2][0])
    # A dictionary of scores or a list is kept as it is.
    dtype, shape = _type(kind) if 1 in kind else ("object", ())
    return Value(text(entry, 1), dtype, shape)


def _type(kind: Message) -> tuple[str, tuple[int, ...]]:
    """Type and shape; -1 is an open dimension."""
    if 1 not in kind:
        return "object", ()
    tensor = fields(kind[1][0])
    dimensions = map(fields, tensor.get(3, []))
    shape = tuple(integers(fields(d[1][0]).get(1, [0]))[0] if 1 in d else -1 for d in dimensions)
    return _DTYPES[tensor[1][0]], shape


def _immediate(kind: int, values: list[Any], dtype: str, shape: tuple[int, ...]) -> Any:
    """A constant that the program itself holds; its numbers may be packed."""
    if kind == 4:
        return tuple(map(string, values)) if shape else string(values[0])
    if kind == 7:
        return _decoded(bytes(values[0]) if values else b"", dtype, shape)
    if kind in (1, 6):
        stored = "<f4" if kind == 1 else "<f8"
        return np.frombuffer(b"".join(map(bytes, values)), stored).astype(dtype).reshape(shape)
    return np.array(integers(values), dtype).reshape(shape)


def _decoded(content: bytes, dtype: str, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    if dtype not in _BITS:
        return np.frombuffer(content, np.dtype(dtype).newbyteorder("<"), count).reshape(shape)
    found = unpack(content, _BITS[dtype], count).reshape(shape)
    return (found.astype(np.int8) ^ 8) - 8 if dtype == "int4" else found
