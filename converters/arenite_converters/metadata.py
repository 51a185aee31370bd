# SPDX-License-Identifier: Apache-2.0
"""Write metadata buffers into a TFLite flatbuffer."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from arenite.errors import MissingToolError

__all__ = ["with_metadata"]


def with_metadata(model: bytes, entries: Mapping[str, bytes | None]) -> bytes:
    """The same model with metadata entries added, replaced or removed, in the order of their names.

    Args:
        model: A TFLite file's bytes.
        entries: Name and content of each; None removes it.
    """
    schema = _schema()
    flatbuffers = import_module("flatbuffers")
    content = schema.ModelT.InitFromPackedBuf(model, 0)
    metadata = content.metadata or []
    content.metadata = [m for m in metadata if m.name.decode() not in entries]
    used = {tensor.buffer for graph in content.subgraphs for tensor in graph.tensors or []}
    for buffer in {m.buffer for m in metadata} - {m.buffer for m in content.metadata} - used:
        content.buffers[buffer].data = None  # buffers are named by their places: an empty one stays
    wanted = {name: data for name, data in entries.items() if data is not None}
    for name, data in sorted(wanted.items()):
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(data, np.uint8)
        content.buffers.append(buffer)
        entry = schema.MetadataT()
        entry.name = name
        entry.buffer = len(content.buffers) - 1
        content.metadata.append(entry)
    builder = flatbuffers.Builder(len(model) + sum(map(len, wanted.values())) + 4096)
    builder.Finish(content.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _schema() -> Any:
    try:
        return import_module("ai_edge_litert.schema_py_generated")
    except ImportError as error:
        raise MissingToolError(
            "writing a model's metadata needs ai-edge-litert", cure="pip install 'arenite[convert]'"
        ) from error
