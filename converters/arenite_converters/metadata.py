# SPDX-License-Identifier: Apache-2.0
"""Write metadata buffers into a TFLite flatbuffer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arenite_converters.flatbuffer import pack, schema, unpack

__all__ = ["with_metadata"]


def with_metadata(model: bytes, entries: Mapping[str, bytes | None]) -> bytes:
    """The same model with metadata entries added, replaced or removed, in the order of their names.

    Args:
        model: A TFLite file's bytes.
        entries: Name and content of each; None removes it.
    """
    content = unpack(model)
    metadata = {entry.name.decode(): entry for entry in content.metadata or []}
    used = {tensor.buffer for graph in content.subgraphs for tensor in graph.tensors or []}
    for name, data in sorted(entries.items()):
        entry = metadata.pop(name, None)
        if entry is not None and entry.buffer not in used:
            content.buffers[entry.buffer].data = None  # buffers are named by their places: an empty one stays
        if data is None:
            continue
        if entry is None or entry.buffer in used:
            entry = schema().MetadataT()
            entry.name, entry.buffer = name.encode(), len(content.buffers)
            content.buffers.append(schema().BufferT())
        content.buffers[entry.buffer].data = np.frombuffer(data, np.uint8)
        metadata[name] = entry
    content.metadata = list(metadata.values())
    return pack(content)
