# SPDX-License-Identifier: Apache-2.0
"""Intel HEX (Intel's specification of 1988, revision A), as loaders such as Teensy's take it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arenite.device.flashing.model import Piece

__all__ = ["intel_hex"]

_DATA, _END, _UPPER_ADDRESS = 0, 1, 4
_LINE_BYTES = 16


def intel_hex(pieces: Sequence[Piece]) -> str:
    """The pieces as a file: 16 bytes a line, the upper half of an address whenever it changes."""
    lines, upper = [], 0
    for address, data in _runs(pieces):
        if address >> 16 != upper:
            upper = address >> 16
            lines.append(_record(0, _UPPER_ADDRESS, upper.to_bytes(2, "big")))
        lines.append(_record(address & 0xFFFF, _DATA, data))
    return "".join([*lines, _record(0, _END, b"")])


def _runs(pieces: Sequence[Piece]) -> Iterator[tuple[int, bytes]]:
    """Lines of data, none of which crosses a multiple of 16 bytes."""
    for piece in pieces:
        at = 0
        while at < len(piece.data):
            address = piece.address + at
            count = _LINE_BYTES - address % _LINE_BYTES
            yield address, piece.data[at : at + count]
            at += count


def _record(offset: int, kind: int, data: bytes) -> str:
    record = bytes([len(data), *offset.to_bytes(2, "big"), kind, *data])
    return f":{record.hex().upper()}{-sum(record) & 0xFF:02X}\n"
