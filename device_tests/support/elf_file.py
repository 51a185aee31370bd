# SPDX-License-Identifier: Apache-2.0
"""Writes ELF files of loadable segments."""

from __future__ import annotations

import struct

__all__ = ["elf_of"]


def elf_of(segments: list[tuple[int, bytes]]) -> bytes:
    """A 32-bit little-endian ELF file of loadable segments."""
    headers, body, at = b"", b"", 52 + 32 * len(segments)
    for address, data in segments:
        headers += struct.pack("<8I", 1, at + len(body), 0x20000000, address, len(data), len(data), 5, 4)
        body += data
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    return ident + struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0, 52, 0, 0, 52, 32, len(segments), 0, 0, 0) + headers + body
