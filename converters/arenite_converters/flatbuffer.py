# SPDX-License-Identifier: Apache-2.0
"""Edit a TFLite flatbuffer: unpack it to objects, change constants, pack it again."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import MissingToolError
from arenite.graph import Graph, Operator

__all__ = ["pack", "replace_constant", "schema", "single_operator", "unpack", "with_unique_names"]

Array = npt.NDArray[Any]
# Offsets 0 and 1 are the schema's "no external data".
_NO_OFFSET = 1


def schema() -> Any:
    """The flatbuffer schema's object classes.

    Raises:
        MissingToolError: ai-edge-litert, which brings them, is not installed.
    """
    try:
        return import_module("ai_edge_litert.schema_py_generated")
    except ImportError as error:
        raise MissingToolError(
            "writing a TFLite file needs ai-edge-litert", cure="pip install 'arenite[convert]'"
        ) from error


def unpack(content: bytes) -> Any:
    """The model as the schema's objects, every constant inside a buffer.

    Some writers put constants behind the flatbuffer; many readers, TFLM among them, do not look there.
    """
    model = schema().ModelT.InitFromPackedBuf(content, 0)
    for buffer in model.buffers:
        if buffer.offset and buffer.offset > _NO_OFFSET:
            buffer.data = np.frombuffer(content, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
    for code in model.operatorCodes:
        # Older readers look at the byte alone, and some writers leave it 0, which is ADD.
        code.deprecatedBuiltinCode = min(max(code.builtinCode, code.deprecatedBuiltinCode), 127)
        code.builtinCode = max(code.builtinCode, code.deprecatedBuiltinCode)
    return model


def pack(model: Any) -> bytes:
    """The objects as a TFLite file's bytes."""
    flatbuffers = import_module("flatbuffers")
    constants = sum(len(buffer.data) for buffer in model.buffers if buffer.data is not None)
    builder = flatbuffers.Builder(constants + 4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def replace_constant(model: Any, tensor: int, values: Array) -> None:
    """Give a tensor of the main subgraph other constants; a buffer that others share stays theirs."""
    entry = model.subgraphs[0].tensors[tensor]
    users = sum(t.buffer == entry.buffer for graph in model.subgraphs for t in graph.tensors)
    if users > 1:
        model.buffers.append(schema().BufferT())
        entry.buffer = len(model.buffers) - 1
    model.buffers[entry.buffer].data = np.frombuffer(values.tobytes(), np.uint8)


def with_unique_names(content: bytes) -> bytes:
    """The same model; tensors that share a name get their index behind it."""
    model = unpack(content)
    seen: set[bytes] = set()
    for index, tensor in enumerate(model.subgraphs[0].tensors):
        name = tensor.name or b""
        if name in seen or not name:
            tensor.name = name + f"_{index}".encode()
        seen.add(tensor.name)
    return pack(model)


def single_operator(model: Any, graph: Graph, operator: Operator) -> tuple[bytes, tuple[int, ...]]:
    """A model of one operator alone.

    Args:
        model: The whole model's objects.
        graph: The same model, read.
        operator: One of its operators.

    Returns:
        The file's bytes, and the tensors that are its inputs, in their order there.
    """
    objects = schema()
    source = model.subgraphs[0]
    used = list(dict.fromkeys(i for i in (*operator.inputs, *operator.outputs) if i >= 0))
    place = {index: position for position, index in enumerate(used)}
    inputs = tuple(i for i in used if i in operator.inputs and not graph.tensors[i].is_constant)
    alone, body = objects.ModelT(), objects.SubGraphT()
    alone.version, alone.operatorCodes, alone.buffers = 3, model.operatorCodes, [objects.BufferT()]
    body.tensors = [_moved(source.tensors[i], model.buffers, alone.buffers) for i in used]
    entry = _copy(source.operators[operator.index])
    entry.inputs = [place.get(i, -1) for i in operator.inputs]
    entry.outputs = [place[i] for i in operator.outputs]
    body.operators, body.outputs = [entry], entry.outputs
    body.inputs = [place[i] for i in inputs]
    alone.subgraphs = [body]
    return pack(alone), inputs


def _moved(tensor: Any, buffers: list[Any], into: list[Any]) -> Any:
    moved = _copy(tensor)
    buffer = buffers[tensor.buffer]
    moved.buffer = 0
    if buffer.data is not None and len(buffer.data):
        into.append(buffer)
        moved.buffer = len(into) - 1
    return moved


def _copy(entry: Any) -> Any:
    copied = type(entry)()
    copied.__dict__.update(entry.__dict__)
    return copied
