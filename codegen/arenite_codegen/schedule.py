# SPDX-License-Identifier: Apache-2.0
"""In which order rows are made, and how many rows of each value must exist at once.

Rows are made on demand: to make a row, a layer first asks for the rows that it reads. A few values are *materialised*,
which means made as a whole before anything after them starts; between two of them the network runs depth first. Each
row is made exactly once; only inside a chain of convolutions that runs in strips may something be computed twice.

Only values through which everything passes (no skip connection runs beside them) are candidates. They cut the network
into independent segments, so the best choice is a path over the candidates whose dearest segment is cheapest, and is
found exactly.

Time counts half steps: step t reads at 2t and writes at 2t + 1. A row that an element-wise layer may overwrite dies at
2t, every other row that a step reads at 2t + 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from arenite_codegen.network import FEED, Layer, Mode, Network, Role

__all__ = [
    "Schedule",
    "SegmentCosts",
    "Timeline",
    "Times",
    "bytes_over_time",
    "live_bytes",
    "make_schedule",
    "read_as_a_whole",
    "schedule_with",
]

_POWER = 8
# Steps that the search may simulate; deep networks with many rows then look less far ahead.
_EFFORT_STEPS = 2_000_000

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Timeline:
    """When each row is written and last read.

    Attributes:
        order: The layer of each step.
        born, died: For each value, the half step at which each of its rows appears and disappears. Rows at the end that
            nobody reads are not made and have no entry.
        scratch: For each layer with scratch, the half steps at which each of its uses begins and ends: an accumulator
            is in use from its first to its last step, other scratch during each step alone.
        overlays: (value read, its row, value written, its row) of each step that may write over what it reads.
    """

    order: list[int]
    born: dict[int, Times]
    died: dict[int, Times]
    scratch: dict[int, tuple[Times, Times]]
    overlays: list[tuple[int, int, int, int]]

    @property
    def end(self) -> int:
        """The half step after the last."""
        return 2 * len(self.order)


@dataclass(frozen=True)
class Schedule:
    """A complete order of steps.

    Attributes:
        steps: (layer, number of consecutive steps).
        ring_rows: For each value, how many of its rows exist at once.
        materialised: Values that are made as a whole before what follows starts.
        live_bytes: Most bytes of rows and scratch alive at one time: no placement can need less.
    """

    steps: tuple[tuple[int, int], ...]
    ring_rows: dict[int, int]
    materialised: tuple[int, ...]
    timeline: Timeline
    live_bytes: int


SegmentCosts = dict[tuple[object, ...], int]
"""What segments cost, by where they begin and end and the chains in them."""


def make_schedule(network: Network, known: SegmentCosts | None = None) -> Schedule:
    """Choose the materialised values and derive everything else.

    Args:
        known: Costs that earlier calls found for the same network with other chains merged; new ones are added.
    """
    demands = _Demands(network)
    return _schedule(network, demands, _best_path(network, demands, {} if known is None else known))


def schedule_with(network: Network, materialised: Sequence[int]) -> Schedule:
    """The schedule that makes these values, in their order, as a whole."""
    return _schedule(network, _Demands(network), materialised)


def _schedule(network: Network, demands: _Demands, chosen: Sequence[int]) -> Schedule:
    outputs = list(network.results)
    # Rows of a fed input that nobody reads must still be taken from the caller.
    rest = [layer.output for layer in network.layers if layer.kernel == FEED]
    timeline = simulate(network, demands, [*chosen, *outputs, *rest], kept=outputs)
    ring_rows = {
        value.index: _ring_rows(network, timeline, value.index)
        for value in network.values
        if value.index in timeline.born
    }
    steps = tuple((layer, len(list(run))) for layer, run in groupby(timeline.order))
    return Schedule(steps, ring_rows, tuple(chosen), timeline, live_peak(network, timeline))


class _Demands:
    """Which rows, in the producer's division, each step of each layer reads."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.producer = {layer.output: layer for layer in network.layers}
        self.rows: list[list[list[tuple[int, range, bool]]]] = [
            [self._of_step(layer, step) for step in range(layer.steps)] for layer in network.layers
        ]

    def _of_step(self, layer: Layer, step: int) -> list[tuple[int, range, bool]]:
        found = []
        for position, read in enumerate(layer.reads):
            value = self._network.values[read.value]
            if value.role is Role.CONSTANT:
                continue
            overlay = position in layer.in_place
            if (read.rows, read.row_bytes) == (value.rows, value.row_bytes):
                first = read.first(step)
                start = first + max(0, -(first // read.dilation)) * read.dilation
                rows = range(start, min(first + read.window * read.dilation, value.rows), read.dilation)
            else:
                own = [r * read.row_bytes for r in read.needed(step)]
                low, high = min(own, default=0), max(own, default=-read.row_bytes) + read.row_bytes
                rows = range(low // value.row_bytes, -(-high // value.row_bytes))
                overlay = False
            found.append((read.value, rows, overlay))
        return found


def simulate(
    network: Network, demands: _Demands, targets: list[int], kept: list[int], ready: frozenset[int] = frozenset()
) -> Timeline:
    """Make the targets one after the other, each as a whole, everything before them on demand.

    Args:
        kept: Values that the caller reads afterwards, beside inputs that the network keeps.
        ready: Values that exist already, beside the network's inputs; nothing before them is made.
    """
    state = _Run(network, demands)
    for value in network.values:
        if value.role in (Role.INPUT, Role.STATE) or value.index in ready:
            state.is_there(value.index)
    for target in targets:
        state.make(target)
    inputs = [io.value for io in network.inputs] if network.keep_input else []
    return state.timeline([*kept, *inputs])


class _Run:
    """A schedule as it unfolds. Times are lists: single entries are set far more often than ranges."""

    def __init__(self, network: Network, demands: _Demands) -> None:
        self._network, self._demands = network, demands
        self._made: dict[int, int] = {}
        self._born: dict[int, list[int]] = {}
        self._died: dict[int, list[int]] = {}
        self._next_step = [0] * len(network.layers)
        self._order: list[int] = []
        self._scratch: dict[int, list[tuple[int, int]]] = {}
        self._overlays: list[tuple[int, int, int, int]] = []

    def is_there(self, value: int) -> None:
        """Every row of a value exists before the first step."""
        rows = self._made[value] = self._network.values[value].rows
        self._born[value], self._died[value] = [-1] * rows, [-1] * rows

    def make(self, target: int) -> None:
        """Make every row of a value, with an explicit stack of (value, rows wanted)."""
        made, producer, rows_of = self._made, self._demands.producer, self._demands.rows
        stack = [(target, self._network.values[target].rows)]
        while stack:
            value, wanted = stack[-1]
            if made.get(value, 0) >= wanted:
                stack.pop()
                continue
            layer = producer[value]
            for read, rows, _ in rows_of[layer.index][self._next_step[layer.index]]:
                if rows and made.get(read, 0) <= rows[-1]:
                    stack.append((read, rows[-1] + 1))
                    break
            else:
                self._step(layer)

    def _step(self, layer: Layer) -> None:
        index, output = layer.index, layer.output
        step, time = self._next_step[index], len(self._order)
        self._next_step[index] += 1
        self._order.append(index)
        if output not in self._born:
            self._born[output], self._died[output], self._made[output] = [], [], 0
        writes = layer.mode is Mode.ROW or step == layer.steps - 1
        row = self._made[output]
        # An overlaid row ends at the half step of the reads; another read of the same row in this step still keeps it.
        for read, needed, overlay in self._demands.rows[index][step]:
            if not needed:
                continue
            died = self._died[read]
            if overlay and writes:
                for r in needed:
                    died[r] = max(died[r], 2 * time)
                    self._overlays.append((read, r, output, row))
            else:
                for r in needed:
                    died[r] = 2 * time + 1
        if layer.scratch_bytes:
            uses = self._scratch.setdefault(index, [])
            first = uses.pop()[0] if uses and layer.mode is Mode.ACCUMULATE else 2 * time
            uses.append((first, 2 * time + 1))
        if writes:
            self._born[output].append(2 * time + 1)
            self._died[output].append(2 * time + 1)
            self._made[output] += 1

    def timeline(self, kept: list[int]) -> Timeline:
        """The finished record; what the caller reads afterwards lives to the end."""
        end = 2 * len(self._order)
        for value in kept:
            self._died[value] = [end] * len(self._died[value])
        scratch = {}
        for layer, uses in self._scratch.items():
            times = np.array(uses, np.int64)
            scratch[layer] = (times[:, 0], times[:, 1])
        return Timeline(self._order, _arrays(self._born), _arrays(self._died), scratch, self._overlays)


def _arrays(times: dict[int, list[int]]) -> dict[int, Times]:
    return {value: np.array(rows, np.int64) for value, rows in times.items()}


def live_peak(network: Network, timeline: Timeline) -> int:
    """Most bytes alive at one time, at row granularity, without what lies in the caller's memory."""
    return int(live_bytes(network, timeline).max())


def live_bytes(network: Network, timeline: Timeline) -> Times:
    """Bytes of rows and scratch alive at each half step, from the one before the first; not of the caller's memory."""
    lives: list[tuple[Times, Times, int | Times]] = [
        (born, timeline.died[value], network.values[value].row_bytes)
        for value, born in timeline.born.items()
        if value not in network.outside
    ]
    lives += [(*times, network.layers[layer].scratch_bytes) for layer, times in timeline.scratch.items()]
    return bytes_over_time(lives, timeline.end)


def bytes_over_time(lives: Iterable[tuple[Times, Times, int | Times]], end: int) -> Times:
    """Bytes alive at each half step until `end`, from the one before the first.

    Args:
        lives: First and last half steps of pieces, and their bytes.
    """
    change = np.zeros(end + 4, np.int64)
    for born, died, size in lives:
        np.add.at(change, born + 1, size)
        np.add.at(change, died + 2, np.negative(size))
    alive: Times = change.cumsum()
    return alive


def _ring_rows(network: Network, timeline: Timeline, index: int) -> int:
    value = network.values[index]
    if value.role in (Role.INPUT, Role.OUTPUT, Role.STATE) or read_as_a_whole(network, index):
        return value.rows
    born, died = timeline.born[index], timeline.died[index]
    # Row r takes the slot of row r - R, so every row before r that is alive when r appears must be nearer than R. Rows
    # appear in order, hence the oldest such row is found by a search in the running maximum of the deaths.
    latest = np.maximum.accumulate(died)
    oldest = np.searchsorted(latest, born, side="left")
    rows = np.arange(len(born))
    return int((rows - np.minimum(oldest, rows) + 1).max(initial=1))


def read_as_a_whole(network: Network, index: int) -> bool:
    """Whether a reader wants a value in one piece, or divides it otherwise than its producer."""
    value = network.values[index]
    return any(
        read.value == index and (read.whole or (read.rows, read.row_bytes) != (value.rows, value.row_bytes))
        for layer in network.layers
        for read in layer.reads
    )


def _cuts(network: Network) -> list[tuple[int, int]]:
    """(layer, value) after which everything later reads only that value."""
    last_read = {}
    for layer in network.layers:
        for read in layer.reads:
            last_read[read.value] = layer.index
    for result in network.results:
        last_read[result] = len(network.layers)
    open_values = {io.value for io in network.inputs if io.value in last_read}
    found = []
    for layer in network.layers:
        open_values = {v for v in open_values if last_read[v] > layer.index} | {layer.output}
        if open_values == {layer.output} and layer.index < len(network.layers) - 1 and layer.kernel != FEED:
            found.append((layer.index, layer.output))
    return found


def _best_path(network: Network, demands: _Demands, known: SegmentCosts) -> list[int]:
    """The cuts to materialise: a shortest path over them, a segment weighing its peak to a high power.

    The dearest segment so decides almost alone; among schedules that share it, the next dearest does. Slack in the
    other segments is what lets the placement reach the peak.
    """
    cuts = _cuts(network)
    nodes: list[int | None] = [None, *(value for _, value in cuts), -1]
    ends = [-1, *(layer for layer, _ in cuts), len(network.layers) - 1]
    reach = _reach(network, [layer for layer, _ in cuts])
    outputs = list(network.results)
    weight = [0] + [-1] * (len(nodes) - 1)
    came_from = [0] * len(nodes)
    for start in range(len(nodes) - 1):
        for stop in (*range(start + 1, min(start + 1 + reach, len(nodes) - 1)), len(nodes) - 1):
            target = nodes[stop]
            assert target is not None
            least = 0 if target == -1 else network.values[target].bytes
            if 0 <= weight[stop] <= weight[start] + least**_POWER:
                continue
            key = (nodes[start], target, *_chains_between(network, ends[start], ends[stop]))
            if key not in known:
                known[key] = _segment_cost(network, demands, nodes[start], outputs if target == -1 else [target])
            cost = known[key]
            if weight[stop] < 0 or weight[start] + cost**_POWER < weight[stop]:
                weight[stop], came_from[stop] = weight[start] + cost**_POWER, start
    path, node = [], came_from[-1]
    while node:
        value = nodes[node]
        assert value is not None
        path.append(value)
        node = came_from[node]
    return path[::-1]


def _chains_between(network: Network, after: int, until: int) -> list[tuple[int, int, int]]:
    """What tells the chains of a segment from others of the same network: their ends, lengths and strips."""
    return [
        (layer.output, len(layer.stages), layer.parameters["strip_w"])
        for layer in network.layers[after + 1 : until + 1]
        if layer.stages
    ]


def _reach(network: Network, cuts: list[int]) -> int:
    """How many cuts a segment may run past, so that all segments together stay within the effort."""
    ends = [layer.steps for layer in network.layers]
    until = np.concatenate(([0], np.cumsum(ends)))[[0, *(layer + 1 for layer in cuts), len(ends)]]
    effort = 0
    for reach in range(1, len(until)):
        effort += int((until[reach:] - until[:-reach]).sum())
        if effort > _EFFORT_STEPS:
            return max(1, reach - 1)
    return len(until)


def _segment_cost(network: Network, demands: _Demands, begin: int | None, targets: list[int]) -> int:
    ready = frozenset() if begin is None else frozenset({begin})
    timeline = simulate(network, demands, targets, targets, ready)
    if begin is not None and not network.keep_input:
        for io in network.inputs:
            timeline.born.pop(io.value, None)
    return live_peak(network, timeline)
