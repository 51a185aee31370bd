# SPDX-License-Identifier: Apache-2.0
"""An independent witness of a plan: replays the row schedule on memory whose every byte remembers what it holds.

It shares no code with the scheduler or the planner. It follows the steps as the C runtime does, from ring sizes and
offsets alone, and fails when a step reads a byte that no longer is, or never was, the byte that it means. On the way it
adds up what kernels read and write in each region.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from arenite_codegen.network import FEED, Layer, Mode, Network, Read, Role
from arenite_codegen.plan import Place, Plan
from arenite_codegen.schedule import Schedule

__all__ = ["replay"]

_GAP = 64
_ITEM = 1 << 20
_VALUE = 1 << 40
_SCRATCH = 1 << 56
_COUNTERS = (1 << 57) + 1
_GUARD = 1 << 58


def replay(network: Network, schedule: Schedule, plan: Plan) -> list[int]:
    """Run the whole batch; raises AssertionError at the first byte that is not what its reader expects.

    Returns:
        For each region, the bytes of the rows and scratch that kernels read and write there, and of the row counters.
    """
    checker = _Replay(network, schedule, plan)
    checker.run()
    return checker.traffic


class _Replay:
    def __init__(self, network: Network, schedule: Schedule, plan: Plan) -> None:
        self.network, self.schedule, self.plan = network, schedule, plan
        # All regions in one array, with a gap between them that belongs to nobody.
        self.bases, end = [], 0
        for region in plan.regions:
            self.bases.append(end)
            end += region.bytes + _GAP
        self.arena = np.full(end, -1, np.int64)
        self.traffic = [0] * len(plan.regions)

    def run(self) -> None:
        for io in self.network.inputs if not self.network.row_fed else ():
            value = self.network.values[io.value]
            for item in range(value.items):
                self._write(io.value, item, 0, value.bytes)
        for state in self.network.states:
            self._write(state.value, 0, 0, self.network.values[state.value].bytes)
        at = self._at(self.plan.counters)
        counters = slice(at, at + 2 * len(self.network.layers))
        assert self.plan.counters.offset % 2 == 0
        assert self.plan.counters.offset + 2 * len(self.network.layers) <= self._size(self.plan.counters.region)
        self.arena[counters] = _COUNTERS
        for item in range(self.network.batch):
            self._count(at, 2 * len(self.network.layers))
            self._run_item(item)
            assert (self.arena[counters] == _COUNTERS).all(), "the row counters were overwritten"
        for io in self.network.outputs:
            value = self.network.values[io.value]
            for item in range(value.items):
                self._expect(io.value, item, 0, value.bytes, "a finished output")
        for state in self.network.states:
            self._expect(state.value, 0, 0, self.network.values[state.value].bytes, "a state")
            if state.next is not None:
                self._expect(state.next, 0, 0, self.network.values[state.next].bytes, "what a state becomes")
        for io in self.network.inputs:
            if self.network.keep_input or io.value in self.network.caller_values:
                value = self.network.values[io.value]
                for item in range(value.items):
                    self._expect(io.value, item, 0, value.bytes, "an input that is kept")

    def _run_item(self, item: int) -> None:
        steps = [0] * len(self.network.layers)
        done = 0
        for index, count in self.schedule.steps:
            for _ in range(count):
                self._open_guards(done)
                self._step(self.network.layers[index], steps[index], item)
                self._check_guards(done)
                steps[index] += 1
                done += 1
        for count, layer in zip(steps, self.network.layers, strict=True):
            assert count == layer.steps or layer.kernel != FEED, "not every row of the input is taken"
            assert count <= layer.steps, f"layer {layer.index} made a row twice"

    def _open_guards(self, step: int) -> None:
        for number, guard in enumerate(self.plan.guards):
            if guard.first == step:
                at = self._at(guard.place)
                self.arena[at : at + 4] = _GUARD + number

    def _check_guards(self, step: int) -> None:
        for number, guard in enumerate(self.plan.guards):
            if guard.first <= step <= guard.last:
                at = self._at(guard.place)
                intact = (self.arena[at : at + 4] == _GUARD + number).all()
                assert intact, f"step {step}: the guard behind {guard.block} was overwritten"

    def _step(self, layer: Layer, step: int, item: int) -> None:
        where = f"step {step} of layer {layer.index} {layer.kind}"
        spans = [span for read in layer.reads for span in self._check_read(read, step, item, where)]
        for low, high in spans:
            self._count(low, high - low)
        self._count(self._at(self.plan.counters), 2 + 2)
        writes = layer.mode is Mode.ROW or step == layer.steps - 1
        out = self._out_span(layer, step, item)
        if layer.scratch_bytes:
            self._use_scratch(layer, step, where, spans, out if writes else None)
            strips = -(-layer.parameters["out_w"] // layer.parameters["strip_w"]) if layer.stages else 1
            self._count(self._at(self.plan.scratch[layer.index]), 2 * layer.scratch_bytes * strips)
        if writes:
            self._check_overlay(layer, step, item, out, where)
            row = step if layer.mode is Mode.ROW else 0
            size = self.network.values[layer.output].row_bytes
            self._write(layer.output, item, row * size, size)
            if layer.kernel != FEED:
                self._count(out[0], size)

    def _check_read(self, read: Read, step: int, item: int, where: str) -> list[tuple[int, int]]:
        value = self.network.values[read.value]
        if value.role is Role.CONSTANT:
            return []
        spans = []
        for k in range(read.window):
            row = read.first(step) + k * read.dilation
            if 0 <= row < read.rows:
                self._expect(read.value, item, row * read.row_bytes, read.row_bytes, where, read)
                start = self._address(read.value, item, row, read)
                spans.append((start, start + read.row_bytes))
        return spans

    def _out_span(self, layer: Layer, step: int, item: int) -> tuple[int, int]:
        value = self.network.values[layer.output]
        row = step if layer.mode is Mode.ROW else 0
        start = self._row(layer.output, item, row, self.schedule.ring_rows[layer.output], value.row_bytes)
        return start, start + value.row_bytes

    def _check_overlay(self, layer: Layer, step: int, item: int, out: tuple[int, int], where: str) -> None:
        """The output row may only touch a row that is read element by element, and never run ahead of it."""
        for position, read in enumerate(layer.reads):
            for start, stop in self._check_read(read, step, item, where):
                if out[0] < stop and start < out[1]:
                    assert position in layer.in_place, f"{where} overwrites a row that it still reads"
                    assert out[0] <= start, f"{where} writes ahead of what it reads in place"

    def _use_scratch(
        self, layer: Layer, step: int, where: str, spans: list[tuple[int, int]], out: tuple[int, int] | None
    ) -> None:
        place = self.plan.scratch[layer.index]
        start = self._at(place)
        stop = start + layer.scratch_bytes
        assert place.offset % 4 == 0, f"{where}: its scratch is not aligned"
        assert place.offset + layer.scratch_bytes <= self._size(place.region), f"{where}: its scratch is outside"
        if step and layer.mode is Mode.ACCUMULATE:
            assert (self.arena[start:stop] == _SCRATCH + layer.index).all(), f"{where}: its scratch was overwritten"
        for low, high in spans + ([out] if out else []):
            assert high <= start or low >= stop, f"{where}: its scratch lies over a row of the same step"
        self.arena[start:stop] = _SCRATCH + layer.index

    def _row(self, value: int, item: int, row: int, ring: int, row_bytes: int) -> int:
        if value in self.plan.rows:
            assert self.plan.rows[value][row] % self.plan.row_unit == 0
            return self.bases[self.plan.row_regions[value]] + self.plan.rows[value][row]
        start = self._at(self.plan.values[value])
        return start + item * self.network.values[value].item_bytes + row % ring * row_bytes

    def _count(self, start: int, size: int) -> None:
        self.traffic[bisect_right(self.bases, start) - 1] += size

    def _at(self, place: Place) -> int:
        return self.bases[place.region] + place.offset

    def _size(self, region: int) -> int:
        return self.plan.regions[region].bytes

    def _is_inside(self, start: int, size: int, value: int) -> bool:
        in_rows = value in self.plan.rows
        region = self.plan.row_regions[value] if in_rows else self.plan.values[value].region
        first = self.bases[region]
        return first <= start and start + size <= first + self._size(region)

    def _address(self, value: int, item: int, row: int, read: Read) -> int:
        own = self.network.values[value]
        ring = self.schedule.ring_rows[value] if (read.rows, read.row_bytes) == (own.rows, own.row_bytes) else read.rows
        if read.whole:
            assert ring >= read.rows and value in self.plan.values, "a value read as a whole is not in one piece"
        return self._row(value, item, row, ring, read.row_bytes)

    def _tags(self, value: int, item: int, first: int, count: int) -> np.ndarray:
        held = item if self.network.values[value].items > 1 or self._is_computed(value) else 0
        return np.arange(first, first + count, dtype=np.int64) + value * _VALUE + held * (_VALUE // _ITEM)

    def _is_computed(self, value: int) -> bool:
        return self.network.values[value].role in (Role.INTERNAL, Role.OUTPUT)

    def _write(self, value: int, item: int, first: int, count: int) -> None:
        own = self.network.values[value]
        ring = self.schedule.ring_rows.get(value, own.rows)
        for row in range(first // own.row_bytes, (first + count) // own.row_bytes):
            start = self._row(value, item, row, ring, own.row_bytes)
            assert self._is_inside(start, own.row_bytes, value), "a row lies outside its region"
            self.arena[start : start + own.row_bytes] = self._tags(value, item, row * own.row_bytes, own.row_bytes)

    def _expect(self, value: int, item: int, first: int, count: int, where: str, read: Read | None = None) -> None:
        own = self.network.values[value]
        view = read or Read(value, own.rows, own.row_bytes)
        for row in range(first // view.row_bytes, (first + count) // view.row_bytes):
            start = self._address(value, item, row, view)
            held = self.arena[start : start + view.row_bytes]
            wanted = self._tags(value, item, row * view.row_bytes, view.row_bytes)
            assert np.array_equal(held, wanted), f"{where}: row {row} of value {value} is not there any more"
