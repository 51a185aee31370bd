# SPDX-License-Identifier: Apache-2.0
"""The row network: what the legaliser makes of a graph, and what every later stage works on.

A `Value` is memory that holds one tensor of one batch item as rows. A `Layer` is one kernel call repeated over rows:
step y of a layer reads a window of rows of each value it reads and writes row y of the value it makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FEED", "IoTensor", "Layer", "Mode", "Network", "Read", "Role", "Stage", "State", "Value"]

Array = npt.NDArray[Any]


class Role(str, Enum):
    """Who fills or reads a value."""

    INPUT = "input"
    INTERNAL = "internal"
    OUTPUT = "output"
    CONSTANT = "constant"
    STATE = "state"
    """It keeps what a run left in it for the next run, in memory of its own."""


FEED = "feed"
"""Kernel name of the layer that takes the input's rows from the caller, one a step."""


class Mode(str, Enum):
    """How a layer's steps relate to the rows that it makes."""

    ROW = "row"
    """Step y writes row y."""
    ACCUMULATE = "accumulate"
    """Step y consumes input row y into scratch; the last step writes the only output row."""


@dataclass(frozen=True)
class Value:
    """Rows of bytes. A batch of N runs the network N times, so all sizes are those of one item.

    Attributes:
        rows: Number of rows as its producer writes them.
        row_bytes: Bytes of one row.
        items: Batch items that lie one behind the other; 1 where all items share the memory.
        element_bytes: Of one element; rows start at multiples of it.
        data: The bytes of a constant.
    """

    index: int
    name: str
    rows: int
    row_bytes: int
    role: Role
    items: int = 1
    data: Array | None = None
    element_bytes: int = 1

    @property
    def item_bytes(self) -> int:
        """Distance to the next batch item; 0 where all items share the memory."""
        return self.bytes if self.items > 1 else 0

    @property
    def bytes(self) -> int:
        """Size of the whole tensor of one batch item."""
        return self.rows * self.row_bytes


@dataclass(frozen=True)
class Read:
    """How a layer reads a value: step y needs rows first(y) + k·dilation, k = 0..window-1.

    The first is ⌊(y·stride - pad_top) / divisor⌋, or an entry of `starts` where rows are picked by a rule of their own.
    A divisor above 1 is for operators that make several rows of one, as a transposed convolution does.

    Rows outside 0..rows-1 reach the kernel as null pointers. `rows` and `row_bytes` are the reader's own division of
    the value's bytes; where it differs from the producer's, or where `whole` asks for one pointer to everything, the
    value lies in memory as a whole.
    """

    value: int
    rows: int
    row_bytes: int
    window: int = 1
    stride: int = 1
    dilation: int = 1
    pad_top: int = 0
    whole: bool = False
    divisor: int = 1
    starts: tuple[int, ...] = ()

    def first(self, step: int) -> int:
        """The first row of a step's window, in the reader's division; it may lie outside the value."""
        return self.starts[step] if self.starts else (step * self.stride - self.pad_top) // self.divisor

    def needed(self, step: int) -> Iterator[int]:
        """The rows, in the reader's division, that a step reads."""
        first = self.first(step)
        for row in range(first, first + self.window * self.dilation, self.dilation):
            if 0 <= row < self.rows:
                yield row


@dataclass(frozen=True)
class Layer:
    """One kernel with its constants, and how it walks over rows.

    Attributes:
        operator: Index of the TFLite operator that it came from.
        kernel: Name of the kernel: kernels/arenite_<kernel>.c.
        steps: How often the kernel is called for one inference of one item.
        parameters: Fields of the kernel's parameter struct; arrays become constants in flash.
        in_place: Reads whose current row the output row may lie over (never behind).
        macs: Multiply-accumulates of one item, pads included, as the usual formula counts them.
        repeated_macs: Those that run beyond `macs`, because rows or columns are made again.
        stages: Of a chain that runs as one layer: the layers that it is made of, first to last.
    """

    index: int
    operator: int
    kind: str
    kernel: str
    reads: tuple[Read, ...]
    output: int
    steps: int
    parameters: Mapping[str, Any]
    mode: Mode = Mode.ROW
    in_place: tuple[int, ...] = ()
    scratch_bytes: int = 0
    macs: int = 0
    repeated_macs: int = 0
    stages: tuple[Stage, ...] = ()

    @property
    def parts(self) -> tuple[Layer, ...]:
        """The layers that run in it: a chain's stages, or itself."""
        return tuple(stage.layer for stage in self.stages) or (self,)


@dataclass(frozen=True)
class Stage:
    """A layer inside a chain; its rows lie in the chain's scratch from `buffer_offset`, but for the last stage's."""

    layer: Layer
    buffer_offset: int


@dataclass(frozen=True)
class State:
    """What a model remembers from one run to the next.

    Attributes:
        value: Its memory, of role STATE.
        next: The value that takes its place when a run ends, or None: then the layers that read it write it too.
        initial: int8[bytes], what a reset puts there.
    """

    name: str
    value: int
    next: int | None
    initial: Array


@dataclass(frozen=True)
class IoTensor:
    """An input or output as the caller sees it; `shape` includes the batch.

    Without a quantisation (float32, int32, bool) the scale is 1 and the zero point 0.
    """

    name: str
    value: int
    shape: tuple[int, ...]
    dtype: str
    scale: float
    zero_point: int

    @property
    def bytes(self) -> int:
        """Size of the whole batch."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Network:
    """Everything that the scheduler, the planner and the emitter need to know of a model."""

    model_sha256: str
    batch: int
    values: tuple[Value, ...]
    layers: tuple[Layer, ...]
    inputs: tuple[IoTensor, ...]
    outputs: tuple[IoTensor, ...]
    removed: Mapping[int, str] = field(default_factory=dict)
    """TFLite operators that need no code, and why."""
    caller_values: frozenset[int] = frozenset()
    """Inputs and outputs whose memory the caller gives at run time; a run never overwrites such an input."""
    keep_input: bool = False
    """No run overwrites an input."""
    states: tuple[State, ...] = ()

    @property
    def outside(self) -> frozenset[int]:
        """Values that lie outside the arena: in the caller's memory, or in that of states."""
        return self.caller_values | {state.value for state in self.states}

    @property
    def results(self) -> tuple[int, ...]:
        """Values that a run is there for: outputs, and what states become."""
        found = [io.value for io in self.outputs] + [s.next for s in self.states if s.next is not None]
        return tuple(dict.fromkeys(found))

    @property
    def row_fed(self) -> bool:
        """The caller hands over the input row by row; it is never whole in memory."""
        return any(layer.kernel == FEED for layer in self.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference, the whole batch."""
        return self.batch * sum(layer.macs for layer in self.layers)
