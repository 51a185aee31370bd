# SPDX-License-Identifier: Apache-2.0
"""Which block of memory goes into which region.

The fastest region gets what moves most bytes an inference, weighed by the cycles that a word takes elsewhere:

1. If the fastest region has room for everything, everything lies there.
2. Otherwise blocks go one after the other into the fastest region where they can still be packed with what is there: in
   three orders, those first that move most bytes for each byte that they occupy, or most bytes, or the largest.
3. Then a block is moved to a faster region, or changes places with one or two there that move fewer bytes, as long as
   this helps or until the tries are used up.
4. Of the orders that leave no block without a place, the cheapest is taken.

Whether blocks can be packed is tried, by the search that also makes the plan. This is a heuristic: it does not say how
far from the best choice it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from arenite_codegen.network import Network
from arenite_codegen.packing import Packing, least_bytes, pack
from arenite_codegen.placement import ALIGNMENT, Block, Forbidden, forbidden_differences, search
from arenite_codegen.row_placement import place_rows
from arenite_codegen.schedule import Schedule

__all__ = ["ANYWHERE", "Memory", "Region", "Share", "distribute"]

# Orders that the search tries, beside its own, before blocks count as not packable.
TRIES = 12
# Packings of single rows, and then failed packings, that the choice may spend.
SCATTERINGS = 40
PATIENCE = 40


@dataclass(frozen=True)
class Memory:
    """RAM or flash for a model: `capacity_bytes` of it, where reading 32 bits takes `word_cycles` on average."""

    name: str
    capacity_bytes: int
    word_cycles: int = 1


@dataclass(frozen=True)
class Region:
    """What a model uses of one memory.

    Attributes:
        name: Of that memory.
        holds: `arena`, `weights`, or what of the caller's, such as `input 0`.
        bytes: Used, from the start to the end of what lies highest.
        capacity_bytes: What that memory has for the model.
        traffic_bytes: Bytes that an inference reads and writes there, as `traffic` counts them.
        word_cycles: Core cycles that 32 bits take there on average, as the board file says.
    """

    name: str
    holds: str
    bytes: int
    capacity_bytes: int
    traffic_bytes: int
    word_cycles: int

    @property
    def traffic_cycles(self) -> int:
        """Core cycles that the traffic takes if it moves in words: modelled, not measured."""
        return -(-self.traffic_bytes // 4) * self.word_cycles


@dataclass(frozen=True)
class Share:
    """A memory, the positions of the blocks that lie in it, and where."""

    memory: Memory
    blocks: tuple[int, ...]
    packing: Packing


ANYWHERE = Memory("arena", 1 << 28)


def distribute(
    network: Network,
    schedule: Schedule,
    blocks: list[Block],
    traffic: Sequence[int],
    memories: Sequence[Memory],
    unit: int,
) -> list[Share]:
    """The shares of the memories that hold a block, fastest first.

    What fits nowhere is added to the largest memory, whose packing then exceeds its capacity.
    """
    ranked = sorted(memories, key=lambda memory: memory.word_cycles)
    everything = _whole(network, schedule, blocks, ranked, unit)
    if everything is not None:
        return [everything]
    spread = _Spread(network, schedule, blocks, traffic, ranked, unit)
    shares = []
    for memory, members in zip(ranked, spread.choose(), strict=True):
        chosen = tuple(sorted(members))
        if chosen:
            packing = pack(network, schedule, [blocks[i] for i in chosen], memory.capacity_bytes, unit)
            shares.append(Share(memory, chosen, packing))
    return shares


def _whole(
    network: Network, schedule: Schedule, blocks: list[Block], ranked: list[Memory], unit: int
) -> Share | None:
    """Everything in one memory of the fastest; also where there is only one, whether it fits or not."""
    bound = least_bytes(network, blocks)
    fastest = [m for m in ranked if m.word_cycles == ranked[0].word_cycles and m.capacity_bytes >= bound]
    if len(ranked) == 1:
        fastest = ranked
    if not fastest:
        return None
    packing = pack(network, schedule, blocks, max(memory.capacity_bytes for memory in fastest), unit)
    for memory in fastest:
        if packing.bytes <= memory.capacity_bytes or len(ranked) == 1:
            return Share(memory, tuple(range(len(blocks))), packing)
    return None


class _Spread:
    def __init__(
        self,
        network: Network,
        schedule: Schedule,
        blocks: list[Block],
        traffic: Sequence[int],
        ranked: list[Memory],
        unit: int,
    ) -> None:
        self._network, self._schedule, self._unit = network, schedule, unit
        self._blocks, self._traffic, self._ranked = blocks, traffic, ranked
        self._forbidden = forbidden_differences(network, schedule, blocks)
        self._known: dict[tuple[frozenset[int], int], bool] = {}
        self._scatterings = self._failures = 0

    def choose(self) -> list[set[int]]:
        """For each memory its blocks."""
        traffic, blocks = self._traffic, self._blocks
        keys: tuple[Callable[[int], tuple[float, ...]], ...] = (
            lambda i: (-traffic[i] / max(1, blocks[i].size), -traffic[i], i),
            lambda i: (-traffic[i], i),
            lambda i: (-blocks[i].size, -traffic[i], i),
        )
        filled = [self._fill(sorted(range(len(blocks)), key=key)) for key in keys]
        complete = [self._improve(members) for members, left in filled if not left]
        if complete:
            return min(complete, key=self._cost)
        members, left = min(filled, key=lambda fill: sum(blocks[i].size for i in fill[1]))
        largest = max(range(len(self._ranked)), key=lambda r: self._ranked[r].capacity_bytes)
        members[largest].update(left)
        return members

    def _cost(self, members: list[set[int]]) -> int:
        """Cycles of the traffic, times the bytes of a word."""
        return sum(
            memory.word_cycles * sum(self._traffic[i] for i in chosen)
            for memory, chosen in zip(self._ranked, members, strict=True)
        )

    def _fill(self, order: list[int]) -> tuple[list[set[int]], list[int]]:
        """Each block in turn to the fastest memory that has room; what is left over."""
        members: list[set[int]] = [set() for _ in self._ranked]
        left = []
        for i in order:
            for chosen, memory in zip(members, self._ranked, strict=True):
                if self._fits(chosen | {i}, memory):
                    chosen.add(i)
                    break
            else:
                left.append(i)
        return members, left

    def _improve(self, members: list[set[int]]) -> list[set[int]]:
        self._failures = 0
        while self._failures < PATIENCE and self._improve_once(members):
            pass
        return members

    def _improve_once(self, members: list[set[int]]) -> bool:
        for slow in range(len(self._ranked) - 1, 0, -1):
            for i in sorted(members[slow], key=lambda i: (-self._traffic[i], i)):
                if any(self._promote(members, i, slow, fast) for fast in range(slow)):
                    return True
        return False

    def _promote(self, members: list[set[int]], i: int, slow: int, fast: int) -> bool:
        """Move a block to a faster memory, alone or against one or two that together move fewer bytes."""
        if self._ranked[fast].word_cycles == self._ranked[slow].word_cycles or not self._traffic[i]:
            return False
        traffic = self._traffic
        weaker = sorted((j for j in members[fast] if traffic[j] < traffic[i]), key=lambda j: (traffic[j], j))
        pairs = ((j, k) for j, k in combinations(weaker, 2) if traffic[j] + traffic[k] < traffic[i])
        for exchanged in map(set, chain([()], ((j,) for j in weaker), pairs)):
            if self._failures >= PATIENCE:
                return False
            now_fast, now_slow = (members[fast] | {i}) - exchanged, (members[slow] | exchanged) - {i}
            if self._fits(now_fast, self._ranked[fast]) and self._fits(now_slow, self._ranked[slow]):
                members[fast], members[slow] = now_fast, now_slow
                return True
        return False

    def _fits(self, members: set[int], memory: Memory) -> bool:
        key = (frozenset(members), memory.capacity_bytes)
        if key not in self._known:
            chosen = sorted(members)
            goal = memory.capacity_bytes // ALIGNMENT * ALIGNMENT
            blocks = [self._blocks[i] for i in chosen]
            self._known[key] = least_bytes(self._network, blocks) <= goal and self._packs(chosen, blocks, goal)
        return self._known[key]

    def _packs(self, chosen: list[int], blocks: list[Block], goal: int) -> bool:
        # To the search, what fits is good enough.
        rings = search(blocks, _among(self._forbidden, chosen), goal, TRIES)[1]
        fits = rings <= goal or self._scatters(blocks, goal)
        self._failures += not fits
        return fits

    def _scatters(self, blocks: list[Block], goal: int) -> bool:
        """Whether the blocks can be packed row by row."""
        if self._scatterings >= SCATTERINGS:
            return False
        self._scatterings += 1
        found = place_rows(self._network, self._schedule, blocks, least_bytes(self._network, blocks), self._unit)
        return found is not None and found.arena_bytes <= goal


def _among(forbidden: Forbidden, chosen: list[int]) -> Forbidden:
    """What is forbidden among some of the blocks, by their new positions."""
    return {
        (a, b): forbidden[i, j]
        for a, i in enumerate(chosen)
        for b, j in enumerate(chosen)
        if (i, j) in forbidden
    }
