# SPDX-License-Identifier: Apache-2.0
"""What flashing is about: pieces of an image, the chip that is there, and what its flash holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["FlashState", "FoundChip", "Loader", "Piece", "Ranges", "Written", "difference", "ranges_of"]

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Piece:
    """Bytes for an address of the flash, as the chip's loader counts addresses."""

    address: int
    data: bytes

    @property
    def end(self) -> int:
        """Address behind the last byte."""
        return self.address + len(self.data)


@dataclass(frozen=True)
class FoundChip:
    """What a chip says of itself.

    Attributes:
        chip: As the board file names chips; `name` is for people.
        unique_id: Serial number or MAC; None where it has none or does not say.
        flash_bytes: None where it does not say.
        protected: Why its flash can not be read or written, or None.
    """

    chip: str
    name: str
    unique_id: str | None = None
    flash_bytes: int | None = None
    protected: str | None = None


@dataclass(frozen=True)
class FlashState:
    """What the flash holds after a failure; addresses, end excluded.

    Attributes:
        new: The new firmware.
        unsure: Erased, or written in part.
        erased: The rest of the chip is erased; otherwise it is as it was.
    """

    new: Ranges = ()
    unsure: Ranges = ()
    erased: bool = False

    @property
    def untouched(self) -> bool:
        """Nothing was erased or written."""
        return not (self.new or self.unsure or self.erased)

    def __str__(self) -> str:
        if self.untouched:
            return "the flash is as it was"
        parts = []
        if self.new:
            parts.append(f"the flash holds the new firmware at {_spans(self.new)}")
        if self.unsure:
            parts.append(f"{_spans(self.unsure)} is erased or written in part")
        parts.append(f"the rest is {'erased' if self.erased else 'as it was'}")
        return "; ".join(parts)


def _spans(ranges: Ranges) -> str:
    return ", ".join(f"{start:#x}..{end:#x}" for start, end in _merged(ranges))


def _merged(ranges: Ranges) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


class Loader(Protocol):
    """One way into a board's flash. Each method may raise `FlashError`."""

    tool: str

    def identify(self) -> FoundChip | None:
        """Asks the chip who it is; None where nobody can be asked."""

    def present(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Those pieces that the flash holds already, where that is quick to find out."""

    def write(self, pieces: Sequence[Piece], advance: Callable[[int], None]) -> None:
        """Erases and writes; tells how many bytes more are written."""

    def read(self, piece: Piece) -> bytes | None:
        """What the flash holds where a piece lies; None where it cannot be read."""

    def different(self, pieces: Sequence[Piece], known: FlashState) -> list[Piece] | None:
        """Those pieces that the flash does not hold; None where it cannot be read.

        `known` is what the flash holds as far as is known, for the error if that fails.
        """

    def start(self) -> bool:
        """Starts the new firmware; False when somebody must press reset."""


def ranges_of(pieces: Sequence[Piece]) -> Ranges:
    """Where pieces lie."""
    return tuple((piece.address, piece.end) for piece in pieces)


def difference(loader: Loader, piece: Piece) -> tuple[str, str]:
    """Why a piece is not as it was written, and what to do.

    Read twice, a flash that is worn or locked gives the same; a line or a supply that is not steady does not.
    """
    first, second = loader.read(piece), loader.read(piece)
    if first is None or second is None or len(first) != len(piece.data):
        return "the flash differs from what was written, and cannot be read", "Flash again"
    at = next((i for i, pair in enumerate(zip(first, piece.data, strict=True)) if pair[0] != pair[1]), None)
    if first != second or at is None:
        problem = "the flash is read otherwise each time"
        return problem, "Check supply, cable and flash pins; lower --baud"
    place = f"{piece.address + at:#x} holds {first[at]:#04x} instead of {piece.data[at]:#04x}, each time it is read"
    return f"the flash does not keep what is written: {place}", "The flash is worn or locked there: take another board"


@dataclass
class Written:
    """Counts bytes while a tool reports the address or number that it has reached."""

    advance: Callable[[int], None]
    done: int = field(default=0)

    def reach(self, done: int) -> None:
        """`done` bytes are written in all."""
        if done > self.done:
            self.advance(done - self.done)
            self.done = done
