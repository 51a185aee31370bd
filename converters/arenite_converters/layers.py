# SPDX-License-Identifier: Apache-2.0
"""Activations of the INT8 model against the float model, tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.tflite_graph import Graph, read_graph
from arenite_converters.checks import sqnr_db
from arenite_converters.report import TensorQuality

__all__ = ["compare_activations"]

Array = npt.NDArray[Any]


def compare_activations(
    float_model: Path, int8_model: Path, samples: Sequence[npt.NDArray[np.float32]]
) -> list[TensorQuality]:
    """SQNR and cosine of each activation that both models name alike.

    Args:
        float_model: Float TFLite file.
        int8_model: Full-INT8 TFLite file made from the same trained model.
        samples: Inputs in real values; a few are enough.

    Returns:
        One entry a tensor, in the INT8 model's order.
    """
    floats, quantised = read_graph(float_model), read_graph(int8_model)
    shared = _shared_names(floats, quantised)
    real: dict[str, list[Array]] = {name: [] for name in shared}
    other: dict[str, list[Array]] = {name: [] for name in shared}
    runners = _Runner(floats), _Runner(quantised)
    for sample in samples:
        for runner, found in zip(runners, (real, other), strict=True):
            for name, value in runner.activations(sample, shared):
                found[name].append(value)
    return [_quality(name, np.stack(real[name]), np.stack(other[name])) for name in shared]


def _shared_names(floats: Graph, quantised: Graph) -> list[str]:
    produced = {
        floats.tensors[i].name: floats.tensors[i].shape for op in floats.operators for i in op.outputs
    }
    names = []
    for op in quantised.operators:
        for tensor in (quantised.tensors[i] for i in op.outputs):
            if tensor.quantisation and produced.get(tensor.name) == tensor.shape:
                names.append(tensor.name)
    return list(dict.fromkeys(names))


def _quality(name: str, real: Array, other: Array) -> TensorQuality:
    lengths = float(np.linalg.norm(real) * np.linalg.norm(other))
    # Two tensors of nothing but zeros are equal.
    cosine = float((real * other).sum()) / lengths if lengths > 0 else float(np.array_equal(real, other))
    return TensorQuality(name, sqnr_db(real, other), cosine)


class _Runner:
    """Runs a model with every activation kept."""

    def __init__(self, graph: Graph) -> None:
        litert = import_module("ai_edge_litert.interpreter")
        self._graph = graph
        self._interpreter = litert.Interpreter(
            model_path=graph.path,
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        self._interpreter.allocate_tensors()
        self._indices = {graph.tensors[i].name: i for op in graph.operators for i in op.outputs}

    def activations(self, sample: npt.NDArray[np.float32], names: Sequence[str]) -> list[tuple[str, Array]]:
        """The named activations for one input, in real values, float64."""
        index = self._graph.inputs[0]
        self._interpreter.set_tensor(index, self._quantised(sample))
        self._interpreter.invoke()
        return [(name, self._real(self._indices[name])) for name in names]

    def _quantised(self, sample: npt.NDArray[np.float32]) -> Array:
        tensor = self._graph.tensors[self._graph.inputs[0]]
        if tensor.quantisation is None or tensor.dtype == "float32":
            return sample
        from arenite.contract import Quantised
        from arenite.preprocess import quantise

        quantisation = tensor.quantisation
        return quantise(sample, Quantised(quantisation.scales[0], quantisation.zero_points[0]), tensor.dtype)

    def _real(self, index: int) -> Array:
        value = self._interpreter.get_tensor(index).astype(np.float64)
        quantisation = self._graph.tensors[index].quantisation
        if quantisation is None or self._graph.tensors[index].dtype == "float32":
            return np.asarray(value)
        return np.asarray((value - quantisation.zero_points[0]) * quantisation.scales[0])
