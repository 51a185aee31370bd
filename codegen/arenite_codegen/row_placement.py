# SPDX-License-Identifier: Apache-2.0
"""Place each row by itself, wherever the bytes are free while it lives.

Values that must lie in one place (inputs, outputs, values read as a whole), scratch and counters are placed first. Rows
follow one after the other, each at the lowest offset at which it meets no row or block that is alive at the same time.
Several orders are tried. A row that may lie over the row it is computed from may start where that row starts or before
it, and nowhere else inside it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arenite_codegen.network import Network, Role
from arenite_codegen.placement import ALIGNMENT, Block, Ints, forbidden_differences, lives_throughout, search
from arenite_codegen.schedule import Schedule, read_as_a_whole

__all__ = ["RowPlacement", "place_rows", "row_unit"]

# A row's offset is 16 bits of units.
MAX_UNITS = 0xFFFF
TRIES = 24
# Compared pairs of rows that one packing may spend in all, and at most in one order.
EFFORT = 100_000_000
EFFORT_OF_ONE = 4_000_000_000


@dataclass(frozen=True)
class RowPlacement:
    """Offsets of blocks that stay whole, by their position, and of the rows of the other values."""

    arena_bytes: int
    rigid: dict[int, int]
    rows: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class _Row:
    value: int
    row: int
    size: int
    born: int
    died: int
    life: int


def row_unit(bound: int) -> int:
    """Bytes of which all offsets are multiples, so that 16 bits say any offset of an arena near its bound."""
    unit = ALIGNMENT
    while bound * 5 // 4 > unit * MAX_UNITS:
        unit *= 2
    return unit


def place_rows(
    network: Network, schedule: Schedule, blocks: list[Block], bound: int, unit: int
) -> RowPlacement | None:
    """The best of several orders, or None where no value can be scattered."""
    loose = {b.value for b in blocks if _is_loose(network, b)}
    rigid = [i for i, b in enumerate(blocks) if b.value not in loose]
    rows = [row for b in blocks if b.value in loose for row in _rows(b)]
    if not rows or len(rows) ** 2 > EFFORT_OF_ONE:
        return None
    fixed = [blocks[i] for i in rigid]
    offsets, arena = search(fixed, forbidden_differences(network, schedule, fixed), 0)
    overlays = [o for o in schedule.timeline.overlays if not any(lives_throughout(network, v) for v in (o[0], o[2]))]
    placer = _Placer(overlays, fixed, offsets, arena, unit)
    best: tuple[int, dict[tuple[int, int], int]] | None = None
    for order in _orders(rows, max(1, min(TRIES, EFFORT // len(rows) ** 2))):
        found = placer.place(order)
        if best is None or found[0] < best[0]:
            best = found
        if best[0] <= -(-bound // unit) * unit:
            break
    assert best is not None
    if best[0] > unit * MAX_UNITS:
        return None
    counts = {b.value: len(b.born) for b in blocks if b.value in loose}
    scattered = {v: tuple(best[1][v, r] for r in range(n)) for v, n in counts.items() if v is not None}
    return RowPlacement(best[0], dict(zip(rigid, offsets, strict=True)), scattered)


def _is_loose(network: Network, block: Block) -> bool:
    if block.rigid or block.value is None or network.values[block.value].role is not Role.INTERNAL:
        return False
    return len(block.born) > 1 and not read_as_a_whole(network, block.value)


def _rows(block: Block) -> list[_Row]:
    assert block.value is not None
    life = int((block.died - block.born).max())
    size = int(block.stop[0] - block.start[0])
    pairs = zip(block.born.tolist(), block.died.tolist(), strict=True)
    return [_Row(block.value, row, size, born, died, life) for row, (born, died) in enumerate(pairs)]


def _orders(rows: list[_Row], tries: int) -> list[list[_Row]]:
    """Orders that each do well on some networks, then the same with the values' weights shaken."""
    chance = random.Random(0)
    keys: list[Callable[[_Row, float], tuple[float, ...]]] = [
        lambda row, w: (row.born * w, -row.size),
        lambda row, w: (-row.size * w, row.born),
        lambda row, w: (-(row.died - row.born) * w, -row.size),
        lambda row, w: (-row.life * row.size * w, row.born),
    ]
    values = sorted({row.value for row in rows})
    orders = []
    for attempt in range(tries):
        spread = 0.0 if attempt < len(keys) else 0.5
        weight = {value: 1.0 + spread * chance.random() for value in values}
        key = keys[attempt % len(keys)]
        orders.append(sorted(rows, key=lambda row: (*key(row, weight[row.value]), row.value, row.row)))
    return orders


class _Placer:
    def __init__(
        self,
        overlays: list[tuple[int, int, int, int]],
        fixed: list[Block],
        offsets: list[int],
        arena: int,
        unit: int,
    ) -> None:
        nothing = np.zeros(0, np.int64)
        self._fixed = [
            np.concatenate([nothing, *(getattr(b, name) + shift * o for b, o in zip(fixed, offsets, strict=True))])
            for name, shift in (("born", 0), ("died", 0), ("start", 1), ("stop", 1))
        ]
        self._arena, self._unit = arena, unit
        self._fixed_rows = {
            (b.value, row): (int(start) + o, int(stop) + o)
            for b, o in zip(fixed, offsets, strict=True)
            if b.value is not None
            for row, (start, stop) in enumerate(zip(b.start, b.stop, strict=True))
        }
        self._read_by: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._written_by: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for read, read_row, written, written_row in overlays:
            self._read_by.setdefault((written, written_row), []).append((read, read_row))
            self._written_by.setdefault((read, read_row), []).append((written, written_row))

    def place(self, order: list[_Row]) -> tuple[int, dict[tuple[int, int], int]]:
        """Arena bytes and the offset of each row."""
        count = len(self._fixed[0])
        born, died, low, high = (np.concatenate((part, np.zeros(len(order), np.int64))) for part in self._fixed)
        placed = dict(self._fixed_rows)
        arena = self._arena
        for row in order:
            alive = np.nonzero((born[:count] <= row.died) & (died[:count] >= row.born))[0]
            start = self._lowest(row, low[alive], high[alive], placed)
            placed[row.value, row.row] = (start, start + row.size)
            born[count], died[count], low[count], high[count] = row.born, row.died, start, start + row.size
            count += 1
            arena = max(arena, start + row.size)
        return arena, {key: start for key, (start, _) in placed.items()}

    def _lowest(self, row: _Row, low: Ints, high: Ints, placed: dict[tuple[int, int], tuple[int, int]]) -> int:
        """The lowest start that meets nothing alive and does not run ahead of a row that is read in place."""
        first, last = low - row.size + 1, high - 1
        zones = np.array(self._zones(row, placed), np.int64).reshape(-1, 2)
        first, last = np.concatenate((first, zones[:, 0])), np.concatenate((last, zones[:, 1]))
        order = np.argsort(first, kind="stable")
        first, last = first[order], np.maximum.accumulate(last[order])
        starts = np.maximum(np.concatenate(([0], -(-(last + 1) // self._unit) * self._unit)), 0)
        limits = np.concatenate((first, [np.iinfo(np.int64).max]))
        return int(starts[np.nonzero(starts < limits)[0][0]])

    def _zones(self, row: _Row, placed: dict[tuple[int, int], tuple[int, int]]) -> list[tuple[int, int]]:
        """Starts, first and last, at which the row would be written ahead of what the same step still reads."""
        key = (row.value, row.row)
        reads = [placed[read] for read in self._read_by.get(key, ()) if read in placed]
        writes = [placed[written] for written in self._written_by.get(key, ()) if written in placed]
        zones = [(start + 1, stop - 1) for start, stop in reads]
        zones += [(start - row.size + 1, start - 1) for start, _ in writes]
        return [zone for zone in zones if zone[0] <= zone[1]]
