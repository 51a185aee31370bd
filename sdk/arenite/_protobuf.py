# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers without their library: messages by field number, as far as model files need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Message", "delimited", "fields", "integers", "string", "text", "walk"]

_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5
# Field number: its values in order, integers or bytes.
Message = dict[int, list[Any]]


def fields(message: Any) -> Message:
    """The fields of a message.

    Raises:
        ValueError, IndexError, KeyError: The bytes are no message.
    """
    found: Message = {}
    for _, _, number, value in walk(message):
        found.setdefault(number, []).append(value)
    return found


def walk(message: memoryview) -> Iterator[tuple[int, int, int, Any]]:
    """Start, end, field number and value of each field: an integer, or the bytes of what is longer."""
    at = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        value: Any
        if tag & 7 == _VARINT:
            value, at = _varint(message, at)
        else:
            if tag & 7 == _BYTES:
                size, at = _varint(message, at)
            else:
                size = {_I64: 8, _I32: 4}[tag & 7]
            value, at = message[at : at + size], at + size
        if at > len(message):
            raise ValueError("a field ends behind its message")
        yield start, at, tag >> 3, value


def integers(values: list[Any]) -> list[int]:
    """The signed numbers of a repeated integer field, packed or not."""
    found: list[int] = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            found.append(number)
    return [number - (1 << 64) if number >= 1 << 63 else number for number in found]


def text(message: Message, number: int) -> str:
    """A text field, '' when it is not there."""
    return string(message[number][0]) if number in message else ""


def string(value: Any) -> str:
    """Bytes as text."""
    return bytes(value).decode("utf-8", "replace")


def delimited(number: int, content: bytes) -> bytes:
    """A field of bytes, as it is written."""
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(content)) + content


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number is longer than 64 bits")


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
