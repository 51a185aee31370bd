# SPDX-License-Identifier: Apache-2.0
"""The serial link's frames and messages, as the firmware's `link.h` and `app.h` define them.

A frame is `'A' 'r' command sequence length(2) payload CRC-32(4)`, integers little-endian, stuffed by COBS so
that it holds no zero byte, between two zero bytes. A zero ends whatever came before it, so after any garbage
the next whole frame is understood.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from arenite.errors import LinkError

__all__ = [
    "ABOUT",
    "BANNER",
    "DAMAGED",
    "DESCRIBE",
    "Frame",
    "FrameReader",
    "HEARTBEAT",
    "IDENTIFY",
    "Identification",
    "LAYERS",
    "LOAD",
    "MAX_PAYLOAD",
    "NAMES",
    "PARAMETER",
    "PROTOCOL_VERSION",
    "READ",
    "REBOOT",
    "REPLY",
    "RESET_CAUSE",
    "ROW",
    "RUN",
    "SELECT",
    "STATUS_TEXT",
    "TRACE",
    "TensorInfo",
    "UPDATE",
    "UPDATE_RESTART",
    "decode_frame",
    "encode_frame",
    "read_damage",
    "read_identification",
    "read_tensor_info",
]

PROTOCOL_VERSION = 3
_LEAST_PAYLOAD = 64
MAX_PAYLOAD = 1032
IDENTIFY, DESCRIBE, LOAD, RUN, READ, SELECT = 1, 2, 3, 4, 5, 6
ABOUT, TRACE, LAYERS, HEARTBEAT, RESET_CAUSE, PARAMETER, REBOOT, UPDATE = 7, 8, 9, 10, 11, 12, 13, 14
REPLY, ROW, BANNER = 0x80, 0xFE, 0xFF
UPDATE_RESTART = 5  # an operation of UPDATE
NAMES = {
    IDENTIFY: "identify",
    DESCRIBE: "describe",
    LOAD: "load",
    RUN: "run",
    READ: "read",
    SELECT: "select",
    ABOUT: "about",
    TRACE: "trace",
    LAYERS: "layers",
    HEARTBEAT: "heartbeat",
    RESET_CAUSE: "reset cause",
    PARAMETER: "parameter",
    REBOOT: "reboot",
    UPDATE: "update",
}
DAMAGED = 7
STATUS_TEXT = {
    0: "ok",
    1: "unknown command",
    2: "payload of the wrong length",
    3: "no such input, output or model",
    4: "offset and length reach past the tensor",
    5: "an input is not loaded whole",
    6: "no run since the last load",
    7: "the run wrote past the end of a block of the arena",
    8: "a value that this model or this firmware does not allow",
}
_UNITS = ("none", "cycles", "instructions", "ticks")
_DTYPES = ("int8", "uint8", "int16", "int32", "float32", "bool")
_SAME_VERSION = "Build and flash the firmware with this version of Arenite"
_MAGIC = b"Ar"
_HEADER = struct.Struct("<2sBBH")
_IDENTIFICATION = struct.Struct("<BBBBBBHII32s")
_DAMAGE = struct.Struct("<IHI")
_TENSOR = struct.Struct("<BhIf")
_MAX_STUFFED = (_HEADER.size + MAX_PAYLOAD + 4) * 255 // 254 + 2


@dataclass(frozen=True)
class Frame:
    """One message of the link."""

    command: int
    sequence: int
    payload: bytes


@dataclass(frozen=True)
class Identification:
    """What a board says of itself and of the selected model.

    Attributes:
        models: How many models it holds.
        model: Which of them is selected; what follows is about it.
        counter_hz: The counter's rate, 0 where it has none.
    """

    protocol_version: int
    counter_unit: str
    models: int
    model: int
    input_count: int
    output_count: int
    max_payload: int
    counter_hz: int
    arena_bytes: int
    model_sha256: str
    board: str


@dataclass(frozen=True)
class TensorInfo:
    """One input or output of the model on a board: real value = scale * (stored - zero_point)."""

    name: str
    dtype: str
    bytes: int
    scale: float
    zero_point: int


def encode_frame(frame: Frame) -> bytes:
    """A frame as the bytes of the line, with its two zero bytes.

    Raises:
        ValueError: The payload is longer than `MAX_PAYLOAD`, or a number is no byte.
    """
    if len(frame.payload) > MAX_PAYLOAD:
        raise ValueError(f"payload of {len(frame.payload)} bytes, at most {MAX_PAYLOAD} fit")
    head = _HEADER.pack(_MAGIC, _byte(frame.command), _byte(frame.sequence), len(frame.payload))
    body = head + frame.payload
    return b"\0" + _stuff(body + struct.pack("<I", zlib.crc32(body))) + b"\0"


def decode_frame(stuffed: bytes) -> Frame | None:
    """The frame in the bytes between two zeros, or None when they hold no whole frame."""
    body = _unstuff(stuffed)
    if body is None or not _HEADER.size + 4 <= len(body) <= _HEADER.size + MAX_PAYLOAD + 4:
        return None
    magic, command, sequence, length = _HEADER.unpack_from(body)
    (crc,) = struct.unpack("<I", body[-4:])
    if magic != _MAGIC or length != len(body) - _HEADER.size - 4 or crc != zlib.crc32(body[:-4]):
        return None
    return Frame(command, sequence, body[_HEADER.size : -4])


class FrameReader:
    """Finds the frames in a stream of bytes; `received_bytes` counts all bytes it was given."""

    def __init__(self) -> None:
        self.received_bytes = 0
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Takes bytes off the line and yields the frames that they complete."""
        self.received_bytes += len(data)
        *complete, rest = (bytes(self._pending) + data).split(b"\0")
        # A line that sends no zeros must not fill the memory: one byte too many already spoils the frame.
        self._pending = bytearray(rest[: _MAX_STUFFED + 1])
        for stuffed in complete:
            frame = decode_frame(stuffed)
            if frame is not None:
                yield frame


def read_identification(payload: bytes, where: str) -> Identification:
    """Reads the reply to `identify`, without its status byte.

    Raises:
        LinkError: It is too short, or of another protocol version.
    """
    if payload[:1] and payload[0] != PROTOCOL_VERSION:
        problem = f"the board speaks version {payload[0]} of the link, this program {PROTOCOL_VERSION}"
        raise LinkError(problem, where=where, cure=_SAME_VERSION)
    if len(payload) < _IDENTIFICATION.size:
        raise _malformed("identify", payload, where)
    version, unit, models, model, inputs, outputs, limit, hz, arena, sha256 = _IDENTIFICATION.unpack_from(payload)
    if limit < _LEAST_PAYLOAD:
        problem = f"the board takes frames of {limit} bytes, at least {_LEAST_PAYLOAD} are needed"
        raise LinkError(problem, where=where, cure=_SAME_VERSION)
    return Identification(
        protocol_version=version,
        counter_unit=_UNITS[unit] if unit < len(_UNITS) else "none",
        models=models,
        model=model,
        input_count=inputs,
        output_count=outputs,
        max_payload=min(limit, MAX_PAYLOAD),
        counter_hz=hz,
        arena_bytes=arena,
        model_sha256=sha256.hex(),
        board=payload[_IDENTIFICATION.size :].decode("ascii", "replace"),
    )


def read_damage(payload: bytes, where: str) -> tuple[int, int, int]:
    """Guard, layer and step in the reply to `run` with the status `DAMAGED`, without its status byte.

    Raises:
        LinkError: It is too short.
    """
    if len(payload) < _DAMAGE.size:
        raise _malformed("run", payload, where)
    guard, layer, step = _DAMAGE.unpack_from(payload)
    return guard, layer, step


def read_tensor_info(payload: bytes, where: str) -> TensorInfo:
    """Reads the reply to `describe`, without its status byte.

    Raises:
        LinkError: It is too short, or names an unknown type.
    """
    if len(payload) < _TENSOR.size or payload[0] >= len(_DTYPES):
        raise _malformed("describe", payload, where)
    dtype, zero_point, size, scale = _TENSOR.unpack_from(payload)
    name = payload[_TENSOR.size :].decode("utf-8", "replace")
    return TensorInfo(name, _DTYPES[dtype], size, scale, zero_point)


def _malformed(command: str, payload: bytes, where: str) -> LinkError:
    problem = f"the board's reply to `{command}` is malformed ({len(payload)} bytes)"
    return LinkError(problem, where=where, cure=_SAME_VERSION)


def _byte(value: int) -> int:
    if not 0 <= value <= 255:
        raise ValueError(f"{value} is no byte")
    return value


def _stuff(data: bytes) -> bytes:
    out = bytearray()
    for run in data.split(b"\0"):
        at = 0
        while len(run) - at >= 254:
            out += b"\xff" + run[at : at + 254]
            at += 254
        out.append(len(run) - at + 1)
        out += run[at:]
    return bytes(out)


def _unstuff(data: bytes) -> bytes | None:
    out = bytearray()
    at = 0
    while at < len(data):
        code = data[at]
        block = data[at + 1 : at + code]
        if code == 0 or len(block) != code - 1 or 0 in block:
            return None
        out += block
        at += code
        if code != 255 and at < len(data):
            out.append(0)
    return bytes(out)
