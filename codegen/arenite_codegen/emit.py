# SPDX-License-Identifier: Apache-2.0
"""Network, schedule and plan -> C data. This only fills tables: all logic is hand-written C in kernels and runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arenite_codegen import strips
from arenite_codegen.constants import Pool
from arenite_codegen.network import FEED, Array, IoTensor, Layer, Mode, Network, Stage, State, Value
from arenite_codegen.operators.conversion import DTYPE_CODES
from arenite_codegen.placement import Place
from arenite_codegen.plan import Plan
from arenite_codegen.regions import ANYWHERE, Memory, Region
from arenite_codegen.render import render
from arenite_codegen.schedule import Schedule
from arenite_codegen.tables import MemoryTables, packed_steps, place_word, table_bytes
from arenite_codegen.variants import Choose, Variant, portable_choice

__all__ = ["Emitted", "SINGLE_SYMBOL", "emit"]

RUNTIME_VERSION = 5
SINGLE_SYMBOL = "arenite_model"
"""The symbol of a model that is alone in its firmware."""


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
    tables = MemoryTables(network, schedule, plan)
    layers = [_layer(network, plan, layer, pool, tables, choose) for layer in network.layers]
    constants = [pool.add(*_in_flash(network.values[value])) for value in tables.constants]
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
        "counters_place": place_word(plan.counters),
        "inputs": [_io(io, plan) for io in network.inputs],
        "outputs": [_io(io, plan) for io in network.outputs],
        "sha256": [f"0x{b:02x}" for b in bytes.fromhex(network.model_sha256)],
        "layers": layers,
        "states": states,
        "steps": packed_steps(schedule.steps),
        "functions": sorted({variant.function for variant in variants}),
        "row_fed": int(network.row_fed),
        "values": tables.values,
        "windows": tables.windows,
        "constants": constants,
        "row_table": tables.rows.units,
        "row_unit": plan.row_unit,
        "arrays": arrays,
        "guards": [(place_word(guard.place), guard.first, guard.last) for guard in plan.guards],
    }
    files = {
        f"{symbol}.h": render("model.h.j2", context),
        source: render("model.c.j2", context),
        weights: render("weights.c.j2", context),
    }
    used = tuple(array.region for array in arrays)
    size = sum(region.bytes for region in used)
    stages = _stage_kernels(network, choose)
    flash_bytes = table_bytes(network, schedule, plan)
    return Emitted(files, symbol, kernels, size, used, flash_bytes, max_pointers, stages, len(layers))


def _layer(
    network: Network, plan: Plan, layer: Layer, pool: Pool, tables: MemoryTables, choose: Choose
) -> dict[str, Any]:
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
        "reads": tables.reads[layer.index],
        "out": tables.outputs[layer.index],
        "scratch_place": place_word(plan.scratch[layer.index]) if layer.index in plan.scratch else None,
        "accumulates": int(layer.mode is Mode.ACCUMULATE),
    }


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


def _in_flash(value: Value) -> tuple[Array, int]:
    """The bytes of a value that is a constant, and how they are aligned."""
    assert value.data is not None
    return np.ascontiguousarray(value.data).reshape(-1).view(np.int8), value.element_bytes


def _state(state: State, network: Network, plan: Plan, pool: Pool) -> dict[str, Any]:
    """A state that starts as one byte repeated has no constant."""
    first = state.initial[0] if state.initial.size else np.int8(0)
    same = bool((state.initial == first).all())
    return {
        "place": place_word(plan.values[state.value]),
        "next_place": None if state.next is None else place_word(plan.values[state.next]),
        "bytes": network.values[state.value].bytes,
        "fill": int(first),
        "initial": None if same else pool.add(state.initial),
    }


def _io(io: IoTensor, plan: Plan) -> dict[str, Any]:
    return {
        "name": io.name,
        "place": place_word(plan.values.get(io.value, Place(0, 0))),
        "bytes": io.bytes,
        "dtype": DTYPE_CODES[io.dtype],
        "zero_point": io.zero_point,
        "scale": f"{io.scale!r}f" if "e" in repr(io.scale) or "." in repr(io.scale) else f"{io.scale!r}.0f",
    }
