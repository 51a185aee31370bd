# SPDX-License-Identifier: Apache-2.0
"""Does a plan fit a board? If not: which region, by how much, and the nearest network that would."""

from __future__ import annotations

from dataclasses import dataclass

from arenite.errors import DoesNotFitError
from arenite_codegen.boards import Board, MemoryRegion

__all__ = ["KNOWN_NETWORKS", "check_fit"]

# Code, start-up and row tables beside the weights; a build measures the exact figure.
CODE_BYTES = 32 * 1024


@dataclass(frozen=True)
class KnownNetwork:
    """An image classifier that people start from, with what its INT8 bundle needs."""

    name: str
    arena_bytes: int
    weights_bytes: int


# Largest first; full INT8, 1,000 classes. device_tests/benchmarks/known_networks.py measures them.
KNOWN_NETWORKS = (
    KnownNetwork("MobileNetV2 1.0/224", 195_008, 3_627_048),
    KnownNetwork("MobileNetV2 0.75/192", 146_432, 2_730_296),
    KnownNetwork("MobileNetV2 0.5/160", 80_768, 2_035_488),
    KnownNetwork("MobileNetV2 0.35/96", 30_080, 1_734_056),
    KnownNetwork("MobileNetV1 0.25/96", 28_090, 494_568),
)


def check_fit(board: Board, arena_bytes: int, weights_bytes: int, model: str) -> None:
    """Compare with the board's RAM and flash.

    Raises:
        DoesNotFitError: Naming each region that is too small, the bytes missing, and what fits instead.
    """
    problems = [
        _problem(region, needed, what)
        for region, needed, what in (
            (board.ram, arena_bytes + board.stack_bytes, f"arena {arena_bytes:,} + stack {board.stack_bytes:,}"),
            (board.flash, weights_bytes + CODE_BYTES, f"weights {weights_bytes:,} + about {CODE_BYTES:,} of code"),
        )
        if needed > region.length
    ]
    if problems:
        raise DoesNotFitError(
            f"the model does not fit the board {board.name}: {'; '.join(problems)}", where=model, cure=_nearest(board)
        )


def _problem(region: MemoryRegion, needed: int, what: str) -> str:
    short = needed - region.length
    return (
        f"region {region.name} ({region.kind}) has {region.length:,} bytes, "
        f"{needed:,} are needed ({what}), {short:,} too few"
    )


def _nearest(board: Board) -> str:
    for network in KNOWN_NETWORKS:
        if (
            network.arena_bytes + board.stack_bytes <= board.ram.length
            and network.weights_bytes + CODE_BYTES <= board.flash.length
        ):
            return (
                f"The nearest image network that fits is {network.name} in INT8 "
                f"(arena {network.arena_bytes:,} bytes, weights {network.weights_bytes:,} bytes)."
            )
    return "Use a smaller width or resolution, or a board with more memory."
