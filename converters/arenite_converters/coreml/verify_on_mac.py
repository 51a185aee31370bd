# SPDX-License-Identifier: Apache-2.0
"""Run a Core ML package on this Mac and compare it with the trained model; say where its operations run.

    pip install coremltools pillow numpy
    python verify_on_mac.py

Needs macOS 14, coremltools 9, `golden.npz` beside this file and the package beside this file's folder. It needs nothing
else: no trained model and no other package. Exit 0: every compute unit agrees. Exit 1: one does not. Exit 2: no Mac.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

UNITS = ("CPU_ONLY", "CPU_AND_GPU", "CPU_AND_NE", "ALL")


def load_vectors(path: Path) -> tuple[dict[str, Any], Any, Any]:
    """What `golden.npz` holds: a description, inputs [n, ...], outputs of the trained model [n, scores]."""
    with np.load(path, allow_pickle=False) as arrays:
        return json.loads(str(arrays["about"])), arrays["inputs"], arrays["outputs"]


def as_scores(answer: Any, labels: list[str]) -> Any:
    """One output as a flat array; a classifier answers with a dictionary by label."""
    if isinstance(answer, dict):
        answer = [answer[label] for label in labels]
    return np.asarray(answer, np.float64).reshape(-1)


def compare(references: Any, answers: Any, about: dict[str, Any]) -> tuple[float, float, bool]:
    """SQNR in decibels, share of equal best classes, and whether both are good enough."""
    noise = float(((references - answers) ** 2).sum())
    power = float((references.astype(np.float64) ** 2).sum())
    sqnr_db = float("inf") if noise == 0 else 10 * np.log10(power / noise) if power > 0 else float("-inf")
    top1 = float((references.argmax(axis=1) == answers.argmax(axis=1)).mean())
    return sqnr_db, top1, bool(sqnr_db >= about["min_sqnr_db"] and top1 >= about["min_top1"])


def as_input(value: Any, colour: str | None) -> Any:
    """What Core ML takes: an array, or a Pillow image in RGB or grey."""
    if colour is None:
        return value
    from PIL import Image

    if colour == "GREY":
        return Image.fromarray(value[:, :, 0])
    return Image.fromarray(np.ascontiguousarray(value[:, :, ::-1] if colour == "BGR" else value))


def placement(coremltools: Any, compiled: str, unit: str) -> dict[str, int]:
    """How many operations each device gets, by Core ML's own plan."""
    plan = coremltools.models.compute_plan.MLComputePlan.load_from_path(
        compiled, compute_units=coremltools.ComputeUnit[unit]
    )
    program = plan.model_structure.program
    found: Counter[str] = Counter()
    for operation in program.functions["main"].block.operations:
        usage = plan.get_compute_device_usage_for_mlprogram_operation(operation)
        if usage is not None:
            device = type(usage.preferred_compute_device).__name__
            found[device.removeprefix("ML").removesuffix("ComputeDevice")] += 1
    return dict(found)


def main() -> int:
    if sys.platform != "darwin":
        print("this needs a Mac: Core ML runs nowhere else", file=sys.stderr)
        return 2
    import coremltools

    here = Path(__file__).resolve().parent
    about, inputs, references = load_vectors(here / "golden.npz")
    package = here.parent / about["package"]
    good = True
    for unit in UNITS:
        model = coremltools.models.MLModel(str(package), compute_units=coremltools.ComputeUnit[unit])
        answers = [model.predict({about["input"]: as_input(value, about["colour"])}) for value in inputs]
        scores = np.stack([as_scores(answer[about["output"]], about["labels"]) for answer in answers])
        sqnr_db, top1, passed = compare(references, scores, about)
        places = placement(coremltools, model.get_compiled_model_path(), unit)
        print(f"{unit:12} {sqnr_db:6.1f} dB  top-1 {top1:.3f}  {'good' if passed else 'NOT GOOD'}  {places}")
        good = good and passed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
