# SPDX-License-Identifier: Apache-2.0
"""The executor's tables: where rows lie, which of them a step reads, in which order rows are made.

Networks repeat themselves, and the tables say each thing once: values and windows that are alike share an entry, rows
whose places come around and stretches of the schedule that come again are folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from arenite_codegen.network import Network, Read
from arenite_codegen.placement import Place
from arenite_codegen.plan import Plan
from arenite_codegen.schedule import Schedule

__all__ = ["MemoryTables", "RowTable", "fold_rows", "packed_steps", "place_word", "table_bytes"]

# A place in C is one word: the region above this bit, the offset below. As ARENITE_REGION_SHIFT.
REGION_SHIFT = 28
CONSTANT_REGION = 15  # as ARENITE_CONSTANT_REGION: no memory, but an entry of the model's constants
FOLDED = 1 << 27  # as ARENITE_FOLDED_ROWS
_FOLD_WORDS = 4  # first, period, turns, drift
_LONGEST_PERIOD = 32
_AGAIN = 0x10  # as ARENITE_STEP_AGAIN
_AGAIN_BYTES = 3
_MOST_AGAIN = 255
_LONGEST_STRETCH = 128
# sizeof(arenite_layer_t), arenite_read_t, arenite_value_t, arenite_window_t where pointers have 32 bits.
_LAYER_BYTES, _READ_BYTES, _VALUE_BYTES, _WINDOW_BYTES = 24, 8, 16, 16

T = TypeVar("T")


def place_word(place: Place) -> int:
    """A place as `arenite_place_t`."""
    return place.region << REGION_SHIFT | place.offset


@dataclass(frozen=True)
class ValueEntry:
    """`arenite_value_t`: how a value's rows lie, as one reader or its producer divides it."""

    place: int
    row_bytes: int
    item_bytes: int
    rows: int
    ring_rows: int


@dataclass(frozen=True)
class WindowEntry:
    """`arenite_window_t`: which rows of a value the steps of a layer read."""

    window: int
    stride: int
    dilation: int
    pad_top: int
    divisor: int
    starts: tuple[int, ...] = ()


class RowTable:
    """Offsets of scattered rows, in units, value after value; folded where that is shorter.

    Attributes:
        units: The table.
        first: For each scattered value, its region and where its rows start in the table.
    """

    def __init__(self, plan: Plan) -> None:
        self.units: list[int] = []
        self.first: dict[int, Place] = {}
        for value, offsets in sorted(plan.rows.items()):
            entries, flag = [offset // plan.row_unit for offset in offsets], 0
            folded = fold_rows(entries)
            if len(folded) < len(entries):
                entries, flag = folded, FOLDED
            self.first[value] = Place(plan.row_regions[value], len(self.units) | flag)
            self.units += entries


def fold_rows(rows: Sequence[int]) -> list[int]:
    """Rows whose places come around, as arenite.h describes them: first, period, turns, drift, then the rows kept.

    From row `first` on, `turns` times, the next `period` rows lie where those before them did, `drift` further; all
    modulo 2^16.
    """
    values = np.array(rows, np.int64)
    kept, first, period, turns = len(rows), 0, 1, 0
    for length in range(1, min(_LONGEST_PERIOD, len(rows) - 1) + 1):
        start, count = _longest_run(values[length:] - values[:-length])
        if len(rows) - count // length * length < kept:
            kept, first, period, turns = len(rows) - count // length * length, start, length, count // length
    drift = rows[first + period] - rows[first] if turns else 0
    tail = [row - turns * drift for row in rows[first + (turns + 1) * period :]]
    words = [first, period, turns, drift, *rows[: first + period], *tail]
    return [word & 0xFFFF for word in words]


def _longest_run(values: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Start and length of the longest run of equal values."""
    edges = np.concatenate(([0], np.nonzero(np.diff(values))[0] + 1, [len(values)]))
    lengths = np.diff(edges)
    longest = int(lengths.argmax())
    return int(edges[longest]), int(lengths[longest])


class MemoryTables:
    """Values, windows and constants of one model, each distinct one once.

    Attributes:
        values, windows: The entries and their positions.
        constants: The values in flash and their positions.
        outputs: For each layer, the entry that it writes.
        reads: For each layer, (value, window) of each of its reads.
        rows: The table of scattered rows.
    """

    def __init__(self, network: Network, schedule: Schedule, plan: Plan) -> None:
        self._network, self._schedule, self._plan = network, schedule, plan
        self.rows = RowTable(plan)
        self.values: dict[ValueEntry, int] = {}
        self.windows: dict[WindowEntry, int] = {}
        self.constants: dict[int, int] = {}
        self.outputs = [self._output(layer.output) for layer in network.layers]
        self.reads = [[self._read(read) for read in layer.reads] for layer in network.layers]

    def _output(self, index: int) -> int:
        value = self._network.values[index]
        scattered = index in self._plan.rows
        place, ring_rows = (self.rows.first[index], 0) if scattered else self._ring(index)
        return _entry(
            self.values, ValueEntry(place_word(place), value.row_bytes, value.item_bytes, value.rows, ring_rows)
        )

    def _ring(self, index: int) -> tuple[Place, int]:
        """Where a value lies and its rows there. One that no window reaches is never made and lies nowhere."""
        return self._plan.values.get(index, Place(0, 0)), self._schedule.ring_rows.get(index, 1)

    def _read(self, read: Read) -> tuple[int, int]:
        """The entries of the value and of the window."""
        value = self._network.values[read.value]
        if value.data is not None:
            place, ring_rows = Place(CONSTANT_REGION, _entry(self.constants, read.value)), read.rows
        elif read.value in self._plan.rows:
            place, ring_rows = self.rows.first[read.value], 0
        else:
            # A value that is divided otherwise than its producer does lies in memory as a whole: its ring is all of it.
            own = (read.rows, read.row_bytes) == (value.rows, value.row_bytes)
            place, ring_rows = self._ring(read.value)
            ring_rows = ring_rows if own else read.rows
        entry = ValueEntry(place_word(place), read.row_bytes, value.item_bytes, read.rows, ring_rows)
        return _entry(self.values, entry), _entry(self.windows, _window(read))

    @property
    def bytes(self) -> int:
        """Flash of these tables on a 32-bit target."""
        starts = sum(len(window.starts) for window in self.windows)
        reads = sum(map(len, self.reads))
        records = _VALUE_BYTES * len(self.values) + _WINDOW_BYTES * len(self.windows) + _READ_BYTES * reads
        return records + 2 * (starts + len(self.rows.units)) + 4 * len(self.constants)


def _window(read: Read) -> WindowEntry:
    if read.whole:
        return WindowEntry(1, 0, 1, 0, 1)
    return WindowEntry(read.window, read.stride, read.dilation, read.pad_top, read.divisor, tuple(read.starts or ()))


def _entry(table: dict[T, int], entry: T) -> int:
    """The position of an entry, which is added when it is new."""
    return table.setdefault(entry, len(table))


def table_bytes(network: Network, schedule: Schedule, plan: Plan) -> int:
    """Flash that layers, values, windows, row table and row schedule take on a 32-bit target."""
    tables = MemoryTables(network, schedule, plan)
    return tables.bytes + _LAYER_BYTES * len(network.layers) + len(packed_steps(schedule.steps))


def packed_steps(steps: Sequence[tuple[int, int]]) -> bytes:
    """The row schedule, (layer, count) pairs, as arenite.h describes its entries."""
    entries, before = [], 0
    for layer, count in steps:
        distance = layer - before
        if -8 <= distance < 8 and count < 16:
            entries.append(bytes([(distance + 8) << 4 | count]))
        else:
            entries.append(b"\0" + layer.to_bytes(2, "little") + count.to_bytes(2, "little"))
        before = layer
    return _folded(entries)


def _folded(entries: Sequence[bytes]) -> bytes:
    """Stretches that come again, as one and a count; the last entry is in none, for an entry must follow a count."""
    packed, at, end = bytearray(), 0, len(entries) - 1
    while at < end:
        length, again = _stretch(entries, at, end)
        body = b"".join(entries[at : at + length])
        packed += body + (bytes([_AGAIN, len(body), again]) if again else b"")
        at += length * (again + 1)
    return bytes(packed + b"".join(entries[at:]))


def _stretch(entries: Sequence[bytes], at: int, end: int) -> tuple[int, int]:
    """Entries of the stretch from here that saves most, and how many times it comes again: (1, 0) if none saves."""
    best, saved = (1, 0), 0
    for length in range(1, min(_LONGEST_STRETCH, (end - at) // 2) + 1):
        body, size = entries[at : at + length], sum(map(len, entries[at : at + length]))
        most = min(_MOST_AGAIN, (end - at) // length - 1) if size <= _MOST_AGAIN else 0
        starts = range(at + length, at + length * (most + 1), length)
        again = next((n for n, start in enumerate(starts) if entries[start : start + length] != body), most)
        if size * again - _AGAIN_BYTES > saved:
            best, saved = (length, again), size * again - _AGAIN_BYTES
    return best
