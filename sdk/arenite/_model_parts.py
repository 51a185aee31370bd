# SPDX-License-Identifier: Apache-2.0
"""Parts of a TFLite file, cut out without writing it anew: other inputs, outputs or operators of its main subgraph."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from importlib import import_module

__all__ = ["with_ends", "with_operators"]

# Entries of the vtable of the table SubGraph.
_INPUTS, _OUTPUTS, _OPERATORS = 6, 8, 10


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


def with_operators(model: bytes, first: int, last: int) -> bytes:
    """The model with its operators from `first` on, up to `last`, that one left out.

    Their count takes the place of the one before them, so that they stay where they are.
    """
    field = _field(model, _OPERATORS)
    content = bytearray(model)
    vector = field + int(struct.unpack_from("<I", content, field)[0]) + 4 * first
    struct.pack_into("<I", content, vector, last - first)
    struct.pack_into("<I", content, field, vector - field)
    return bytes(content)


def _field(model: bytes, entry: int) -> int:
    """Where the table SubGraph keeps the offset of a vector."""
    table = import_module("tflite").Model.GetRootAs(model, 0).Subgraphs(0)._tab
    return int(table.Pos + table.Offset(entry))
