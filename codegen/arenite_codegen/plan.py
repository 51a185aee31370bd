# SPDX-License-Identifier: Apache-2.0
"""Where everything lies in the arena.

Two plans are made. In the first each value is a ring at one offset, which costs no flash. In the second each row has a
place of its own, from a table, which packs closer: a ring keeps a slot for a row that is gone. The second is taken when
the RAM that it saves is worth its table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from arenite_codegen.guards import Guard, guarded, guards_of
from arenite_codegen.network import Network
from arenite_codegen.placement import Block, forbidden_differences, make_blocks, search
from arenite_codegen.row_placement import RowPlacement, place_rows
from arenite_codegen.schedule import Schedule

__all__ = ["Plan", "make_plan"]

# A byte of RAM is worth this many of flash: about the ratio of the two on microcontrollers.
FLASH_PER_RAM = 4


@dataclass(frozen=True)
class Plan:
    """Offsets of everything.

    Attributes:
        arena_bytes: Everything included: inputs, outputs, rows, scratch, row counters.
        lower_bound_bytes: Bytes alive at the worst moment of this schedule, counters included.
        values: Offset of each value that lies in one place, as a ring or as a whole.
        rows: For each other value, the offset of each of its rows.
        row_unit: Row offsets are multiples of this.
        scratch: Offset of each layer's scratch.
        counters: Offset of the row counters.
        blocks: What is placed, with its offset; of scattered values the first row's.
        guards: Of a validation build, the word behind each block.
    """

    arena_bytes: int
    lower_bound_bytes: int
    values: dict[int, int]
    rows: dict[int, tuple[int, ...]]
    row_unit: int
    scratch: dict[int, int]
    counters: int
    blocks: tuple[tuple[Block, int], ...]
    guards: tuple[Guard, ...] = ()

    @property
    def table_bytes(self) -> int:
        """Flash that the row table takes."""
        return 2 * sum(map(len, self.rows.values()))


def make_plan(network: Network, schedule: Schedule, guards: bool = False) -> Plan:
    """Place all blocks; the result is the same on every machine.

    Args:
        guards: Put a guard word behind every block. Rows are then not scattered, so that each ring is one block.
    """
    blocks = make_blocks(network, schedule)
    counters = blocks[-1].size
    bound = schedule.live_bytes + counters if network.batch == 1 else max(b.size for b in blocks)
    if guards:
        return _guarded_plan(network, schedule, [guarded(block) for block in blocks], bound)
    offsets, arena = search(blocks, forbidden_differences(network, schedule, blocks), bound)
    scattered = place_rows(network, schedule, blocks, bound) if arena > bound else None
    if scattered is not None:
        scattered_plan = _scattered_plan(blocks, scattered, bound)
        if FLASH_PER_RAM * (arena - scattered_plan.arena_bytes) > scattered_plan.table_bytes:
            return scattered_plan
    return _plan(blocks, offsets, arena, bound, {}, 1)


def _guarded_plan(network: Network, schedule: Schedule, blocks: list[Block], bound: int) -> Plan:
    offsets, arena = search(blocks, forbidden_differences(network, schedule, blocks), bound)
    plan = _plan(blocks, offsets, arena, bound, {}, 1)
    return replace(plan, guards=guards_of(plan.blocks, len(schedule.timeline.order)))


def _scattered_plan(blocks: list[Block], placement: RowPlacement, bound: int) -> Plan:
    offsets = [placement.rigid.get(i, -1) for i in range(len(blocks))]
    for i, block in enumerate(blocks):
        if offsets[i] < 0 and block.value is not None:
            offsets[i] = placement.rows[block.value][0]
    return _plan(blocks, offsets, placement.arena_bytes, bound, placement.rows, placement.unit)


def _plan(
    blocks: list[Block], offsets: list[int], arena: int, bound: int, rows: dict[int, tuple[int, ...]], unit: int
) -> Plan:
    placed = tuple(zip(blocks, offsets, strict=True))
    return Plan(
        arena_bytes=arena,
        lower_bound_bytes=min(bound, arena),
        values={b.value: offset for b, offset in placed if b.value is not None and b.value not in rows},
        rows=rows,
        row_unit=unit,
        scratch={b.layer: offset for b, offset in placed if b.layer is not None},
        counters=offsets[-1],
        blocks=placed,
    )
