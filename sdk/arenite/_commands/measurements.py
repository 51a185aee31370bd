# SPDX-License-Identifier: Apache-2.0
"""What the commands that measure do, and the one that looks at this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import arenite
from arenite._commands.shared import NO, YES, check_writable, show, shown_progress
from arenite._reports import write_json
from arenite._text import measurements as measurements_text
from arenite.preprocess import pictures_in

if TYPE_CHECKING:
    from arenite.benchmark import BenchReport
    from arenite.energy_report import EnergyReport

__all__ = [
    "bench",
    "compare",
    "doctor",
    "energy",
]


def bench(arguments: argparse.Namespace) -> int:
    """`arenite bench MODEL`: exit 0 for a short run too; its report says that it is no valid run of the scenario."""
    out = None if arguments.out is None else _folder(Path(arguments.out))
    kept = None if out is None else out / "bench.json"
    check_writable(kept, arguments.html)
    report = arenite.bench(
        arguments.model,
        threads=arguments.threads,
        engine=arguments.engine,
        delegate=arguments.delegate,
        pictures=_pictures(arguments.picture, "benchmark"),
        scenario=arguments.scenario,
        min_duration_s=arguments.seconds,
        min_queries=arguments.count,
        driver=arguments.driver,
        log_dir=out,
        meter=arguments.meter,
        model_costs=arguments.energy_model,
        progress=shown_progress(),
    )
    try:
        return show(arguments, report, measurements_text.benchmark)
    finally:
        if kept is not None:
            write_json(report, kept)
        _page(arguments, report)


def compare(arguments: argparse.Namespace) -> int:
    """`arenite compare BEFORE AFTER`: exit 1 when the second is slower than allowed."""
    report = arenite.compare(arguments.before, arguments.after, by=arguments.by, max_ratio=arguments.max_ratio)
    show(arguments, report, measurements_text.comparison)
    return YES if report.within_limit else NO


def energy(arguments: argparse.Namespace) -> int:
    """`arenite energy MODEL`: exit 0 when the energy is unknown too; its report says why."""
    check_writable(arguments.html)
    report = arenite.energy_of(
        arguments.model,
        threads=arguments.threads,
        engine=arguments.engine,
        delegate=arguments.delegate,
        against=arguments.against,
        pictures=_pictures(arguments.picture, "energy"),
        source=arguments.meter,
        model_costs=arguments.energy_model,
        duration_s=arguments.duration,
        battery_wh=arguments.battery_wh,
        progress=shown_progress(),
    )
    try:
        return show(arguments, report, measurements_text.energy)
    finally:
        _page(arguments, report)


def _pictures(paths: list[str], what: str) -> list[str | Path]:
    found: list[str | Path] = []
    for path in paths:
        found.extend(pictures_in(Path(path), what) if Path(path).is_dir() else [path])
    return found


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _page(arguments: argparse.Namespace, report: BenchReport | EnergyReport) -> None:
    if arguments.html is not None:
        from arenite.report_page import report_page

        Path(arguments.html).write_text(report_page(report), encoding="utf-8")


def doctor(arguments: argparse.Namespace) -> int:
    """`arenite doctor`: exit 1 when some job cannot be done here."""
    report = arenite.doctor()
    show(arguments, report, measurements_text.diagnosis)
    return YES if report.healthy else NO
