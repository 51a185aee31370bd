# SPDX-License-Identifier: Apache-2.0
"""The arena's page shows the plan that is built: every row inside the arena, the peak where it is, names harmless."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from arenite_codegen import bundle
from arenite_codegen.arena_page import HEIGHT, WIDTH, arena_page, live_bytes
from arenite_codegen.network import Network
from arenite_codegen.plan import Plan, make_plan
from arenite_codegen.regions import Memory
from arenite_codegen.schedule import Schedule, make_schedule
from support.builder import ModelBuilder
from support.graphs import random_graph
from support.random_networks import random_network

RECTANGLE = re.compile(r"M(-?[\d.]+) (-?[\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z")


def planned(seed: int) -> tuple[Network, Schedule, Plan]:
    network = random_network(seed)
    schedule = make_schedule(network)
    return network, schedule, make_plan(network, schedule)


def svg_of(page: str) -> ElementTree.Element:
    return ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])


@pytest.mark.parametrize("seed", range(12))
def test_every_row_lies_inside_and_the_lowest_ends_at_the_arena(seed: int) -> None:
    network, schedule, plan = planned(seed)
    svg = svg_of(arena_page(network, schedule, plan, "t"))
    paths = [p for p in svg.iter("path") if p.get("class") == "band"]
    assert len(paths) == len(plan.blocks)
    rectangles = [tuple(map(float, m)) for p in paths for m in RECTANGLE.findall(p.get("d", ""))]
    assert len(rectangles) == sum(len(block.born) for block, _ in plan.blocks)
    assert max(y + h for _, y, _, h in rectangles) == pytest.approx(HEIGHT, abs=0.2)
    assert all(x >= 0 and y >= 0 and x + w <= WIDTH + 0.2 for x, y, w, _ in rectangles)


@pytest.mark.parametrize("seed", [s for s in range(40) if random_network(s).batch == 1][:12])
def test_the_peak_is_the_lower_bound(seed: int) -> None:
    network, schedule, plan = planned(seed)
    alive = live_bytes(plan, len(schedule.timeline.order))
    counters = 2 * len(network.layers)
    assert max(alive) == schedule.live_bytes + counters
    page = arena_page(network, schedule, plan, "t")
    assert f"{max(alive):,} bytes" in page
    assert f"{plan.arena_bytes:,} bytes</h1>" in page


@pytest.mark.parametrize("seed", range(6))
def test_regions_lie_one_below_the_other(seed: int) -> None:
    network, schedule, alone = planned(seed)
    memories = (Memory("fast", alone.arena_bytes // 2), Memory("slow", 1 << 20, 10))
    plan = make_plan(network, schedule, memories)
    page = arena_page(network, schedule, plan, "t")
    paths = [p for p in svg_of(page).iter("path") if p.get("class") == "band"]
    border = plan.arena[0].bytes * HEIGHT / plan.arena_bytes
    assert len(plan.arena) == 2
    for path in paths:
        title = next(path.iter("title")).text or ""
        for _, y, _, h in (tuple(map(float, m)) for m in RECTANGLE.findall(path.get("d", ""))):
            in_fast = y + h <= border + 0.2
            assert in_fast or y >= border - 0.2, "a row lies across the border"
            assert title.endswith("in fast" if in_fast else "in slow")
    for region in plan.regions:
        assert f"{region.traffic_bytes:,}</td>" in page
        assert f"{region.traffic_cycles:,}</td>" in page


def test_a_name_is_only_ever_text(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x = builder.tensor("</title><script>alert(1)</script>", (1, 4), "int8", scales=[0.1], zero_points=[0])
    y = builder.tensor("&y", (1, 4), "int8", scales=[0.1], zero_points=[0])
    builder.operator("RELU", [x], [y], version=2)
    path = tmp_path / "<b>model.tflite"
    path.write_bytes(builder.finish([x], [y]))
    bundle(path, "host", tmp_path / "b", vectors=0)
    page = (tmp_path / "b" / "arena.html").read_text(encoding="utf-8")
    svg_of(page)
    assert "<script" not in page
    assert "<b>" not in page


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(random_graph("CONV_2D", 1).model_bytes)
    bundle(path, "host", tmp_path / "b", vectors=0)
    page = (tmp_path / "b" / "arena.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|src=", page)
