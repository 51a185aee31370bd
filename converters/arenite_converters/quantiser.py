# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's TFLite converter, float and full INT8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arenite.errors import AreniteError, ModelError
from arenite.progress import Step
from arenite_converters.calibration import SampleSet
from arenite_converters.loaders import FloatModel, tensorflow

__all__ = ["to_float", "to_int8"]


def to_float(model: FloatModel, where: str) -> bytes:
    """The model as float TFLite."""
    return _convert(_converter(model), where)


def to_int8(model: FloatModel, samples: SampleSet, where: str, step: Step) -> bytes:
    """The model as TFLite with INT8 weights, activations, input and output.

    Weights are per channel, activations per tensor with the samples' minima and maxima.

    Raises:
        ModelError: TensorFlow cannot convert it, for instance because an operator has no INT8 form.
    """
    tf = tensorflow()
    converter = _converter(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: _feed(samples, step)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    return _convert(converter, where)


def _feed(samples: SampleSet, step: Step) -> Iterator[list[Any]]:
    for sample in samples.samples:
        yield [sample]
        step.advance()


def _converter(model: FloatModel) -> Any:
    return tensorflow().lite.TFLiteConverter.from_concrete_functions([model.function])


def _convert(converter: Any, where: str) -> bytes:
    try:
        return bytes(converter.convert())
    except AreniteError:
        raise
    except Exception as error:  # the converter raises whatever its C++ and Python parts raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        named = next((line for line in lines if "error:" in line or "op" in line.lower()), "")
        raise ModelError(
            f"TensorFlow cannot convert the model ({(named or type(error).__name__)[:200]})",
            where=where,
            cure="Replace the operator that it names by one with an INT8 form.",
        ) from error
