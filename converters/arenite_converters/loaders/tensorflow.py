# SPDX-License-Identifier: Apache-2.0
"""What the loaders of TensorFlow's family share: one frozen function with static shapes, and its float TFLite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import AreniteError, MissingToolError, ModelError, UsageError
from arenite_converters.float_model import FloatModel, dims, first_value, several

__all__ = ["converted", "float_model", "frozen", "static_shape", "tensorflow"]


def tensorflow() -> Any:
    """TensorFlow.

    Raises:
        MissingToolError: It is not installed.
    """
    try:
        return import_module("tensorflow")
    except ImportError as error:
        raise MissingToolError(
            "TensorFlow, which converts the model, is not installed", cure="pip install 'arenite[convert]'"
        ) from error


def static_shape(shape: Any, output_shape: Any, wanted: Sequence[int] | None, where: str) -> tuple[int, ...]:
    """The input's shape with a batch of 1.

    Args:
        shape: Of the model's input as Keras or a signature gives it; None for open dimensions.
        output_shape: Of its output.
        wanted: Without the batch, from the user.
        where: For messages.

    Raises:
        ModelError: Several inputs or outputs.
        UsageError: A dimension stays open, or `wanted` contradicts the model.
    """
    for what, value in (("inputs", shape), ("outputs", output_shape)):
        if isinstance(value, (list, dict)) and len(value) != 1:
            raise several(what, len(value), where)
    if isinstance(shape, (list, dict)):
        shape = next(iter(shape.values())) if isinstance(shape, dict) else shape[0]
    known = None if shape is None else tuple(shape)[1:]
    fixed = known if wanted is None else tuple(wanted)
    if known is not None and wanted is not None:
        agrees = len(known) == len(wanted) and all(k in (None, w) for k, w in zip(known, wanted, strict=True))
        if not agrees:
            raise UsageError(
                f"the model's input is {dims(known)}, not {dims(tuple(wanted))}",
                where=where,
                cure="Leave input_shape away or give one that fits.",
            )
    if fixed is None or any(d is None for d in fixed):
        raise UsageError(
            f"the model leaves dimensions of its input open ({dims(fixed or (None,))})",
            where=where,
            cure="Give input_shape, such as (224, 224, 3): firmware needs static shapes.",
        )
    return (1, *(int(d) for d in fixed))


def float_model(call: Callable[[Any], Any], shape: tuple[int, ...], loader: str, where: str) -> FloatModel:
    """A callable of one tensor as a float model.

    Raises:
        ModelError: TensorFlow cannot convert it.
    """
    function = frozen(call, shape)
    tf = tensorflow()

    def run(sample: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.asarray(first_value(function(tf.constant(sample))), np.float32)

    content = converted(tf.lite.TFLiteConverter.from_concrete_functions([function]), where)
    return FloatModel(content, shape, loader, run, function)


def converted(converter: Any, where: str) -> bytes:
    """What a TFLiteConverter makes.

    Raises:
        ModelError: It cannot; the operator is named when it says which.
    """
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


def frozen(call: Callable[[Any], Any], shape: tuple[int, ...]) -> Any:
    tf = tensorflow()
    # The public converter freezes in the same way; doing it here covers Keras 3, tf_keras and SavedModel
    # alike.
    freeze = import_module("tensorflow.python.framework.convert_to_constants")
    traced = tf.function(lambda x: first_value(call(x))).get_concrete_function(tf.TensorSpec(shape, tf.float32))
    return freeze.convert_variables_to_constants_v2(traced)
