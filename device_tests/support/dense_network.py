# SPDX-License-Identifier: Apache-2.0
"""One dense INT8 layer of any size: the least model that has a benchmark's input and output."""

from __future__ import annotations

import numpy as np

from support.builder import ModelBuilder

__all__ = ["dense_network"]


def dense_network(inputs: int, units: int, seed: int = 0) -> bytes:
    """A .tflite file of one FULLY_CONNECTED with random weights; outputs spread over their range."""
    rng = np.random.default_rng(seed)
    build = ModelBuilder()
    x = build.tensor("x", (1, inputs), "int8", scales=[0.03], zero_points=[4])
    weights = rng.integers(-127, 128, (units, inputs), dtype=np.int8)
    w = build.tensor("w", weights.shape, "int8", scales=[0.01], data=weights)
    bias = rng.integers(-2000, 2000, units, dtype=np.int32)
    b = build.tensor("b", (units,), "int32", scales=[0.03 * 0.01], data=bias)
    y = build.tensor("y", (1, units), "int8", scales=[0.02 * inputs**0.5], zero_points=[-3])
    build.operator("FULLY_CONNECTED", [x, w, b], [y], options="FullyConnectedOptions")
    return build.finish([x], [y])
