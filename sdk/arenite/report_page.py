# SPDX-License-Identifier: Apache-2.0
"""A benchmark or an energy report as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

import numpy as np

from arenite.benchmark import BenchReport
from arenite.charts import Bar, bars, histogram, series
from arenite.energy import Energy
from arenite.energy_report import EnergyReport, StageEnergy
from arenite.machine import Machine
from arenite.page import facts, note, page

__all__ = ["report_page"]


def report_page(report: BenchReport | EnergyReport) -> str:
    """The page of a report."""
    is_bench = isinstance(report, BenchReport)
    sections = _bench(report) if isinstance(report, BenchReport) else _energy(report)
    engine = report.engine
    title = f"{'Benchmark' if is_bench else 'Energy'} of model {report.model_sha256[:12]}"
    threads = "1 thread" if engine.threads == 1 else f"{engine.threads} threads"
    subtitle = f"{engine.engine} {engine.version}, {engine.kernels} kernels, {threads}, on {report.machine.cpu}"
    return page(title, subtitle, sections)


def _bench(report: BenchReport) -> Iterator[tuple[str, str]]:
    times_ms = np.array(report.times_ms)
    of = "sample" if report.scenario == "Offline" else "query"
    yield f"{report.scenario}", facts(_figures(report))
    marks = [("p50", report.latency.p50_ms), ("p90", report.latency.p90_ms), ("p99", report.latency.p99_ms)]
    known = [(name, value) for name, value in marks if value is not None]
    kept = "" if report.kept_every == 1 else f"One of {report.kept_every} is drawn. "
    slower = "The orange bar at the right holds the slowest hundredth." if len(times_ms) >= 100 else ""
    yield f"Latency of a {of}", histogram(times_ms, known, "ms") + note(kept + slower)
    clock_s = np.cumsum(times_ms) * report.kept_every / 1e3
    text = "Line: the median of neighbours; band: from the least to the most, cut off at four times the median."
    yield "Latency over the run", series(clock_s, times_ms, "ms") + note(text)
    seen = report.conditions
    if seen.frequency_mhz:
        yield "Clock", series(np.array(seen.times_s), np.array(seen.frequency_mhz), "MHz")
    if seen.temperature_c:
        yield "Temperature", series(np.array(seen.times_s), np.array(seen.temperature_c), "°C", from_zero=False)
    if report.stages:
        rows = [
            Bar(row.stage, row.times.mean_ms, f"{row.times.mean_ms:.3f} ms, {row.share:.0%}", kind=_kind(row.stage))
            for row in report.stages
        ]
        yield "Stages, mean", bars(rows)
    yield "Energy of a sample", _energy_bars(report.energy)
    opened = report.cold_start
    if opened.steps:
        steps = [Bar(step.name, step.duration_ms, f"{step.duration_ms:.2f} ms") for step in opened.steps]
        yield f"Opening, {opened.total_ms:.1f} ms", bars(steps)
    yield "Machine", facts(_machine(report.machine))


def _energy(report: EnergyReport) -> Iterator[tuple[str, str]]:
    figures = {"Meter": report.meter or "none", "Energy of an inference": str(report.energy)}
    if report.battery_wh is not None:
        count = report.battery_inferences
        figures[f"Battery of {report.battery_wh:g} Wh"] = "unknown" if count is None else f"{count:,.0f} inferences"
    yield "Energy", facts(figures)
    if report.against is not None:
        yield f"Against {report.against.engine.engine}", facts({"Energy of an inference": str(report.against.energy)})
    rows = list(_stages_by_name(report))
    times = [Bar(name, row.time_ms, f"{row.time_ms:.3f} ms", kind=_kind(row.stage)) for name, row in rows]
    yield "Time of a stage, mean", bars(times)
    known = [_energy_bar(name, row) for name, row in rows if row.energy.energy_mj is not None]
    missing = [name for name, row in rows if row.energy.energy_mj is None]
    unknown = note(f"Unknown: {', '.join(missing)}.") if missing else ""
    yield "Energy of a stage", (bars(known) if known else "") + unknown
    yield "Machine", facts(_machine(report.machine))


def _stages_by_name(report: EnergyReport) -> Iterator[tuple[str, StageEnergy]]:
    """Each stage; with a second engine each twice, one below the other."""
    other = report.against
    for i, row in enumerate(report.stages):
        yield row.stage, row
        if other is not None:
            yield f"{row.stage}, {other.engine.engine}", other.stages[i]


def _energy_bar(name: str, row: StageEnergy) -> Bar:
    energy = row.energy
    text = f"{_at_least(energy)}{energy.energy_mj:.4g} mJ, {energy.tag}"
    return Bar(name, energy.energy_mj or 0.0, text, energy.interval_mj, _kind(row.stage))


def _figures(report: BenchReport) -> Mapping[str, str]:
    outcome, times = report.outcome, report.latency
    figures = {"Queries issued by": "LoadGen" if report.driver == "loadgen" else "Arenite"}
    if outcome.percentile is None:
        figures["Rate"] = f"{outcome.samples_per_s or 0:,.1f} samples a second ({outcome.judged_by})"
    else:
        figure = "unknown: too few queries" if outcome.latency_ms is None else f"at most {outcome.latency_ms:.3f} ms"
        figures[f"p{outcome.percentile * 100:g}, early stopping"] = f"{figure} ({outcome.judged_by})"
    figures["Valid run"] = "yes" if report.valid else "no: " + "; ".join(outcome.why_not)
    for name in ("p50", "p90", "p99", "p99.9"):
        value = getattr(times, f"{name.replace('.', '_')}_ms")
        figures[name] = "too few queries" if value is None else f"{value:.3f} ms"
    figures["Mean"] = f"{times.mean_ms:.3f} ms, from {times.min_ms:.3f} to {times.max_ms:.3f}"
    figures["Jitter"] = "unknown" if report.jitter_ms is None else f"{report.jitter_ms:.3f} ms from one to the next"
    figures["First inference"] = f"{report.first_ms:.3f} ms"
    figures["Measured"] = f"{times.count:,} in {report.duration_s:.1f} s, after {report.warm_up} to warm up"
    figures["Energy"] = str(report.energy)
    return figures


def _energy_bars(energy: Energy) -> str:
    if energy.energy_mj is None:
        return f"<p>{escape(str(energy))}</p>"
    text = f"{_at_least(energy)}{energy.energy_mj:.4g} mJ"
    rows = [Bar(energy.tag, energy.energy_mj, text, energy.interval_mj)]
    if energy.gross_mj is not None and energy.gross_mj > energy.energy_mj:
        idle_mj = energy.gross_mj - energy.energy_mj
        rows.append(Bar("idle meanwhile", idle_mj, f"{idle_mj:.4g} mJ", kind="idle"))
    return bars(rows) + note(f"{energy.tag}: {energy.source}")


def _at_least(energy: Energy) -> str:
    return "at least " if energy.lower_bound else ""


def _kind(stage: str) -> str:
    return "idle" if stage == "total" else "bar"


def _machine(machine: Machine) -> Mapping[str, str]:
    clock = "unknown"
    if machine.min_frequency_mhz is not None and machine.max_frequency_mhz is not None:
        clock = f"{machine.min_frequency_mhz:.0f} to {machine.max_frequency_mhz:.0f} MHz"
    memory = "unknown" if machine.memory_bytes is None else f"{machine.memory_bytes / 2**30:.1f} GiB"
    return {
        "Name": machine.name,
        "Processor": f"{machine.cpu}, {machine.cores} logical",
        "Memory": memory,
        "Clock": f"{clock}, governor {machine.governor or 'unknown'}",
        "System": f"{machine.system}, {machine.kernel}",
        "Python": machine.python,
        "Packages": ", ".join(f"{name} {version}" for name, version in machine.versions.items()),
    }
