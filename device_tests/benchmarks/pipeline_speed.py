# SPDX-License-Identifier: Apache-2.0
"""A 1080p JPEG to the five best labels of MobileNetV2 INT8: an overlapped pipeline against the usual script.

    python device_tests/benchmarks/pipeline_speed.py [MODEL] [PICTURE]   JSON on standard output; exit 1 above the limit

MODEL is MobileNetV2 1.0/224 with input x/127.5-1; it and the picture are by default those of ../shared/data. The
script decodes all of the picture with Pillow, resizes with BILINEAR, normalises and quantises with NumPy, runs LiteRT
and sorts. Both use LiteRT with one thread, in this process, in blocks of frames in turn, so that a busy machine hits
both; the ratio is the median of the ratios of neighbouring blocks. Overlapping needs a second core that is free: with a
load average above the number of cores it gains little, and the ratio comes near that of the processor times.

As the script is written the kernel may give and clear 8 MB of memory for each of its frames. The second run has Pillow
keep its memory, which shows the script at its best; the limit is for the first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import arenite
from arenite.machine import machine

LIMIT = 0.5
BLOCKS, FRAMES = 10, 24
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MODEL = DATA / "mobilenet_v2" / "tf2_mobilenet_v2_1.0_224_ptq.tflite"
PICTURE = DATA / "pictures" / "cat_1080p.jpg"


def usual_script(model: Path) -> Callable[[Path], list[int]]:
    """What is usually written: a picture's five best classes."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(model), num_threads=1)
    interpreter.allocate_tensors()
    source, target = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    scale, zero_point = source["quantization"]
    height, width = source["shape"][1:3]
    limits = np.iinfo(source["dtype"])

    def classify(path: Path) -> list[int]:
        picture = Image.open(path).convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
        real = np.asarray(picture, np.float32) / 127.5 - 1
        steps = np.clip(np.round(real / scale) + zero_point, limits.min, limits.max).astype(source["dtype"])
        interpreter.set_tensor(source["index"], steps[None])
        interpreter.invoke()
        scores = interpreter.get_tensor(target["index"])[0].astype(np.float32)
        return [int(i) for i in np.argsort(-scores)[:5]]

    return classify


class Clock:
    """Wall and processor time of a block, in milliseconds a frame."""

    def __enter__(self) -> Clock:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        wall_s, cpu_s = time.perf_counter() - self._start[0], time.process_time() - self._start[1]
        self.times_ms = 1e3 * wall_s / FRAMES, 1e3 * cpu_s / FRAMES


def script_block(classify: Callable[[Path], list[int]], path: Path) -> tuple[tuple[float, float], list[int]]:
    """Times, and the last answer."""
    with Clock() as clock:
        for _ in range(FRAMES):
            best = classify(path)
    return clock.times_ms, best


def pipeline_block(session: arenite.Session, path: Path, overlap: bool) -> tuple[tuple[float, float], list[int], Any]:
    """Times, start and end of the threads included; the last answer; the report."""
    with Clock() as clock:
        pipeline = arenite.Pipeline(session, itertools.repeat(path, FRAMES), overlap=overlap)
        for frame in pipeline:
            best = [label.index for label in frame.answer]
    return clock.times_ms, best, pipeline.report()


def compare(classify: Callable[[Path], list[int]], session: arenite.Session, path: Path) -> dict[str, Any]:
    """Blocks in turn."""
    script_block(classify, path), pipeline_block(session, path, True)
    times: dict[str, list[tuple[float, float]]] = {"script": [], "overlapped": [], "in_turn": []}
    for _ in range(BLOCKS):
        script_ms, expected = script_block(classify, path)
        overlapped_ms, best, report = pipeline_block(session, path, True)
        in_turn_ms, same, _ = pipeline_block(session, path, False)
        assert best == same
        for name, pair in zip(times, (script_ms, overlapped_ms, in_turn_ms), strict=True):
            times[name].append(pair)
    ratios = {
        f"{name}_to_script": statistics.median(a[0] / b[0] for a, b in zip(times[name], times["script"], strict=True))
        for name in ("overlapped", "in_turn")
    }
    return {
        "median_ms": {name: statistics.median(wall for wall, _ in pairs) for name, pairs in times.items()},
        "least_ms": {name: min(wall for wall, _ in pairs) for name, pairs in times.items()},
        "processor_ms": {name: statistics.median(cpu for _, cpu in pairs) for name, pairs in times.items()},
        **ratios,
        "same_best_class": best[0] == expected[0],
        "stages_mean_ms": {row.stage: row.times.mean_ms for row in report.stages},
        "work_on": report.work_on,
    }


def measure(model: Path, path: Path) -> dict[str, Any]:
    """With the script as it is, then at its best."""
    contract = arenite.make_contract(arenite.read_model(model), normalisation="symmetric", meaning="probabilities")
    session = arenite.open(model, contract=contract, engine="litert", threads=1, preprocessing="fast")
    classify = usual_script(model)
    plain = compare(classify, session, path)
    Image.core.set_blocks_max(2)
    keeping = compare(classify, session, path)
    within = plain["overlapped_to_script"] <= LIMIT
    return {"as_written": plain, "keeping_memory": keeping, "limit": LIMIT, "within": within}


def main() -> int:
    """Prints the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, default=MODEL, help="MobileNetV2 INT8, a .tflite file")
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE, help="a JPEG file of 1920×1080")
    given = parser.parse_args()
    extents = "×".join(map(str, Image.open(given.picture).size))
    found = measure(given.model, given.picture)
    report = {"machine": asdict(machine()), "load_average": os.getloadavg()[0], "frames": 2 * BLOCKS * FRAMES}
    report |= {"picture": given.picture.name, "extents": extents}
    print(json.dumps(report | found, indent=1))
    return 0 if found["within"] else 1


if __name__ == "__main__":
    sys.exit(main())
