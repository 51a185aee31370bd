# SPDX-License-Identifier: Apache-2.0
"""Read and stamp an ONNX file without the package `onnx`: what a session needs is a few fields of its protobuf.

Field numbers are those of onnx.proto (ModelProto, GraphProto, NodeProto, TensorProto, ValueInfoProto).
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import numpy as np

from arenite._protobuf import Message, delimited, fields, string, text, varint, walk
from arenite.contract import CONTRACT_METADATA, Contract, check_contract
from arenite.errors import ModelError
from arenite.graph import Graph, Operator, Quantisation, Tensor

__all__ = ["parse_onnx", "read_onnx", "with_onnx_contract"]

_MODEL_GRAPH, _MODEL_METADATA = 7, 14
_NODES, _INITIALISERS, _INPUTS, _OUTPUTS = 1, 5, 11, 12
_DTYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
}


def parse_onnx(content: bytes, path: str = "<memory>") -> Graph:
    """Inputs, outputs, operators and metadata of an ONNX model; weights are not read.

    A first dimension without a number is the batch and taken as 1.

    Raises:
        ModelError: No ONNX model, corrupt, or a shape that is not known.
    """
    try:
        model = fields(memoryview(content))
        graph = fields(model[_MODEL_GRAPH][0])
        return _graph(content, path, model, graph)
    except ModelError:
        raise
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, struct.error) as error:
        raise ModelError(
            f"not an ONNX model, or corrupt ({type(error).__name__} while reading it)",
            where=path,
            cure="Export or copy the model again.",
        ) from error


def with_onnx_contract(content: bytes, contract: Contract, path: str = "<memory>") -> bytes:
    """The model with this contract in its metadata, in place of one that it carried.

    Raises:
        ModelError: No ONNX model.
        ContractError: The contract contradicts the model.
    """
    check_contract(contract, parse_onnx(content, path))
    view = memoryview(content)
    kept = [
        view[start:end]
        for start, end, number, value in walk(view)
        if number != _MODEL_METADATA or text(fields(value), 1) != CONTRACT_METADATA
    ]
    entry = delimited(1, CONTRACT_METADATA.encode()) + delimited(2, contract.to_json().encode())
    return b"".join(kept) + delimited(_MODEL_METADATA, entry)


def _graph(content: bytes, path: str, model: Message, graph: Message) -> Graph:
    nodes = [fields(node) for node in graph.get(_NODES, [])]
    constants = {text(tensor, 8): tensor for tensor in map(fields, graph.get(_INITIALISERS, []))}
    inputs = [v for v in map(fields, graph.get(_INPUTS, [])) if text(v, 1) not in constants]
    outputs = [fields(v) for v in graph.get(_OUTPUTS, [])]
    if not inputs or not outputs:
        raise ModelError("the model has no input or no output", where=path, cure="Export the model again.")
    tensors = tuple(
        _tensor(value, i, _boundary_quantisation(text(value, 1), i < len(inputs), nodes, constants), path)
        for i, value in enumerate([*inputs, *outputs])
    )
    metadata = {text(m, 1): text(m, 2).encode() for m in map(fields, model.get(_MODEL_METADATA, []))}
    return Graph(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        tensors=tensors,
        operators=tuple(Operator(i, text(node, 4), 1, (), (), {}) for i, node in enumerate(nodes)),
        inputs=tuple(range(len(inputs))),
        outputs=tuple(range(len(inputs), len(tensors))),
        metadata=metadata,
        format="onnx",
    )


def _tensor(value: Message, index: int, quantisation: Quantisation | None, path: str) -> Tensor:
    name = text(value, 1)
    kind = fields(fields(value[2][0])[1][0])
    dtype = _DTYPES.get(kind[1][0], f"type {kind[1][0]}")
    extents = [fields(d).get(1, [None])[0] for d in fields(kind[2][0]).get(1, [])] if 2 in kind else [None]
    shape = tuple(1 if i == 0 and e is None and len(extents) > 1 else e for i, e in enumerate(extents))
    if any(extent is None or not 0 < extent < 1 << 31 for extent in shape):
        raise ModelError(
            f"tensor '{name}' has the shape {list(extents)}; every dimension but the batch must be known",
            where=path,
            cure="Export the model with a fixed input shape.",
        )
    return Tensor(index, name, tuple(int(e) for e in shape if e), dtype, quantisation, None)


def _boundary_quantisation(
    name: str, is_input: bool, nodes: list[Message], constants: dict[str, Message]
) -> Quantisation | None:
    """Scale and zero point of the DequantizeLinear behind an integer input, or the QuantizeLinear before an output."""
    kind, place = ("DequantizeLinear", 1) if is_input else ("QuantizeLinear", 2)
    for node in nodes:
        if text(node, 4) != kind or name not in (string(v) for v in node.get(place, [])[:1]):
            continue
        given = [string(v) for v in node.get(1, [])]
        if len(given) < 2 or given[1] not in constants:
            return None
        zero_point = constants.get(given[2]) if len(given) > 2 else None
        return Quantisation((_scalar(constants[given[1]]),), (0 if zero_point is None else int(_scalar(zero_point)),))
    return None


def _scalar(tensor: Message) -> float:
    dtype = _DTYPES[tensor[2][0]]
    if 9 in tensor:  # raw_data
        return float(np.frombuffer(tensor[9][0], dtype)[0])
    if dtype == "float32":
        packed = tensor[4][0]
        return struct.unpack("<f", packed[:4] if isinstance(packed, memoryview) else packed)[0]  # type: ignore[no-any-return]
    packed = tensor[5][0]  # int32_data
    value = varint(packed, 0)[0] if isinstance(packed, memoryview) else packed
    return float(value - (1 << 64) if value >= 1 << 63 else value)


def read_onnx(path: Path) -> Graph:
    """Read an ONNX file; see `parse_onnx`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"cannot read the model: {error.strerror or error}", where=str(path), cure="Check the path."
        ) from error
    return parse_onnx(content, str(path))
