# SPDX-License-Identifier: Apache-2.0
"""Write metadata buffers into a TFLite flatbuffer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arenite_converters.flatbuffer import pack, schema, unpack

__all__ = ["with_metadata"]


def with_metadata(model: bytes, entries: Mapping[str, bytes]) -> bytes:
    """The same model with metadata entries added or replaced, in the order of their names.

    Args:
        model: A TFLite file's bytes.
        entries: Name and content of each.
    """
    content = unpack(model)
    content.metadata = [m for m in content.metadata or [] if m.name.decode() not in entries]
    for name, data in sorted(entries.items()):
        buffer = schema().BufferT()
        buffer.data = np.frombuffer(data, np.uint8)
        content.buffers.append(buffer)
        entry = schema().MetadataT()
        entry.name = name
        entry.buffer = len(content.buffers) - 1
        content.metadata.append(entry)
    return pack(content)
