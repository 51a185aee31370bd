# SPDX-License-Identifier: Apache-2.0
"""Run a model operator by operator, all samples through one operator before the next.

What an operator gets is then known before it runs, so its constants may still be changed: every sample passes every
operator once, however many constants are corrected on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.graph import Operator
from arenite.tflite_graph import parse_graph
from arenite_converters.flatbuffer import single_operator, unpack
from arenite_converters.layers import on_grid

__all__ = ["Walk", "is_walkable"]

Array = npt.NDArray[Any]


def is_walkable(content: bytes) -> bool:
    """False for models whose operators share more than tensors: state, other subgraphs."""
    graph = parse_graph(content)
    stateful = any(t.is_variable or t.dtype in ("resource", "variant") for t in graph.tensors)
    return not stateful and len(unpack(content).subgraphs) == 1


class Walk:
    """One model on its way through its operators.

    Args:
        content: A TFLite file's bytes, of one input.
        samples: Inputs in real values.

    Attributes:
        model: The flatbuffer's objects; constants of operators that have not run yet may be changed.
        graph: The model as it was at the beginning.
    """

    def __init__(self, content: bytes, samples: Sequence[npt.NDArray[np.float32]]) -> None:
        self.model = unpack(content)
        self.graph = parse_graph(content)
        self._next = 0
        source = self.graph.tensors[self.graph.inputs[0]]
        self._values: dict[int, list[Array]] = {source.index: [on_grid(source, s) for s in samples]}
        self._last_use = {i: op.index for op in self.graph.operators for i in op.inputs}

    def inputs_of(self, operator: Operator) -> list[Array]:
        """Run everything before an operator; its first input, one array a sample."""
        while self._next < operator.index:
            self._run(self.graph.operators[self._next])
            self._next += 1
        return self._values[operator.inputs[0]]

    def _run(self, operator: Operator) -> None:
        content, inputs = single_operator(self.model, self.graph, operator)
        litert = import_module("ai_edge_litert.interpreter")
        # Alone, an operator has no neighbour that a delegate could fuse it with; one thread sums in one order.
        interpreter = litert.Interpreter(model_content=content, num_threads=1)
        interpreter.allocate_tensors()
        sources = [entry["index"] for entry in interpreter.get_input_details()]
        results = [entry["index"] for entry in interpreter.get_output_details()]
        found: list[list[Array]] = [[] for _ in results]
        for values in zip(*(self._values[i] for i in inputs), strict=True):
            for index, value in zip(sources, values, strict=True):
                interpreter.set_tensor(index, value)
            interpreter.invoke()
            for index, into in zip(results, found, strict=True):
                into.append(interpreter.get_tensor(index))
        self._values.update(zip(operator.outputs, found, strict=True))
        # An array for each sample and tensor is much: what nobody reads any more goes.
        for index in [i for i in self._values if self._last_use.get(i, -1) <= operator.index]:
            del self._values[index]
