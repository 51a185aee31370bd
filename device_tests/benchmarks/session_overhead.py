# SPDX-License-Identifier: Apache-2.0
"""What a session adds to its engine: load, run and read through the session against the engine's own calls.

    python device_tests/benchmarks/session_overhead.py            JSON on standard output; exit 1 above the limits

Both run a model of one operator on the same values, in this process, in alternating blocks, so that a busy machine hits
both. The overhead is the difference of the medians.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import arenite
from arenite.machine import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.builder import ModelBuilder

LIMITS_US = {"litert": 10.0, "onnxruntime": 15.0}
BLOCKS, CALLS = 40, 200
VALUES = np.arange(16, dtype=np.float32).reshape(1, 16)


def through_the_session(path: Path) -> Callable[[], Any]:
    """Write the input, run, copy the output."""
    session = arenite.open(path)
    view = session.input

    def call() -> Any:
        view[...] = VALUES
        session.run()
        return session.output.copy()

    return call


def litert(folder: Path) -> tuple[Path, Callable[[], Any]]:
    """A RELU, and LiteRT's own set_tensor, invoke and get_tensor on it."""
    from ai_edge_litert.interpreter import Interpreter

    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 16), "float32") for name in "xy")
    builder.operator("RELU", [x], [y])
    path = folder / "relu.tflite"
    path.write_bytes(builder.finish([x], [y]))
    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    source, target = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

    def call() -> Any:
        interpreter.set_tensor(source, VALUES)
        interpreter.invoke()
        return interpreter.get_tensor(target)

    return path, call


def onnxruntime(folder: Path) -> tuple[Path, Callable[[], Any]]:
    """A Relu, and ONNX Runtime's own run on it, which sets and gets by itself."""
    import onnx
    import onnxruntime as runtime

    tensors = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 16]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "relu", tensors[:1], tensors[1:])
    opsets = [onnx.helper.make_opsetid("", 17)]
    path = folder / "relu.onnx"
    path.write_bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = runtime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    return path, lambda: session.run(None, {"x": VALUES})[0]


ENGINES = {"litert": ("ai_edge_litert", litert), "onnxruntime": ("onnxruntime", onnxruntime)}


def median_us(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The median time of each call, blocks of each in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(BLOCKS):
        for name, call in calls.items():
            for _ in range(CALLS):
                start = time.perf_counter_ns()
                call()
                times[name].append(1e-3 * (time.perf_counter_ns() - start))
    return {name: statistics.median(found) for name, found in times.items()}


def measure(folder: Path) -> dict[str, Any]:
    """Each engine that is installed."""
    found: dict[str, Any] = {}
    for name, (package, prepare) in ENGINES.items():
        if importlib.util.find_spec(package) is None:
            found[name] = {"skipped": f"{package} is not installed"}
            continue
        path, own = prepare(folder)
        session = through_the_session(path)
        assert np.array_equal(session(), own())
        medians = median_us({"session_us": session, "engine_us": own})
        overhead = medians["session_us"] - medians["engine_us"]
        found[name] = {**medians, "overhead_us": overhead, "limit_us": LIMITS_US[name]}
        found[name]["within"] = overhead <= LIMITS_US[name]
    return found


def main() -> int:
    """Prints the report."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        engines = measure(Path(folder))
    print(json.dumps({"machine": asdict(machine()), "calls": BLOCKS * CALLS, "engines": engines}, indent=1))
    return 0 if all(row.get("within", True) for row in engines.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
