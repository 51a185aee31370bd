# SPDX-License-Identifier: Apache-2.0
"""What boards there are, and a user's own among them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from arenite.errors import OutputError, UsageError
from arenite_codegen.board_model import Board, MemoryRegion
from arenite_codegen.boards import built_in_boards, list_boards, load_board, own_boards_folder

__all__ = ["AddedBoard", "BoardSummary", "BoardsReport", "MemorySummary", "add_board", "describe_boards"]


@dataclass(frozen=True)
class MemorySummary:
    """One memory of a board.

    Attributes:
        kind: `ram` or `flash`.
        word_cycles: Core cycles that reading 32 bits takes on average.
        good_for: What goes there.
    """

    name: str
    kind: str
    bytes: int
    word_cycles: int
    good_for: str


@dataclass(frozen=True)
class BoardSummary:
    """One board.

    Attributes:
        features: Of the instruction set, as `FPU (single), DSP`.
        serial_port: Its driver and rate.
        flashing: What writes its flash: a method of `arenite flash`, or the program that it calls; empty if not known.
        proven: How far: `emulated`, `built`, or `exported` where another project builds it.
        own: The user added it.
    """

    name: str
    description: str
    chip: str
    cpu: str
    features: str
    clock_hz: int
    ram_bytes: int
    flash_bytes: int
    memories: tuple[MemorySummary, ...]
    serial_port: str
    flashing: str
    proven: str
    own: bool


@dataclass(frozen=True)
class BoardsReport:
    """All boards, by name."""

    boards: tuple[BoardSummary, ...]


@dataclass(frozen=True)
class AddedBoard:
    """A board of the user's, now known by its name."""

    board: str
    folder: str
    replaced: bool
    files: tuple[str, ...]


def describe_boards() -> BoardsReport:
    """Every board that comes with Arenite or was added."""
    return BoardsReport(tuple(summary(load_board(name), name not in built_in_boards()) for name in list_boards()))


def summary(board: Board, own: bool = False) -> BoardSummary:
    """What a board is, in words and numbers."""
    rate = f", {board.uart.baud:,} baud" if board.uart.base is not None else ""
    return BoardSummary(
        name=board.name,
        description=board.description,
        chip=board.hardware.chip,
        cpu=board.cpu,
        features=_features(board),
        clock_hz=board.clock_hz,
        ram_bytes=board.ram_bytes,
        flash_bytes=board.flash_bytes,
        memories=tuple(
            MemorySummary(region.name, region.kind, region.length, region.word_cycles, _good_for(board, region))
            for region in board.memory
        ),
        serial_port=f"{board.uart.kind}{rate}",
        flashing=_flashing(board),
        proven=board.proven,
        own=own,
    )


def _features(board: Board) -> str:
    features = board.features
    words = [f"FPU ({features.fpu})"] if board.has_fpu else []
    words += ["DSP"] if features.dsp else []
    words += ["Helium"] if features.mve else []
    return ", ".join(words)


def _flashing(board: Board) -> str:
    if board.architecture == "esp-idf":
        return "idf.py"
    if board.flashing is None:
        return ""
    return board.flashing.command[0] if board.flashing.command else board.flashing.method


def _good_for(board: Board, region: MemoryRegion) -> str:
    if region.kind == "flash":
        if region == board.flash:
            return "code and weights"
        return "weights, those that are read least often"
    fastest = min(ram.word_cycles for ram in board.rams)
    first = "stack, variables" if region == board.ram else ""
    if len(board.rams) == 1:
        return f"{first}, arena"
    arena = "what an inference moves most" if region.word_cycles == fastest else "the rest of an arena"
    return f"{first}, {arena}" if first else arena


def add_board(path: Path | str) -> AddedBoard:
    """Check a board file and keep it, so that its name is known from now on; with it the board's own C files.

    Args:
        path: A `board.toml` under any name, or the folder that holds one.

    Raises:
        UsageError: A field is wrong; or a board of that name comes with Arenite.
        OutputError: The folder of the user's boards cannot be written.
    """
    board = load_board(path)
    if board.name in built_in_boards():
        raise UsageError(
            f"a board named {board.name!r} comes with Arenite", where=str(path), cure="Give yours another `name`"
        )
    folder = own_boards_folder() / board.name
    replaced = folder.is_dir()
    try:
        if replaced:
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        shutil.copyfile(board.directory / board.file, folder / "board.toml")
        for file in board.own_c:
            shutil.copyfile(file, folder / file.name)
    except OSError as error:
        raise OutputError(f"the board cannot be kept ({error.strerror})", where=str(folder)) from error
    return AddedBoard(board.name, str(folder), replaced, ("board.toml", *(file.name for file in board.own_c)))
