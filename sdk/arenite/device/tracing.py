# SPDX-License-Identifier: Apache-2.0
"""What each layer of a run on a board did: checksums, counters, and any layer's rows.

    records = trace_run(device, inputs)
    rows = read_rows(device, inputs, layer=7, first=0, count=4)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from arenite.device import protocol
from arenite.device.client import Device, RunResult
from arenite.device.messages import LayerTrace, RowPiece, read_layers
from arenite.errors import LinkError

__all__ = ["read_row", "row_checksums", "run_once", "trace_run"]

_COUNTERS, _CHECKSUMS, _ROW_CHECKSUMS, _ROW_BYTES = 1, 2, 4, 8
_ATTEMPTS = 3
_PIECES_AT_ONCE = 1024  # rows whose checksums one run sends: the host library's buffer holds about twice as many


def run_once(device: Device, inputs: Sequence[bytes], timeout_s: float) -> RunResult:
    """Loads all inputs and runs the model.

    Raises:
        LinkError: The board does not answer, or not within `timeout_s`.
        MemoryDamageError: A run damaged a guard word.
    """
    for index, data in enumerate(inputs):
        device.load(index, data)
    return device.run(timeout_s=timeout_s)


def trace_run(
    device: Device, inputs: Sequence[bytes], *, checksums: bool = True, timeout_s: float = 900.0
) -> tuple[RunResult, list[LayerTrace]]:
    """Runs the model once, from its start if it remembers, and asks what each layer did.

    The counter of the run holds the time of the checksums, those of the layers do not.

    Raises:
        LinkError: The board does not answer, or not within `timeout_s`.
    """
    layers = device.about().layers
    device.restart()
    _arm(device, _COUNTERS | (_CHECKSUMS if checksums else 0))
    try:
        result = run_once(device, inputs, timeout_s)
        found: list[LayerTrace] = []
        while len(found) < layers:
            reply = device.request(protocol.LAYERS, struct.pack("<H", len(found)))
            found += read_layers(reply, device.name)
    finally:
        _arm(device, 0)
    return result, found


def row_checksums(
    device: Device, inputs: Sequence[bytes], layer: int, rows: int, timeout_s: float = 900.0
) -> list[int]:
    """CRC-32 of each of the first `rows` rows that a layer makes, the whole batch's one after the other.

    Raises:
        LinkError: The board does not answer, or frames are lost again and again.
    """
    found: list[int] = []
    while len(found) < rows:
        count = min(rows - len(found), _PIECES_AT_ONCE)
        pieces = _watch(device, inputs, _ROW_CHECKSUMS, layer, len(found), count, 4 * count, timeout_s)
        found += [int.from_bytes(piece.data, "little") for piece in pieces]
    return found


def read_row(
    device: Device, inputs: Sequence[bytes], layer: int, row: int, row_bytes: int, timeout_s: float = 900.0
) -> bytes:
    """One row as a layer makes it.

    Raises:
        LinkError: The board does not answer, or frames are lost again and again.
    """
    pieces = _watch(device, inputs, _ROW_BYTES, layer, row, 1, row_bytes, timeout_s)
    return b"".join(piece.data for piece in sorted(pieces, key=lambda piece: piece.offset))


def _watch(
    device: Device,
    inputs: Sequence[bytes],
    mode: int,
    layer: int,
    first: int,
    rows: int,
    wanted_bytes: int,
    timeout_s: float,
) -> list[RowPiece]:
    """Runs until every piece came: what a run sends is not asked for, so nothing repeats what the line loses."""
    for _ in range(_ATTEMPTS):
        device.restart()
        _arm(device, mode, layer, first, rows)
        try:
            device.take_rows()
            run_once(device, inputs, timeout_s)
        finally:
            _arm(device, 0)
        pieces = {(piece.row, piece.offset): piece for piece in device.take_rows() if piece.layer == layer}
        if sum(len(piece.data) for piece in pieces.values()) == wanted_bytes:
            return [pieces[key] for key in sorted(pieces)]
    problem = f"the rows of layer {layer} did not come whole in {_ATTEMPTS} runs"
    raise LinkError(problem, where=device.name, cure="Check the cable, or lower the baud rate")


def _arm(device: Device, mode: int, layer: int = 0, first: int = 0, rows: int = 0) -> None:
    device.request(protocol.TRACE, struct.pack("<BHII", mode, layer, first, rows))
