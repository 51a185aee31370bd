# SPDX-License-Identifier: Apache-2.0
"""Keras files.

Keras 3 cannot read some files of the Keras 2 era and tf_keras cannot read files of Keras 3, so both are
tried and the report names the one that worked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from arenite.errors import ModelError
from arenite_converters.float_model import FloatModel, first_line, package_version
from arenite_converters.loaders.tensorflow import float_model, static_shape, tensorflow

__all__ = ["load_h5", "load_keras"]


def load_h5(path: Path, input_shape: Sequence[int] | None) -> FloatModel:
    """Load an HDF5 file of Keras 2 or 3.

    Raises:
        ModelError: It is damaged, holds weights only, or has a Lambda layer; or no library can load it.
    """
    tensorflow()
    _refuse_code(path)
    return load_keras(path, input_shape, "HDF5 file")


def load_keras(path: Path, input_shape: Sequence[int] | None, kind: str = ".keras archive") -> FloatModel:
    """Load a .keras archive, whose Lambda layers Keras' own safe mode refuses.

    Raises:
        ModelError: No library can load it, or it has several inputs or outputs.
        MissingToolError: TensorFlow is not installed.
    """
    tensorflow()
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
            failures.append(f"{library}: {first_line(error)}")
            continue
        shape = static_shape(model.input_shape, model.output_shape, input_shape, str(path))
        loader = f"{library} {package_version(library)}, {kind}"
        return float_model(_inference_call(model), shape, loader, str(path))
    raise ModelError(
        "no library can load the trained model (" + "; ".join(failures) + ")",
        where=str(path),
        cure="Check that the file is whole, or save the model again with the Keras that trained it.",
    )


def _inference_call(model: Any) -> Callable[[Any], Any]:
    return lambda x: model(x, training=False)


def _refuse_code(path: Path) -> None:
    """Refuse Lambda layers: their Python code would run while loading."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            config = json.loads(file.attrs.get("model_config", "null"))
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(
            f"the file is damaged or no Keras model ({first_line(error)})",
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
