# SPDX-License-Identifier: Apache-2.0
"""The arena as a page: time along one axis, bytes along the other, each value a band of its rows.

Regions lie one below the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from arenite.graph import printable
from arenite_codegen.network import Network
from arenite_codegen.placement import Block, live_profile
from arenite_codegen.plan import Place, Plan
from arenite_codegen.render import render
from arenite_codegen.schedule import Schedule

__all__ = ["arena_page", "live_bytes"]

WIDTH, HEIGHT = 1200, 560
# A band in one piece with this part of the picture's area has its name written on it.
LABEL_AREA = 0.015
# Neighbouring bands differ in hue by the golden angle.
HUE_STEP = 137.508


def live_bytes(plan: Plan, steps: int) -> list[int]:
    """Bytes alive at each step, as the plan's pieces say; what only waits for the first step counts to it."""
    alive = live_profile([block for block, _ in plan.blocks])
    return [int(alive[2 * step + min(step, 1) : 2 * step + 3].max()) for step in range(steps)]


def arena_page(network: Network, schedule: Schedule, plan: Plan, title: str) -> str:
    """An HTML page without scripts or outside resources."""
    steps = len(schedule.timeline.order)
    alive = live_bytes(plan, steps)
    peak = max(range(steps), key=alive.__getitem__)
    scale_x, scale_y = WIDTH / steps, HEIGHT / plan.arena_bytes
    bands = [
        _band(network, schedule, plan, block, place, number, scale_x, scale_y)
        for number, (block, place) in enumerate(plan.blocks)
    ]
    context = {
        "title": title,
        "width": WIDTH,
        "height": HEIGHT,
        "arena_bytes": plan.arena_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "lower_bound_y": plan.lower_bound_bytes * scale_y,
        "steps": steps,
        "peak_step": peak,
        "peak_x": (peak + 0.5) * scale_x,
        "peak_bytes": alive[peak],
        "peak_names": _names_at(network, plan, peak),
        "bands": sorted(bands, key=lambda band: -band["area"]),
        "ticks_x": [(step, step * scale_x) for step in _ticks(steps)],
        "ticks_y": [(size, size * scale_y) for size in _ticks(plan.arena_bytes)],
        "regions": plan.regions,
        "borders_y": [(region.name, base * scale_y) for region, base in zip(plan.arena, _bases(plan), strict=True)],
    }
    return render("arena.html.j2", context)


def _bases(plan: Plan) -> list[int]:
    """Where each region starts in the picture, in bytes."""
    return list(accumulate((region.bytes for region in plan.arena[:-1]), initial=0))


def _pieces(plan: Plan, block: Block, place: Place) -> Iterator[tuple[int, int, int, int]]:
    """First step, step after the last, first byte, byte after the last of each row."""
    scattered = plan.rows.get(block.value) if block.value is not None else None
    base = _bases(plan)[place.region]
    rows = zip(block.start.tolist(), block.stop.tolist(), block.born.tolist(), block.died.tolist(), strict=True)
    for row, (start, stop, born, died) in enumerate(rows):
        low = base + (scattered[row] if scattered else place.offset + start)
        first = max(0, born // 2)
        yield first, max(first, died // 2) + 1, low, low + stop - start


def _band(
    network: Network,
    schedule: Schedule,
    plan: Plan,
    block: Block,
    place: Place,
    number: int,
    scale_x: float,
    scale_y: float,
) -> dict[str, Any]:
    steps, region = len(schedule.timeline.order), plan.regions[place.region].name
    rectangles = [
        (first * scale_x, low * scale_y, (min(last, steps) - first) * scale_x, (high - low) * scale_y)
        for first, last, low, high in _pieces(plan, block, place)
    ]
    area = sum(w * h for _, _, w, h in rectangles)
    is_labelled = block.value not in plan.rows and area >= LABEL_AREA * WIDTH * HEIGHT
    return {
        "path": "".join(f"M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h-{w:.1f}z" for x, y, w, h in rectangles),
        "area": area,
        "hue": round(number * HUE_STEP % 360),
        "text": _text(network, schedule, plan, block) + (f", in {region}" if len(plan.arena) > 1 else ""),
        "label": printable(block.name, 24) if is_labelled else "",
        "label_x": sum((x + w / 2) * w * h for x, _, w, h in rectangles) / area,
        "label_y": sum((y + h / 2) * w * h for _, y, w, h in rectangles) / area,
    }


def _text(network: Network, schedule: Schedule, plan: Plan, block: Block) -> str:
    first, last = max(0, int(block.born.min()) // 2), int(block.died.max()) // 2
    name = printable(block.name)
    if block.value is None:
        return f"{name}: {block.size:,} bytes, steps {first}-{last}"
    value = network.values[block.value]
    rows = f"{schedule.ring_rows[block.value]} of {value.rows} rows of {value.row_bytes:,} bytes"
    made_by = next((f" by operator {x.operator} {x.kind}" for x in network.layers if x.output == block.value), "")
    scattered = ", scattered" if block.value in plan.rows else ""
    return f"{name}{made_by}: {rows}{scattered}, steps {first}-{last}"


def _names_at(network: Network, plan: Plan, step: int) -> list[tuple[str, int]]:
    """What is alive at a step, largest first."""
    found = []
    for block, _ in plan.blocks:
        alive = (block.born <= 2 * step + 1) & (block.died >= 2 * step)
        size = int((block.stop - block.start)[alive].sum())
        if size:
            found.append((printable(block.name, 48), size))
    return sorted(found, key=lambda pair: -pair[1])


def _ticks(limit: int) -> list[int]:
    """Round numbers from 0 to at most `limit`, about eight."""
    raw = max(1, limit // 8)
    unit = 10 ** (len(str(raw)) - 1)
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= raw)
    return list(range(0, limit + 1, step))
