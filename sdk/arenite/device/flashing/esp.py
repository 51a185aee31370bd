# SPDX-License-Identifier: Apache-2.0
"""ESP32 chips, by Espressif's esptool, which asks the loader in the chip's ROM."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from arenite.device.flashing.model import FlashState, FoundChip, Piece, Written, difference, ranges_of
from arenite.device.flashing.tools import PortErrors, ToolRun, find_tool, holders, run_tool
from arenite.errors import FlashError

__all__ = ["EspLoader"]

_UNITS = {"KB": 1 << 10, "MB": 1 << 20}
_PROGRESS = re.compile(r"Writing at 0x[0-9a-f]+.* (\d+)/(\d+) bytes")
_LOST = (
    "Lower the speed with --baud, or use a shorter cable; then flash again: what is there already is not written again"
)


class EspLoader(PortErrors):
    """A chip behind esptool.

    Args:
        port: Its serial port.
        baud: Speed while flashing.
        reset: The port's lines reset the board; otherwise it is in its loader already and stays there.
        stub: Let esptool load its faster helper into RAM.
    """

    def __init__(self, port: str, baud: int, reset: bool, stub: bool) -> None:
        self.tool = "esptool"
        super().__init__(port)
        self._reset = reset
        self._command = [*find_tool("esptool"), "--chip", "auto", "--port", port, "--baud", str(baud)]
        self._command += [] if reset else ["--before", "no-reset"]
        self._command += [] if stub else ["--no-stub"]

    def identify(self) -> FoundChip | None:
        """Chip, MAC and size of the flash."""
        run = self._run("flash-id")
        name = run.field(r"^Connected to (ESP\S+?)(?: in Secure Download Mode)? on ")
        if "Secure Download Mode" in run.text:
            return FoundChip(_as_in_boards(name or "ESP32"), name or "ESP32", protected="secure download mode is on")
        if name is None:
            raise self._no_answer(run)
        if run.code != 0:
            raise self._failed(f"the chip's flash could not be asked: {run.last_words}", "identity", FlashState())
        size = run.field(r"^Detected flash size: (\d+(?:KB|MB))")
        return FoundChip(
            chip=_as_in_boards(name),
            name=run.field(r"^Chip type:\s+(.*)") or name,
            unique_id=run.field(r"^MAC:\s+(\S+)"),
            flash_bytes=None if size is None else int(size[:-2]) * _UNITS[size[-2:]],
        )

    def present(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The chip makes digests of its flash by itself, which is quick."""
        wrong = self.different(pieces, FlashState())
        return [piece for piece in pieces if piece not in wrong]

    def different(self, pieces: Sequence[Piece], known: FlashState) -> list[Piece]:
        """By the digests of the chip."""
        with tempfile.TemporaryDirectory() as folder:
            run = self._run("verify-flash", *_files(pieces, Path(folder)))
        verdicts = re.findall(r"^Verification (successful|failed) \(", run.text, re.MULTILINE)
        if len(verdicts) != len(pieces):
            if holders(self._port):
                raise self._shared(known)
            raise self._failed(f"bytes were lost on the line: {run.last_words}", "read", known, _LOST)
        return [piece for piece, verdict in zip(pieces, verdicts, strict=True) if verdict == "failed"]

    def write(self, pieces: Sequence[Piece], advance: Callable[[int], None]) -> None:
        """One piece after the other: each is erased, written and compared by digest before the next is touched."""
        counter, verified = Written(advance), 0

        def heard(line: str) -> None:
            nonlocal verified
            match = _PROGRESS.search(line)
            verified += line.startswith("Hash of data verified")
            before = sum(len(piece.data) for piece in pieces[:verified])
            counter.reach(before + (int(match[1]) if match else 0))

        with tempfile.TemporaryDirectory() as folder:
            run = self._run("write-flash", *_files(pieces, Path(folder)), heard=heard)
        if run.code != 0:
            raise self._broken_off(run, pieces)

    def read(self, piece: Piece) -> bytes | None:
        """Byte by byte, which is slow without the helper in RAM."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "read.bin"
            run = self._run("read-flash", f"{piece.address:#x}", f"{len(piece.data):#x}", str(out))
            return out.read_bytes() if run.code == 0 and out.is_file() else None

    def start(self) -> bool:
        """Resets the board out of its loader, if the port's lines can."""
        if not self._reset:
            return False
        self._run("run", after="hard-reset")
        return True

    def _run(self, *arguments: str, after: str = "no-reset", heard: Callable[[str], None] | None = None) -> ToolRun:
        return run_tool([*self._command, "--after", after, *arguments], heard)

    def _no_answer(self, run: ToolRun) -> FlashError:
        if re.search(r"could not open|Could not open|port is busy|Permission denied", run.text):
            return self._not_opened(run)
        if holders(self._port):
            return self._shared(FlashState())
        cure = "Hold BOOT while you press RESET, check TX, RX and the cable, try --baud 115200"
        return self._failed("no ESP32 answers: its loader is not running", "sync", FlashState(), cure)

    def _broken_off(self, run: ToolRun, pieces: Sequence[Piece]) -> FlashError:
        done = len(re.findall(r"^Hash of data verified", run.text, re.MULTILINE))
        new = ranges_of(pieces[:done])
        began = "Connected to" in run.text and re.search(r"flash size\.\.\.|Writing at|Erasing|Wrote", run.text)
        unsure = tuple((piece.address, _sector_end(piece.end)) for piece in pieces[done : done + 1] if began)
        state = FlashState(new, unsure)
        if holders(self._port) or "multiple access on port" in run.text:
            return self._shared(state)
        if "does not match data in flash" in run.text:
            problem, cure = difference(self, pieces[done])
            return self._failed(problem, "verify", state, cure)
        return self._failed(f"bytes were lost on the line: {run.last_words}", "write", state, _LOST)


def _as_in_boards(name: str) -> str:
    return name.lower().replace("-", "")


def _sector_end(address: int) -> int:
    """Erasing goes by sectors of 4 KiB."""
    return -(-address // 4096) * 4096


def _files(pieces: Sequence[Piece], folder: Path) -> list[str]:
    words = []
    for piece in pieces:
        path = folder / f"{piece.address:08x}.bin"
        path.write_bytes(piece.data)
        words += [f"{piece.address:#x}", str(path)]
    return words
