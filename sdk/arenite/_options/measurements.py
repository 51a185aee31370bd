# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that measure, and of the one that looks at this machine."""

from __future__ import annotations

import argparse
from typing import Any

from arenite._options.base import add_choice, command, positive, seconds_of
from arenite.comparison import STATISTICS
from arenite.engines import ENGINES
from arenite.scenarios import DRIVERS, SCENARIOS

__all__ = [
    "add_bench",
    "add_compare",
    "add_doctor",
    "add_energy",
]


def add_bench(commands: Any) -> None:
    """`arenite bench`."""
    text = "Time a model in this process by a scenario of MLPerf Inference."
    parser = command(commands, "bench", text, "measurements.bench")
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    pictures = "time the whole pipeline on a picture or a folder of them; repeat the option for several"
    parser.add_argument("--picture", action="append", default=[], metavar="PATH", help=pictures)
    scenario = f"one of {', '.join(SCENARIOS)} (default: SingleStream, one inference after another)"
    parser.add_argument("--scenario", choices=SCENARIOS, default="SingleStream", metavar="NAME", help=scenario)
    parser.add_argument(
        "--count", type=positive, default=100, metavar="N", help="time at least N queries (default: 100)"
    )
    seconds = "time at least S seconds (default: 1; a valid run takes 600)"
    parser.add_argument("--seconds", type=seconds_of, default=1.0, metavar="S", help=seconds)
    add_choice(parser, "--driver", DRIVERS, "what issues the queries (default: LoadGen where it is installed)")
    parser.add_argument("--out", metavar="DIR", help="keep bench.json and LoadGen's logs in this folder")
    parser.add_argument("--html", metavar="FILE", help="write the report as a page")
    _add_engine_options(parser)
    _add_meter_options(parser)


def _add_engine_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=positive, default=1, metavar="N", help="engine threads (default: 1)")
    add_choice(parser, "--engine", tuple(ENGINES), "what runs the model (default: the first that is installed)")
    delegate = "its accelerator: coreml: ane, gpu, cpu; onnxruntime: cuda, tensorrt, qnn; litert: a delegate's library"
    parser.add_argument("--delegate", metavar="NAME", help=delegate)


def _add_meter_options(parser: argparse.ArgumentParser) -> None:
    meter = "rapl, jetson, ppk2:PORT?mv=3300, ... (default: the best of this machine; see `arenite doctor`)"
    parser.add_argument("--meter", metavar="NAME", help=meter)
    parser.add_argument("--energy-model", metavar="FILE", help="declared costs (TOML), used when there is no meter")


def add_compare(commands: Any) -> None:
    """`arenite compare`."""
    text = "Compare two benchmarks of one model on one kind of machine: exit 1 when the second is slower."
    parser = command(commands, "compare", text, "measurements.compare")
    parser.add_argument("before", metavar="BEFORE", help="JSON of `arenite bench`, or a folder of several runs")
    parser.add_argument("after", metavar="AFTER", help="the same of the second")
    by = f"judge by one of {', '.join(STATISTICS)} (default: p50)"
    parser.add_argument("--by", choices=STATISTICS, default="p50", metavar="NAME", help=by)
    limit = "slower is only what takes more than F times as long (default: 1)"
    parser.add_argument("--max-ratio", type=float, default=1.0, metavar="F", help=limit)


def add_energy(commands: Any) -> None:
    """`arenite energy`."""
    text = "Measure the energy of an inference, whole and stage by stage."
    parser = command(commands, "energy", text, "measurements.energy")
    parser.add_argument("model", metavar="MODEL", help="a .tflite file")
    pictures = "measure the whole pipeline on a picture or a folder of them; repeat the option for several"
    parser.add_argument("--picture", action="append", default=[], metavar="PATH", help=pictures)
    _add_meter_options(parser)
    parser.add_argument(
        "--duration", type=seconds_of, default=10.0, metavar="S", help="measure S seconds, idle apart (default: 10)"
    )
    parser.add_argument("--battery-wh", type=float, metavar="WH", help="say how many inferences such a battery gives")
    against = "measure the same there next and show both side by side (--engine coreml --delegate ane, coreml:cpu)"
    parser.add_argument("--against", metavar="ENGINE[:DELEGATE]", help=against)
    parser.add_argument("--html", metavar="FILE", help="write the report as a page")
    _add_engine_options(parser)


def add_doctor(commands: Any) -> None:
    """`arenite doctor`."""
    command(
        commands,
        "doctor",
        "Say which engines, compilers, emulators and meters are here, and how to get more.",
        "measurements.doctor",
    )
