# SPDX-License-Identifier: Apache-2.0
"""Where everything lies in memory: which region, and which byte of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from arenite_codegen.network import Network
from arenite_codegen.packing import least_bytes
from arenite_codegen.placement import Block, make_blocks
from arenite_codegen.regions import ANYWHERE, Memory, Region, Share, distribute
from arenite_codegen.row_placement import row_unit
from arenite_codegen.schedule import Schedule
from arenite_codegen.traffic import block_traffic

__all__ = ["Place", "Plan", "make_plan"]


class Place(NamedTuple):
    """A byte of the model's memory: the region's position in `Plan.regions`, and the offset in it."""

    region: int
    offset: int


@dataclass(frozen=True)
class Plan:
    """Places of everything.

    Attributes:
        arena_bytes: Everything included: inputs, outputs, rows, scratch, row counters, in all regions.
        lower_bound_bytes: Bytes alive at the worst moment of this schedule, counters included.
        regions: The model's memory, fastest first.
        values: Place of each value that lies in one piece, as a ring or as a whole.
        rows: For each other value, the offset of each of its rows in its region.
        row_regions: Regions of these values.
        row_unit: Row offsets are multiples of this.
        scratch: Place of each layer's scratch.
        counters: Place of the row counters.
        blocks: What is placed, with its place; of scattered values the first row's.
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

    @property
    def table_bytes(self) -> int:
        """Flash that the row table takes."""
        return 2 * sum(map(len, self.rows.values()))


def make_plan(network: Network, schedule: Schedule, memories: Sequence[Memory] = (ANYWHERE,)) -> Plan:
    """Place all blocks; the result is the same on every machine.

    Args:
        memories: What there is. A plan that is too large for it is made all the same: then a region has more bytes than
            its capacity.
    """
    blocks = make_blocks(network, schedule)
    traffic = block_traffic(network, schedule, blocks)
    bound = least_bytes(network, blocks)
    unit = row_unit(bound)
    shares = distribute(network, schedule, blocks, traffic, memories, unit)
    return _plan(blocks, traffic, shares, bound, unit)


def _plan(blocks: list[Block], traffic: list[int], shares: list[Share], bound: int, unit: int) -> Plan:
    places = {
        i: Place(region, offset)
        for region, share in enumerate(shares)
        for i, offset in zip(share.blocks, share.packing.offsets, strict=True)
    }
    placed = tuple((block, places[i]) for i, block in enumerate(blocks))
    rows = {value: offsets for share in shares for value, offsets in share.packing.rows.items()}
    arena_bytes = sum(share.packing.bytes for share in shares)
    return Plan(
        arena_bytes=arena_bytes,
        lower_bound_bytes=min(bound, arena_bytes),
        regions=tuple(_region(share, traffic) for share in shares),
        values={b.value: place for b, place in placed if b.value is not None and b.value not in rows},
        rows=rows,
        row_regions={value: region for region, share in enumerate(shares) for value in share.packing.rows},
        row_unit=unit if rows else 1,
        scratch={b.layer: place for b, place in placed if b.layer is not None},
        counters=placed[-1][1],
        blocks=placed,
    )


def _region(share: Share, traffic: list[int]) -> Region:
    return Region(
        name=share.memory.name,
        bytes=share.packing.bytes,
        capacity_bytes=share.memory.capacity_bytes,
        traffic_bytes=sum(traffic[i] for i in share.blocks),
        word_cycles=share.memory.word_cycles,
    )
