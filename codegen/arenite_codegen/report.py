# SPDX-License-Identifier: Apache-2.0
"""What a person reads of a plan: the operators' table and the arena map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from arenite.authority import is_uint8_born
from arenite.graph import Graph, printable
from arenite_codegen.board_model import Board
from arenite_codegen.cost_model import modelled_instructions
from arenite_codegen.network import FEED, Layer, Mode, Network
from arenite_codegen.placement import Block
from arenite_codegen.plan import Place, Plan
from arenite_codegen.regions import Region
from arenite_codegen.schedule import Schedule
from arenite_codegen.traffic import read_bytes, steps_run
from arenite_codegen.variants import Choose

__all__ = ["arena_text", "guard_names", "layer_rows", "operator_rows", "operators_text", "region_rows"]

_BAR = 64


def operator_rows(
    graph: Graph, network: Network, schedule: Schedule, choose: Choose, board: Board
) -> list[dict[str, Any]]:
    """One row for each operator of the file, in its order."""
    runs = {part.operator: (part, layer) for layer in network.layers for part in layer.parts}
    rows: list[dict[str, Any]] = []
    for operator in graph.operators:
        part, layer = runs.get(operator.index, (None, None))
        choice = choose(part) if part else None
        rows.append(
            {
                "index": operator.index,
                "kind": operator.kind,
                "kernel": part.kernel if part else None,
                "variant": choice.variant.name if choice else None,
                "passed_over": dict(choice.passed_over) if choice else {},
                "macs": network.batch * part.macs if part else 0,
                "modelled_instructions": (
                    modelled_instructions(board, choice.variant, part, network) if part and choice else None
                ),
                "ring_rows": schedule.ring_rows.get(part.output, 0) if part else 0,
                "note": _chain_note(layer) if layer else _removal_note(network, operator.index),
            }
        )
    return rows


def operators_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of `operator_rows` as a table: kernel and variant of each, what it costs, why no faster variant."""
    lines = [f"{'':4} {'operator':24} {'kernel':24} {'variant':12} {'MACs':>13} {'a MAC*':>7}  note"]
    for row in rows:
        cost = row["modelled_instructions"]
        per_mac = "" if cost is None else f"{cost / row['macs']:.2f}"
        notes = [row["note"]] if row["note"] else []
        notes += [f"not {name}: {why}" for name, why in row["passed_over"].items()]
        lines.append(
            f"{row['index']:4} {row['kind']:24} {row['kernel'] or '-':24} {row['variant'] or '-':12} "
            f"{row['macs']:13,} {per_mac:>7}  {'; '.join(notes)}".rstrip()
        )
    return "\n".join([*lines, "", "* instructions, modelled; `arenite profile` counts them"]) + "\n"


def _chain_note(layer: Layer) -> str:
    if not layer.stages:
        return ""
    first, last = layer.stages[0].layer.operator, layer.stages[-1].layer.operator
    return f"in a chain of operators {first} to {last}, {layer.parameters['strip_w']} columns at a time"


def _removal_note(network: Network, operator: int) -> str:
    return network.removed.get(operator, "reaches no output but as a shape")


def guard_names(network: Network, plan: Plan) -> dict[str, Any]:
    """What the numbers of a damaged guard mean: for each guard its block, for each layer its operator."""
    layers = [
        {"operator": layer.operator, "kind": layer.kind, "output": printable(network.values[layer.output].name)}
        for layer in network.layers
    ]
    return {"blocks": [printable(guard.block) for guard in plan.guards], "layers": layers}


def layer_rows(graph: Graph, network: Network, schedule: Schedule, plan: Plan, choose: Choose) -> list[dict[str, Any]]:
    """What a board's records of layers are compared with: one row for each layer, as the firmware numbers them.

    `rows` are those of the whole batch that the schedule makes; `tensor` is the file's tensor that they are, None where
    it holds none like it; `touches` are the bytes that the kernel is handed and writes, by memory.
    """
    steps = steps_run(schedule)
    rows = []
    for layer in network.layers:
        value = network.values[layer.output]
        variants = [] if layer.kernel == FEED else [choose(part) for part in layer.parts]
        whole = layer.mode is Mode.ACCUMULATE
        rows.append(
            {
                "operators": [part.operator for part in layer.parts],
                "kind": layer.kind,
                "output": printable(value.name),
                "tensor": _tensor_of(graph, network, layer),
                "rows": network.batch * (1 if whole else steps[layer.index]),
                "row_bytes": value.row_bytes,
                "macs": network.batch * (layer.macs + layer.repeated_macs),
                "variants": [choice.variant.name for choice in variants],
                "passed_over": {name: why for choice in variants for name, why in choice.passed_over.items()},
                "touches": _touches(network, plan, layer, steps[layer.index]),
            }
        )
    return rows


def _tensor_of(graph: Graph, network: Network, layer: Layer) -> int | None:
    """The tensor of the file that a layer's output is, bit for bit; in a model that was uint8 none is."""
    if is_uint8_born(graph):
        return None
    value = network.values[layer.output]
    last = layer.parts[-1].operator
    # A copy to an output comes after all operators.
    own: Sequence[int] = () if layer.kernel == FEED or last >= len(graph.operators) else graph.operators[last].outputs
    for index in [*own, *range(len(graph.tensors))]:
        tensor = graph.tensors[index]
        if tensor.name == value.name and tensor.bytes == value.bytes * network.batch and not tensor.is_constant:
            return int(index)
    return None


def _touches(network: Network, plan: Plan, layer: Layer, steps: int) -> dict[str, int]:
    """Bytes by memory; weights once a step, as a kernel walks them for each row."""
    found: Counter[str] = Counter()
    for read in layer.reads:
        name = "weights" if network.values[read.value].data is not None else _region_of(plan, read.value)
        found[name] += network.batch * read_bytes(read, steps)
    found[_region_of(plan, layer.output)] += network.batch * steps * network.values[layer.output].row_bytes
    arrays = [v for part in layer.parts for v in part.parameters.values() if isinstance(v, np.ndarray)]
    found["weights"] += network.batch * steps * sum(array.nbytes for array in arrays)
    return {name: count for name, count in found.items() if count}


def _region_of(plan: Plan, value: int) -> str:
    region = plan.row_regions[value] if value in plan.rows else plan.values.get(value, Place(0, 0)).region
    return plan.regions[int(region)].name


def region_rows(regions: Sequence[Region]) -> list[dict[str, Any]]:
    """One row for each part of the board's memories that models use.

    The cycles are modelled.
    """
    return [{**asdict(region), "modelled_cycles": region.traffic_cycles} for region in regions]


def arena_text(network: Network, schedule: Schedule, plan: Plan) -> str:
    """The arena as text: each block with its bytes, the steps in which it lives, and a bar over its region's bytes."""
    lines = [
        f"arena {plan.arena_bytes:,} bytes; no placement of this schedule needs less than {plan.lower_bound_bytes:,}",
        f"{len(schedule.timeline.order):,} steps; materialised: "
        + (", ".join(printable(network.values[v].name, 40) for v in schedule.materialised) or "nothing"),
    ]
    for position, region in enumerate(plan.regions):
        moved = f"an inference moves {region.traffic_bytes:,} here"
        if region.holds != "arena":
            lines += ["", f"{region.holds}: {region.bytes:,} bytes in the caller's memory; {moved}"]
            continue
        cycles = f"{region.traffic_cycles:,} cycles at {region.word_cycles} a word, modelled"
        lines += [
            "",
            f"region {region.name}: {region.bytes:,} of {region.capacity_bytes:,} bytes; {moved}, {cycles}",
            f"{'from':>9} {'to':>9} {'rows':>9} {'steps':>13}  block",
            *_block_lines(network, schedule, plan, position),
        ]
    return "\n".join(lines) + "\n"


def _block_lines(network: Network, schedule: Schedule, plan: Plan, region: int) -> list[str]:
    lines = []
    here = [(block, place) for block, place in plan.blocks if place.region == region]
    for block, place in sorted(here, key=lambda placed: (int(placed[0].born.min()), placed[1])):
        first, last = max(0, int(block.born.min()) // 2), int(block.died.max()) // 2
        spans = _spans(plan, block, place)
        lines.append(
            f"{min(spans)[0]:9,} {max(stop for _, stop in spans):9,} {_rows(network, schedule, block):>9} "
            f"{f'{first}-{last}':>13}  |{_bar(spans, plan.regions[region].bytes)}| {printable(block.name, 40)}"
        )
    return lines


def _rows(network: Network, schedule: Schedule, block: Block) -> str:
    if block.value is None:
        return ""
    return f"{schedule.ring_rows[block.value]}/{network.values[block.value].rows}"


def _spans(plan: Plan, block: Block, place: Place) -> list[tuple[int, int]]:
    """The bytes that a block occupies, from and to; several spans where its rows are scattered."""
    if block.value not in plan.rows:
        return [(place.offset, place.offset + block.size)]
    size = int(block.stop[0] - block.start[0])
    return [(start, start + size) for start in plan.rows[block.value]]


def _bar(spans: list[tuple[int, int]], whole: int) -> str:
    cells = [" "] * _BAR
    for start, stop in spans:
        for cell in range(start * _BAR // whole, max(start * _BAR // whole + 1, -(-stop * _BAR // whole))):
            cells[cell] = "#"
    return "".join(cells)
