# SPDX-License-Identifier: Apache-2.0
"""The model compiled ahead of time: the firmware's own C as a shared library, without an interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.cold_start import Timeline
from arenite.compiled import host_library
from arenite.engines import (
    EngineOptions,
    EngineReport,
    Placement,
    Refusal,
    kinds_of,
    only_fast_kernels,
    read_only,
    refuse,
)
from arenite.graph import Graph

__all__ = ["Aot"]

Array = npt.NDArray[Any]


class Aot:
    """Generated C with an arena of its own; its bytes are those of the firmware.

    Args:
        graph: A full-INT8 model, already read.
        options: It runs on one thread and takes no delegate.
        timeline: Where the steps of opening go.

    Raises:
        UnsupportedOperatorError: The model holds something without a kernel.
        MissingToolError: It is not compiled yet and there is no compiler.
        OutputError: The cache of compiled models cannot be written.
    """

    def __init__(self, graph: Graph, options: EngineOptions, timeline: Timeline) -> None:
        only_fast_kernels("aot", options)
        with timeline.step("build") as notes:
            library = host_library(graph)
            notes.append("compiled" if library.built else "from the cache")
        self._model = library.model
        self.inputs = tuple(
            _shaped(view, graph, index) for view, index in zip(self._model.inputs, graph.inputs, strict=True)
        )
        placed = tuple(
            _shaped(view, graph, index) for view, index in zip(self._model.outputs, graph.outputs, strict=True)
        )
        # An output may lie where the next input is written: those are copied out after each run.
        self._moved = [
            (view, np.empty_like(view)) for view in placed if any(np.shares_memory(view, i) for i in self.inputs)
        ]
        copies = {id(view): copy for view, copy in self._moved}
        self.outputs = tuple(read_only(copies.get(id(view), view)) for view in placed)
        self.invoke = self._invoke_and_move if self._moved else self._model.invoke
        self.report = EngineReport(
            engine="aot",
            version=library.toolchain,
            kernels="fast",
            rounding="double",
            threads=1,
            placements=(Placement("generated C", kinds_of(graph)),),
            refusals=_refusals(options),
            keeps_inputs=False,
        )

    def _invoke_and_move(self) -> None:
        self._model.invoke()
        for view, copy in self._moved:
            np.copyto(copy, view)

    def reset(self) -> None:
        """Put what the model remembers back to its start."""
        self._model.reset()


def _shaped(view: Array, graph: Graph, index: int) -> Array:
    tensor = graph.tensors[index]
    return view.view(tensor.dtype).reshape(tensor.shape)


def _refusals(options: EngineOptions) -> tuple[Refusal, ...]:
    found = []
    if options.threads > 1:
        reason = "the generated C runs on one thread"
        found.append(refuse(f"{options.threads} threads", reason, consequence="it runs on one"))
    if options.delegate is not None:
        reason = "the generated C takes no delegate"
        found.append(refuse(f"delegate {options.delegate}", reason, consequence="the generated C runs every operator"))
    return tuple(found)
