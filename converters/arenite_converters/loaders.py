# SPDX-License-Identifier: Apache-2.0
"""Trained models of the TensorFlow family, each to one frozen function with static shapes.

Keras 3 cannot read some files of the Keras 2 era and tf_keras cannot read files of Keras 3, so both are
tried and the report names the one that worked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import MissingToolError, ModelError, UsageError

__all__ = ["FloatModel", "load", "package_version"]

_KERAS_SUFFIXES = (".h5", ".hdf5", ".keras")


@dataclass(frozen=True)
class FloatModel:
    """A trained model with one input and one output.

    Attributes:
        function: Frozen TensorFlow function of one float32 tensor.
        shape: Of the input, batch 1.
        loader: Library that loaded it, with its version.
    """

    function: Any
    shape: tuple[int, ...]
    loader: str

    def run(self, sample: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The output for one input of `shape`."""
        tf = tensorflow()
        return np.asarray(_first(self.function(tf.constant(sample))), np.float32)


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


def package_version(package: str) -> str:
    """Version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def load(path: Path, input_shape: Sequence[int] | None = None) -> FloatModel:
    """Load a trained model.

    Args:
        path: .keras or .h5 file, or SavedModel folder.
        input_shape: Without the batch, for models that leave dimensions open.

    Raises:
        ModelError: No library can load it, or it has several inputs or outputs.
        MissingToolError: TensorFlow is not installed.
    """
    if not path.exists():
        raise ModelError("there is no such file or folder", where=str(path), cure="Check the path.")
    if path.is_dir():
        return _saved_model(path, input_shape)
    if path.suffix.lower() not in _KERAS_SUFFIXES:
        raise ModelError(
            f"'{path.suffix or path.name}' is no trained model that can be converted",
            where=str(path),
            cure="Give a .keras or .h5 file, or a SavedModel folder.",
        )
    return _keras(path, input_shape)


def _keras(path: Path, input_shape: Sequence[int] | None) -> FloatModel:
    tensorflow()
    _refuse_code(path)
    failures = []
    for library in ("keras", "tf_keras"):
        try:
            module = import_module(library)
        except ImportError:
            failures.append(f"{library}: not installed")
            continue
        try:
            model = module.models.load_model(str(path), compile=False)
        except Exception as error:  # whatever a foreign file makes the libraries raise
            failures.append(f"{library}: {_first_line(error)}")
            continue
        shapes = model.input_shape, model.output_shape
        shape = _static_shape(shapes[0], shapes[1], input_shape, path)
        call = _inference_call(model)
        return FloatModel(_frozen(call, shape), shape, f"{library} {package_version(library)}")
    raise ModelError(
        "no library can load the trained model (" + "; ".join(failures) + ")",
        where=str(path),
        cure="Check that the file is whole, or save the model again with the Keras that trained it.",
    )


def _inference_call(model: Any) -> Callable[[Any], Any]:
    return lambda x: model(x, training=False)


def _refuse_code(path: Path) -> None:
    """Refuse HDF5 files with Lambda layers: their Python code would run while loading."""
    if path.suffix.lower() == ".keras":
        return  # Keras' own safe mode covers this format
    import h5py

    try:
        with h5py.File(path, "r") as file:
            config = json.loads(file.attrs.get("model_config", "null"))
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(
            f"the file is damaged or no Keras model ({_first_line(error)})",
            where=str(path),
            cure="Copy or save it again.",
        ) from error
    if config is None:
        raise ModelError(
            "the file holds weights only, no model",
            where=str(path),
            cure="Save the whole model: model.save(...).",
        )
    if _has_lambda(config):
        raise ModelError(
            "the model has a Lambda layer, whose Python code would run while loading",
            where=str(path),
            cure="Replace the Lambda layer by ordinary layers and save the model again.",
        )


def _has_lambda(config: object) -> bool:
    if isinstance(config, dict):
        return config.get("class_name") == "Lambda" or any(_has_lambda(v) for v in config.values())
    return isinstance(config, list) and any(_has_lambda(v) for v in config)


def _saved_model(path: Path, input_shape: Sequence[int] | None) -> FloatModel:
    tf = tensorflow()
    if not (path / "saved_model.pb").is_file():
        raise ModelError(
            "the folder holds no saved_model.pb", where=str(path), cure="Give a SavedModel folder."
        )
    try:
        loaded = tf.saved_model.load(str(path))
        signature = loaded.signatures["serving_default"]
    except Exception as error:  # whatever a foreign file makes the library raise
        raise ModelError(
            f"TensorFlow cannot load the SavedModel ({_first_line(error)})",
            where=str(path),
            cure="Check that the folder is whole and has the signature serving_default.",
        ) from error
    inputs = signature.structured_input_signature[1]
    outputs = signature.structured_outputs
    if len(inputs) != 1:
        raise _several("inputs", len(inputs), path)
    name, spec = next(iter(inputs.items()))
    shapes = [tuple(t.shape) if t.shape.rank is not None else None for t in (spec, *outputs.values())]
    shape = _static_shape(shapes[0], shapes[1] if len(outputs) == 1 else shapes[1:], input_shape, path)
    function = _frozen(lambda x: signature(**{name: x}), shape)
    return FloatModel(function, shape, f"SavedModel, tensorflow {tf.__version__}")


def _static_shape(shape: Any, output_shape: Any, wanted: Sequence[int] | None, path: Path) -> tuple[int, ...]:
    for what, value in (("inputs", shape), ("outputs", output_shape)):
        if isinstance(value, (list, dict)) and len(value) != 1:
            raise _several(what, len(value), path)
    if isinstance(shape, (list, dict)):
        shape = next(iter(shape.values())) if isinstance(shape, dict) else shape[0]
    known = None if shape is None else tuple(shape)[1:]
    fixed = known if wanted is None else tuple(wanted)
    if known is not None and wanted is not None:
        agrees = len(known) == len(wanted) and all(k in (None, w) for k, w in zip(known, wanted, strict=True))
        if not agrees:
            raise UsageError(
                f"the model's input is {_dims(known)}, not {_dims(tuple(wanted))}",
                where=str(path),
                cure="Leave input_shape away or give one that fits.",
            )
    if fixed is None or any(d is None for d in fixed):
        raise UsageError(
            f"the model leaves dimensions of its input open ({_dims(fixed or (None,))})",
            where=str(path),
            cure="Give input_shape, such as (224, 224, 3): firmware needs static shapes.",
        )
    return (1, *(int(d) for d in fixed))


def _dims(shape: Sequence[int | None]) -> str:
    return "×".join("?" if d is None else str(d) for d in shape)


def _several(what: str, count: int, path: Path) -> ModelError:
    return ModelError(
        f"the model has {count} {what}",
        where=str(path),
        cure="Only models with one input and one output convert.",
    )


def _frozen(call: Callable[[Any], Any], shape: tuple[int, ...]) -> Any:
    tf = tensorflow()
    # The public converter freezes in the same way; doing it here covers Keras 3, tf_keras and SavedModel
    # alike.
    freeze = import_module("tensorflow.python.framework.convert_to_constants")
    traced = tf.function(lambda x: _first(call(x))).get_concrete_function(tf.TensorSpec(shape, tf.float32))
    return freeze.convert_variables_to_constants_v2(traced)


def _first(value: Any) -> Any:
    while isinstance(value, (list, tuple, dict)):
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value


def _first_line(error: BaseException) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return line if len(line) <= 160 else line[:159] + "…"
