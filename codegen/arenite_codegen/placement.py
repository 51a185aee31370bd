# SPDX-License-Identifier: Apache-2.0
"""Place blocks of memory: rings, scratch, counters, each at one offset.

Each block is a set of pieces, one a row, each with its place inside the block and the time it is alive. For two blocks,
the differences of their offsets at which two pieces that live at the same time would overlap form a few intervals; they
are computed once, exactly, so a block may lie over rows of another that are already consumed. Blocks are then put one
after the other at the lowest offset that no placed block forbids. The order decides how well that packs: several are
tried, then the best is improved by moving blocks, until the arena is as small as the rows alive at the worst moment (no
plan of this schedule can be smaller) or the tries are used up.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from arenite_codegen.network import Network, Role
from arenite_codegen.schedule import Schedule, bytes_over_time

__all__ = [
    "ALIGNMENT",
    "Block",
    "COUNTER_BYTES",
    "Forbidden",
    "Place",
    "forbidden_differences",
    "live_profile",
    "lives_throughout",
    "make_blocks",
    "search",
]

Ints = npt.NDArray[np.int64]

# Rows and scratch start at multiples of this.
ALIGNMENT = 4
COUNTER_BYTES = 2
TRIES = 400


class Place(NamedTuple):
    """A byte of the model's memory: the position of its region in the plan, and the offset in it."""

    region: int
    offset: int


@dataclass(frozen=True, eq=False)
class Block:
    """Memory that is placed as one.

    Attributes:
        name: For the arena map.
        value: Index of the value that it holds, or None.
        layer: Index of the layer whose scratch it is, or None.
        size: Bytes.
        start, stop: For each piece, where it lies inside the block.
        born, died: For each piece, the first and last half step of its life.
        rigid: The pieces must stay together.
    """

    name: str
    value: int | None
    layer: int | None
    size: int
    start: Ints
    stop: Ints
    born: Ints
    died: Ints
    rigid: bool = False


def make_blocks(network: Network, schedule: Schedule) -> list[Block]:
    """All blocks of a schedule but those outside the arena; the row counters are the last."""
    timeline = schedule.timeline
    blocks = [_value_block(network, schedule, index) for index in sorted(timeline.born.keys() - network.outside)]
    for layer, (first, last) in sorted(timeline.scratch.items()):
        size, nothing = network.layers[layer].scratch_bytes, np.zeros_like(first)
        blocks.append(Block(f"scratch of layer {layer}", None, layer, size, nothing, nothing + size, first, last))
    blocks.append(_whole("row counters", None, COUNTER_BYTES * len(network.layers), -1, timeline.end))
    return blocks


def live_profile(blocks: list[Block]) -> Ints:
    """Bytes of the blocks' pieces that are alive at each half step, from the one before the first."""
    end = max((int(b.died.max()) for b in blocks), default=0)
    return bytes_over_time(((b.born, b.died, b.stop - b.start) for b in blocks), end)


def lives_throughout(network: Network, index: int) -> bool:
    """The network runs once for each item of a batch, so a batched input or output is alive all the time."""
    return network.batch > 1 and network.values[index].role in (Role.INPUT, Role.OUTPUT)


def _whole(name: str, value: int | None, size: int, born: int, died: int) -> Block:
    one = [np.array([x], np.int64) for x in (0, size, born, died)]
    return Block(name, value, None, size, one[0], one[1], one[2], one[3])


def _value_block(network: Network, schedule: Schedule, index: int) -> Block:
    value, timeline = network.values[index], schedule.timeline
    if lives_throughout(network, index):
        return _whole(value.name, index, value.items * value.bytes, -1, timeline.end)
    ring = schedule.ring_rows[index]
    start = (np.arange(len(timeline.born[index]), dtype=np.int64) % ring) * value.row_bytes
    return Block(
        name=value.name,
        value=index,
        layer=None,
        size=ring * value.row_bytes,
        start=start,
        stop=start + value.row_bytes,
        born=timeline.born[index],
        died=timeline.died[index],
    )


class _Intervals:
    """Differences offset(b) - offset(a) that a pair of blocks must not have; closed, sorted, disjoint."""

    def __init__(self, low: Ints, high: Ints) -> None:
        order = np.argsort(low, kind="stable")
        low, high = low[order], np.maximum.accumulate(high[order])
        first = np.concatenate(([True], low[1:] > high[:-1] + 1))
        last = np.concatenate((first[1:], [True]))
        self.pairs: list[tuple[int, int]] = list(zip(low[first].tolist(), high[last].tolist(), strict=True))


Forbidden = dict[tuple[int, int], list[tuple[int, int]]]


def forbidden_differences(network: Network, schedule: Schedule, blocks: list[Block]) -> Forbidden:
    """For each pair of blocks, the intervals of offset differences that it must not have."""
    position = {b.value: i for i, b in enumerate(blocks) if b.value is not None}
    behind: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for read, read_row, written, written_row in schedule.timeline.overlays:
        if read not in position or written not in position:
            continue
        a, b = position[read], position[written]
        if not (lives_throughout(network, read) or lives_throughout(network, written)):
            start = int(blocks[a].start[read_row])
            out = int(blocks[b].start[written_row])
            pair = (start - out + 1, int(blocks[a].stop[read_row]) - out - 1)
            behind.setdefault((a, b), []).append(pair)
    found: Forbidden = {}
    for a in range(len(blocks)):
        for b in range(a + 1, len(blocks)):
            extra = behind.get((a, b), []) + [(-high, -low) for low, high in behind.get((b, a), [])]
            pairs = _overlaps(blocks[a], blocks[b], extra)
            if pairs:
                found[a, b] = pairs
                found[b, a] = [(-high, -low) for low, high in reversed(pairs)]
    return found


def _overlaps(a: Block, b: Block, extra: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if a.born.min() > b.died.max() or b.born.min() > a.died.max():
        return _Intervals(*np.array(extra, np.int64).T).pairs if extra else []
    together = (a.born[:, None] <= b.died[None, :]) & (b.born[None, :] <= a.died[:, None])
    i, j = np.nonzero(together)
    low, high = a.start[i] - b.stop[j] + 1, a.stop[i] - b.start[j] - 1
    if extra:
        added = np.array(extra, np.int64)
        low, high = np.concatenate((low, added[:, 0])), np.concatenate((high, added[:, 1]))
    return _Intervals(low, high).pairs if len(low) else []


def search(blocks: list[Block], forbidden: Forbidden, bound: int, tries: int = TRIES) -> tuple[list[int], int]:
    """Lowest arena over several placement orders and `tries` more, or the first within the bound; deterministic."""
    chance = random.Random(0)
    indices = range(len(blocks))
    orders = [
        sorted(indices, key=lambda i: (-blocks[i].size, i)),
        sorted(indices, key=lambda i: (int(blocks[i].born.min()), -blocks[i].size)),
        sorted(indices, key=lambda i: (-int(blocks[i].died.max() - blocks[i].born.min()), -blocks[i].size)),
        sorted(indices, key=lambda i: (-int(blocks[i].died.max()), -blocks[i].size)),
    ]
    tried = [(*_place(blocks, forbidden, order), order) for order in orders]
    best = min(tried, key=lambda t: t[1])
    for _ in range(tries):
        if best[1] <= -(-bound // ALIGNMENT) * ALIGNMENT:
            break
        order = _moved(blocks, best, chance)
        offsets, arena = _place(blocks, forbidden, order)
        if arena <= best[1]:
            best = (offsets, arena, order)
    return best[0], best[1]


def _moved(blocks: list[Block], best: tuple[list[int], int, list[int]], chance: random.Random) -> list[int]:
    """The best order with a block that ends near the top, or any other, moved towards the front."""
    offsets, arena, order = best
    top = [i for i, b in enumerate(blocks) if offsets[i] + b.size > arena - max(64, arena // 20)]
    chosen = chance.choice(top if chance.random() < 0.7 else list(range(len(blocks))))
    rest = [i for i in order if i != chosen]
    rest.insert(chance.randrange(len(rest) + 1), chosen)
    return rest


def _place(blocks: list[Block], forbidden: Forbidden, order: list[int]) -> tuple[list[int], int]:
    offsets = [-1] * len(blocks)
    placed: list[int] = []
    arena = 0
    for index in order:
        taken = sorted(
            (low + offsets[other], high + offsets[other])
            for other in placed
            if (other, index) in forbidden
            for low, high in forbidden[other, index]
        )
        offset = 0
        for low, high in taken:
            if low <= offset <= high:
                offset = -(-(high + 1) // ALIGNMENT) * ALIGNMENT
        offsets[index] = offset
        placed.append(index)
        arena = max(arena, offset + blocks[index].size)
    return offsets, arena
