# SPDX-License-Identifier: Apache-2.0
"""What a board says of itself and of the layers of a run: the replies that `app.h` of the firmware lists."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from arenite.errors import LinkError

__all__ = [
    "About",
    "Fault",
    "Heartbeat",
    "LayerTrace",
    "ResetCause",
    "RowPiece",
    "read_about",
    "read_heartbeat",
    "read_layers",
    "read_reset_cause",
    "read_row_piece",
]

_FEATURES = ((1, "guards"), (2, "watchdog"), (4, "marker"))
_ROUNDINGS = ("double",)
_CAUSES = ("unknown", "asked", "fault", "watchdog")
_GUARDS = ("absent", "intact", "damaged")
_ABOUT = struct.Struct("<BBHIQ")
_HEARTBEAT = struct.Struct("<QIIIIBBB")
_RESET = struct.Struct("<BIIIIIHH")
_LAYER = struct.Struct("<IIQ")
_ROW = struct.Struct("<HII")
# Arm v7-M Architecture Reference Manual, table B1-4.
_EXCEPTIONS = {2: "NMI", 3: "HardFault", 4: "MemManage", 5: "BusFault", 6: "UsageFault", 7: "SecureFault"}


@dataclass(frozen=True)
class About:
    """The firmware and the chip.

    Attributes:
        features: Of `guards`, `watchdog`, `marker`, those that it has.
        rounding: How kernels requantise: `double` is the rule of the TFLite reference kernels.
        layers: Of the selected model.
        build_id: Digest of sources and compiler, 16 hexadecimal digits; zeros where the build gave none.
        mcu_id: Identification of the core, then the chip's own number where the board knows it, hexadecimal.
    """

    features: tuple[str, ...]
    rounding: str
    layers: int
    clock_hz: int
    build_id: str
    mcu_id: str


@dataclass(frozen=True)
class Heartbeat:
    """How a board fares since its last start.

    Attributes:
        uptime: In the counter's units.
        stack_peak_bytes: Deepest stack of any inference; 0 where the board cannot tell.
        damaged_frames: Frames on the line that were not whole.
        refusals: Requests that were answered with an error; the last of them was `last_command`, with `last_status`.
        guards: `absent`, `intact` or `damaged`.
    """

    uptime: int
    inferences: int
    stack_peak_bytes: int
    damaged_frames: int
    refusals: int
    last_command: int
    last_status: int
    guards: str


@dataclass(frozen=True)
class Fault:
    """What stopped the firmware.

    Attributes:
        kind: Cortex-M: number of the exception; RISC-V: mcause.
        status: Cortex-M: CFSR.
        address: That could not be reached, 0 where the core says none.
        layer: Of the last step that began, and `step`, which of its steps.
    """

    kind: int
    pc: int
    lr: int
    status: int
    address: int
    layer: int
    step: int

    def __str__(self) -> str:
        name = _EXCEPTIONS.get(self.kind, f"exception {self.kind}")
        place = f" to {self.address:#010x}" if self.address else ""
        status = f" (CFSR {self.status:#010x})" if self.status else ""
        return f"{name} at {self.pc:#010x}{place}{status}, in step {self.step} of layer {self.layer}"


@dataclass(frozen=True)
class ResetCause:
    """Why a board started: `unknown`, `asked`, `fault` or `watchdog`, with the fault's record for the last two."""

    cause: str
    fault: Fault | None


@dataclass(frozen=True)
class LayerTrace:
    """What one layer of a run did.

    Attributes:
        rows: That it made.
        checksum: CRC-32 of these rows, one after the other; of nothing unless checksums were asked for.
        counter: The counter's advance in its kernel.
    """

    rows: int
    checksum: int
    counter: int


@dataclass(frozen=True)
class RowPiece:
    """A part of a row of the watched layer, or the row's checksum."""

    layer: int
    row: int
    offset: int
    data: bytes


def read_about(payload: bytes, where: str) -> About:
    """Reads the reply to `about`, without its status byte.

    Raises:
        LinkError: It is too short.
    """
    features, rounding, layers, clock_hz, build = _unpack(_ABOUT, payload, "about", where)
    return About(
        features=tuple(name for bit, name in _FEATURES if features & bit),
        rounding=_named(_ROUNDINGS, rounding),
        layers=layers,
        clock_hz=clock_hz,
        build_id=f"{build:016x}",
        mcu_id=payload[_ABOUT.size :].hex(),
    )


def read_heartbeat(payload: bytes, where: str) -> Heartbeat:
    """Reads the reply to `heartbeat`, without its status byte.

    Raises:
        LinkError: It is too short.
    """
    uptime, runs, stack, damaged, refusals, command, status, guards = _unpack(_HEARTBEAT, payload, "heartbeat", where)
    return Heartbeat(uptime, runs, stack, damaged, refusals, command, status, _named(_GUARDS, guards))


def read_reset_cause(payload: bytes, where: str) -> ResetCause:
    """Reads the reply to `reset cause`, without its status byte.

    Raises:
        LinkError: It is too short.
    """
    cause, *record = _unpack(_RESET, payload, "reset cause", where)
    name = _named(_CAUSES, cause)
    return ResetCause(name, Fault(*record) if name in ("fault", "watchdog") else None)


def read_layers(payload: bytes, where: str) -> list[LayerTrace]:
    """Reads the reply to `layers`, without its status byte.

    Raises:
        LinkError: It holds no whole number of records.
    """
    if not payload or len(payload) % _LAYER.size:
        raise _malformed("layers", payload, where)
    return [LayerTrace(rows, checksum, counter) for rows, checksum, counter in _LAYER.iter_unpack(payload)]


def read_row_piece(payload: bytes, where: str) -> RowPiece:
    """Reads a frame that a traced run sent.

    Raises:
        LinkError: It is too short.
    """
    layer, row, offset = _unpack(_ROW, payload, "trace", where)
    return RowPiece(layer, row, offset, payload[_ROW.size :])


def _unpack(form: struct.Struct, payload: bytes, command: str, where: str) -> tuple[int, ...]:
    if len(payload) < form.size:
        raise _malformed(command, payload, where)
    return form.unpack_from(payload)


def _named(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else f"{number}"


def _malformed(command: str, payload: bytes, where: str) -> LinkError:
    problem = f"the board's reply to `{command}` is malformed ({len(payload)} bytes)"
    return LinkError(problem, where=where, cure="Build and flash the firmware with this version of Arenite")
