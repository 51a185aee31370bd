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
from arenite_converters.coreml.operators.windowed import columns
from arenite_converters.coreml.program import Operation, Reference
from arenite_converters.least_squares import MOST_TERMS

__all__ = ["InputStatistics", "LAYERS", "gather_statistics", "mean_of"]

Array = npt.NDArray[Any]
# Operations whose weights and inputs are quantised.
LAYERS = ("conv", "linear")
_SMALLEST_SCALE = 2.0**-14  # the smallest normal float16
# Output positions of one sample that the second moment is taken over: more change little and cost time.
_POSITIONS = 128
# By how much a range that no clamp ends is widened: other samples go further than those of calibration.
_WIDENED = 1.25
# What of a convolution says which values its weights meet.
_WINDOW = ("strides", "pad_type", "pad", "dilations", "groups")


@dataclass(frozen=True, eq=False)
class InputStatistics:
    """The input of one layer over all samples.

    Terms are what the weights of one output channel are multiplied with, in the weights' order; a group of channels has
    terms of its own.

    Attributes:
        low: The smallest value; a quarter further out, unless several samples end there, as a clamp makes them.
        high: The largest one, as far.
        power: Mean square.
        mean: Of each term over all output positions, groups × terms.
        moment: Second moment of the terms about their mean, groups × terms × terms; None where it was not asked for,
            and of layers with more than `MOST_TERMS`.
    """

    low: float
    high: float
    power: float
    mean: Array
    moment: Array | None

    def eight_bits(self) -> tuple[np.float16, np.uint8]:
        """Scale and zero point in uint8; 0 is exact."""
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        scale = np.float16(max((high - low) / 255, _SMALLEST_SCALE))
        return scale, np.uint8(np.clip(np.rint(-low / float(scale)), 0, 255))

    def noise(self) -> float:
        """What rounding to `eight_bits` adds, as a part of the signal's power: scale² / 12 to mean square."""
        return float(self.eight_bits()[0]) ** 2 / 12 / max(self.power, 1e-30)


def gather_statistics(
    executor: MilExecutor, inputs: Iterable[Mapping[str, Any]], moments: bool = False
) -> dict[str, InputStatistics]:
    """Statistics of each layer's input, by the layer's name.

    Args:
        executor: Of the program.
        inputs: Samples, as `MilExecutor.run` takes them.
        moments: Second moments too.
    """
    layers = [op for op in executor.program.operations if op.kind in LAYERS and _is_computed(op, executor)]
    sums = {op.name: _Sums(op, executor, moments) for op in layers}
    readers: dict[str, list[_Sums]] = {}
    for op in layers:
        readers.setdefault(op.inputs["x"].name, []).append(sums[op.name])

    def watch(_: Operation | None, name: str, value: Array) -> None:
        for reader in readers.get(name, ()):
            reader.add(value)

    for sample in inputs:
        executor.run(sample, watch)
    return {name: found.statistics() for name, found in sums.items() if found.samples}


def mean_of(op: Operation, executor: MilExecutor, inputs: Iterable[Array]) -> Array:
    """`InputStatistics.mean` of a layer, given its input in each sample."""
    sums = _Sums(op, executor, moments=False)
    for value in inputs:
        sums.add(value)
    return sums.statistics().mean


def _is_computed(op: Operation, executor: MilExecutor) -> bool:
    """The input is computed and the weight is not."""
    x, weight = op.inputs["x"], op.inputs["weight"]
    known = executor.constants
    return isinstance(x, Reference) and x.name not in known and isinstance(weight, Reference) and weight.name in known


class _Sums:
    """What the statistics of one layer need, summed over samples."""

    def __init__(self, op: Operation, executor: MilExecutor, moments: bool) -> None:
        self.samples = 0
        self._kind, self._shape = op.kind, executor.constants[op.inputs["weight"].name].shape
        given = {name: op.inputs[name] for name in _WINDOW if name in op.inputs}
        self._window = {n: executor.constants[v.name] if isinstance(v, Reference) else v for n, v in given.items()}
        self._has_moment = moments and int(np.prod(self._shape[1:])) <= MOST_TERMS
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._power = 0.0
        self._mean: Any = 0.0
        self._some_mean: Any = 0.0
        self._products: Any = 0.0

    def add(self, value: Array) -> None:
        self._lows.append(float(value.min()))
        self._highs.append(float(value.max()))
        self._power += float(np.square(value).mean(dtype=np.float64))
        terms = self._terms(value)
        self._mean = self._mean + terms.mean(axis=2, dtype=np.float64)
        if self._has_moment:
            random = np.random.default_rng(self.samples)
            positions = random.permutation(terms.shape[2])[:_POSITIONS]
            some = terms[:, :, np.sort(positions)].astype(np.float64)
            self._some_mean = self._some_mean + some.mean(axis=2)
            self._products = self._products + some @ some.transpose(0, 2, 1) / some.shape[2]
        self.samples += 1

    def _terms(self, value: Array) -> Array:
        if self._kind == "linear":
            return np.asarray(value.reshape(-1, value.shape[-1]).T[None])
        return columns(value, self._shape[2:], **self._window)

    def statistics(self) -> InputStatistics:
        moment = None
        if self._has_moment:
            mean = self._some_mean / self.samples
            moment = self._products / self.samples - mean[:, :, None] * mean[:, None, :]
        mean, power = self._mean / self.samples, self._power / self.samples
        low, high = _end(self._lows, min(self._lows)), _end(self._highs, max(self._highs))
        return InputStatistics(low, high, power, mean, moment)


def _end(ends: list[float], furthest: float) -> float:
    return furthest if ends.count(furthest) > 1 else furthest * _WIDENED

