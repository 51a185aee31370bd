# SPDX-License-Identifier: Apache-2.0
"""Pack blocks into one region of memory.

Two packings are made. In the first each value is a ring at one offset, which costs no flash. In the second each row has
a place of its own, from a table, which packs closer: a ring keeps a slot for a row that is gone. The second is taken
when the RAM that it saves is worth its table, or when it alone fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arenite_codegen.network import Network
from arenite_codegen.placement import Block, forbidden_differences, live_profile, search
from arenite_codegen.row_placement import place_rows
from arenite_codegen.schedule import Schedule

__all__ = ["Packing", "least_bytes", "pack", "row_table_bytes"]

# A byte of RAM is worth this many of flash: about the ratio of the two on microcontrollers.
FLASH_PER_RAM = 4


@dataclass(frozen=True)
class Packing:
    """Offsets in one region.

    Attributes:
        bytes: From the start to the end of what lies highest.
        offsets: Of each block; of one whose rows are scattered that of its first row.
        rows: For each value whose rows are scattered, the offset of each row.
    """

    bytes: int
    offsets: tuple[int, ...]
    rows: dict[int, tuple[int, ...]]


def row_table_bytes(rows: Mapping[int, tuple[int, ...]]) -> int:
    """Flash that the table of scattered rows' offsets takes."""
    return 2 * sum(map(len, rows.values()))


def least_bytes(network: Network, blocks: list[Block]) -> int:
    """Bytes alive at the worst moment: no packing of these blocks needs less."""
    if network.batch > 1:
        return max((b.size for b in blocks), default=0)
    return int(live_profile(blocks).max(initial=0))


def pack(network: Network, schedule: Schedule, blocks: list[Block], capacity_bytes: int, unit: int) -> Packing:
    """The better packing; the result is the same on every machine.

    Args:
        capacity_bytes: What there is; more is used where neither packing fits.
        unit: Offsets of scattered rows are multiples of this.
    """
    bound = least_bytes(network, blocks)
    offsets, size = search(blocks, forbidden_differences(network, schedule, blocks), bound)
    rings = Packing(size, tuple(offsets), {})
    scattered = _scattered(network, schedule, blocks, bound, unit) if size > bound else None
    if scattered is None or scattered.bytes >= rings.bytes:
        return rings
    is_worth_it = FLASH_PER_RAM * (rings.bytes - scattered.bytes) > row_table_bytes(scattered.rows)
    alone_fits = scattered.bytes <= capacity_bytes < rings.bytes
    return scattered if is_worth_it or alone_fits else rings


def _scattered(network: Network, schedule: Schedule, blocks: list[Block], bound: int, unit: int) -> Packing | None:
    placed = place_rows(network, schedule, blocks, bound, unit)
    if placed is None:
        return None
    offsets = [placed.rigid.get(i, -1) for i in range(len(blocks))]
    for i, block in enumerate(blocks):
        if offsets[i] < 0 and block.value is not None:
            offsets[i] = placed.rows[block.value][0]
    return Packing(placed.arena_bytes, tuple(offsets), placed.rows)
