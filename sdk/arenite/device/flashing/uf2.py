# SPDX-License-Identifier: Apache-2.0
"""Boards that show themselves as a drive to which a UF2 file is copied: RP2040, RP2350 and others.

The format is Microsoft's: blocks of 512 bytes, each with an address and up to 476 bytes; here 256, which all loaders
take.
"""

from __future__ import annotations

import os
import re
import string
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from arenite.device.flashing.model import FlashState, FoundChip, Piece, ranges_of
from arenite.errors import FlashError

__all__ = ["Uf2Loader", "uf2_of"]

_MAGIC = 0x0A324655, 0x9E5D5157, 0x0AB16F30
_FAMILY_PRESENT = 0x2000
_PAYLOAD = 256
_INFO = "INFO_UF2.TXT"


def uf2_of(pieces: Sequence[Piece], family: int) -> bytes:
    """The blocks of a UF2 file; the last of each piece is filled up with 0xFF."""
    parts = [
        (piece.address + at, piece.data[at : at + _PAYLOAD].ljust(_PAYLOAD, b"\xff"))
        for piece in pieces
        for at in range(0, len(piece.data), _PAYLOAD)
    ]
    return b"".join(
        struct.pack("<8I", *_MAGIC[:2], _FAMILY_PRESENT, address, _PAYLOAD, number, len(parts), family)
        + data.ljust(476, b"\0")
        + struct.pack("<I", _MAGIC[2])
        for number, (address, data) in enumerate(parts)
    )


class Uf2Loader:
    """A board in its drive mode.

    Args:
        drive: Folder where the drive is mounted, or `auto` to look for it.
        chip: Board id that the drive must have.
        family: Family id of the blocks.
    """

    def __init__(self, drive: str, chip: str, family: int) -> None:
        self.tool = "copy"
        self._drive, self._chip, self._family = drive, chip, family

    def identify(self) -> FoundChip | None:
        """What the drive's INFO_UF2.TXT says."""
        folder = self._folder()
        try:
            text = (folder / _INFO).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise self._failed(f"the drive cannot be read ({error.strerror})", "port", FlashState()) from error
        board = re.search(r"^Board-ID:\s*(\S+)", text, re.MULTILINE)
        model = re.search(r"^Model:\s*(.+)", text, re.MULTILINE)
        name = board[1] if board else "unknown"
        return FoundChip(chip=name, name=model[1].strip() if model else name)

    def present(self, pieces: Sequence[Piece]) -> list[Piece]:
        """None: the drive does not show the flash."""
        return []

    def different(self, pieces: Sequence[Piece], known: FlashState) -> list[Piece] | None:
        """Not known: the drive does not show the flash, and goes away once it has all blocks."""
        return None

    def write(self, pieces: Sequence[Piece], advance: Callable[[int], None]) -> None:
        """Copies the file; the board writes it and starts it once the last block is there."""
        target = self._folder() / "ARENITE.UF2"
        data, sent = uf2_of(pieces, self._family), 0
        try:
            with target.open("wb", buffering=0) as file:
                for at in range(0, len(data), 512 * 64):
                    file.write(data[at : at + 512 * 64])
                    sent = at
                    advance(min(512 * 64, len(data) - at) // 2)
                os.fsync(file.fileno())
        except OSError as error:
            # A board that has all blocks restarts at once, and its drive is gone before the file is closed.
            if sent + 512 * 64 < len(data):
                state = FlashState(unsure=ranges_of(pieces))
                problem = f"the drive went away while it was written ({error.strerror})"
                cure = "Hold BOOTSEL, plug the board in and flash again"
                raise self._failed(problem, "write", state, cure) from error

    def read(self, piece: Piece) -> bytes | None:
        """The drive does not show the flash."""
        return None

    def start(self) -> bool:
        """It has started by itself."""
        return True

    def _folder(self) -> Path:
        if self._drive != "auto":
            if (Path(self._drive) / _INFO).is_file():
                return Path(self._drive)
            cure = "Hold BOOTSEL while you plug the board in; give the folder where its drive is, or auto"
            raise self._failed(f"there is no {_INFO}: this is no board's drive", "port", FlashState(), cure)
        found = [folder for folder in _drives() if (folder / _INFO).is_file()]
        if len(found) == 1:
            return found[0]
        problem = "no board shows a drive" if not found else f"{len(found)} boards show a drive"
        cure = "Hold BOOTSEL while you plug the board in" if not found else "Give --port the folder of one of them"
        raise self._failed(problem, "port", FlashState(), cure)

    def _failed(self, problem: str, stage: str, state: FlashState, cure: str | None = None) -> FlashError:
        return FlashError(problem, stage=stage, state=state, where=self._drive, cure=cure)


def _drives() -> Iterator[Path]:
    """Where systems mount drives."""
    for root, pattern in (("/media", "*/*"), ("/run/media", "*/*"), ("/media", "*"), ("/Volumes", "*"), ("/mnt", "*")):
        yield from sorted(Path(root).glob(pattern))
    if os.name == "nt":
        yield from (Path(f"{letter}:/") for letter in string.ascii_uppercase)
