# SPDX-License-Identifier: Apache-2.0
"""Biases that keep every channel's mean, layer by layer in order.

What 8-bit activations change upstream reaches a layer as another mean of its input. With x the float program's input,
x' the compressed one's behind layers that are mended already, W and b the trained values and W' the rounded weights:
b' = b + W mean(x) - W' mean(x'), as `arenite_converters.correction` does for TFLite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.coreml.compress import LayerValues
from arenite_converters.coreml.input_statistics import InputStatistics, mean_of
from arenite_converters.coreml.mil_executor import MilExecutor
from arenite_converters.coreml.program import Operation

__all__ = ["mended_biases"]

Array = npt.NDArray[Any]


def mended_biases(
    executor: MilExecutor,
    samples: Sequence[Mapping[str, Array]],
    statistics: Mapping[str, InputStatistics],
    exact: Mapping[str, LayerValues],
) -> dict[str, npt.NDArray[np.float16]]:
    """Biases by the layer's name.

    Args:
        executor: Of the compressed program.
        samples: Its inputs; those that `statistics` are of.
        statistics: Of the layers' inputs before compression, by the layer's name.
        exact: What the layers held before float16, by the layer's name.
    """
    found: dict[str, npt.NDArray[np.float16]] = {}

    def change(op: Operation, rows: Sequence[Mapping[str, Any]]) -> Operation:
        if op.name not in statistics or op.name not in exact:
            return op
        seen = mean_of(op, executor, (row[op.inputs["x"].name] for row in rows))
        made = executor.constants[op.inputs["weight"].name]
        values, mean = exact[op.name], statistics[op.name].mean
        shift = _product(values.weight, mean) - _product(made, seen)
        found[op.name] = (values.bias + shift).astype(np.float16)
        return replace(op, inputs={**op.inputs, "bias": found[op.name]})

    executor.run_together(samples, change)
    return found


def _product(weight: Array, mean: Array) -> Array:
    """Each group's weights times its mean, one value for each channel."""
    split = weight.astype(np.float64).reshape(len(mean), -1, mean.shape[1])
    return np.asarray(np.einsum("gok,gk->go", split, mean).reshape(-1))
