# SPDX-License-Identifier: Apache-2.0
"""Models that are float32 at their ends alone, as converters make them unless told otherwise.

A QUANTIZE behind an input and a DEQUANTIZE before an output change no answer: without them a board keeps one byte of
each element, not four, and the application writes and reads the integers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from arenite._model_parts import with_ends, with_metadata_value, with_operators
from arenite.contract import CONTRACT_METADATA, GOLDEN_METADATA, InputSpec, OutputSpec, contract_of, quantised_of
from arenite.golden import golden_of, pack_vectors
from arenite.graph import Graph, Operator, Tensor
from arenite.preprocess import quantise
from arenite.tflite_graph import parse_graph, read_content

__all__ = ["BoardModel", "read_for_board", "with_integer_ends"]

Array = npt.NDArray[Any]
Spec = TypeVar("Spec", InputSpec, OutputSpec)
_INTEGERS = ("int8", "uint8", "int16")


@dataclass(frozen=True)
class BoardModel:
    """A model as a board runs it.

    Attributes:
        content: The TFLite file of `graph`.
        integer_ends: Names of the inputs and outputs that were float32 in the file that was read.
    """

    content: bytes
    graph: Graph
    integer_ends: tuple[str, ...] = ()


def read_for_board(path: Path, float_ends: bool = False) -> BoardModel:
    """Read a model file.

    Args:
        float_ends: Leave float32 at its ends as it is.

    Raises:
        ModelError: The file is missing, is not a TFLite model, or is corrupt.
        ContractError: Its contract or golden vectors are damaged.
    """
    content = read_content(path)
    model = BoardModel(content, parse_graph(content, str(path)))
    return model if float_ends else with_integer_ends(model)


def with_integer_ends(model: BoardModel) -> BoardModel:
    """The model without what turns float32 to integers at its ends; its contract and golden vectors follow."""
    graph = model.graph
    ends = _quantised_inputs(graph)
    ends |= _dequantised_outputs(graph, made_by={operator.index for operator in ends.values()})
    folded = {operator.index for operator in ends.values()}
    if not folded:
        return model
    kept = [operator.index for operator in graph.operators if operator.index not in folded]
    inputs = [ends[i].outputs[0] if i in ends else i for i in graph.inputs]
    outputs = [ends[i].inputs[0] if i in ends else i for i in graph.outputs]
    cut = with_operators(with_ends(model.content, inputs, outputs), kept)
    for name, value in _metadata(graph, inputs, outputs).items():
        cut = with_metadata_value(cut, name, value)
    names = tuple(graph.tensors[i].name for i in (*graph.inputs, *graph.outputs) if i in ends)
    return BoardModel(cut, parse_graph(cut, graph.path), names)


def _quantised_inputs(graph: Graph) -> dict[int, Operator]:
    """The QUANTIZE behind each float32 input that nothing else reads."""
    readers = Counter(i for operator in graph.operators for i in operator.inputs)
    wanted = (*graph.inputs, *graph.outputs)
    found = {op.inputs[0]: op for op in _of_one(graph, "QUANTIZE") if op.inputs[0] in graph.inputs}
    return {
        source: operator
        for source, operator in found.items()
        if readers[source] == wanted.count(source) == 1
        and operator.outputs[0] not in wanted
        and _are_float_and_integer(graph.tensors[source], graph.tensors[operator.outputs[0]])
    }


def _dequantised_outputs(graph: Graph, made_by: set[int]) -> dict[int, Operator]:
    """The DEQUANTIZE before each float32 output that nothing else reads, of what an operator that stays makes."""
    readers = Counter(i for operator in graph.operators for i in operator.inputs)
    made = {i for operator in graph.operators if operator.index not in made_by for i in operator.outputs}
    found: dict[int, Operator] = {}
    for operator in _of_one(graph, "DEQUANTIZE"):
        source, output = operator.inputs[0], operator.outputs[0]
        taken = source in graph.outputs or any(source == other.inputs[0] for other in found.values())
        if source not in made or taken or readers[output] or graph.outputs.count(output) != 1:
            continue
        if _are_float_and_integer(graph.tensors[output], graph.tensors[source]):
            found[output] = operator
    return found


def _of_one(graph: Graph, kind: str) -> list[Operator]:
    """Operators of a kind with an input and an output, as they should have: a damaged file is judged later."""
    return [op for op in graph.operators if op.kind == kind and (len(op.inputs), len(op.outputs)) == (1, 1)]


def _are_float_and_integer(real: Tensor, whole: Tensor) -> bool:
    quant = whole.quantisation
    same = real.shape == whole.shape and real.dtype == "float32" and whole.dtype in _INTEGERS
    return same and quant is not None and len(quant.scales) == 1


def _metadata(graph: Graph, inputs: list[int], outputs: list[int]) -> dict[str, bytes]:
    """What the model carries about its ends, said of its new ones; nothing where it carries nothing."""
    contract = contract_of(graph)
    if contract is None:
        return {}
    source = _at(contract.input, graph.tensors[inputs[0]])
    made = tuple(_at(spec, graph.tensors[i]) for spec, i in zip(contract.outputs, outputs, strict=True))
    contract = replace(contract, input=source, outputs=made)
    found: dict[str, bytes] = {}
    golden = golden_of(graph)
    if golden is not None:
        vectors = (list(_steps(golden.inputs, source)), list(_steps(golden.outputs, made[0])))
        found[GOLDEN_METADATA], entry = pack_vectors(*vectors, golden.authority)
        contract = replace(contract, golden=entry)
    return {CONTRACT_METADATA: contract.to_json().encode(), **found}


def _at(spec: Spec, tensor: Tensor) -> Spec:
    """What is said of an end, of the tensor that takes its place."""
    return replace(spec, name=tensor.name, dtype=tensor.dtype, quantised=quantised_of(tensor))


def _steps(values: Array, spec: InputSpec | OutputSpec) -> Array:
    """Real numbers on the grid of an end; integers stay."""
    if spec.quantised is None or values.dtype != np.float32:
        return values
    return quantise(values, spec.quantised, spec.dtype)
