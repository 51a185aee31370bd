# SPDX-License-Identifier: Apache-2.0
"""Activations of the INT8 model against the float model, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import Quantised
from arenite.preprocess import quantise
from arenite.tflite_graph import Graph, Tensor, parse_graph
from arenite_converters.checks import sqnr_db
from arenite_converters.report import TensorQuality

__all__ = ["ActivationRunner", "compare_activations", "on_grid"]

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
    runners = ActivationRunner(float_model.read_bytes()), ActivationRunner(int8_model.read_bytes())
    shared = _shared_names(runners[0].graph, runners[1].graph)
    real: dict[str, list[Array]] = {name: [] for name in shared}
    other: dict[str, list[Array]] = {name: [] for name in shared}
    for sample in samples:
        for runner, found in zip(runners, (real, other), strict=True):
            for name, value in runner.activations(sample, shared):
                found[name].append(value.astype(np.float64))
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


class ActivationRunner:
    """Runs a model with every activation kept.

    Without a delegate: one that fuses operators or writes in place leaves other values in the tensors between them.

    Args:
        content: A TFLite file's bytes.
    """

    def __init__(self, content: bytes) -> None:
        litert = import_module("ai_edge_litert.interpreter")
        self.graph = graph = parse_graph(content)
        self._interpreter = litert.Interpreter(
            model_content=content,
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        self._interpreter.allocate_tensors()
        computed = [i for op in graph.operators for i in op.outputs]
        self._indices = {graph.tensors[i].name: i for i in (*graph.inputs, *computed)}

    def activations(
        self, sample: npt.NDArray[np.float32], names: Sequence[str] | None = None
    ) -> Iterator[tuple[str, Array]]:
        """The named activations for one input, in real values; by default the input and all that is computed."""
        tensor = self.graph.tensors[self.graph.inputs[0]]
        self._interpreter.set_tensor(tensor.index, on_grid(tensor, sample))
        self._interpreter.invoke()
        return ((name, self._real(self._indices[name])) for name in names or self._indices)

    def _real(self, index: int) -> Array:
        value = self._interpreter.get_tensor(index)
        quantisation = self.graph.tensors[index].quantisation
        if quantisation is None or value.dtype == np.float32:
            return np.asarray(value)
        return np.asarray((value.astype(np.float64) - quantisation.zero_points[0]) * quantisation.scales[0])


def on_grid(tensor: Tensor, sample: npt.NDArray[np.float32]) -> Array:
    """Real values as an input tensor holds them: on its grid, or as they are when it is float."""
    if tensor.quantisation is None or tensor.dtype == "float32":
        return sample
    scale, zero_point = tensor.quantisation.scales[0], tensor.quantisation.zero_points[0]
    return quantise(sample, Quantised(scale, zero_point), tensor.dtype)
