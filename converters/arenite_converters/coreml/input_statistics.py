# SPDX-License-Identifier: Apache-2.0
"""What calibration samples show of each layer's input, gathered by the executor.

coremltools gathers such figures by `predict`, which macOS alone has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.coreml.mil_executor import MilExecutor
from arenite_converters.coreml.program import Operation, Reference

__all__ = ["InputStatistics", "LAYERS", "gather_statistics"]

Floats = npt.NDArray[np.float32]
# Operations whose weights and inputs are quantised.
LAYERS = ("conv", "linear")
_SMALLEST_SCALE = 2.0**-14  # the smallest normal float16


@dataclass(frozen=True, eq=False)
class InputStatistics:
    """The input of one layer over all samples, one value for each channel.

    Attributes:
        low: Minima.
        high: Maxima.
        mean: Means.
        power: Mean squares.
    """

    low: Floats
    high: Floats
    mean: Floats
    power: Floats

    def eight_bits(self) -> tuple[np.float16, np.uint8]:
        """Scale and zero point of all channels in uint8; 0 is exact."""
        low, high = min(float(self.low.min()), 0.0), max(float(self.high.max()), 0.0)
        scale = np.float16(max((high - low) / 255, _SMALLEST_SCALE))
        return scale, np.uint8(np.clip(np.rint(-low / float(scale)), 0, 255))

    def noise(self) -> float:
        """What rounding to `eight_bits` adds, as a part of the signal's power: scale² / 12 to mean square."""
        return float(self.eight_bits()[0]) ** 2 / 12 / max(float(self.power.mean()), 1e-30)


def gather_statistics(executor: MilExecutor, inputs: Iterable[Mapping[str, Any]]) -> dict[str, InputStatistics]:
    """Statistics of each layer's input, by the layer's name.

    Args:
        executor: Of the float program.
        inputs: Samples, as `MilExecutor.run` takes them.
    """
    layers = [op for op in executor.program.operations if op.kind in LAYERS and _is_computed(op, executor)]
    wanted = {op.inputs["x"].name: _channel_axis(op) for op in layers}
    found: dict[str, list[tuple[Floats, ...]]] = {name: [] for name in wanted}

    def watch(_: Operation | None, name: str, value: npt.NDArray[Any]) -> None:
        if name in wanted:
            rows = np.moveaxis(value, wanted[name], 0).reshape(value.shape[wanted[name]], -1)
            found[name].append((rows.min(axis=1), rows.max(axis=1), rows.mean(axis=1), (rows**2).mean(axis=1)))

    for sample in inputs:
        executor.run(sample, watch)
    merged = {name: _merged(rows) for name, rows in found.items() if rows}
    return {op.name: merged[op.inputs["x"].name] for op in layers if op.inputs["x"].name in merged}


def _is_computed(op: Operation, executor: MilExecutor) -> bool:
    """The input is computed and the weight is not."""
    x, weight = op.inputs["x"], op.inputs["weight"]
    known = executor.constants
    return isinstance(x, Reference) and x.name not in known and isinstance(weight, Reference) and weight.name in known


def _channel_axis(op: Operation) -> int:
    return 1 if op.kind == "conv" else -1


def _merged(rows: list[tuple[Floats, ...]]) -> InputStatistics:
    low, high, mean, power = (np.stack(part) for part in zip(*rows, strict=True))
    return InputStatistics(low.min(axis=0), high.max(axis=0), mean.mean(axis=0), power.mean(axis=0))
