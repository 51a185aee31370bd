# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models for tests, and both engines' answers to the same input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.graph import Graph
from arenite.tflite_graph import parse_graph
from arenite_converters.float_model import FloatModel
from arenite_converters.loaders.onnx import import_model

__all__ = ["Array", "imported", "in_litert", "node", "onnx_model", "random_input"]

Array = npt.NDArray[Any]
WHERE = "small.onnx"


def node(kind: str, inputs: Sequence[str], output: str | Sequence[str] = "y", **attributes: Any) -> Any:
    """One node; its name is the first output's."""
    from onnx import helper

    outputs = [output] if isinstance(output, str) else list(output)
    return helper.make_node(kind, list(inputs), outputs, name=f"node_{outputs[0]}", **attributes)


def onnx_model(
    nodes: Sequence[Any],
    shape: Sequence[int | str],
    constants: Mapping[str, Array] | None = None,
    opset: int = 18,
    output: str = "y",
) -> Any:
    """A model from `x` of this shape to an output of any shape; float64 constants become float32."""
    from onnx import TensorProto, helper, numpy_helper

    arrays = {
        name: array.astype(np.float32) if array.dtype == np.float64 else array
        for name, array in (constants or {}).items()
    }
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def imported(model: Any, input_shape: Sequence[int] | None = None) -> tuple[FloatModel, Graph]:
    """The importer's float model, and its TFLite graph."""
    loaded = import_model(model, input_shape, WHERE, "ONNX")
    return loaded, parse_graph(loaded.content)


def random_input(shape: Sequence[int], seed: int = 0) -> npt.NDArray[np.float32]:
    """Values on both sides of zero."""
    return np.random.default_rng(seed).normal(0, 2, tuple(shape)).astype(np.float32)


def in_litert(content: bytes, sample: Array) -> Array:
    """The output of LiteRT's reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    engine = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    engine.allocate_tensors()
    engine.set_tensor(engine.get_input_details()[0]["index"], sample)
    engine.invoke()
    return np.asarray(engine.get_tensor(engine.get_output_details()[0]["index"]))
