# SPDX-License-Identifier: Apache-2.0
"""Whose reference kernels a model's bytes come from, operator by operator.

TFLM's wherever it has a kernel. A model with an operator that it lacks runs on LiteRT's as a whole, unless LiteRT
rounds another operator of it otherwise: then it is cut into parts, each runs on its own authority, and what one part
makes the next one reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy.typing as npt

from arenite._model_parts import with_ends, with_operators
from arenite.graph import Graph
from arenite.reference import LITERT, TFLM, reference_available, reference_name, reference_outputs
from arenite.tflite_graph import parse_graph

__all__ = ["Authority", "ONLY_LITERT", "authority_of", "is_uint8_born"]

Array = npt.NDArray[Any]

# Operators that TFLM has no INT8 kernel for; SPACE_TO_BATCH_ND it pads with 9 whatever zero is.
ONLY_LITERT = frozenset(
    ("EXP", "GELU", "LOG", "NEG", "RELU_0_TO_1", "RELU_N1_TO_1", "SELECT", "SPACE_TO_BATCH_ND", "SQRT", "TILE")
)
# What LiteRT rounds once and TFLM, whom the firmware follows, twice.
_ROUNDED_OTHERWISE = frozenset(("FULLY_CONNECTED",))
_KEEP_STATE = frozenset(("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE"))
# These take uint8 as it is.
_UNMOVED = ("QUANTIZE", "DEQUANTIZE", "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE")


@dataclass(frozen=True)
class Authority:
    """The reference kernels of a model.

    Attributes:
        packages: Of each operator, `tflite-micro` or `ai-edge-litert`.
        kinds: Of operators that are LiteRT's in a model of both.
    """

    packages: tuple[str, ...]
    kinds: tuple[str, ...] = ()

    @property
    def available(self) -> bool:
        """Whether all that is needed is installed."""
        return not self.missing

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are needed and not installed."""
        return tuple(package for package in self._distinct if not reference_available(package))

    @property
    def name(self) -> str:
        """Packages with their versions, for reports."""
        first, *more = (reference_name(package) for package in self._distinct)
        return f"{first}, {more[0]} for {', '.join(self.kinds)}" if more else first

    @property
    def _distinct(self) -> tuple[str, ...]:
        """TFLM first."""
        return tuple(sorted(set(self.packages), key=(TFLM, LITERT).index))

    def outputs(self, model: bytes, vectors: Sequence[Sequence[Array]], path: str = "<memory>") -> list[list[Array]]:
        """Runs a model on its reference kernels.

        Args:
            model: The TFLite file's bytes.
            vectors: For each run, one array for each input. A model that remembers goes on from one to the next.

        Returns:
            For each run, one array for each output.

        Raises:
            MissingToolError: A package is not installed.
            ModelError: The reference refuses the model.
        """
        given = [list(vector) for vector in vectors]
        if len(self._distinct) == 1:
            return reference_outputs(model, given, path, self._distinct[0])
        graph = parse_graph(model, path)
        found = [self._in_parts(model, graph, vector, graph.outputs) for vector in given]
        return [[values[index] for index in graph.outputs] for values in found]

    def tensors(
        self, model: bytes, inputs: Sequence[Array], tensors: Sequence[int], path: str = "<memory>"
    ) -> Mapping[int, Array]:
        """What the reference kernels make of one input, inside the model too.

        Args:
            tensors: Those of the main subgraph that operators make.

        Raises:
            MissingToolError, ModelError: As `outputs`.
        """
        graph = parse_graph(model, path)
        if len(self._distinct) == 1:
            changed = with_ends(model, outputs=tensors)
            found = reference_outputs(changed, [list(inputs)], path, self._distinct[0])[0]
            return dict(zip(tensors, found, strict=True))
        values = self._in_parts(model, graph, inputs, tensors)
        return {index: values[index] for index in tensors}

    def _in_parts(self, model: bytes, graph: Graph, inputs: Sequence[Array], wanted: Sequence[int]) -> dict[int, Array]:
        """Values of the inputs, of what parts hand on, and of the wanted tensors."""
        values = dict(zip(graph.inputs, inputs, strict=True))
        first = 0
        for package, group in groupby(self.packages):
            last = first + len(list(group))
            part, reads, makes = _cut(model, graph, first, last, wanted)
            found = reference_outputs(part, [[values[i] for i in reads]], graph.path, package)[0]
            values |= dict(zip(makes, found, strict=True))
            first = last
        return values


def authority_of(graph: Graph) -> Authority | None:
    """The authority on a model; None where it needs both and keeps state between them."""
    kinds = [operator.kind for operator in graph.operators]
    lacking = ONLY_LITERT.intersection(kinds)
    if is_uint8_born(graph) or (lacking and not _ROUNDED_OTHERWISE.intersection(kinds)):
        return Authority((LITERT,) * len(kinds))
    if not lacking:
        return Authority((TFLM,) * len(kinds))
    if _KEEP_STATE.intersection(kinds) or any(tensor.is_variable for tensor in graph.tensors):
        return None
    return Authority(tuple(LITERT if kind in ONLY_LITERT else TFLM for kind in kinds), tuple(sorted(lacking)))


def is_uint8_born(graph: Graph) -> bool:
    """Whether some operator computes with uint8."""
    return any(_is_uint8(graph, i) for op in graph.operators if op.kind not in _UNMOVED for i in op.inputs)


def _is_uint8(graph: Graph, index: int) -> bool:
    return index >= 0 and graph.tensors[index].dtype == "uint8" and graph.tensors[index].quantisation is not None


def _cut(
    model: bytes, graph: Graph, first: int, last: int, wanted: Sequence[int]
) -> tuple[bytes, tuple[int, ...], tuple[int, ...]]:
    """The model of the operators from `first` to `last` alone, what it reads and what it makes."""
    part = graph.operators[first:last]
    made = dict.fromkeys(index for op in part for index in op.outputs)
    read = dict.fromkeys(i for op in part for i in op.inputs if i >= 0 and not graph.tensors[i].is_constant)
    later = {index for op in graph.operators[last:] for index in op.inputs}
    reads = tuple(index for index in read if index not in made)
    makes = tuple(index for index in made if index in later or index in wanted or index in graph.outputs)
    return with_operators(with_ends(model, reads, makes), range(first, last)), reads, makes
