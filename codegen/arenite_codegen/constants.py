# SPDX-License-Identifier: Apache-2.0
"""Constants of a model in flash: each distinct one once, in the fastest flash that has room for it.

Weights, biases, multipliers and tables of a layer count as read once a row. Where not all fit into the fastest flash,
those go first that are read most often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_codegen.network import Layer, Network
from arenite_codegen.regions import Memory, Region
from arenite_codegen.schedule import Schedule
from arenite_codegen.strips import stage_rows
from arenite_codegen.traffic import read_bytes, steps_run

__all__ = ["Constant", "ConstantArray", "Pool", "WEIGHTS_SECTION"]

Array = npt.NDArray[Any]

WEIGHTS_SECTION = ".rodata.arenite_weights"
# Of an array, at least.
ALIGNMENT_BYTES = 16
_C_TYPES = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "bool": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "float32": "float",
}


@dataclass(frozen=True)
class Constant:
    """Where a constant lies: the first word of it in the array of a region."""

    c_type: str
    region: int
    word: int


@dataclass(frozen=True)
class ConstantArray:
    """The constants of one region as 32-bit words.

    Attributes:
        section: Where a linker script finds them.
    """

    region: Region
    section: str
    alignment_bytes: int
    data: bytes

    @property
    def words(self) -> int:
        """Length of the array; C has no empty ones."""
        return max(1, len(self.data) // 4)

    def lines(self) -> list[str]:
        """The words as rows of C initialisers."""
        words = np.frombuffer(self.data, "<u4").tolist()
        return [", ".join(f"0x{w:08x}u" for w in words[i : i + 8]) + "," for i in range(0, len(words), 8)]


class Pool:
    """All constants of a network, each in its region.

    Args:
        memories: The flash there is; in the first lies the code.
        pack: From the plain parameters of a layer to those that its kernel reads.
    """

    def __init__(
        self,
        network: Network,
        schedule: Schedule,
        memories: Sequence[Memory],
        pack: Callable[[Layer], Mapping[str, Any]],
    ) -> None:
        parts = [part for layer in network.layers for part in (layer, *(stage.layer for stage in layer.stages))]
        self._packed = {id(part): pack(part) for part in parts}
        self._traffic = _traffic(network, schedule, self.parameters)
        ranked = sorted(memories, key=lambda memory: memory.word_cycles)
        chosen = _distribute(self._traffic, ranked)
        self._memories = [m for i, m in enumerate(ranked) if i in chosen.values()] or ranked[:1]
        self._region = {data: self._memories.index(ranked[i]) for data, i in chosen.items()}
        self._code_memory = memories[0]
        self._parts: list[list[bytes]] = [[] for _ in self._memories]
        self._words = [0] * len(self._memories)
        self._alignment_bytes = [ALIGNMENT_BYTES] * len(self._memories)
        self._found: dict[bytes, int] = {}

    def parameters(self, layer: Layer) -> Mapping[str, Any]:
        """A layer's parameters as its kernel reads them; of a stage too."""
        return self._packed[id(layer)]

    def add(self, values: Array, alignment_bytes: int = 4) -> Constant:
        """The place of a constant of the network, which is added when it is new or was not aligned so.

        It lies at a multiple of its elements' size in any case.
        """
        alignment_bytes = max(alignment_bytes, values.itemsize)
        data = _words(values)
        region = self._region[data]
        if data not in self._found or 4 * self._found[data] % alignment_bytes:
            self._align(region, alignment_bytes)
            self._found[data] = self._words[region]
            self._parts[region].append(data)
            self._words[region] += len(data) // 4
        return Constant(_C_TYPES[str(values.dtype)], region, self._found[data])

    def _align(self, region: int, alignment_bytes: int) -> None:
        padding = bytes(-4 * self._words[region] % alignment_bytes)
        self._parts[region].append(padding)
        self._words[region] += len(padding) // 4
        self._alignment_bytes[region] = max(self._alignment_bytes[region], alignment_bytes)

    def arrays(self) -> list[ConstantArray]:
        """What was added, fastest region first."""
        return [self._array(i, memory) for i, memory in enumerate(self._memories)]

    def _array(self, index: int, memory: Memory) -> ConstantArray:
        traffic = sum(moved for data, moved in self._traffic.items() if self._region[data] == index)
        size = 4 * self._words[index]
        region = Region(memory.name, "weights", size, memory.capacity_bytes, traffic, memory.word_cycles)
        section = WEIGHTS_SECTION + ("" if memory == self._code_memory else f".{memory.name}")
        return ConstantArray(region, section, self._alignment_bytes[index], b"".join(self._parts[index]))


def _words(values: Array) -> bytes:
    data = np.ascontiguousarray(values).tobytes()
    return data + bytes(-len(data) % 4)


def _traffic(
    network: Network, schedule: Schedule, parameters: Callable[[Layer], Mapping[str, Any]]
) -> dict[bytes, int]:
    """For each distinct constant the bytes that an inference reads of it."""
    steps, found = steps_run(schedule), dict[bytes, int]()
    for state in network.states:
        found[_words(state.initial)] = 0
    for layer in network.layers:
        count = steps[layer.index]
        for part, calls in ((layer, count), *stage_rows(layer, count)):
            for values in parameters(part).values():
                if isinstance(values, np.ndarray):
                    data = _words(values)
                    found[data] = found.get(data, 0) + network.batch * len(data) * calls
        for read in layer.reads:
            constant = network.values[read.value].data
            if constant is not None:
                data = _words(constant)
                found[data] = found.get(data, 0) + network.batch * read_bytes(read, count)
    return found


def _distribute(traffic: dict[bytes, int], ranked: list[Memory]) -> dict[bytes, int]:
    """For each constant its memory; what fits nowhere goes to the largest."""
    total = sum(map(len, traffic))
    fastest = [i for i, m in enumerate(ranked) if m.word_cycles == ranked[0].word_cycles]
    whole = next((i for i in fastest if total <= ranked[i].capacity_bytes), None)
    if whole is not None or len(ranked) == 1:
        return dict.fromkeys(traffic, whole or 0)
    free = [memory.capacity_bytes for memory in ranked]
    largest = max(range(len(ranked)), key=free.__getitem__)
    chosen = {}
    for data in sorted(traffic, key=lambda data: (-traffic[data] / max(1, len(data)), -len(data))):
        chosen[data] = next((i for i, left in enumerate(free) if len(data) <= left), largest)
        free[chosen[data]] -= len(data)
    return chosen
