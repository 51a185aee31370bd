# SPDX-License-Identifier: Apache-2.0
"""Activations of two models, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import Quantised
from arenite.graph import Graph, Tensor
from arenite.preprocess import quantise
from arenite.tflite_graph import parse_graph
from arenite_converters.report import TensorQuality
from arenite_converters.statistics import decibels

__all__ = ["ActivationRunner", "clipped", "compare_activations", "holds", "on_grid", "shared_names"]

Array = npt.NDArray[Any]
# Other types hold indices, shapes and truths.
_VALUES = ("float32", "int8", "uint8", "int16")


def compare_activations(
    float_model: Path | str, int8_model: Path | str, samples: Sequence[npt.NDArray[np.float32]]
) -> list[TensorQuality]:
    """SQNR, cosine and range of each activation that both models name alike.

    Args:
        float_model: TFLite file of what is right.
        int8_model: Another TFLite file, made from the same trained model.
        samples: Inputs in real values; a few are enough.

    Returns:
        One entry a tensor, in the second model's order.
    """
    runners = ActivationRunner(Path(float_model).read_bytes()), ActivationRunner(Path(int8_model).read_bytes())
    floats, quantised = (runner.graph for runner in runners)
    names = shared_names(floats, quantised)
    outputs = ((op.kind, quantised.tensors[i]) for op in quantised.operators for i in op.outputs)
    found = {tensor.name: _Sums(kind, tensor) for kind, tensor in outputs if tensor.name in names}
    for sample in samples:
        both = (runner.activations(sample, names) for runner in runners)
        for (name, real), (_, other) in zip(*both, strict=True):
            found[name].add(real.astype(np.float64), other.astype(np.float64))
    return [sums.quality() for sums in found.values()]


def shared_names(floats: Graph, quantised: Graph) -> list[str]:
    """Names of the activations that both graphs compute in one shape, in the second one's order."""
    produced = {floats.tensors[i].name: floats.tensors[i].shape for op in floats.operators for i in op.outputs}
    made = (quantised.tensors[i] for op in quantised.operators for i in op.outputs)
    return list(dict.fromkeys(t.name for t in made if t.dtype in _VALUES and produced.get(t.name) == t.shape))


def holds(tensor: Tensor) -> tuple[float, float] | None:
    """The lowest and highest real value of a quantised activation; None when it is float."""
    if tensor.quantisation is None or tensor.dtype == "float32":
        return None
    limits, scale, zero = np.iinfo(tensor.dtype), float(tensor.quantisation.scales[0]), tensor.quantisation.zero_point
    return (limits.min - zero) * scale, (limits.max - zero) * scale


def clipped(values: Array, tensor: Tensor) -> int:
    """How many real values lie outside what a tensor holds by more than half a step."""
    ends = holds(tensor)
    if ends is None or tensor.quantisation is None:
        return 0
    half = float(tensor.quantisation.scales[0]) / 2
    return int(((values < ends[0] - half) | (values > ends[1] + half)).sum())


class _Sums:
    """What the figures of one tensor need, summed over samples: no activation is kept."""

    def __init__(self, operator: str, tensor: Tensor) -> None:
        self._operator, self._tensor = operator, tensor
        self._power = self._noise = self._other = self._dot = 0.0
        self._low, self._high = np.inf, -np.inf
        self._clipped = self._count = 0

    def add(self, real: Array, other: Array) -> None:
        self._power += float((real**2).sum())
        self._noise += float(((real - other) ** 2).sum())
        self._other += float((other**2).sum())
        self._dot += float((real * other).sum())
        self._low, self._high = min(self._low, float(real.min())), max(self._high, float(real.max()))
        self._clipped += clipped(real, self._tensor)
        self._count += real.size

    def quality(self) -> TensorQuality:
        lengths = float(np.sqrt(self._power * self._other))
        # Two tensors of nothing but zeros are equal.
        cosine = self._dot / lengths if lengths > 0 else float(self._noise == 0)
        return TensorQuality(
            self._tensor.name,
            self._operator,
            decibels(self._power, self._noise),
            min(cosine, 1.0),
            self._low,
            self._high,
            holds(self._tensor),
            self._clipped / self._count,
        )


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
