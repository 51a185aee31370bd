# SPDX-License-Identifier: Apache-2.0
"""Boards whose file names the command that flashes them: pyocd, west flash, openocd and the like."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from arenite.device.flashing.intel_hex import intel_hex
from arenite.device.flashing.model import FlashState, FoundChip, Piece, ranges_of
from arenite.device.flashing.tools import run_tool
from arenite.errors import FlashError

__all__ = ["DeclaredLoader"]


class DeclaredLoader:
    """A program that flashes, and checks what it does by itself.

    Args:
        command: Program and arguments with `{elf}`, `{bin}`, `{hex}` and `{port}`.
        elf: The firmware.
        port: The board's serial port, or whatever the program takes.
        folder: Where the program runs.
    """

    def __init__(self, command: Sequence[str], elf: Path, port: str, folder: Path) -> None:
        self.tool = command[0]
        self._command, self._elf, self._port, self._folder = command, elf, port, folder

    def identify(self) -> FoundChip | None:
        """The program does that."""
        return None

    def present(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Not known."""
        return []

    def different(self, pieces: Sequence[Piece], known: FlashState) -> list[Piece] | None:
        """Not known."""
        return None

    def write(self, pieces: Sequence[Piece], advance: Callable[[int], None]) -> None:
        """Runs the program."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "firmware.bin").write_bytes(_joined(pieces))
            (Path(folder) / "firmware.hex").write_text(intel_hex(pieces), encoding="ascii")
            run = run_tool(self.command(Path(folder)))
        if run.code != 0:
            raise FlashError(
                f"{self.tool} failed: {run.last_words}",
                stage="write",
                state=FlashState(unsure=ranges_of(pieces)),
                where=self._port,
                cure=f"Run it by hand: {' '.join(self.command(Path()))}",
            )
        advance(sum(len(piece.data) for piece in pieces))

    def command(self, folder: Path) -> list[str]:
        """The command with its files, those that are made for it in a folder."""
        made = {f"{{{kind}}}": str(folder / f"firmware.{kind}") for kind in ("bin", "hex")}
        values = {"{elf}": str(self._elf.resolve()), **made, "{port}": self._port}
        return [_filled(word, values) for word in self._command]

    def read(self, piece: Piece) -> bytes | None:
        """Not known."""
        return None

    def start(self) -> bool:
        """Such programs start what they have flashed."""
        return True


def _filled(word: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def _joined(pieces: Sequence[Piece]) -> bytes:
    start = pieces[0].address
    joined = bytearray(b"\xff" * (pieces[-1].end - start))
    for piece in pieces:
        joined[piece.address - start : piece.end - start] = piece.data
    return bytes(joined)
