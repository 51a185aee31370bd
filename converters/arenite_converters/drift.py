# SPDX-License-Identifier: Apache-2.0
"""Serving against calibration: what the ranges cut off, and how far the two sets are apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.graph import Graph
from arenite.progress import Step
from arenite.tflite_graph import read_graph
from arenite_converters.calibration import spread
from arenite_converters.layers import ActivationRunner, clipped, shared_names
from arenite_converters.report import Caution, ServingDrift, TensorDrift
from arenite_converters.statistics import energy_distance

__all__ = ["drift_cautions", "measure_drift"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
_MOST_SAMPLES = 64
# Two halves of one set of photographs are 0.0 to 0.1 apart, photographs and textures 0.5.
_FAR, _BY_CHANCE = 0.25, 0.01
_CLIPPED, _TIMES = 0.01, 2.0


def measure_drift(
    float_model: Path, int8_model: Path, calibration: Sequence[Floats], serving: Sequence[Floats], step: Step
) -> ServingDrift:
    """Run the float model on both sets and hold its activations against the INT8 model's ranges.

    Args:
        float_model: Float TFLite file.
        int8_model: Quantised TFLite file made from it.
        calibration: Samples in real values; at most 64 of them are run.
        serving: As `calibration`.
        step: Told about each sample.
    """
    probe = _Probe(float_model.read_bytes(), read_graph(int8_model))
    seen = [[probe.look(sample) for sample in _told(spread(s, _MOST_SAMPLES), step)] for s in (calibration, serving)]
    # Samples × tensors × (mean, spread, clipped, count).
    first, second = (np.array(rows) for rows in seen)
    centre, width = first[:, :, :2].mean(0), first[:, :, :2].std(0)
    # A feature that never changes in calibration counts in units of its size.
    width = np.where(width > 0, width, np.maximum(np.abs(centre), 1e-6))
    ours, theirs = ((rows[:, :, :2] - centre) / width for rows in (first, second))
    apart, p_value = energy_distance(ours.reshape(len(ours), -1), theirs.reshape(len(theirs), -1))
    cut, cut_before = (rows[:, :, 2].sum(0) / rows[:, :, 3].sum(0) for rows in (second, first))
    tensors = tuple(
        TensorDrift(name, float(cut[i]), float(cut_before[i]), energy_distance(ours[:, i], theirs[:, i], 0)[0])
        for i, name in enumerate(probe.names)
    )
    total, before = (float(rows[:, :, 2].sum() / rows[:, :, 3].sum()) for rows in (second, first))
    return ServingDrift(len(serving), apart, p_value, total, before, tensors)


def drift_cautions(drift: ServingDrift) -> Iterator[Caution]:
    """What a user should know of it."""
    if drift.drift > _FAR and drift.p_value < _BY_CHANCE:
        yield Caution(
            "serving is far from calibration",
            f"drift {drift.drift:.2f} of 0..1 over {drift.samples} serving samples",
            "Calibrate on samples such as the application will see.",
        )
    cut = [t for t in drift.tensors if t.clipped > max(_CLIPPED, _TIMES * t.calibration_clipped)]
    if cut:
        worst = sorted(cut, key=lambda t: -t.clipped)[:3]
        yield Caution(
            "serving leaves the calibrated ranges",
            f"in {len(cut)} of {len(drift.tensors)} tensors, most in "
            + ", ".join(f"{t.name} ({t.clipped:.1%} clipped)" for t in worst),
            "Calibrate on samples such as the application will see.",
        )


def _told(samples: Sequence[Floats], step: Step) -> Iterator[Floats]:
    for sample in samples:
        yield sample
        step.advance()


class _Probe:
    """Mean, spread and clipped values of the input and of each activation."""

    def __init__(self, float_model: bytes, quantised: Graph) -> None:
        self._runner = ActivationRunner(float_model)
        floats = self._runner.graph
        activations = shared_names(floats, quantised)
        by_name = {tensor.name: tensor for tensor in quantised.tensors}
        self._names = [floats.tensors[floats.inputs[0]].name, *activations]
        self._tensors = [quantised.tensors[quantised.inputs[0]], *(by_name[name] for name in activations)]
        self.names = [tensor.name for tensor in self._tensors]

    def look(self, sample: Floats) -> list[tuple[float, float, int, int]]:
        """One row a tensor."""
        found = zip(self._runner.activations(sample, self._names), self._tensors, strict=True)
        return [
            (float(v.mean(dtype=np.float64)), float(v.std(dtype=np.float64)), clipped(v, t), v.size)
            for (_, v), t in found
        ]
