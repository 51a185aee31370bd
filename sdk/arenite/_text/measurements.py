# SPDX-License-Identifier: Apache-2.0
"""Reports on times and energy, and on this machine, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arenite._text.lines import printable, table

if TYPE_CHECKING:
    from arenite.benchmark import BenchReport
    from arenite.comparison import ComparisonReport
    from arenite.diagnosis import DoctorReport
    from arenite.energy import Energy
    from arenite.energy_report import EnergyReport
    from arenite.engines import EngineReport

__all__ = ["benchmark", "comparison", "diagnosis", "energy"]


def benchmark(report: BenchReport) -> list[str]:
    """What `arenite bench` prints."""
    engine, times = report.engine, report.latency
    of = "a sample" if report.scenario == "Offline" else "a query"
    latency = f"p50 {_ms(times.p50_ms)}  p90 {_ms(times.p90_ms)}  p99 {_ms(times.p99_ms)}  p99.9 {_ms(times.p99_9_ms)}"
    lines = [
        f"engine     {engine.engine} {engine.version}, {engine.kernels} kernels, {engine.threads} threads",
        *_placements(engine),
        f"machine    {report.machine.cpu}, governor {report.machine.governor or 'unknown'}",
        f"scenario   {report.scenario}, {_figure(report)}",
        f"valid      {_validity(report)}",
        f"latency    {latency} ms of {of}",
        f"jitter     {_ms(report.jitter_ms)} ms from one to the next; the first took {_ms(report.first_ms)} ms",
        f"rate       {report.samples_per_s:.1f} a second, {times.count} times in {report.duration_s:.1f} s",
        *_conditions(report),
        f"energy     {printable(report.energy)}",
    ]
    return lines + (_stages(report) if report.stages else [])


def _figure(report: BenchReport) -> str:
    outcome = report.outcome
    if outcome.percentile is None:
        return f"{outcome.samples_per_s or 0:.1f} samples a second, by {printable(outcome.judged_by)}"
    figure = "unknown" if outcome.latency_ms is None else f"at most {outcome.latency_ms:.3f} ms"
    return f"p{outcome.percentile * 100:g} {figure}, by {printable(outcome.judged_by)}"


def _validity(report: BenchReport) -> str:
    return "yes" if report.valid else "no, a quick look: " + printable("; ".join(report.outcome.why_not))


def _conditions(report: BenchReport) -> list[str]:
    seen, parts = report.conditions, []
    if seen.frequency_mhz:
        parts.append(f"{min(seen.frequency_mhz):.0f} to {max(seen.frequency_mhz):.0f} MHz")
    if seen.temperature_c:
        parts.append(f"{min(seen.temperature_c):.0f} to {max(seen.temperature_c):.0f} °C")
    return [f"meanwhile  {', '.join(parts)}"] if parts else []


def _placements(engine: EngineReport) -> list[str]:
    lines = []
    for place in engine.placements:
        kinds = ", ".join(f"{count} {printable(kind)}" for kind, count in place.operators.items())
        lines.append(f"  runs on  {printable(place.where)}: {kinds or 'not known'}")
    return lines + [f"  refused  {printable(r.what)}: {printable(r.reason)}" for r in engine.refusals]


def _stages(report: BenchReport) -> list[str]:
    head = ("stage", "p50 ms", "p90 ms", "p99 ms", "share", "best gain")
    rows: list[tuple[str, ...]] = [head]
    for row in report.stages:
        times, gain = row.times, f"x{row.best_gain:.2f}" if row.share < 1 else ""
        cells = (_ms(times.p50_ms), _ms(times.p90_ms), _ms(times.p99_ms), f"{row.share:.0%}", gain)
        rows.append((row.stage, *cells))
    return table(rows, frozenset(range(1, len(head))))


def comparison(report: ComparisonReport) -> list[str]:
    """What `arenite compare` prints."""
    head = ("", "before", "after", "ratio", "95 %", "verdict")
    rows: list[tuple[str, ...]] = [head]
    for row in report.rows:
        interval = f"{row.interval[0]:.3f}..{row.interval[1]:.3f}"
        rows.append((row.name, _ms(row.before_ms), _ms(row.after_ms), f"{row.ratio:.3f}", interval, row.verdict))
    lines = [f"verdict    {report.verdict}, by {report.by}", *table(rows, frozenset({1, 2, 3, 4}))]
    if min(report.runs) < 2:
        lines.append("runs       one of a side: what differs from process to process is not in its interval")
    lines += [f"differs    {printable(name)}: {printable(a)} -> {printable(b)}" for name, a, b in report.differences]
    if not report.within_limit:
        lines.append(f"limit      {report.by} is above {report.max_ratio:g} times the earlier one")
    return lines


def energy(report: EnergyReport) -> list[str]:
    """What `arenite energy` prints."""
    engine, whole = report.engine, report.energy
    lines = [
        f"engine     {engine.engine} {engine.version}, {engine.kernels} kernels, {engine.threads} threads",
        f"machine    {report.machine.cpu}",
        f"meter      {report.meter or 'none'}{', ' + whole.rail if whole.rail else ''}",
        f"energy     {printable(whole)}",
    ]
    if whole.average_w is not None and whole.peak_w is not None:
        idle = "" if whole.idle_w is None else f", idle {whole.idle_w:.3g} W"
        lines.append(f"power      {whole.average_w:.3g} W on average, {whole.peak_w:.3g} W at the peak{idle}")
    if report.battery_wh is not None:
        count = report.battery_inferences
        given = "unknown" if count is None else f"{count:,.0f} inferences, idle power included ({whole.tag})"
        lines.append(f"battery    {report.battery_wh:g} Wh: {given}")
    head = ("stage", "ms", "mJ", "95 %", "share", "")
    rows: list[tuple[str, ...]] = [head]
    for row in report.stages:
        share = "" if row.share is None else f"{row.share:.0%}"
        rows.append((row.stage, _ms(row.time_ms), *_millijoules(row.energy), share, row.energy.tag))
    lines += table(rows, frozenset(range(1, len(head) - 1)))
    return lines if report.against is None else [*lines, *_side_by_side(report, report.against)]


def _side_by_side(report: EnergyReport, other: EnergyReport) -> list[str]:
    """Both columns of time and energy, and what the first takes of the second."""
    names = [f"{e.engine.engine} ({', '.join(p.where for p in e.engine.placements)})" for e in (report, other)]
    rows: list[tuple[str, ...]] = [("stage", "ms", "against ms", "ratio", "mJ", "against mJ", "ratio", "")]
    for a, b in zip(report.stages, other.stages, strict=True):
        joules = (a.energy.energy_mj, b.energy.energy_mj)
        tag = a.energy.tag if a.energy.tag == b.energy.tag else f"{a.energy.tag}, {b.energy.tag}"
        cells = (_ms(a.time_ms), _ms(b.time_ms), _ratio(a.time_ms, b.time_ms))
        rows.append((a.stage, *cells, _millijoules(a.energy)[0], _millijoules(b.energy)[0], _ratio(*joules), tag))
    return [printable(f"{names[0]} against {names[1]}:"), *table(rows, frozenset(range(1, 7)))]


def _ratio(value: float | None, against: float | None) -> str:
    return f"{value / against:.2f}" if value is not None and against else "-"


def _millijoules(energy: Energy) -> tuple[str, str]:
    if energy.energy_mj is None:
        return "-", ""
    figure = f"{'>= ' if energy.lower_bound else ''}{energy.energy_mj:.4g}"
    return figure, "" if energy.interval_mj is None else f"{energy.interval_mj[0]:.3g}..{energy.interval_mj[1]:.3g}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def diagnosis(report: DoctorReport) -> list[str]:
    """What `arenite doctor` prints."""
    lines = [f"arenite {report.arenite}, Python {report.python}, {report.system}"]
    rows: list[tuple[str, ...]] = []
    for tool in report.tools:
        state = tool.version or ("missing" if tool.needed else "not here")
        rows.append((tool.job, tool.name, state, "" if tool.version else tool.cure))
    lines += table(rows)
    lines += [f"meter {meter.source}: {printable(meter.problem or meter.rail)}" for meter in report.meters]
    if not report.meters:
        lines.append("no meter of this machine was found; attached ones are named with --meter")
    able = [job for job, can in report.jobs.items() if can]
    unable = [job for job, can in report.jobs.items() if not can]
    lines.append(f"can do: {', '.join(able) or 'nothing'}")
    return lines + ([f"cannot do yet: {', '.join(unable)}"] if unable else [])
