# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's TFLite converter, full INT8."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from arenite.errors import MissingToolError, ModelError
from arenite.progress import Step
from arenite.tflite_graph import parse_graph
from arenite_converters.calibration import SampleSet
from arenite_converters.float_model import FloatModel, first_line
from arenite_converters.loaders.tensorflow import converted, tensorflow

__all__ = ["to_int8"]


def to_int8(model: FloatModel, samples: SampleSet, where: str, step: Step) -> bytes:
    """The model as TFLite with INT8 weights, activations, input and output.

    Weights are per channel, activations per tensor with the samples' minima and maxima.

    Raises:
        ModelError: TensorFlow cannot convert it, for instance because an operator has no INT8 form.
    """
    if model.function is None:
        return _from_float(model.content, samples, where, step)
    tf = tensorflow()
    converter = _converter(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: _feed(samples, step)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    return converted(converter, where)


def _feed(samples: SampleSet, step: Step) -> Iterator[list[Any]]:
    for sample in samples.samples:
        yield [sample]
        step.advance()


def _converter(model: FloatModel) -> Any:
    return tensorflow().lite.TFLiteConverter.from_concrete_functions([model.function])


def _from_float(content: bytes, samples: SampleSet, where: str, step: Step) -> bytes:
    """A float TFLite model by litert-quantizer, its ranges the samples' minima and maxima."""
    try:
        recipes = import_module("litert_quantizer.recipe")
        quantizer = import_module("litert_quantizer.quantizer")
    except ImportError as error:
        raise MissingToolError("litert-quantizer is not installed", cure="pip install 'arenite[convert]'") from error
    worker = quantizer.Quantizer(bytearray(content), recipes.static_wi8_ai8())
    graph = parse_graph(content)
    name = graph.tensors[graph.inputs[0]].name
    try:
        ranges = worker.calibrate({"serving_default": [{name: sample} for (sample,) in _feed(samples, step)]})
        return bytes(worker.quantize(ranges).quantized_model)
    except Exception as error:  # whatever the quantiser raises
        raise ModelError(
            f"litert-quantizer cannot quantise the model ({first_line(error)})",
            where=where,
            cure="Replace the operator that it names by one with an INT8 form.",
        ) from error
