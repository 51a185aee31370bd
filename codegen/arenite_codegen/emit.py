# SPDX-License-Identifier: Apache-2.0
"""Network, schedule and plan -> C data. This only fills tables: all logic is hand-written C in kernels and runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arenite_codegen import strips
from arenite_codegen.constants import Pool
from arenite_codegen.network import FEED, Array, IoTensor, Layer, Mode, Network, Read, Stage, State
from arenite_codegen.operators.conversion import DTYPE_CODES
from arenite_codegen.placement import Place
from arenite_codegen.plan import Plan
from arenite_codegen.regions import ANYWHERE, Memory, Region
from arenite_codegen.render import render
from arenite_codegen.schedule import Schedule
from arenite_codegen.variants import Choose, Variant, portable_choice

__all__ = ["Emitted", "SINGLE_SYMBOL", "emit", "table_bytes"]

RUNTIME_VERSION = 4
SINGLE_SYMBOL = "arenite_model"
"""The symbol of a model that is alone in its firmware."""
# A place in C is one word: the region above this bit, the offset below.
_REGION_SHIFT = 28


@dataclass(frozen=True)
class Emitted:
    """Generated files by name, and what the bundle must add to them.

    Attributes:
        files: C text by file name.
        symbol: Name of the model's `arenite_model_t`, and stem of its header.
        kernels: C files of the kernels that the model calls, without prefix and suffix, sorted.
        weights_bytes: Constants: weights, biases, multipliers, tables.
        flash: The weights' regions, fastest first.
        table_bytes: Row schedule and layer descriptions on a 32-bit target.
        max_pointers: Most row pointers that one step hands to a kernel.
        layers: Number of layers.
        stage_kernels: Functions that chains call, with the kernels whose parameters they take.
    """

    files: Mapping[str, str]
    symbol: str
    kernels: tuple[str, ...]
    weights_bytes: int
    flash: tuple[Region, ...]
    table_bytes: int
    max_pointers: int
    stage_kernels: tuple[tuple[str, str], ...]
    layers: int = 0


class _RowTable:
    """Offsets of scattered rows, in units, value after value."""

    def __init__(self, plan: Plan) -> None:
        self.units: list[int] = []
        self.first: dict[int, Place] = {}
        for value, offsets in sorted(plan.rows.items()):
            self.first[value] = Place(plan.row_regions[value], len(self.units))
            self.units += [offset // plan.row_unit for offset in offsets]


def table_bytes(network: Network, schedule: Schedule, plan: Plan) -> int:
    """Flash that layers, row schedule and row table take on a 32-bit target."""
    reads = sum(len(layer.reads) for layer in network.layers)
    starts = sum(len(read.starts) for layer in network.layers for read in layer.reads)
    return plan.table_bytes + len(packed_steps(schedule.steps)) + 32 * len(network.layers) + 32 * reads + 2 * starts


def packed_steps(steps: Sequence[tuple[int, int]]) -> bytes:
    """The row schedule, (layer, count) pairs, as arenite.h describes its entries."""
    packed, before = bytearray(), 0
    for layer, count in steps:
        distance = layer - before
        if -8 <= distance < 8 and count < 16:
            packed.append((distance + 8) << 4 | count)
        else:
            packed += b"\0" + layer.to_bytes(2, "little") + count.to_bytes(2, "little")
        before = layer
    return bytes(packed)


def emit(
    network: Network,
    schedule: Schedule,
    plan: Plan,
    symbol: str = SINGLE_SYMBOL,
    flash: Sequence[Memory] = (ANYWHERE,),
    choose: Choose = portable_choice,
) -> Emitted:
    """Render the model's C files.

    Args:
        symbol: Name of the model's `arenite_model_t`; several models with different names can be linked together.
        flash: Where weights may lie; in the first lies the code.
        choose: Which variant of its kernel a layer gets.
    """
    source, weights = ("model.c", "weights.c") if symbol == SINGLE_SYMBOL else (f"{symbol}.c", f"{symbol}_weights.c")
    pool = Pool(network, schedule, flash, lambda layer: choose(layer).pack(layer))
    rows = _RowTable(plan)
    layers = [_layer(network, schedule, plan, layer, pool, rows, choose) for layer in network.layers]
    states = [_state(state, network, plan, pool) for state in network.states]
    variants = _variants(network, choose)
    kernels = tuple(sorted({file for variant in variants for file in variant.files}))
    max_pointers = max(sum(1 if r.whole else r.window for r in layer.reads) for layer in network.layers)
    arrays = pool.arrays()
    context: dict[str, Any] = {
        "symbol": symbol,
        "version": RUNTIME_VERSION,
        "arena_bytes": plan.arena_bytes,
        "batch": network.batch,
        "regions": plan.regions,
        "one_arena": len(plan.arena) == 1 and symbol == SINGLE_SYMBOL,
        "counters_place": _word(plan.counters),
        "inputs": [_io(io, plan) for io in network.inputs],
        "outputs": [_io(io, plan) for io in network.outputs],
        "sha256": [f"0x{b:02x}" for b in bytes.fromhex(network.model_sha256)],
        "layers": layers,
        "states": states,
        "steps": packed_steps(schedule.steps),
        "functions": sorted({variant.function for variant in variants}),
        "row_fed": int(network.row_fed),
        "row_table": rows.units,
        "row_unit": plan.row_unit,
        "arrays": arrays,
        "guards": [(_word(guard.place), guard.first, guard.last) for guard in plan.guards],
    }
    files = {
        f"{symbol}.h": render("model.h.j2", context),
        source: render("model.c.j2", context),
        weights: render("weights.c.j2", context),
    }
    used = tuple(array.region for array in arrays)
    tables = table_bytes(network, schedule, plan)
    size = sum(region.bytes for region in used)
    stages = _stage_kernels(network, choose)
    return Emitted(files, symbol, kernels, size, used, tables, max_pointers, stages, len(layers))


def _layer(
    network: Network, schedule: Schedule, plan: Plan, layer: Layer, pool: Pool, rows: _RowTable, choose: Choose
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
        "out_place": _word(_out_place(plan, rows, layer)),
        "out_row_bytes": value.row_bytes,
        "out_item_bytes": value.item_bytes,
        "out_ring_rows": 0 if layer.output in plan.rows else schedule.ring_rows.get(layer.output, 1),
        "scratch_place": _word(plan.scratch[layer.index]) if layer.index in plan.scratch else None,
        "accumulates": int(layer.mode is Mode.ACCUMULATE),
    }


def _out_place(plan: Plan, rows: _RowTable, layer: Layer) -> Place:
    """Where a layer writes. One whose rows all lie outside the windows that read them never runs and has no place."""
    return rows.first[layer.output] if layer.output in plan.rows else plan.values.get(layer.output, Place(0, 0))


def _variants(network: Network, choose: Choose) -> list[Variant]:
    """The variant of every layer and stage that calls a kernel."""
    called = [layer for layer in network.layers if layer.kernel != FEED]
    called += [stage.layer for layer in network.layers for stage in layer.stages]
    return [choose(layer).variant for layer in called]


def _stage_kernels(network: Network, choose: Choose) -> tuple[tuple[str, str], ...]:
    chosen = [choose(stage.layer).variant for layer in network.layers for stage in layer.stages]
    return tuple(sorted({(variant.function, variant.kernel) for variant in chosen}))


def _parameters(layer: Layer, pool: Pool, choose: Choose) -> dict[str, Any]:
    alignment_bytes = choose(layer).variant.alignment_bytes
    return {
        name: pool.add(v, alignment_bytes) if isinstance(v, np.ndarray) else _scalar(v)
        for name, v in pool.parameters(layer).items()
    }


def _scalar(value: Any) -> int | str:
    """A number in C; a float exactly, in hexadecimal."""
    if not isinstance(value, float):
        return int(value)
    return f"{float(value).hex()}f"


def _stage(network: Network, stage: Stage, pool: Pool, choose: Choose) -> dict[str, Any]:
    layer = stage.layer
    geometry = {"buffer_offset": stage.buffer_offset, **strips.stage_geometry(network, layer)}
    return {
        "kernel": layer.kernel,
        "parameters": _parameters(layer, pool, choose),
        "geometry": {**geometry, "kernel": f"ARENITE_STAGE_{choose(layer).variant.function}"},
    }


def _read(network: Network, schedule: Schedule, plan: Plan, read: Read, pool: Pool, rows: _RowTable) -> dict[str, Any]:
    value = network.values[read.value]
    constant = pool.add(as_bytes(value.data), value.element_bytes) if value.data is not None else None
    if constant is not None:
        place, ring_rows = Place(0, 0), read.rows
    elif read.value in plan.rows:
        place, ring_rows = rows.first[read.value], 0
    else:
        # A value that is divided otherwise than its producer does lies in memory as a whole: its ring is all of it.
        own = (read.rows, read.row_bytes) == (value.rows, value.row_bytes)
        # One that is never made has no place, and none of its rows is asked for.
        place = plan.values.get(read.value, Place(0, 0))
        ring_rows = schedule.ring_rows.get(read.value, 1) if own else read.rows
    return {
        "constant": constant,
        "place": _word(place),
        "row_bytes": read.row_bytes,
        "item_bytes": value.item_bytes,
        "rows": read.rows,
        "ring_rows": ring_rows,
        "window": 1 if read.whole else read.window,
        "stride": 0 if read.whole else read.stride,
        "dilation": 1 if read.whole else read.dilation,
        "pad_top": 0 if read.whole else read.pad_top,
        "starts": read.starts,
        "divisor": 1 if read.whole else read.divisor,
    }


def as_bytes(values: Array) -> Array:
    """The same memory as int8."""
    return np.ascontiguousarray(values).reshape(-1).view(np.int8)


def _state(state: State, network: Network, plan: Plan, pool: Pool) -> dict[str, Any]:
    """A state that starts as one byte repeated has no constant."""
    first = state.initial[0] if state.initial.size else np.int8(0)
    same = bool((state.initial == first).all())
    return {
        "place": _word(plan.values[state.value]),
        "next_place": None if state.next is None else _word(plan.values[state.next]),
        "bytes": network.values[state.value].bytes,
        "fill": int(first),
        "initial": None if same else pool.add(state.initial),
    }


def _word(place: Place) -> int:
    return place.region << _REGION_SHIFT | place.offset


def _io(io: IoTensor, plan: Plan) -> dict[str, Any]:
    return {
        "name": io.name,
        "place": _word(plan.values.get(io.value, Place(0, 0))),
        "bytes": io.bytes,
        "dtype": DTYPE_CODES[io.dtype],
        "zero_point": io.zero_point,
        "scale": f"{io.scale!r}f" if "e" in repr(io.scale) or "." in repr(io.scale) else f"{io.scale!r}.0f",
    }
