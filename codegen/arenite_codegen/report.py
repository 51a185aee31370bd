# SPDX-License-Identifier: Apache-2.0
"""What a person reads of a plan: the operators' table and the arena map."""

from __future__ import annotations

from typing import Any

from arenite.tflite_graph import Graph, printable
from arenite_codegen.network import Layer, Network
from arenite_codegen.placement import Block
from arenite_codegen.plan import Plan
from arenite_codegen.schedule import Schedule
from arenite_codegen.variants import Choose

__all__ = ["arena_text", "operator_rows"]

_BAR = 64


def operator_rows(graph: Graph, network: Network, schedule: Schedule, choose: Choose) -> list[dict[str, Any]]:
    """One row for each operator of the file, in its order."""
    runs = {part.operator: (part, layer) for layer in network.layers for part in _parts(layer)}
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
                "ring_rows": schedule.ring_rows.get(part.output, 0) if part else 0,
                "note": _chain_note(layer) if layer else _removal_note(network, operator.index),
            }
        )
    return rows


def _parts(layer: Layer) -> list[Layer]:
    """The operators that a layer runs."""
    return [stage.layer for stage in layer.stages] or [layer]


def _chain_note(layer: Layer) -> str:
    if not layer.stages:
        return ""
    first, last = layer.stages[0].layer.operator, layer.stages[-1].layer.operator
    return f"in a chain of operators {first} to {last}, {layer.parameters['strip_w']} columns at a time"


def _removal_note(network: Network, operator: int) -> str:
    return network.removed.get(operator, "reaches no output but as a shape")


def arena_text(network: Network, schedule: Schedule, plan: Plan) -> str:
    """The arena as text: each block with its bytes, the steps in which it lives, and a bar over the arena's bytes."""
    lines = [
        f"arena {plan.arena_bytes:,} bytes; no placement of this schedule needs less than {plan.lower_bound_bytes:,}",
        f"{len(schedule.timeline.order):,} steps; materialised: "
        + (", ".join(printable(network.values[v].name, 40) for v in schedule.materialised) or "nothing"),
        "",
        f"{'from':>9} {'to':>9} {'rows':>9} {'steps':>13}  block",
    ]
    for block, offset in sorted(plan.blocks, key=lambda placed: (int(placed[0].born.min()), placed[1])):
        first, last = max(0, int(block.born.min()) // 2), int(block.died.max()) // 2
        spans = _spans(plan, block, offset)
        lines.append(
            f"{min(spans)[0]:9,} {max(stop for _, stop in spans):9,} {_rows(network, schedule, block):>9} "
            f"{f'{first}-{last}':>13}  |{_bar(spans, plan.arena_bytes)}| {printable(block.name, 40)}"
        )
    return "\n".join(lines) + "\n"


def _rows(network: Network, schedule: Schedule, block: Block) -> str:
    if block.value is None:
        return ""
    return f"{schedule.ring_rows[block.value]}/{network.values[block.value].rows}"


def _spans(plan: Plan, block: Block, offset: int) -> list[tuple[int, int]]:
    """The bytes that a block occupies, from and to; several spans where its rows are scattered."""
    if block.value not in plan.rows:
        return [(offset, offset + block.size)]
    size = int(block.stop[0] - block.start[0])
    return [(start, start + size) for start in plan.rows[block.value]]


def _bar(spans: list[tuple[int, int]], whole: int) -> str:
    cells = [" "] * _BAR
    for start, stop in spans:
        for cell in range(start * _BAR // whole, max(start * _BAR // whole + 1, -(-stop * _BAR // whole))):
            cells[cell] = "#"
    return "".join(cells)
