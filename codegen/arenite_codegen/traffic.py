# SPDX-License-Identifier: Apache-2.0
"""How many bytes an inference moves in each block of memory.

Counted are the rows that kernels are handed: for each step the rows of its window that exist, each once, and the row
that it writes; scratch is read and written once a step, that of a chain once a strip. Of the row counters each step
reads and writes one, and each batch item clears all. A kernel may load a byte of its window several times or keep it
in a register, so the figure ranks blocks and is no count of loads. What the caller writes and reads is not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from arenite_codegen.network import FEED, Layer, Mode, Network, Read, Role
from arenite_codegen.placement import COUNTER_BYTES, Block
from arenite_codegen.schedule import Schedule
from arenite_codegen.strips import strip_count

__all__ = ["block_traffic", "read_bytes", "steps_run", "value_traffic"]


def steps_run(schedule: Schedule) -> Counter[int]:
    """For each layer, how many of its steps an inference of one item runs."""
    steps: Counter[int] = Counter()
    for layer, count in schedule.steps:
        steps[layer] += count
    return steps


def read_bytes(read: Read, steps: int) -> int:
    """Bytes of a value that the first `steps` steps of a layer are handed."""
    return read.row_bytes * sum(len(list(read.needed(step))) for step in range(steps))


def block_traffic(
    network: Network, schedule: Schedule, blocks: list[Block], values: Mapping[int, int]
) -> list[int]:
    """Bytes that an inference, the whole batch, reads and writes in each block; in values as `value_traffic` says."""
    steps = steps_run(schedule)
    uses = {layer.index: steps[layer.index] * strip_count(layer) for layer in network.layers}
    scratch = {layer.index: 2 * layer.scratch_bytes * uses[layer.index] for layer in network.layers}
    counters = COUNTER_BYTES * (2 * sum(steps.values()) + len(network.layers))

    def of(block: Block) -> int:
        if block.value is not None:
            return values[block.value]
        return network.batch * (counters if block.layer is None else scratch[block.layer])

    return [of(block) for block in blocks]


def value_traffic(network: Network, schedule: Schedule) -> Counter[int]:
    """Bytes that an inference, the whole batch, reads and writes of each value."""
    steps, found = steps_run(schedule), Counter[int]()
    for layer in network.layers:
        count = steps[layer.index]
        for read in layer.reads:
            if network.values[read.value].role is not Role.CONSTANT:
                found[read.value] += network.batch * read_bytes(read, count)
        if layer.kernel != FEED:
            size = network.values[layer.output].row_bytes
            found[layer.output] += network.batch * _rows_written(layer, count) * size
    return found


def _rows_written(layer: Layer, steps: int) -> int:
    return steps if layer.mode is Mode.ROW else int(steps == layer.steps)
