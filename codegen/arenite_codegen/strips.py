# SPDX-License-Identifier: Apache-2.0
"""Chains of convolutions as one layer that works in strips of columns.

Between two convolutions whole rows need not exist: for a few columns of an output row the chain makes, in scratch, just
the rows and columns that they depend on. Where a later stage's window is wider than a pixel, neighbouring strips and
output rows make some of them again; `repeated_macs` counts that exactly. A chain whose later stages are all 1×1 repeats
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from arenite_codegen.network import Layer, Mode, Network, Read, Role, Stage

__all__ = [
    "Chain",
    "chains_of",
    "in_strips",
    "out_width",
    "repeated_macs",
    "stage_geometry",
    "stage_rows",
    "strip_count",
]

_KERNEL = "strips_s8"
MAX_STAGES = 4  # as ARENITE_STRIPS_S8_MAX_STAGES
MAX_KERNEL_H = 8  # as ARENITE_STRIPS_S8_MAX_KERNEL_H
_STAGE_KERNELS = ("conv_2d_s8", "depthwise_conv_2d_s8")
_MAX_BYTE, _MAX_SHORT = 0xFF, 0xFFFF

Chain = tuple[int, ...]
"""Indices of layers of which each reads only the one before it."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Axis:
    """A stage's window along one axis."""

    kernel: int
    stride: int
    dilation: int
    pad: int
    size: int

    def needed(self, first: Ints, last: Ints) -> tuple[Ints, Ints]:
        """First and last input that outputs first .. last read; some may lie outside."""
        start = first * self.stride - self.pad
        return start, last * self.stride - self.pad + (self.kernel - 1) * self.dilation

    def touches_always(self, outputs: int) -> bool:
        """Whether no output lies wholly in the pads."""
        last = (outputs - 1) * self.stride - self.pad
        return self.pad < (self.kernel - 1) * self.dilation + 1 and last < self.size


def _rows(layer: Layer) -> _Axis:
    read = layer.reads[0]
    return _Axis(read.window, read.stride, read.dilation, read.pad_top, read.rows)


def _columns(layer: Layer) -> _Axis:
    p = layer.parameters
    return _Axis(p["kernel_w"], p["stride_w"], p["dilation_w"], p["pad_left"], p["in_w"])


def out_width(layer: Layer) -> int:
    """Pixels of an output row of a convolution or a chain."""
    return int(layer.parameters["out_w"])


def _out_channels(network: Network, layer: Layer) -> int:
    return network.values[layer.output].row_bytes // out_width(layer)


def stage_geometry(network: Network, layer: Layer) -> dict[str, int]:
    """Fields of `arenite_stage_t` that say where a stage reads and writes."""
    rows, columns = _rows(layer), _columns(layer)
    return {
        "in_h": rows.size,
        "in_w": columns.size,
        "in_c": int(layer.parameters["in_c"]),
        "out_c": _out_channels(network, layer),
        "kernel_h": rows.kernel,
        "kernel_w": columns.kernel,
        "stride_h": rows.stride,
        "stride_w": columns.stride,
        "dilation_h": rows.dilation,
        "dilation_w": columns.dilation,
        "pad_top": rows.pad,
        "pad_left": columns.pad,
    }


def chains_of(network: Network) -> list[Chain]:
    """Every chain that can run in strips, short ones first."""
    readers: dict[int, list[Layer]] = {}
    for layer in network.layers:
        for read in layer.reads:
            readers.setdefault(read.value, []).append(layer)
    found: list[Chain] = [(layer.index,) for layer in network.layers if _can_be_stage(network, layer)]
    chains: list[Chain] = []
    for _ in range(MAX_STAGES - 1):
        found = [
            (*chain, after.index)
            for chain in found
            for after in readers.get(network.layers[chain[-1]].output, ())
            if _can_follow(network, network.layers[chain[-1]], after, readers)
        ]
        chains += found
    return chains


def _can_be_stage(network: Network, layer: Layer) -> bool:
    if layer.kernel not in _STAGE_KERNELS or layer.mode is not Mode.ROW or len(layer.reads) != 1:
        return False
    read, value, output = layer.reads[0], network.values[layer.reads[0].value], network.values[layer.output]
    if read.whole or (read.rows, read.row_bytes) != (value.rows, value.row_bytes) or value.role is Role.CONSTANT:
        return False
    rows, columns, out_w = _rows(layer), _columns(layer), out_width(layer)
    small = (rows.stride, rows.dilation, rows.pad, columns.kernel, columns.stride, columns.dilation, columns.pad)
    sizes = (rows.size, columns.size, int(layer.parameters["in_c"]), _out_channels(network, layer))
    fits = rows.kernel <= MAX_KERNEL_H and max(small) <= _MAX_BYTE and max(sizes) <= _MAX_SHORT
    return fits and layer.steps == output.rows and rows.touches_always(output.rows) and columns.touches_always(out_w)


def _can_follow(network: Network, before: Layer, after: Layer, readers: Mapping[int, list[Layer]]) -> bool:
    if network.values[before.output].role is not Role.INTERNAL or len(readers[before.output]) > 1:
        return False
    # A stage that skips rows of what it reads would have them made in vain.
    return _can_be_stage(network, after) and _rows(after).dilation == 1 and _rows(after).kernel >= _rows(after).stride


def in_strips(network: Network, widths: Mapping[Chain, int]) -> Network:
    """The network with each chain as one layer.

    Args:
        widths: Disjoint chains, with the output columns of a strip.
    """
    merged = {chain[-1]: _merged(network, chain, width) for chain, width in widths.items()}
    gone = {index for chain in widths for index in chain[:-1]}
    layers = [merged.get(layer.index, layer) for layer in network.layers if layer.index not in gone]
    return replace(network, layers=tuple(replace(layer, index=i) for i, layer in enumerate(layers)))


def stage_rows(layer: Layer, steps: int) -> list[tuple[Layer, int]]:
    """The stages of a chain and how many rows each makes in the first `steps` steps; of other layers nothing."""
    layers = [stage.layer for stage in layer.stages]
    made = _made(layers, layer.parameters["strip_w"]) if layers else []
    return [(stage, int(rows[:steps].sum())) for stage, (rows, _) in zip(layers, made, strict=True)]


def strip_count(layer: Layer) -> int:
    """Strips of an output row; 1 of a layer that is no chain."""
    return -(-out_width(layer) // int(layer.parameters["strip_w"])) if layer.stages else 1


def repeated_macs(network: Network, chain: Chain, width: int) -> int:
    """Multiply-accumulates that a chain runs beyond those of its layers."""
    layers = [network.layers[i] for i in chain]
    return _repeated(layers, _made(layers, width))


def _repeated(layers: list[Layer], made: list[tuple[Ints, Ints]]) -> int:
    run = sum(
        layer.macs // (layer.steps * out_width(layer)) * int(rows.sum()) * int(columns.sum())
        for layer, (rows, columns) in zip(layers, made, strict=True)
    )
    return run - sum(layer.macs for layer in layers)


def _merged(network: Network, chain: Chain, width: int) -> Layer:
    layers = [network.layers[i] for i in chain]
    made = _made(layers, width)
    stages, scratch = [], 0
    for layer, (rows, columns) in zip(layers[:-1], made, strict=False):
        stages.append(Stage(layer, scratch))
        scratch += -(-int(rows.max() * columns.max()) * _out_channels(network, layer) // 4) * 4
    return replace(
        layers[-1],
        kernel=_KERNEL,
        reads=(_window(layers),),
        parameters={"count": len(layers), "out_w": out_width(layers[-1]), "strip_w": width},
        scratch_bytes=scratch,
        macs=sum(layer.macs for layer in layers),
        repeated_macs=_repeated(layers, made),
        stages=(*stages, Stage(layers[-1], 0)),
    )


def _made(layers: list[Layer], width: int) -> list[tuple[Ints, Ints]]:
    """For each stage, how many rows it makes for each output row, and how many columns for each strip."""
    rows, columns = _row_spans(layers), _strips(layers, width)
    return [
        (_inside(of_rows, layer.steps), _inside(of_columns, out_width(layer)))
        for layer, of_rows, of_columns in zip(layers, rows, columns, strict=True)
    ]


def _row_spans(layers: list[Layer]) -> Iterator[tuple[Ints, Ints]]:
    """For each stage, first and last row that it makes for each output row of the chain; some may lie outside."""
    every = np.arange(layers[-1].steps)
    return reversed(list(_backwards([_rows(layer) for layer in layers], every, every, clip=False)))


def _strips(layers: list[Layer], width: int) -> Iterator[tuple[Ints, Ints]]:
    """For each stage, first and last column that it makes for each strip."""
    out_w = out_width(layers[-1])
    first = np.arange(0, out_w, width)
    axes = [_columns(layer) for layer in layers]
    return reversed(list(_backwards(axes, first, np.minimum(first + width, out_w) - 1, clip=True)))


def _backwards(axes: list[_Axis], first: Ints, last: Ints, clip: bool) -> Iterator[tuple[Ints, Ints]]:
    for axis in reversed(axes):
        yield first, last
        first, last = axis.needed(first, last)
        if clip:
            first, last = np.maximum(first, 0), np.minimum(last, axis.size - 1)


def _inside(span: tuple[Ints, Ints], size: int) -> Ints:
    """How many of first .. last exist."""
    counts: Ints = np.minimum(span[1], size - 1) - np.maximum(span[0], 0) + 1
    return counts


def _window(layers: list[Layer]) -> Read:
    """The rows that one output row of the chain depends on."""
    first, last = next(iter(_row_spans(layers)))
    start, stop = _rows(layers[0]).needed(first[:2], last[:2])
    stride = int(np.prod([_rows(layer).stride for layer in layers]))
    return replace(
        layers[0].reads[0], window=int(stop[0] - start[0] + 1), stride=stride, dilation=1, pad_top=-int(start[0])
    )
