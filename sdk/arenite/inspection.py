# SPDX-License-Identifier: Apache-2.0
"""What a model file holds, without running it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arenite.contract import Contract, contract_json, contract_of
from arenite.errors import UsageError
from arenite.graph import Graph, Tensor
from arenite.model_file import read_model

if TYPE_CHECKING:
    from arenite.serving_skew import FastSkew

__all__ = ["InspectReport", "TensorSummary", "activation_type", "float_operators", "inspect_model"]

_INDEX_TYPES = {"bool", "int32", "int64"}


@dataclass(frozen=True)
class TensorSummary:
    """An input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True)
class InspectReport:
    """A model file.

    Attributes:
        format: tflite.
        quantisation: Type of the activations: `int8`, `uint8`, `int16x8` (int16 with int8 weights), `float32`
            or another single type, or `mixed`.
        operators: How many of each kind.
        float_operators: Those that compute in float, as `index kind`.
        weights_bytes: Constants of all operators.
        contract: As JSON values, None when the model carries none.
        metadata: Name and size in bytes of each metadata entry.
        fast_skew: How far the preprocessing `fast` is from `exact`; None when the contract says nothing of pictures.
    """

    path: str
    format: str
    file_bytes: int
    model_sha256: str
    quantisation: str
    inputs: tuple[TensorSummary, ...]
    outputs: tuple[TensorSummary, ...]
    operators: Mapping[str, int]
    operator_count: int
    float_operators: tuple[str, ...]
    weights_bytes: int
    contract: Mapping[str, Any] | None
    metadata: Mapping[str, int]
    fast_skew: FastSkew | None = None


def inspect_model(path: Path | str, picture: Path | str | None = None) -> InspectReport:
    """Read a model file.

    Args:
        path: A .tflite or .onnx file, or a Core ML package.
        picture: Where the skew of the preprocessing `fast` is measured; None takes a synthetic one.

    Raises:
        ModelError: It is no model or is corrupt.
        ContractError: Its contract is malformed or contradicts it.
    """
    graph = read_model(path)
    contract: Contract | None = contract_of(graph)
    floats = float_operators(graph)
    return InspectReport(
        path=str(path),
        format=graph.format,
        file_bytes=_size(Path(path)),
        model_sha256=graph.sha256,
        quantisation=activation_type(graph),
        inputs=tuple(_summary(graph.tensors[i]) for i in graph.inputs),
        outputs=tuple(_summary(graph.tensors[i]) for i in graph.outputs),
        operators=dict(sorted(Counter(op.kind for op in graph.operators).items())),
        operator_count=len(graph.operators),
        float_operators=floats,
        weights_bytes=sum(t.data.nbytes for t in graph.tensors if t.data is not None),
        contract=None if contract is None else contract_json(contract),
        metadata={name: len(content) for name, content in sorted(graph.metadata.items())},
        fast_skew=_fast_skew(contract, picture),
    )


def _size(path: Path) -> int:
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _fast_skew(contract: Contract | None, picture: Path | str | None) -> FastSkew | None:
    if contract is None or contract.input.picture is None or contract.input.shape[0] != 1:
        if picture is not None:
            raise UsageError("the model's contract says nothing of pictures", cure="Leave out the picture.")
        return None
    from arenite.serving_skew import fast_skew

    return fast_skew(contract.input, picture)


def activation_type(graph: Graph) -> str:
    """The one type of all activations, or `mixed`; int32, int64 and bool beside another are indices and shapes."""
    touched = {i for op in graph.operators for i in (*op.inputs, *op.outputs) if i >= 0}
    touched.update(graph.inputs, graph.outputs)
    found = {graph.tensors[i].dtype for i in touched if not graph.tensors[i].is_constant}
    found = found - _INDEX_TYPES or found
    if len(found) != 1:
        return "mixed"
    kind = found.pop()
    return "int16x8" if kind == "int16" and _has_int8_weights(graph, touched) else kind


def _has_int8_weights(graph: Graph, touched: set[int]) -> bool:
    return any(graph.tensors[i].is_constant and graph.tensors[i].dtype == "int8" for i in touched)


def float_operators(graph: Graph) -> tuple[str, ...]:
    """Operators that read or write a float tensor, as `index kind`."""
    found = []
    for op in graph.operators:
        touched = [graph.tensors[i] for i in (*op.inputs, *op.outputs) if i >= 0]
        if any(t.dtype in ("float32", "float16", "float64", "bfloat16") for t in touched):
            found.append(f"{op.index} {op.kind}")
    return tuple(found)


def _summary(tensor: Tensor) -> TensorSummary:
    quantisation = tensor.quantisation
    return TensorSummary(
        name=tensor.name,
        shape=tensor.shape,
        dtype=tensor.dtype,
        scale=quantisation.scales[0] if quantisation else None,
        zero_point=quantisation.zero_points[0] if quantisation else None,
    )
