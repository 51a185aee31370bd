# SPDX-License-Identifier: Apache-2.0
"""Trained models of every family, each to float TFLite with a batch of 1 and channel-last maps.

The format is known by the content. Each family has a module; heavy frameworks are imported by the one that needs them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from arenite.errors import ModelError, UsageError
from arenite_converters.float_model import FloatModel
from arenite_converters.loaders.keras import load_h5, load_keras
from arenite_converters.loaders.onnx import load_onnx
from arenite_converters.loaders.saved_model import load_saved_model
from arenite_converters.loaders.tensorflow import tensorflow
from arenite_converters.loaders.tflite import load_tflite
from arenite_converters.loaders.torch import FACTORY, load_factory, load_program

__all__ = ["FloatModel", "kind_of", "load", "tensorflow"]

_KINDS = "a .keras, .h5, .onnx, .tflite or .pt2 file, a SavedModel folder, or module:factory of PyTorch"
_LOADERS = {
    "h5": load_h5,
    "keras": load_keras,
    "onnx": load_onnx,
    "pt2": load_program,
    "tflite": load_tflite,
}


def load(
    path: Path,
    input_shape: Sequence[int] | None = None,
    *,
    signature: str | None = None,
    weights: Path | None = None,
) -> FloatModel:
    """Load a trained model.

    Args:
        path: A file, a SavedModel folder, or `package.module:factory` of a PyTorch module.
        input_shape: Without the batch, in the source's own order, for models that leave dimensions open.
        signature: Function of a SavedModel; by default serving_default.
        weights: State dict for a PyTorch factory.

    Raises:
        ModelError: No library can load it, or it has several inputs or outputs.
        UnsupportedOperatorError: An operator cannot be converted; it is named with its node.
        UsageError: An argument does not belong to this kind of model.
        MissingToolError: The library that loads it is not installed.
    """
    kind = kind_of(path)
    for option, value, owner in (("signature", signature, "saved_model"), ("weights", weights, "factory")):
        if value is not None and kind != owner:
            raise UsageError(f"{option} is for another kind of model", where=str(path), cure=f"Leave {option} away.")
    if kind == "saved_model":
        return load_saved_model(path, input_shape, signature)
    if kind == "factory":
        return load_factory(str(path), weights, input_shape)
    return _LOADERS[kind](path, input_shape)


def kind_of(path: Path) -> str:
    """h5, keras, onnx, pt2, tflite, saved_model or factory; raises ModelError for anything else."""
    if not path.exists():
        if FACTORY.fullmatch(str(path)):
            return "factory"
        raise ModelError("there is no such file or folder", where=str(path), cure="Check the path.")
    if path.is_dir():
        if (path / "saved_model.pb").is_file():
            return "saved_model"
        raise ModelError("the folder holds no saved_model.pb", where=str(path), cure="Give a SavedModel folder.")
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise ModelError(
            f"cannot read the model: {error.strerror or error}", where=str(path), cure="Check its permissions."
        ) from error
    if head == b"\x89HDF\r\n\x1a\n":
        return "h5"
    if head[4:8] == b"TFL3":
        return "tflite"
    if head.startswith(b"PK"):
        return _kind_of_archive(path)
    return _kind_by_suffix(path, head)


def _kind_of_archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.rpartition("/")[2] for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return _kind_by_suffix(path, b"")
    if {"config.json", "metadata.json"} <= names:
        return "keras"
    if "archive_format" in names or "serialized_exported_program.json" in names:
        return "pt2"
    if "data.pkl" in names:
        raise ModelError(
            "the file is a pickle of PyTorch: weights, or a module that would run code while loading",
            where=str(path),
            cure="Save the model with torch.export.save, or give module:factory and this file as its weights.",
        )
    return _kind_by_suffix(path, b"")


def _kind_by_suffix(path: Path, head: bytes) -> str:
    """For what has no mark of its own (ONNX starts with its version, field 1), and for damaged files."""
    suffix = {".hdf5": ".h5"}.get(path.suffix.lower(), path.suffix.lower()).removeprefix(".")
    if suffix in _LOADERS:
        return suffix
    if head.startswith(b"\x08"):
        return "onnx"
    raise ModelError(
        f"'{path.suffix or path.name}' is no trained model that can be converted",
        where=str(path),
        cure=f"Give {_KINDS}.",
    )
