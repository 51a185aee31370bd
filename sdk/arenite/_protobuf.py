# SPDX-License-Identifier: Apache-2.0
"""Protobuf messages without a package for it: fields by their numbers, as far as models' files need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Message", "delimited", "fields", "integers", "string", "text", "varint", "walk"]

_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5

Message = dict[int, list[Any]]


def text(message: Message, number: int) -> str:
    """The text in a field, empty when it is not there."""
    return string(message[number][0]) if number in message else ""


def string(value: Any) -> str:
    """The text that a field's bytes are."""
    return bytes(value).decode("utf-8", "replace")


def fields(message: memoryview) -> Message:
    """The values of each field by its number.

    Raises:
        ValueError, IndexError, KeyError: It is no such message.
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
        tag, at = varint(message, at)
        value: Any
        if tag & 7 == _VARINT:
            value, at = varint(message, at)
        else:
            if tag & 7 == _BYTES:
                size, at = varint(message, at)
            else:
                size = {_I64: 8, _I32: 4}[tag & 7]
            value, at = message[at : at + size], at + size
        if at > len(message):
            raise ValueError("a field ends behind its message")
        yield start, at, tag >> 3, value


def varint(message: memoryview, at: int) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number is longer than 64 bits")


def integers(values: list[Any]) -> list[int]:
    """The signed numbers of a repeated field, packed or not."""
    found: list[int] = []
    for value in values:
        at = 0
        while not isinstance(value, int) and at < len(value):
            number, at = varint(value, at)
            found.append(number)
        found += [value] if isinstance(value, int) else []
    return [number - (1 << 64) if number >= 1 << 63 else number for number in found]


def delimited(number: int, content: bytes) -> bytes:
    """A field of bytes, as it lies in a message."""
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(content)) + content


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
