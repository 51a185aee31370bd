# SPDX-License-Identifier: Apache-2.0
"""TFLite files: float ones are calibrated, INT8 ones checked and given a contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import numpy.typing as npt

from arenite.errors import ModelError, UsageError
from arenite.graph import Graph
from arenite.tflite_graph import read_graph
from arenite_converters.float_model import FloatModel, dims, first_line, package_version, several
from arenite_converters.loaders.tflite_rewrites import dequantised

__all__ = ["load_tflite"]

Floats = npt.NDArray[np.float32]


def load_tflite(path: Path, input_shape: Sequence[int] | None) -> FloatModel:
    """Load a TFLite file.

    Raises:
        ModelError: It is damaged, has several inputs or outputs, takes a batch, or is neither float nor INT8.
        UsageError: `input_shape` contradicts it.
    """
    graph = read_graph(path)
    for what, found in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        if len(found) != 1:
            raise several(what, len(found), str(path))
    shape = graph.tensors[graph.inputs[0]].shape
    if not shape or shape[0] != 1:
        raise ModelError(
            f"the model's input is {dims(shape)}", where=str(path), cure="Convert it again with a batch of 1."
        )
    if input_shape is not None and tuple(input_shape) != shape[1:]:
        raise UsageError(
            f"the model's input is {dims(shape[1:])}, not {dims(input_shape)}",
            where=str(path),
            cure="Leave input_shape away.",
        )
    kind = _kind(graph)
    loader = f"{kind} TFLite, ai-edge-litert {package_version('ai-edge-litert')}"
    content = path.read_bytes()
    quantised = content if kind == "INT8" else None
    content = content if quantised is None else dequantised(content, graph)
    return FloatModel(content, shape, loader, _in_litert(content, str(path)), quantised=quantised)


def _in_litert(content: bytes, where: str) -> Callable[[Floats], Floats]:
    """The model in LiteRT's reference kernels."""
    litert = import_module("ai_edge_litert.interpreter")
    try:
        interpreter = litert.Interpreter(
            model_content=content, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF
        )
        interpreter.allocate_tensors()
    except Exception as error:  # an operator without a float kernel, shapes that do not fit
        raise ModelError(
            f"LiteRT cannot run the model in float ({first_line(error)})",
            where=where,
            cure="Give the float model that it was made from.",
        ) from error
    source, target = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

    def run(sample: Floats) -> Floats:
        interpreter.set_tensor(source, sample)
        interpreter.invoke()
        return np.asarray(interpreter.get_tensor(target))

    return run


def _kind(graph: Graph) -> str:
    ends = {graph.tensors[index].dtype for index in (*graph.inputs, *graph.outputs)}
    if ends == {"int8"}:
        return "INT8"
    quantised = [t for t in graph.tensors if t.quantisation is not None and t.dtype != "float32"]
    if ends == {"float32"} and not quantised:
        return "float"
    raise ModelError(
        f"the model is neither float nor INT8 ({_mixture(ends, len(quantised))})",
        where=graph.path,
        cure="Give the float model that it was made from.",
    )


def _mixture(ends: set[str], quantised: int) -> str:
    return f"input and output {' and '.join(sorted(ends))}, {quantised} quantised tensors"
