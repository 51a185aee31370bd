# SPDX-License-Identifier: Apache-2.0
"""Well-formed TFLite files with one number changed: what a faulty converter or a flipped bit makes of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from arenite_converters.flatbuffer import pack

__all__ = ["mutate"]

_INTEGERS = (0, 1, -1, 2, 3, 5, 127, 128, 255, -128, 1000, 65535, 65536, 100000, 2**31 - 1, -(2**31))
_REALS = (0.0, -1.0, float("nan"), float("inf"), 1e-38, 1e38, 1.0, 1e-10, 3e-9)
_BYTES = (0, 1, 2, 3, 4, 5, 127, 128, 254, 255)
# Numbers that pick another table of the schema, or that say where bytes lie: a reader's matter, not codegen's.
_KEPT = {
    "buffer",
    "builtinOptions2Type",
    "builtinOptionsType",
    "customOptionsFormat",
    "detailsType",
    "externalBuffer",
    "largeCustomOptionsOffset",
    "largeCustomOptionsSize",
    "opcodeIndex",
}
_LARGEST_LIST = 64


def mutate(model: bytes, seed: int) -> tuple[bytes, str] | None:
    """The model with one number of its tensors, operators or small constants changed.

    Returns:
        The file and what was changed; None where the schema has no room for the new number.
    """
    rng = np.random.default_rng(seed)
    tree = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model, 0))
    places = _places(tree.subgraphs, _INTEGERS)
    for buffer in tree.buffers:
        if buffer.data is not None and len(buffer.data) <= _LARGEST_LIST:
            buffer.data = [int(byte) for byte in buffer.data]
            places += _places(buffer.data, _BYTES)
    holder, key, old, choices = places[rng.integers(len(places))]
    new = choices[rng.integers(len(choices))]
    if isinstance(holder, list):
        holder[key] = new
    else:
        setattr(holder, key, new)
    try:
        changed = pack(tree)
    except (TypeError, ValueError, OverflowError):
        return None
    return changed, f"{type(holder).__name__}.{key}: {old} -> {new}"


def _places(node: Any, integers: tuple[int, ...]) -> list[tuple[Any, Any, Any, tuple[Any, ...]]]:
    """(holder, key, value, other values) of every number below a node."""
    items: list[tuple[Any, Any]] = []
    if isinstance(node, list):
        items = list(enumerate(node)) if len(node) <= _LARGEST_LIST else []
    elif hasattr(node, "__dict__"):
        items = [(key, value) for key, value in vars(node).items() if key not in _KEPT]
    found = []
    for key, value in items:
        if isinstance(value, np.ndarray) and value.size <= _LARGEST_LIST:
            value = value.tolist()
            setattr(node, key, value)
        if isinstance(value, bool | str | bytes) or value is None:
            continue
        if isinstance(value, int | float):
            found.append((node, key, value, _REALS if isinstance(value, float) else integers))
        else:
            found += _places(value, integers)
    return found
