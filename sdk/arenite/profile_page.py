# SPDX-License-Identifier: Apache-2.0
"""A profile of a board as a page: a bar for each layer, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterator

from arenite.charts import Bar, bars
from arenite.device.profile import LayerProfile, ProfileReport
from arenite.page import facts, grid, note, page

__all__ = ["profile_page"]


def profile_page(report: ProfileReport) -> str:
    """The page of a report."""
    where = report.board if report.emulator is None else f"{report.board}, {report.emulator}"
    return page(f"Profile of {report.model}", f"one inference on {where}, in {report.unit}", _sections(report))


def _sections(report: ProfileReport) -> Iterator[tuple[str, str]]:
    figures = {
        f"{report.unit.capitalize()} of an inference": f"{report.total:,}",
        "of these outside layers": f"{report.executor:,}",
        "Multiply-accumulates": f"{report.macs:,}",
    }
    if report.macs:
        figures[f"{report.unit.capitalize()} a MAC"] = f"{report.total / report.macs:.3f}"
    if report.energy is not None:
        figures["Energy of an inference"] = str(report.energy)
    yield "Inference", facts(figures)
    rows = [Bar(_name(layer), float(layer.cost), f"{layer.cost:,}, {layer.share:.1%}") for layer in report.layers]
    unit = "Instructions are counted exactly; they are no cycles." if report.unit == "instructions" else ""
    yield f"{report.unit.capitalize()} of each layer", bars(rows) + note(unit)
    head = ("layer", "output", "kernel variant", f"{report.unit} a MAC", "touches", "hint", "passed over")
    yield "Layers", grid(head, [_row(layer) for layer in report.layers])


def _name(layer: LayerProfile) -> str:
    first, last = layer.operators[0], layer.operators[-1]
    return f"{layer.layer} {layer.kind} ({first if first == last else f'{first} to {last}'})"


def _row(layer: LayerProfile) -> tuple[str, ...]:
    return (
        _name(layer),
        layer.output,
        ", ".join(layer.variants) or "none",
        "" if layer.per_mac is None else f"{layer.per_mac:.3f}",
        ", ".join(f"{name} {count:,} B" for name, count in layer.touches.items()),
        layer.hint,
        "; ".join(f"{name}: {why}" for name, why in layer.passed_over.items()),
    )
