# SPDX-License-Identifier: Apache-2.0
"""From opening a model to its first answer: the compiled model against LiteRT, in fresh processes by turns.

    python device_tests/benchmarks/cold_start.py [--rounds 15]      JSON on standard output; exit 1 above the limit

NumPy is imported already in every process. Each way runs twice: `cold` counts the imports that opening needs, `warm`
finds them done and counts files, memory and the first inference alone. LiteRT is measured bare (its own Interpreter)
and as a session. What an app that starts for the second time finds is there: the library is compiled, and Python's
bytecode is cached, in a folder of the benchmark's own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import arenite
from arenite.machine import machine

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MODELS = (
    "mlperf_tiny/kws_ref_model.tflite",
    "mlperf_tiny/pretrainedResnet_quant.tflite",
    "mlperf_tiny/vww_96_int8.tflite",
    "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq.tflite",
)
LIMIT = 0.5

SESSION = """
import arenite
def answer(path):
    session = arenite.open(path, engine="{engine}", threads=1)
    session.input[...] = 1
    session.run()
    return session.output[0]
"""
BARE = """
def answer(path):
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(model_path=path, num_threads=1)
    interpreter.allocate_tensors()
    first = interpreter.get_input_details()[0]
    interpreter.set_tensor(first["index"], numpy.ones(first["shape"], first["dtype"]))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
"""
WAYS = {"aot": SESSION.format(engine="aot"), "litert": BARE, "litert_session": SESSION.format(engine="litert")}
# Descriptor 2 is LiteRT's too; the figure goes to 1. A first model brings the imports in when it is to be warm.
PROGRAM = """
import sys, time, numpy, numpy.typing
before = time.perf_counter()
{way}
if sys.argv[2]:
    answer(sys.argv[2])
    before = time.perf_counter()
answer(sys.argv[1])
print(1e3 * (time.perf_counter() - before))
"""


def first_answer_ms(way: str, model: Path, other: Path | str, bytecode: Path) -> float:
    """Milliseconds in a fresh process; `other` is a model that it answers before, or ''."""
    command = [sys.executable, "-c", PROGRAM.format(way=way), str(model), str(other)]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout.split()[-1])


def measure(model: Path, other: Path, rounds: int, bytecode: Path) -> dict[str, Any]:
    """One model's line of the report: medians of each way, and the compiled model's ratio to LiteRT."""
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(1 + rounds):
        for kind, first in (("cold", ""), ("warm", other)):
            for name, way in WAYS.items():
                times.setdefault((kind, name), []).append(first_answer_ms(way, model, first, bytecode))
    report: dict[str, Any] = {"model": model.name}
    for kind in ("cold", "warm"):
        # The first round writes bytecode.
        medians = {name: median(times[kind, name][1:]) for name in WAYS}
        report[f"{kind}_ms"] = {name: round(value, 2) for name, value in medians.items()}
        report[f"{kind}_ratio"] = {
            name: round(medians["aot"] / value, 3) for name, value in medians.items() if name != "aot"
        }
    return report


def main() -> int:
    """Measures all models and prints the report."""
    parser = argparse.ArgumentParser(description="Opening to first answer: the compiled model against LiteRT.")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    if not DATA.is_dir():
        print("the reference models (../shared/data) are not beside this checkout", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other.tflite"
        other.write_bytes((DATA / "mlperf_tiny/ad01_int8.tflite").read_bytes())
        for model in (other, *(DATA / name for name in MODELS)):
            arenite.open(model, engine="aot")
        rows = [measure(DATA / name, other, rounds, Path(folder)) for name in MODELS]
    print(json.dumps({"machine": asdict(machine()), "threads": 1, "limit": LIMIT, "models": rows}, indent=1))
    return 0 if all(row[f"{kind}_ratio"]["litert_session"] <= LIMIT for row in rows for kind in ("cold", "warm")) else 1


if __name__ == "__main__":
    sys.exit(main())
