# SPDX-License-Identifier: Apache-2.0
"""The authority on operators that TFLM has no kernel for: LiteRT's reference kernels, without a delegate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LiteRtReference"]

Array = npt.NDArray[Any]


class LiteRtReference:
    """One model loaded once, run many times; the same calls as `TflmModel`."""

    def __init__(self, model_bytes: bytes) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        reference = OpResolverType.BUILTIN_REF
        self._interpreter = Interpreter(model_content=model_bytes, experimental_op_resolver_type=reference)
        self._interpreter.allocate_tensors()

    def run(self, inputs: Sequence[Array], output_count: int = 1) -> list[Array]:
        """Loads the inputs (shapes and types as the model has them), runs, copies the outputs."""
        for detail, value in zip(self._interpreter.get_input_details(), inputs, strict=True):
            self._interpreter.set_tensor(detail["index"], value)
        self._interpreter.invoke()
        details = self._interpreter.get_output_details()[:output_count]
        return [np.array(self._interpreter.get_tensor(detail["index"])) for detail in details]
