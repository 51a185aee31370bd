# SPDX-License-Identifier: Apache-2.0
"""The authority on output bytes: the reference kernels of the PyPI package `tflite-micro`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["TflmModel", "run_tflm"]

Array = npt.NDArray[Any]


class TflmModel:
    """One model loaded once, run many times.

    Args:
        model_bytes: A TFLite flatbuffer.
        arena_bytes: Arena given to the interpreter; None takes ample room.

    Raises:
        RuntimeError: The interpreter refuses the model.
    """

    def __init__(self, model_bytes: bytes, arena_bytes: int | None = None) -> None:
        from tflite_micro import runtime

        arena = arena_bytes or max(4 << 20, 2 * len(model_bytes))
        self._interpreter = runtime.Interpreter.from_bytes(model_bytes, arena_size=arena)

    def run(self, inputs: Sequence[Array], output_count: int = 1) -> list[Array]:
        """Loads the inputs (shapes and types as the model has them), runs, copies the outputs."""
        for index, value in enumerate(inputs):
            self._interpreter.set_input(value, index)
        self._interpreter.invoke()
        return [np.array(self._interpreter.get_output(index)) for index in range(output_count)]


def run_tflm(model_bytes: bytes, inputs: Sequence[Array], output_count: int = 1) -> list[Array]:
    """Runs a model once in a fresh interpreter."""
    return TflmModel(model_bytes).run(inputs, output_count)
