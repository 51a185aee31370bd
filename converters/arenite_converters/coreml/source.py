# SPDX-License-Identifier: Apache-2.0
"""Trained models as coremltools takes them: a TensorFlow function or an exported PyTorch program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import ModelError, UsageError
from arenite_converters.float_model import FloatModel, package_version
from arenite_converters.loaders import kind_of, load
from arenite_converters.loaders.tensorflow import float_model, frozen, static_shape
from arenite_converters.loaders.torch import exported_factory, exported_module, exported_program, module_runner

__all__ = ["Source", "load_source"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Source:
    """A trained model with one input and one output.

    Attributes:
        model: Frozen TensorFlow function, or exported PyTorch program, in inference form.
        framework: `tensorflow` or `pytorch`.
        shape: Of its input, batch 1, in its own order of axes.
        loader: Library that loaded it, with its version.
        where: Its file, or the kind of the object that was given; for messages.
        run: One input of `shape` to the output, by the framework that trained it.
    """

    model: Any
    framework: str
    shape: tuple[int, ...]
    loader: str
    where: str
    run: Callable[[Array], Array]

    @property
    def channels_first(self) -> bool:
        """Pictures are N×C×H×W."""
        return self.framework == "pytorch"

    def divided(self, std: Sequence[float]) -> Source:
        """The same model behind a layer that divides each channel of a picture by its own number."""
        if self.channels_first:
            return replace(self, model=_divided_torch(self.model, std, self.shape))
        return replace(self, model=_divided_tensorflow(self.model, std, self.shape))


def load_source(
    model: Any,
    input_shape: Sequence[int] | None = None,
    signature: str | None = None,
    weights: Path | str | None = None,
) -> Source:
    """A trained model from its file or its object.

    Args:
        model: .keras or .h5 file, SavedModel folder, .pt2 file of `torch.export.save`, `package.module:factory` of
            PyTorch; or a Keras model, a torch.nn.Module or an exported program.
        input_shape: Without the batch, where the model leaves it open: always for a torch.nn.Module.
        signature: Function of a SavedModel; by default serving_default.
        weights: State dict for a PyTorch factory.

    Raises:
        ModelError: No library can load it, or it has several inputs or outputs.
        UsageError: The input's shape is not known, or an argument does not belong to this kind of model.
        MissingToolError: Its framework is not installed.
    """
    if isinstance(model, str | Path):
        return _of_file(Path(model), input_shape, signature, None if weights is None else Path(weights))
    kinds = {kind.__module__.split(".")[0] for kind in type(model).__mro__}
    where = type(model).__name__
    if "torch" in kinds:
        program = model if hasattr(model, "graph_signature") else exported_module(model, input_shape, where)
        return _of_program(program, where)
    if kinds & {"keras", "tf_keras"}:
        library = "keras" if type(model).__module__.startswith("keras") or "keras" in kinds else "tf_keras"
        loader = f"{library} {package_version(library)}"
        shape = static_shape(model.input_shape, model.output_shape, input_shape, where)
        return _of_tensorflow(float_model(lambda x: model(x, training=False), shape, loader, where), where)
    raise UsageError(
        f"a {where} is no trained model",
        cure="Give a file, a Keras model, a torch.nn.Module or what torch.export.export returns.",
    )


def _of_file(path: Path, input_shape: Sequence[int] | None, signature: str | None, weights: Path | None) -> Source:
    kind = kind_of(path)
    if kind == "pt2":
        return _of_program(exported_program(path), str(path))
    if kind == "factory":
        return _of_program(exported_factory(str(path), weights, input_shape), str(path))
    if kind in ("onnx", "tflite"):
        raise ModelError(
            "Core ML programs are made of TensorFlow and PyTorch models only",
            where=str(path),
            cure="Give the Keras, SavedModel or PyTorch model that this file was made of.",
        )
    return _of_tensorflow(load(path, input_shape, signature=signature, weights=weights), str(path))


def _of_tensorflow(loaded: FloatModel, where: str) -> Source:
    return Source(loaded.function, "tensorflow", loaded.shape, loaded.loader, where, loaded.run)


def _divided_tensorflow(function: Any, std: Sequence[float], shape: tuple[int, ...]) -> Any:
    def call(x: Any) -> Any:
        return function(x / np.asarray(std, np.float32))

    return frozen(call, shape)


def _of_program(program: Any, where: str) -> Source:
    example = list(program.example_inputs[0]) if program.example_inputs else []
    if len(example) != 1 or len(program.graph_signature.user_outputs) != 1:
        raise ModelError("the program has several inputs or outputs", where=where, cure="Give one with one of each.")
    shape = tuple(int(extent) for extent in example[0].shape)
    run = module_runner(program.module())
    return Source(program, "pytorch", shape, f"torch {package_version('torch')}", where, run)


def _divided_torch(program: Any, std: Sequence[float], shape: tuple[int, ...]) -> Any:
    torch = import_module("torch")

    class Divided(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = program.module()
            self.register_buffer("factor", 1 / torch.tensor(list(std)).reshape(1, -1, 1, 1))

        def forward(self, x: Any) -> Any:
            return self.inner(x * self.factor)

        def eval(self) -> Any:
            return self  # an exported module refuses to be told again

    return exported_module(Divided(), shape[1:], "the model behind its normalisation")
