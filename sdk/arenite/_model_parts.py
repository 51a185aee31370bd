# SPDX-License-Identifier: Apache-2.0
"""TFLite files changed without writing them anew: other inputs, outputs or operators of the main subgraph, metadata."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from importlib import import_module

from arenite.errors import ModelError

__all__ = ["with_ends", "with_metadata_value", "with_operators"]

# Entries of the vtables of the tables SubGraph and Buffer.
_INPUTS, _OUTPUTS, _OPERATORS = 6, 8, 10
_DATA = 4
_ALIGNMENT = 16  # of a buffer's bytes


def with_ends(model: bytes, inputs: Sequence[int] | None = None, outputs: Sequence[int] | None = None) -> bytes:
    """The model with these tensors as inputs and outputs; None leaves those that it has.

    A tensor that is an output is not overwritten by another.
    """
    for entry, tensors in ((_INPUTS, inputs), (_OUTPUTS, outputs)):
        if tensors is not None:
            field = _field(model, entry)
            content = bytearray(model) + bytes(-len(model) % 4)
            content[field : field + 4] = struct.pack("<I", len(content) - field)
            model = bytes(content) + struct.pack(f"<I{len(tensors)}i", len(tensors), *tensors)
    return model


def with_operators(model: bytes, kept: Sequence[int]) -> bytes:
    """The model with these operators alone, in the order in which they are.

    The list of their offsets is closed up where it lies; each offset counts from its own place.
    """
    field = _field(model, _OPERATORS)
    content = bytearray(model)
    vector = field + int(struct.unpack_from("<I", content, field)[0])
    for place, index in enumerate(kept):
        (offset,) = struct.unpack_from("<I", content, vector + 4 + 4 * index)
        struct.pack_into("<I", content, vector + 4 + 4 * place, offset + 4 * (index - place))
    struct.pack_into("<I", content, vector, len(kept))
    return bytes(content)


def with_metadata_value(model: bytes, name: str, value: bytes) -> bytes:
    """The model with another value of a metadata entry that it has.

    Raises:
        ModelError: The value lies outside the file's tables.
    """
    root = import_module("tflite").Model.GetRootAs(model, 0)
    entries = [root.Metadata(i) for i in range(root.MetadataLength())]
    table = next(root.Buffers(entry.Buffer())._tab for entry in entries if entry.Name() == name.encode())
    entry = table.Offset(_DATA)
    if entry == 0:
        raise ModelError(f"the metadata {name} lies outside the file's tables", cure="Set the contract anew.")
    field = int(table.Pos + entry)
    content = bytearray(model) + bytes(-(len(model) + 4) % _ALIGNMENT)
    struct.pack_into("<I", content, field, len(content) - field)
    return bytes(content) + struct.pack("<I", len(value)) + value


def _field(model: bytes, entry: int) -> int:
    """Where the table SubGraph keeps the offset of a vector."""
    table = import_module("tflite").Model.GetRootAs(model, 0).Subgraphs(0)._tab
    return int(table.Pos + table.Offset(entry))
