# SPDX-License-Identifier: Apache-2.0
"""The compiled model against LiteRT with XNNPACK, one thread each, inference by inference in turns.

    python device_tests/benchmarks/aot_speed.py [--runs 2000] [--toolchain zig]

Prints JSON. On a machine that does other things too, trust the ratio: both sides meet the same disturbances. Both calls
go through Python, whose share is in both times. Exits 1 if an output differs from the reference or a ratio is above
`--limit`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import arenite
from arenite.host_model import HostModel
from arenite.machine import machine
from arenite.reference import reference_outputs

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MODELS = (
    "mlperf_tiny/pretrainedResnet_quant.tflite",
    "mlperf_tiny/kws_ref_model.tflite",
    "mlperf_tiny/vww_96_int8.tflite",
    "mlperf_tiny/ad01_int8.tflite",
    "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq.tflite",
)


def compiled(model: Path, folder: Path, toolchain: str | None) -> HostModel:
    """The model as a shared library of this computer."""
    arenite.bundle(model, "host", folder, vectors=0)
    return HostModel(arenite.build(folder, toolchain).elf)


def is_exact(model: Path, library: HostModel) -> bool:
    """Whether a random input gives the reference's bytes."""
    graph = arenite.read_graph(model)
    tensor = graph.tensors[graph.inputs[0]]
    vector = np.random.default_rng(0).integers(0, 256, tensor.shape, dtype=np.uint8).view(tensor.dtype)
    expected = reference_outputs(model.read_bytes(), [[vector]])[0]
    return bool(library.run([vector])[0].tobytes() == expected[0].tobytes())


def in_turns(first: Callable[[], object], second: Callable[[], object], runs: int) -> npt.NDArray[np.float64]:
    """Microseconds of each run, [runs][2]."""
    times = np.empty((runs, 2))
    for row in times:
        start = time.perf_counter_ns()
        first()
        middle = time.perf_counter_ns()
        second()
        row[:] = (middle - start) / 1e3, (time.perf_counter_ns() - middle) / 1e3
    return times


def measure(name: str, runs: int, toolchain: str | None) -> dict[str, Any]:
    """One model's line of the report."""
    model = DATA / name
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(model, Path(folder) / "bundle", toolchain)
        exact = is_exact(model, library)
        session = arenite.open(model, threads=1)
        in_turns(library.invoke, session.run, max(5, runs // 20))
        times = in_turns(library.invoke, session.run, runs)
    p50, p10 = np.percentile(times, 50, axis=0), np.percentile(times, 10, axis=0)
    return {
        "model": name,
        "exact": exact,
        "aot_p50_us": round(float(p50[0]), 1),
        "litert_p50_us": round(float(p50[1]), 1),
        "p50_ratio": round(float(p50[0] / p50[1]), 3),
        "p10_ratio": round(float(p10[0] / p10[1]), 3),
    }


def main() -> int:
    """Measure all models and print the report."""
    parser = argparse.ArgumentParser(description="The compiled model against LiteRT, in turns.")
    parser.add_argument("--runs", type=int, default=2000, help="of the small models; the large one runs a tenth")
    parser.add_argument("--toolchain", help="gcc, clang or zig")
    parser.add_argument("--limit", type=float, default=1.3, help="greatest ratio of the medians")
    arguments = parser.parse_args()
    if not DATA.is_dir():
        print("the reference models (../shared/data) are not beside this checkout", file=sys.stderr)
        return 2
    rows = [
        measure(name, arguments.runs // 10 if "mobilenet" in name else arguments.runs, arguments.toolchain)
        for name in MODELS
    ]
    print(json.dumps({"machine": asdict(machine()), "threads": 1, "models": rows}, indent=1))
    return 0 if all(row["exact"] and row["p50_ratio"] <= arguments.limit for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
