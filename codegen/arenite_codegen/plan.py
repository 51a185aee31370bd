# SPDX-License-Identifier: Apache-2.0
"""Where everything lies in memory: which region, and which byte of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arenite_codegen.guards import Guard, guarded, guards_of
from arenite_codegen.network import Network
from arenite_codegen.packing import least_bytes, row_table_bytes
from arenite_codegen.placement import ALIGNMENT, Block, Place, make_blocks
from arenite_codegen.regions import ANYWHERE, Memory, Region, Share, distribute
from arenite_codegen.row_placement import row_unit
from arenite_codegen.schedule import Schedule
from arenite_codegen.traffic import block_traffic, value_traffic

__all__ = ["Place", "Plan", "make_plan"]


@dataclass(frozen=True)
class Plan:
    """Places of everything.

    Attributes:
        arena_bytes: Everything but the caller's memory: inputs, outputs, rows, scratch, row counters, in all regions.
        lower_bound_bytes: Bytes alive at the worst moment of this schedule, counters included.
        regions: The model's memory: the parts of the arena, fastest first, then what the caller gives, last the states.
        values: Place of each value that lies in one piece, as a ring or as a whole.
        rows: For each other value, the offset of each of its rows in its region.
        row_regions: Regions of these values.
        row_unit: Row offsets are multiples of this.
        scratch: Place of each layer's scratch.
        counters: Place of the row counters.
        blocks: What is placed, with its place; of scattered values the first row's.
        guards: Of a validation build, the word behind each block.
    """

    arena_bytes: int
    lower_bound_bytes: int
    regions: tuple[Region, ...]
    values: dict[int, Place]
    rows: dict[int, tuple[int, ...]]
    row_regions: dict[int, int]
    row_unit: int
    scratch: dict[int, Place]
    counters: Place
    blocks: tuple[tuple[Block, Place], ...]
    guards: tuple[Guard, ...] = ()

    @property
    def arena(self) -> tuple[Region, ...]:
        """The arena's parts."""
        return tuple(region for region in self.regions if region.holds == "arena")

    @property
    def table_bytes(self) -> int:
        """Flash that the row table takes."""
        return row_table_bytes(self.rows)


def make_plan(
    network: Network, schedule: Schedule, memories: Sequence[Memory] = (ANYWHERE,), guards: bool = False
) -> Plan:
    """Place all blocks; the result is the same on every machine.

    Args:
        memories: What there is. A plan that is too large for it is made all the same: then a region has more bytes than
            its capacity.
        guards: Put a guard word behind every block. Rows are then not scattered, so that each ring is one block.
    """
    blocks = make_blocks(network, schedule)
    if guards:
        blocks = [guarded(block) for block in blocks]
    moved = value_traffic(network, schedule)
    traffic = block_traffic(network, schedule, blocks, moved)
    bound = least_bytes(network, blocks)
    unit = row_unit(bound)
    shares = distribute(network, schedule, blocks, traffic, memories, unit)
    arena = tuple(_part(share, traffic) for share in shares)
    callers = _caller_regions(network, moved, arena, memories)
    states = _state_region(network, moved, (*arena, *callers.values()), memories)
    places = {
        i: Place(region, offset)
        for region, share in enumerate(shares)
        for i, offset in zip(share.blocks, share.packing.offsets, strict=True)
    }
    placed = tuple((block, places[i]) for i, block in enumerate(blocks))
    rows = {value: offsets for share in shares for value, offsets in share.packing.rows.items()}
    values = {b.value: place for b, place in placed if b.value is not None and b.value not in rows}
    arena_bytes = sum(part.bytes for part in arena)
    return Plan(
        arena_bytes=arena_bytes,
        lower_bound_bytes=min(bound, arena_bytes),
        regions=(*arena, *callers.values(), *states),
        values=values
        | {value: Place(len(arena) + i, 0) for i, value in enumerate(callers)}
        | {value: Place(len(arena) + len(callers), offset) for value, offset in _state_offsets(network).items()},
        rows=rows,
        row_regions={value: region for region, share in enumerate(shares) for value in share.packing.rows},
        row_unit=unit if rows else 1,
        scratch={b.layer: place for b, place in placed if b.layer is not None},
        counters=placed[-1][1],
        blocks=placed,
        guards=guards_of(placed, len(schedule.timeline.order)) if guards else (),
    )


def _part(share: Share, traffic: list[int]) -> Region:
    return Region(
        name=share.memory.name,
        holds="arena",
        bytes=share.packing.bytes,
        capacity_bytes=share.memory.capacity_bytes,
        traffic_bytes=sum(traffic[i] for i in share.blocks),
        word_cycles=share.memory.word_cycles,
    )


def _state_offsets(network: Network) -> dict[int, int]:
    """Where each state lies in their region."""
    offsets, end = {}, 0
    for state in network.states:
        offsets[state.value] = end
        end += -(-network.values[state.value].bytes // ALIGNMENT) * ALIGNMENT
    return offsets


def _state_region(
    network: Network, traffic: Mapping[int, int], used: Sequence[Region], memories: Sequence[Memory]
) -> tuple[Region, ...]:
    """States are no part of the arena, which models that take turns share: each model has its own."""
    if not network.states:
        return ()
    last = network.states[-1].value
    size = _state_offsets(network)[last] + network.values[last].bytes
    home = _home(size, memories, used)
    moved = sum(traffic[state.value] for state in network.states)
    return (Region(home.name, "state", size, home.capacity_bytes, moved, home.word_cycles),)


def _home(size: int, memories: Sequence[Memory], used: Sequence[Region]) -> Memory:
    """The fastest memory that has room beside the regions used, or else the emptiest."""
    free = {m.name: m.capacity_bytes - sum(part.bytes for part in used if part.name == m.name) for m in memories}
    ranked = sorted(memories, key=lambda memory: memory.word_cycles)
    return next((m for m in ranked if size <= free[m.name]), max(ranked, key=lambda m: free[m.name]))


def _caller_regions(
    network: Network, traffic: Mapping[int, int], arena: tuple[Region, ...], memories: Sequence[Memory]
) -> dict[int, Region]:
    """A region for each value in the caller's memory.

    Where that will lie is the caller's choice. Named is the fastest memory that has room for it beside the arena, or
    else the emptiest: there the application of the bundle has its buffer.
    """
    found: dict[int, Region] = {}
    named = [(f"input {i}", io.value) for i, io in enumerate(network.inputs)]
    named += [(f"output {i}", io.value) for i, io in enumerate(network.outputs)]
    for name, index in named:
        if index in network.caller_values and index not in found:
            size = network.values[index].items * network.values[index].bytes
            home = _home(size, memories, (*arena, *found.values()))
            found[index] = Region(home.name, name, size, home.capacity_bytes, traffic[index], home.word_cycles)
    return found
