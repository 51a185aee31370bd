# SPDX-License-Identifier: Apache-2.0
"""Network, schedule and plan -> C data. This only fills tables: all logic is hand-written C in kernels and runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_codegen import strips
from arenite_codegen.network import FEED, IoTensor, Layer, Mode, Network, Read, Stage
from arenite_codegen.plan import Plan
from arenite_codegen.render import render
from arenite_codegen.schedule import Schedule
from arenite_codegen.variants import Choose, Variant, portable_choice

__all__ = ["Emitted", "emit"]

Array = npt.NDArray[Any]

RUNTIME_VERSION = 2
_C_TYPES = {"int8": "int8_t", "int32": "int32_t"}
_DTYPE_CODES = {"int8": 0, "uint8": 1}


@dataclass(frozen=True)
class Emitted:
    """Generated files by name, and what the bundle must add to them.

    Attributes:
        files: C text by file name.
        kernels: C files of the kernels that the model calls, without prefix and suffix, sorted.
        weights_bytes: Constants: weights, biases, multipliers, tables.
        table_bytes: Row schedule and layer descriptions on a 32-bit target.
        max_pointers: Most row pointers that one step hands to a kernel.
    """

    files: Mapping[str, str]
    kernels: tuple[str, ...]
    weights_bytes: int
    table_bytes: int
    max_pointers: int


@dataclass(frozen=True)
class _Constant:
    """A C expression: the address of a constant, typed."""

    c_type: str
    word: int


class _Pool:
    """All constants as one array of 32-bit words; equal ones are stored once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._found: dict[bytes, int] = {}
        self.words = 0
        self.alignment_bytes = 16

    def add(self, values: Array, alignment_bytes: int = 4) -> _Constant:
        data = np.ascontiguousarray(values).tobytes()
        data += bytes(-len(data) % 4)
        if data not in self._found or 4 * self._found[data] % alignment_bytes:
            self._align(alignment_bytes)
            self._found[data] = self.words
            self._parts.append(data)
            self.words += len(data) // 4
        return _Constant(_C_TYPES[str(values.dtype)], self._found[data])

    def _align(self, alignment_bytes: int) -> None:
        padding = bytes(-4 * self.words % alignment_bytes)
        self._parts.append(padding)
        self.words += len(padding) // 4
        self.alignment_bytes = max(self.alignment_bytes, alignment_bytes)

    def lines(self) -> list[str]:
        """The words as rows of C initialisers."""
        words = np.frombuffer(b"".join(self._parts), "<u4").tolist()
        return [", ".join(f"0x{w:08x}u" for w in words[i : i + 8]) + "," for i in range(0, len(words), 8)]


class _RowTable:
    """Offsets of scattered rows, in units, value after value, each distinct list once."""

    def __init__(self, plan: Plan) -> None:
        self.units: list[int] = []
        self.first: dict[int, int] = {}
        for value, offsets in sorted(plan.rows.items()):
            self.first[value] = len(self.units)
            self.units += [offset // plan.row_unit for offset in offsets]


def emit(
    network: Network,
    schedule: Schedule,
    plan: Plan,
    symbol: str = "arenite_model",
    choose: Choose = portable_choice,
) -> Emitted:
    """Render the model's C files.

    Args:
        symbol: Name of the model's `arenite_model_t`; several models with different names can be linked together.
        choose: Which variant of its kernel a layer gets.
    """
    pool = _Pool()
    rows = _RowTable(plan)
    layers = [_layer(network, schedule, plan, layer, pool, rows, choose) for layer in network.layers]
    variants = _variants(network, choose)
    kernels = tuple(sorted({file for variant in variants for file in variant.files}))
    max_pointers = max(sum(1 if r.whole else r.window for r in layer.reads) for layer in network.layers)
    context: dict[str, Any] = {
        "symbol": symbol,
        "version": RUNTIME_VERSION,
        "arena_bytes": plan.arena_bytes,
        "batch": network.batch,
        "region_bytes": [plan.arena_bytes],
        "counters_place": plan.counters,
        "inputs": [_io(io, plan) for io in network.inputs],
        "outputs": [_io(io, plan) for io in network.outputs],
        "sha256": [f"0x{b:02x}" for b in bytes.fromhex(network.model_sha256)],
        "layers": layers,
        "steps": schedule.steps,
        "functions": sorted({variant.function for variant in variants}),
        "stage_kernels": _stage_kernels(network, choose),
        "row_fed": int(network.row_fed),
        "row_table": rows.units,
        "row_unit": plan.row_unit,
        "word_lines": pool.lines(),
        "words": max(1, pool.words),
        "alignment_bytes": pool.alignment_bytes,
        "max_pointers": max_pointers,
    }
    files = {
        f"{symbol}.h": render("model.h.j2", context),
        "model.c": render("model.c.j2", context),
        "weights.c": render("weights.c.j2", context),
        "arenite_limits.h": render("limits.h.j2", context),
    }
    # Sizes of the runtime's structs with 32-bit pointers.
    reads = sum(len(layer.reads) for layer in network.layers)
    tables = plan.table_bytes + 4 * len(schedule.steps) + 32 * len(layers) + 28 * reads
    return Emitted(files, kernels, 4 * pool.words, tables, max_pointers)


def _layer(
    network: Network, schedule: Schedule, plan: Plan, layer: Layer, pool: _Pool, rows: _RowTable, choose: Choose
) -> dict[str, Any]:
    value = network.values[layer.output]
    parameters = _parameters(layer, pool, choose)
    if layer.stages:
        parameters = {"stages": f"stages_{layer.index}", **parameters}
    return {
        "index": layer.index,
        "kernel": None if layer.kernel == FEED else layer.kernel,
        "function": choose(layer).variant.function,
        "kind": layer.kind,
        "operator": layer.operator,
        "parameters": parameters,
        "stages": [_stage(network, stage, pool, choose) for stage in layer.stages],
        "reads": [_read(network, schedule, plan, read, pool, rows) for read in layer.reads],
        "out_place": rows.first[layer.output] if layer.output in plan.rows else plan.values[layer.output],
        "out_row_bytes": value.row_bytes,
        "out_item_bytes": value.item_bytes,
        "out_ring_rows": 0 if layer.output in plan.rows else schedule.ring_rows[layer.output],
        "scratch_place": plan.scratch.get(layer.index),
        "accumulates": int(layer.mode is Mode.ACCUMULATE),
    }


def _variants(network: Network, choose: Choose) -> list[Variant]:
    """The variant of every layer and stage that calls a kernel."""
    called = [layer for layer in network.layers if layer.kernel != FEED]
    called += [stage.layer for layer in network.layers for stage in layer.stages]
    return [choose(layer).variant for layer in called]


def _stage_kernels(network: Network, choose: Choose) -> list[tuple[str, str]]:
    """Functions that chains call, with the kernels whose parameters they take."""
    chosen = [choose(stage.layer).variant for layer in network.layers for stage in layer.stages]
    return sorted({(variant.function, variant.kernel) for variant in chosen})


def _parameters(layer: Layer, pool: _Pool, choose: Choose) -> dict[str, Any]:
    choice = choose(layer)
    return {
        name: pool.add(v, choice.variant.alignment_bytes) if isinstance(v, np.ndarray) else int(v)
        for name, v in choice.pack(layer).items()
    }


def _stage(network: Network, stage: Stage, pool: _Pool, choose: Choose) -> dict[str, Any]:
    layer = stage.layer
    geometry = {"buffer_offset": stage.buffer_offset, **strips.stage_geometry(network, layer)}
    return {
        "kernel": layer.kernel,
        "parameters": _parameters(layer, pool, choose),
        "geometry": {**geometry, "kernel": f"ARENITE_STAGE_{choose(layer).variant.function}"},
    }


def _read(
    network: Network, schedule: Schedule, plan: Plan, read: Read, pool: _Pool, rows: _RowTable
) -> dict[str, Any]:
    value = network.values[read.value]
    constant = pool.add(value.data) if value.data is not None else None
    if constant or read.value not in plan.rows:
        offset = 0 if constant else plan.values[read.value]
        # A value that is divided otherwise than its producer does lies in memory as a whole: its ring is all of it.
        own = (read.rows, read.row_bytes) == (value.rows, value.row_bytes) and not constant
        ring_rows = schedule.ring_rows[read.value] if own else read.rows
    else:
        offset, ring_rows = rows.first[read.value], 0
    return {
        "constant": constant,
        "place": offset,
        "row_bytes": read.row_bytes,
        "item_bytes": value.item_bytes,
        "rows": read.rows,
        "ring_rows": ring_rows,
        "window": 1 if read.whole else read.window,
        "stride": 0 if read.whole else read.stride,
        "dilation": 1 if read.whole else read.dilation,
        "pad_top": 0 if read.whole else read.pad_top,
    }


def _io(io: IoTensor, plan: Plan) -> dict[str, Any]:
    return {
        "name": io.name,
        "place": plan.values.get(io.value, 0),
        "bytes": io.bytes,
        "dtype": _DTYPE_CODES[io.dtype],
        "zero_point": io.zero_point,
        "scale": f"{io.scale!r}f" if "e" in repr(io.scale) or "." in repr(io.scale) else f"{io.scale!r}.0f",
    }
