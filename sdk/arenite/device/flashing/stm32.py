# SPDX-License-Identifier: Apache-2.0
"""STM32 chips, by stm32loader, which asks the loader in the chip's ROM (ST's application note AN3155)."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from arenite.device.flashing.model import FlashState, FoundChip, Piece, Written
from arenite.device.flashing.tools import PortErrors, ToolRun, find_tool, holders, run_tool
from arenite.errors import FlashError

__all__ = ["Stm32Loader"]

_ERASED = "Command: Extended erase memory", "Command: Erase memory"
_WRITING = re.compile(r"Write (\d+) bytes at 0x([0-9A-Fa-f]+)")
_LOST = "Lower the speed with --baud, or use a shorter cable; then flash again"


class Stm32Loader(PortErrors):
    """A chip behind stm32loader.

    Args:
        port: Its serial port.
        baud: Speed while flashing.
        family: By which stm32loader finds the size of the flash: `F4`, `G0`...
        start_address: Where the new firmware starts.
    """

    def __init__(self, port: str, baud: int, family: str, start_address: int) -> None:
        self.tool = "stm32loader"
        super().__init__(port)
        self._start = start_address
        self._command = [*find_tool("stm32loader"), "-p", port, "-b", str(baud), "-f", family, "-n", "-V"]

    def identify(self) -> FoundChip | None:
        """Product id, serial number and size of the flash."""
        run = self._run()
        found = re.search(r"Chip id: 0x([0-9A-F]+) \((.*)\)", run.text)
        if found is None:
            raise self._no_answer(run)
        size = run.field(r"Flash size: (\d+) KiB")
        refused = size is None and re.search(r"reading chip family data: .*(NACK|no ack)", run.text) is not None
        if size is None and not refused:
            raise self._failed(f"bytes were lost on the line: {run.last_words}", "identity", FlashState(), _LOST)
        return FoundChip(
            chip=f"0x{found[1].lower()}",
            name=found[2],
            unique_id=run.field(r"Device UID: (\S+)"),
            flash_bytes=None if size is None else int(size) << 10,
            protected="the chip refuses to be read: read-out protection is on" if refused else None,
        )

    def present(self, pieces: Sequence[Piece]) -> list[Piece]:
        """None: the chip makes no digests, and reading takes as long as writing."""
        return []

    def different(self, pieces: Sequence[Piece], known: FlashState) -> list[Piece] | None:
        """By reading all of it back."""
        wrong = []
        for piece in pieces:
            found = self.read(piece)
            if found is None:
                if holders(self._port):
                    raise self._shared(known)
                raise self._failed("bytes were lost on the line while the flash was read", "read", known, _LOST)
            wrong += [piece] if found != piece.data else []
        return wrong

    def write(self, pieces: Sequence[Piece], advance: Callable[[int], None]) -> None:
        """The whole chip is erased once, then the pieces are written."""
        counter = Written(advance)
        for number, piece in enumerate(pieces):
            before = sum(len(one.data) for one in pieces[:number])

            def heard(line: str, before: int = before, piece: Piece = piece) -> None:
                match = _WRITING.search(line)
                if match and int(match[2], 16) >= piece.address:
                    counter.reach(before + int(match[2], 16) - piece.address)

            with tempfile.TemporaryDirectory() as folder:
                image = Path(folder) / "piece.bin"
                image.write_bytes(piece.data)
                erase = ["-e"] if number == 0 else []
                run = self._run(*erase, "-w", "-a", f"{piece.address:#x}", str(image), heard=heard)
            if run.code != 0:
                raise self._broken_off(run, pieces, number)
            counter.reach(before + len(piece.data))

    def read(self, piece: Piece) -> bytes | None:
        """256 bytes at a time."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "read.bin"
            run = self._run("-r", "-a", f"{piece.address:#x}", "-l", f"{len(piece.data):#x}", str(out))
            return out.read_bytes() if run.code == 0 and out.is_file() else None

    def start(self) -> bool:
        """The loader jumps to the new firmware."""
        return self._run("-g", f"{self._start:#x}").code == 0

    def _run(self, *arguments: str, heard: Callable[[str], None] | None = None) -> ToolRun:
        return run_tool([*self._command, *arguments], heard)

    def _no_answer(self, run: ToolRun) -> FlashError:
        if re.search(r"could not open port|Permission denied|Errno 16", run.text):
            return self._not_opened(run)
        if holders(self._port):
            return self._shared(FlashState())
        cure = "Set BOOT0 high and press reset, check TX, RX and the cable; the loader wants 8 bits with even parity"
        return self._failed("no STM32 answers: its loader is not running", "sync", FlashState(), cure)

    def _broken_off(self, run: ToolRun, pieces: Sequence[Piece], number: int) -> FlashError:
        """The tool names each block before it sends it, and the erasing before it asks for it."""
        began = any(word in run.text for word in _ERASED) or number > 0
        if not began:
            state = FlashState()
        else:
            reached = [int(at, 16) for _, at in _WRITING.findall(run.text)]
            state = _written(pieces, number, reached[-1] if reached else pieces[number].address)
        if holders(self._port):
            return self._shared(state)
        if "readout protection" in run.text and "NACK" not in run.text and "timeout" not in run.text:
            cure = "Removing the protection erases the chip: stm32loader --unprotect"
            return self._failed("the chip refuses to be erased: it is protected", "protection", state, cure)
        return self._failed(f"bytes were lost on the line: {run.last_words}", "write", state, _LOST)


def _written(pieces: Sequence[Piece], whole: int, reached: int | None = None) -> FlashState:
    """After `whole` pieces, and the next up to the block at `reached`; the chip was erased before."""
    new = [(piece.address, piece.end) for piece in pieces[:whole]]
    unsure: tuple[tuple[int, int], ...] = ()
    if reached is not None and whole < len(pieces):
        piece = pieces[whole]
        new += [(piece.address, reached)] if reached > piece.address else []
        unsure = ((reached, min(reached + 256, piece.end)),)
    return FlashState(tuple(new), unsure, erased=True)
