# SPDX-License-Identifier: Apache-2.0
"""What a model answers, in real values, and how near two models' answers are."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.tflite_graph import parse_graph
from arenite_converters.layers import on_grid
from arenite_converters.quantisation import Fidelity
from arenite_converters.statistics import sqnr_db

__all__ = ["fidelity", "outputs_of"]

Array = npt.NDArray[Any]


def outputs_of(content: bytes, samples: Sequence[npt.NDArray[np.float32]]) -> list[Array]:
    """The first output for each input, in real values, float64 and flat.

    Args:
        content: A TFLite file's bytes.
        samples: Inputs in real values.
    """
    graph = parse_graph(content)
    litert = import_module("ai_edge_litert.interpreter")
    interpreter = litert.Interpreter(
        model_content=content,
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    source, result = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    found = []
    for sample in samples:
        interpreter.set_tensor(source.index, on_grid(source, sample))
        interpreter.invoke()
        values = interpreter.get_tensor(result.index).reshape(-1).astype(np.float64)
        if result.quantisation is not None and result.dtype != "float32":
            values = (values - result.quantisation.zero_points[0]) * result.quantisation.scales[0]
        found.append(values)
    return found


def fidelity(floats: Sequence[Array], quantised: Sequence[Array]) -> Fidelity:
    """Compare the outputs of two models for the same samples."""
    real, other = np.stack(floats), np.stack(quantised)
    same = real.argmax(axis=1) == other.argmax(axis=1)
    return Fidelity(len(real), sqnr_db(real, other), float(same.mean()))
