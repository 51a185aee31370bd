# SPDX-License-Identifier: Apache-2.0
"""Which layers suffer most from quantisation: each one quantised alone, everything else float."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from arenite.graph import Graph
from arenite.progress import Step
from arenite.tflite_graph import parse_graph
from arenite_converters.backends import by_litert
from arenite_converters.correction import WEIGHTED
from arenite_converters.outputs import fidelity, outputs_of
from arenite_converters.quantisation import Sensitivity

__all__ = ["chosen_layers", "layer_sensitivity"]


def chosen_layers(graph: Graph) -> tuple[str, ...]:
    """Names of what the layers with weights write, in the model's order."""
    return tuple(graph.tensors[op.outputs[0]].name for op in graph.operators if op.kind in WEIGHTED)


def layer_sensitivity(
    content: bytes,
    samples: Sequence[npt.NDArray[np.float32]],
    ranges: Mapping[str, tuple[float, float]],
    precision: str = "int8",
    step: Step | None = None,
) -> list[Sensitivity]:
    """Quantise each layer alone, weights and activations, without correction, and compare the answers with float.

    Args:
        content: Float TFLite whose tensors have names of their own.
        samples: Inputs in real values; the answers are compared on them.
        ranges: Of the activations; see `arenite_converters.ranges.activation_ranges`.
        precision: int8 or int16x8.
        step: Told about each layer.

    Returns:
        One entry a layer with weights, in the model's order.
    """
    floats = outputs_of(content, samples)
    graph = parse_graph(content)
    kinds = {graph.tensors[op.outputs[0]].name: op.kind for op in graph.operators}
    found = []
    for layer in chosen_layers(graph):
        alone = by_litert(content, precision, ranges, only=[layer])
        near = fidelity(floats, outputs_of(alone, samples))
        found.append(Sensitivity(layer, kinds[layer], near.sqnr_db, near.top1))
        if step is not None:
            step.advance()
    return found
