# SPDX-License-Identifier: Apache-2.0
"""Does a plan fit a board? If not: which region, by how much, and the nearest network that would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arenite.errors import DoesNotFitError
from arenite_codegen.board_hardware import BOOT_HEADER_BYTES
from arenite_codegen.boards import Board, MemoryRegion
from arenite_codegen.regions import Memory, Region

__all__ = [
    "CODE_BYTES",
    "KNOWN_NETWORKS",
    "Shortfall",
    "check_fit",
    "flash_of",
    "nearest_network",
    "ram_of",
    "shortfalls",
]

# Code, start-up and, where there is one flash, row tables beside the weights; a build measures the exact figure.
CODE_BYTES = 32 * 1024
# Variables of the application, where a plan might else fill the region of the stack to its last byte.
VARIABLE_BYTES = 2048


@dataclass(frozen=True)
class KnownNetwork:
    """An image classifier that people start from, with what its INT8 bundle needs."""

    name: str
    arena_bytes: int
    weights_bytes: int


# Largest first; full INT8, 1,000 classes where the name says nothing else; device_tests/benchmarks/known_networks.py
# measures them.
KNOWN_NETWORKS = (
    KnownNetwork("MobileNetV2 1.0/224", 190_080, 3_627_048),
    KnownNetwork("MobileNetV2 0.75/192", 142_976, 2_730_296),
    KnownNetwork("MobileNetV2 0.5/160", 79_518, 2_035_488),
    KnownNetwork("MobileNetV2 0.35/96", 30_080, 1_734_056),
    KnownNetwork("MobileNetV1 0.25/96", 28_090, 494_568),
    KnownNetwork("MobileNetV1 0.25/96, 2 classes", 28_090, 230_100),
)


@dataclass(frozen=True)
class Shortfall:
    """A memory that is too small.

    Attributes:
        kind: `ram` or `flash`.
        needed_bytes: What the model needs there, with what else lies there.
        missing_bytes: How much of it there is not.
    """

    region: str
    kind: str
    needed_bytes: int
    missing_bytes: int


def shortfalls(board: Board, used: Sequence[Region], table_bytes: int) -> tuple[Shortfall, ...]:
    """The memories that arena parts and weights overfill, as `check_fit` reckons them; of the caller's memory none.

    Args:
        used: Parts of arena and weights.
        table_bytes: Flash of all tables.
    """
    by_name = {region.name: region for region in board.memory}
    states = _state_bytes(board, used)
    found = []
    for part in used:
        if part.holds in ("arena", "weights"):
            region = by_name[part.name]
            if region.kind == "ram":
                beside = _reserved_bytes(board, region, 0) + states[region.name]
            else:
                beside = _code_bytes(board, region, table_bytes)
            short = part.bytes + beside - region.length
            if short > 0:
                found.append(Shortfall(region.name, region.kind, part.bytes + beside, short))
    return tuple(found)


def ram_of(board: Board, camera_bytes: int = 0) -> tuple[Memory, ...]:
    """The board's RAM, in its file's order, as far as it is free for a model.

    Args:
        camera_bytes: Of a camera's rows, which lie beside the stack.
    """
    return tuple(
        Memory(region.name, max(0, region.length - _reserved_bytes(board, region, camera_bytes)), region.word_cycles)
        for region in board.rams
    )


def _reserved_bytes(board: Board, region: MemoryRegion, camera_bytes: int) -> int:
    if region != board.ram:
        return 0
    return board.stack_bytes + camera_bytes + (VARIABLE_BYTES if len(board.rams) > 1 else 0)


def flash_of(board: Board, table_bytes: int) -> tuple[Memory, ...]:
    """The board's flash, in its file's order, as far as it is free for weights."""
    return tuple(
        Memory(region.name, max(0, region.length - _code_bytes(board, region, table_bytes)), region.word_cycles)
        for region in board.flashes
    )


def _code_bytes(board: Board, region: MemoryRegion, table_bytes: int) -> int:
    """What code takes of a flash region. Among several the weights fill the code's as well as they can: then its tables
    are counted."""
    if region != board.flash:
        return 0
    header = BOOT_HEADER_BYTES.get(board.hardware.boot, 0)
    return CODE_BYTES + header + (table_bytes if len(board.flashes) > 1 else 0)


def check_fit(
    board: Board, ram: Sequence[Region], flash: Sequence[Region], table_bytes: int, model: str, camera_bytes: int = 0
) -> None:
    """Compare with the board's RAM and flash.

    Args:
        ram, flash: What the models use; of RAM the arena's parts and the states count.
        table_bytes: Flash of all tables.
        camera_bytes: RAM of a camera's rows.

    Raises:
        DoesNotFitError: Naming each region that is too small, the bytes missing, and what fits instead.
    """
    problems = _ram_problems(board, ram, camera_bytes) + _flash_problems(board, flash, table_bytes)
    if problems:
        raise DoesNotFitError(
            f"the model does not fit the board {board.name}: {'; '.join(problems)}", where=model, cure=_nearest(board)
        )


def _ram_problems(board: Board, ram: Sequence[Region], camera_bytes: int) -> list[str]:
    states = _state_bytes(board, ram)
    reserved = {r.name: _reserved_bytes(board, r, camera_bytes) + states[r.name] for r in board.rams}
    arena = tuple(region for region in ram if region.holds == "arena")
    beside = "stack, variables and the camera's rows {:,}" if camera_bytes else "stack and variables {:,}"
    return _problems(board.rams, arena, reserved, "arena {:,}", beside)


def _state_bytes(board: Board, used: Sequence[Region]) -> dict[str, int]:
    """Bytes of the states in each RAM."""
    return {
        ram.name: sum(part.bytes for part in used if part.name == ram.name and part.holds.startswith("state"))
        for ram in board.rams
    }


def _flash_problems(board: Board, flash: Sequence[Region], table_bytes: int) -> list[str]:
    reserved = {region.name: _code_bytes(board, region, table_bytes) for region in board.flashes}
    return _problems(board.flashes, tuple(flash), reserved, "weights {:,}", "about {:,} of code")


def _problems(
    there: tuple[MemoryRegion, ...], used: tuple[Region, ...], reserved: dict[str, int], holds: str, beside: str
) -> list[str]:
    """Each region that is too small; beside it, how full the others are."""
    by_name = {region.name: region for region in there}
    too_small, others = [], []
    for part in used:
        region, taken = by_name[part.name], reserved[part.name]
        if part.bytes + taken > region.length:
            what = holds.format(part.bytes) + (f" + {beside.format(taken)}" if taken else "")
            too_small.append(_problem(region, part.bytes + taken, what))
        else:
            others.append(f"region {part.name} ({region.kind}) holds {part.bytes:,} of {part.capacity_bytes:,} bytes")
    return too_small + others if too_small else []


def _problem(region: MemoryRegion, needed: int, what: str) -> str:
    short = needed - region.length
    return (
        f"region {region.name} ({region.kind}) has {region.length:,} bytes, "
        f"{needed:,} are needed ({what}), {short:,} too few"
    )


def nearest_network(board: Board) -> KnownNetwork | None:
    """The largest network of `KNOWN_NETWORKS` that fits a board."""
    ram = max(memory.capacity_bytes for memory in ram_of(board))
    flash = board.flash_bytes - CODE_BYTES
    return next((n for n in KNOWN_NETWORKS if n.arena_bytes <= ram and n.weights_bytes <= flash), None)


def _nearest(board: Board) -> str:
    network = nearest_network(board)
    if network is None:
        return "Use a smaller width or resolution, or a board with more memory."
    return (
        f"The nearest image network that fits is {network.name} in INT8 "
        f"(arena {network.arena_bytes:,} bytes, weights {network.weights_bytes:,} bytes)."
    )
