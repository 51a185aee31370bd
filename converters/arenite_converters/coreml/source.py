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

from arenite.errors import MissingToolError, ModelError, UsageError
from arenite_converters.loaders import load, package_version
from arenite_converters.loaders import tensorflow as import_tensorflow

__all__ = ["Source", "load_source"]

Array = npt.NDArray[Any]
_TORCH_CURE = "pip install 'arenite[torch,coreml]'"


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


def load_source(model: Any, input_shape: Sequence[int] | None = None) -> Source:
    """A trained model from its file or its object.

    Args:
        model: .keras or .h5 file, SavedModel folder, .pt2 file of `torch.export.save`; or a Keras model, a
            torch.nn.Module or an exported program.
        input_shape: Without the batch, where the model leaves it open: always for a torch.nn.Module.

    Raises:
        ModelError: No library can load it, or it has several inputs or outputs.
        UsageError: The input's shape is not known.
        MissingToolError: Its framework is not installed.
    """
    if isinstance(model, str | Path):
        path = Path(model)
        return _exported_file(path) if path.suffix == ".pt2" else _tensorflow(path, input_shape)
    kinds = {kind.__module__.split(".")[0] for kind in type(model).__mro__}
    if "torch" in kinds:
        return _torch(model, input_shape, type(model).__name__)
    if kinds & {"keras", "tf_keras"}:
        return _keras(model, input_shape)
    raise UsageError(
        f"a {type(model).__name__} is no trained model",
        cure="Give a file, a Keras model, a torch.nn.Module or what torch.export.export returns.",
    )


def _tensorflow(path: Path, input_shape: Sequence[int] | None) -> Source:
    loaded = load(path, input_shape)
    if loaded.function is None:
        raise ModelError(
            f"Core ML programs are made of TensorFlow and PyTorch models, this is one of {loaded.loader}",
            where=str(path),
            cure="Give the Keras, SavedModel or PyTorch model that it was made of.",
        )
    return Source(loaded.function, "tensorflow", loaded.shape, loaded.loader, str(path), loaded.run)


def _keras(model: Any, input_shape: Sequence[int] | None) -> Source:
    tf = import_tensorflow()
    shape = tuple(model.input_shape[1:]) if input_shape is None else tuple(input_shape)
    if None in shape:
        raise UsageError("the model leaves dimensions of its input open", cure="Give input_shape, such as (224, 224, 3).")
    function = _frozen(lambda x: model(x, training=False), (1, *shape))
    library = type(model).__module__.split(".")[0]
    name = "keras" if library == "keras" else "tf_keras"

    def run(sample: Array) -> Array:
        return np.asarray(function(tf.constant(sample))[0], np.float32)

    return Source(function, "tensorflow", (1, *shape), f"{name} {package_version(name)}", type(model).__name__, run)


def _frozen(call: Callable[[Any], Any], shape: tuple[int, ...]) -> Any:
    tf = import_tensorflow()
    freeze = import_module("tensorflow.python.framework.convert_to_constants")
    traced = tf.function(call).get_concrete_function(tf.TensorSpec(shape, tf.float32))
    return freeze.convert_variables_to_constants_v2(traced)


def _divided_tensorflow(function: Any, std: Sequence[float], shape: tuple[int, ...]) -> Any:
    def call(x: Any) -> Any:
        answer = function(x / np.asarray(std, np.float32))
        return answer[0] if isinstance(answer, list | tuple) else answer

    return _frozen(call, shape)


def _exported_file(path: Path) -> Source:
    torch = _import_torch()
    try:
        program = torch.export.load(str(path))
    except Exception as error:  # whatever a foreign file makes the library raise
        raise ModelError(
            f"PyTorch cannot load the exported program ({str(error).splitlines()[0] if str(error) else error!r})",
            where=str(path),
            cure="Save it again with torch.export.save.",
        ) from error
    return _torch(program, None, str(path))


def _torch(model: Any, input_shape: Sequence[int] | None, where: str) -> Source:
    torch = _import_torch()
    if isinstance(model, torch.nn.Module):
        if input_shape is None:
            raise UsageError(
                "a PyTorch module does not say what shape its input has",
                where=where,
                cure="Give input_shape, channels first, such as (3, 224, 224).",
            )
        model = _export(model.eval(), (1, *input_shape), where)
    example = list(model.example_inputs[0]) if model.example_inputs else []
    if len(example) != 1 or len(model.graph_signature.user_outputs) != 1:
        raise ModelError("the program has several inputs or outputs", where=where, cure="Give one with one of each.")
    module = model.module()

    def run(sample: Array) -> Array:
        with torch.no_grad():
            return np.asarray(module(torch.from_numpy(np.ascontiguousarray(sample))).numpy(), np.float32)

    shape = tuple(int(extent) for extent in example[0].shape)
    return Source(model, "pytorch", shape, f"torch {package_version('torch')}", where, run)


def _divided_torch(program: Any, std: Sequence[float], shape: tuple[int, ...]) -> Any:
    torch = _import_torch()

    class Divided(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = program.module()
            self.register_buffer("factor", 1 / torch.tensor(list(std)).reshape(1, -1, 1, 1))

        def forward(self, x: Any) -> Any:
            return self.inner(x * self.factor)

    return _export(Divided(), shape, "the model behind its normalisation")


def _export(module: Any, shape: tuple[int, ...], where: str) -> Any:
    torch = _import_torch()
    try:
        return torch.export.export(module, (torch.zeros(shape),))
    except Exception as error:  # whatever the module's own code and the exporter raise
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(
            f"torch.export cannot trace the module ({line[:160]})",
            where=where,
            cure="Check input_shape, and that torch.export.export(module, (example,)) works.",
        ) from error


def _import_torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingToolError("PyTorch, which loads the model, is not installed", cure=_TORCH_CURE) from error
