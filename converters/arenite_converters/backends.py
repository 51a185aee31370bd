# SPDX-License-Identifier: Apache-2.0
"""The libraries that put a float model on its grid: litert-quantizer, and TensorFlow's TFLite converter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import MissingToolError, ModelError
from arenite.graph import Graph, Operator
from arenite.tflite_graph import parse_graph
from arenite_converters.correction import WEIGHTED
from arenite_converters.flatbuffer import pack, unpack
from arenite_converters.float_model import first_line
from arenite_converters.loaders.tensorflow import converted, tensorflow
from arenite_converters.quiet import quiet

__all__ = ["BACKENDS", "by_litert", "by_tensorflow"]

Array = npt.NDArray[Any]
BACKENDS = ("litert", "tensorflow")
_PACKAGE = "litert-quantizer"
# An eighth of int32's range: rounding, correction and a range that neighbours widen have room.
_LARGEST_BIAS = 2**28


def by_litert(
    content: bytes,
    precision: str,
    ranges: Mapping[str, tuple[float, float]],
    kept: Sequence[str] = (),
    only: Sequence[str] | None = None,
) -> bytes:
    """Quantise a float model with litert-quantizer.

    Args:
        content: Float TFLite whose tensors have names of their own.
        precision: int8, int16x8, float16 or dynamic.
        ranges: Of the activations, by tensor name; for the two integer precisions.
        kept: Operators, by the name of their first output, that stay float.
        only: Operators, named alike, that are the only ones to quantise; input and output stay float then.

    Raises:
        MissingToolError: litert-quantizer is not installed.
        ModelError: It cannot quantise the model.
    """
    try:
        quantizer = import_module("litert_quantizer.quantizer").Quantizer(content, None)
        recipes = import_module("litert_quantizer.recipe")
    except ImportError as error:
        raise MissingToolError(
            f"{_PACKAGE}, which quantises the model, is not installed", cure="pip install 'arenite[convert]'"
        ) from error
    chosen = _recipe(recipes, precision)
    nothing = [{**chosen[0], "algorithm_key": "no_quantize"}]
    if only is not None:
        chosen = [entry for name in only for entry in _at(chosen, name)]
    quantizer.load_quantization_recipe(chosen + [entry for name in kept for entry in _at(nothing, name)])
    statistics = None
    if precision in ("int8", "int16x8"):
        bounds = _weight_bounds(parse_graph(content), ranges) if precision == "int8" else {}
        statistics = {name: _statistic(low, high) for name, (low, high) in ranges.items()}
        statistics.update({name: _statistic(low, high) for name, (low, high) in bounds.items()})
    try:
        with quiet():
            done = quantizer.quantize(statistics, enable_progress_bar=False, enable_progress_report=False)
    except Exception as error:  # whatever the library raises
        cure = "Keep the operator that it names float (keep_float), or try the other backend."
        raise ModelError(f"{_PACKAGE} cannot quantise the model ({first_line(error)})", cure=cure) from error
    return pack(unpack(bytes(done.quantized_model)))


def _recipe(recipes: Any, precision: str) -> list[dict[str, Any]]:
    if precision == "float16":
        config = {
            "weight_tensor_config": {"num_bits": 16, "symmetric": True, "granularity": "TENSORWISE", "dtype": "FLOAT"},
            "compute_precision": "FLOAT",
            "explicit_dequantize": True,
        }
        return [{"regex": ".*", "operation": "*", "algorithm_key": "float_casting", "op_config": config}]
    makers = {"int8": "static_wi8_ai8", "int16x8": "static_wi8_ai16", "dynamic": "dynamic_wi8_afp32"}
    made: list[dict[str, Any]] = getattr(recipes, makers[precision])()
    return made


def _at(recipe: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The recipe for one operator; the library ends each output's name with a semicolon."""
    return [{**entry, "regex": f"^{re.escape(name)};"} for entry in recipe]


def _statistic(low: Array | float, high: Array | float) -> dict[str, Array]:
    return {"min": np.asarray(low, np.float32), "max": np.asarray(high, np.float32)}


def _weight_bounds(graph: Graph, ranges: Mapping[str, tuple[float, float]]) -> dict[str, tuple[Array, Array]]:
    """Ranges of the weights where their own would push a bias out of int32, as an all-zero channel's does.

    A bias has the scale of input times weights, so weights that are small beside it need a larger scale.
    """
    bounds = {}
    for op in graph.operators:
        biases = _trained(graph, op, 2)
        weights = _trained(graph, op, 1)
        source = ranges.get(graph.tensors[op.inputs[0]].name) if op.inputs and op.inputs[0] >= 0 else None
        if op.kind not in WEIGHTED or biases is None or weights is None or source is None:
            continue
        axis = weights.ndim - 1 if op.kind == "DEPTHWISE_CONV_2D" else 0
        shape = [-1 if i == axis else 1 for i in range(weights.ndim)]
        own = np.abs(weights).max(axis=tuple(i for i in range(weights.ndim) if i != axis), keepdims=True)
        step = max((max(source[1], 0.0) - min(source[0], 0.0)) / 255, 1e-9)
        needed = np.abs(biases.astype(np.float64)).reshape(shape) / (step * _LARGEST_BIAS) * 127
        if (needed > own).any():
            bound = np.maximum(own, needed)
            bounds[graph.tensors[op.inputs[1]].name] = -bound, bound
    return bounds


def _trained(graph: Graph, operator: Operator, position: int) -> Array | None:
    if len(operator.inputs) <= position or operator.inputs[position] < 0:
        return None
    return graph.tensors[operator.inputs[position]].data


def by_tensorflow(
    function: Any, precision: str, samples: Sequence[npt.NDArray[np.float32]], where: str
) -> bytes:
    """Quantise a TensorFlow function with TFLiteConverter, activations by the samples' minima and maxima.

    Args:
        function: Concrete function of one float32 tensor.
        precision: As of `by_litert`.
        samples: Calibration inputs in real values.
        where: The source, for messages.

    Raises:
        ModelError: TensorFlow cannot convert it, for instance because an operator has no INT8 form.
    """
    tf = tensorflow()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if precision in ("int8", "int16x8"):
        wide = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.representative_dataset = lambda: _feed(samples)
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.TFLITE_BUILTINS_INT8 if precision == "int8" else wide
        ]
        ends = tf.int8 if precision == "int8" else tf.int16
        converter.inference_input_type = converter.inference_output_type = ends
    return converted(converter, where)


def _feed(samples: Sequence[npt.NDArray[np.float32]]) -> Iterator[list[Any]]:
    for sample in samples:
        yield [sample]
