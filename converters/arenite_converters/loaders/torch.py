# SPDX-License-Identifier: Apache-2.0
"""PyTorch models: an exported program, or a factory function with a state dict; both through ONNX.

Nothing is unpickled that could run code: weights are read with `weights_only`. A factory is the user's own code.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import MissingToolError, ModelError, UnsupportedOperatorError, UsageError
from arenite_converters.float_model import FloatModel, first_line, first_value, package_version
from arenite_converters.loaders.onnx import import_model
from arenite_converters.onnx_import.graph import described

__all__ = [
    "FACTORY",
    "exported_factory",
    "exported_module",
    "exported_program",
    "load_factory",
    "load_program",
    "module_runner",
]

# package.module:function
FACTORY = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_OPSET = 20  # the first with an operator for GELU
_UNKNOWN = re.compile(r"No (?:ONNX function|decompositions) .*?op='([\w:.]+)'")
_CURE = "pip install 'arenite[torch]'"


def load_program(path: Path, input_shape: Sequence[int] | None) -> FloatModel:
    """Load a program that `torch.export.save` wrote.

    Args:
        path: The .pt2 file.
        input_shape: Without the batch, channels first, for a program with open dimensions.

    Raises:
        ModelError: PyTorch cannot load it, or it has several inputs or outputs.
        UnsupportedOperatorError: An operator cannot be converted.
        MissingToolError: PyTorch is not installed.
    """
    program = exported_program(path)
    return _imported(program, program.module(), input_shape, str(path), "PyTorch exported program")


def exported_program(path: Path) -> Any:
    """What `torch.export.save` wrote; raises as `load_program`."""
    torch = _torch()
    try:
        with _weights_only():
            return torch.export.load(str(path))
    except Exception as error:  # whatever a foreign file makes the library raise
        raise ModelError(
            f"PyTorch cannot load the exported program ({first_line(error)})",
            where=str(path),
            cure="Export it again with torch.export.save, with tensors of ordinary kinds only.",
        ) from error


def load_factory(spec: str, weights: Path | None, input_shape: Sequence[int] | None) -> FloatModel:
    """Call a function that makes a torch.nn.Module, and load its weights.

    Args:
        spec: `package.module:function`, importable or in the current folder.
        weights: File of a state dict; without one the module is taken as it is made.
        input_shape: Without the batch, channels first.

    Raises:
        UsageError: No such function, or no input shape.
        ModelError: It makes no module, or the weights do not fit.
        UnsupportedOperatorError: An operator cannot be converted.
        MissingToolError: PyTorch is not installed.
    """
    program = exported_factory(spec, weights, input_shape)
    return _imported(program, program.module(), None, spec, "PyTorch module")


def exported_factory(spec: str, weights: Path | None, input_shape: Sequence[int] | None) -> Any:
    """The program of what a factory makes; raises as `load_factory`."""
    module = _made(spec)
    if weights is not None:
        _load_weights(_checked(module, spec), weights)
    return exported_module(module, input_shape, spec)


def exported_module(module: Any, input_shape: Sequence[int] | None, where: str) -> Any:
    """The program of a torch.nn.Module in inference form.

    Args:
        module: The module.
        input_shape: Without the batch, channels first.
        where: For messages.

    Raises:
        UsageError: No input shape.
        ModelError: It is no module, or cannot be traced.
    """
    torch = _torch()
    if input_shape is None:
        raise UsageError(
            "a PyTorch module does not say what shape its input has",
            where=where,
            cure="Give input_shape, channels first, such as (3, 224, 224).",
        )
    _checked(module, where).eval()
    try:
        return torch.export.export(module, (torch.zeros(1, *input_shape),))
    except Exception as error:  # whatever the module's own code and the exporter raise
        raise ModelError(
            f"torch.export cannot trace the module ({first_line(error)})",
            where=where,
            cure="Check input_shape, and that torch.export.export(module, (example,)) works.",
        ) from error


def _checked(module: Any, where: str) -> Any:
    if not isinstance(module, _torch().nn.Module):
        raise ModelError(
            f"the function returns {type(module).__name__}, no torch.nn.Module",
            where=where,
            cure="Name a function without arguments that returns the module.",
        )
    return module


def _torch() -> Any:
    try:
        import_module("onnxscript")  # what PyTorch's exporter needs
        return import_module("torch")
    except ImportError as error:
        raise MissingToolError(
            f"{error.name or 'torch'}, which loads the model, is not installed", cure=_CURE
        ) from error


def _made(spec: str) -> Any:
    match = FACTORY.fullmatch(spec)
    assert match is not None  # that is how the model was recognised
    sys.path.insert(0, str(Path.cwd()))
    try:
        function = getattr(import_module(match[1]), match[2])
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"there is no such function ({first_line(error)})",
            where=spec,
            cure="Give package.module:function, importable from the current folder.",
        ) from error
    finally:
        sys.path.remove(str(Path.cwd()))
    try:
        return function()
    except Exception as error:  # the user's own code
        raise ModelError(
            f"the function failed ({type(error).__name__}: {first_line(error)})",
            where=spec,
            cure="It is called without arguments.",
        ) from error


def _load_weights(module: Any, weights: Path) -> None:
    try:
        state = _torch().load(str(weights), map_location="cpu", weights_only=True)
        module.load_state_dict(state.get("state_dict", state))
    except Exception as error:  # a missing file, a pickle with code, keys that do not fit
        raise ModelError(
            f"the weights cannot be loaded ({' '.join(str(error).split())[:160]})",
            where=str(weights),
            cure="Save them with torch.save(module.state_dict(), ...) from a module of the same kind.",
        ) from error


@contextmanager
def _weights_only() -> Iterator[None]:
    """torch.export.load has no such argument of its own and would unpickle what a file asks for."""
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _imported(
    program: Any, module: Any, input_shape: Sequence[int] | None, where: str, kind: str
) -> FloatModel:
    loader = f"{kind}, torch {package_version('torch')}"
    return import_model(_as_onnx(program, where), input_shape, where, loader, module_runner(module))


def module_runner(module: Any) -> Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]:
    """A module of one input as a function of NumPy's arrays; its first output."""
    torch = import_module("torch")

    def run(sample: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        with torch.no_grad():
            output = first_value(module(torch.from_numpy(np.ascontiguousarray(sample))))
        return np.asarray(output.numpy(), np.float32)

    return run


def _as_onnx(program: Any, where: str) -> Any:
    try:
        exported = _torch().onnx.export(program, dynamo=True, opset_version=_OPSET, verbose=False)
    except Exception as error:  # the exporter wraps what its many parts raise
        unknown = _UNKNOWN.search(str(error))
        raise UnsupportedOperatorError(
            f"PyTorch has no ONNX form of {_named(program, unknown[1])}"
            if unknown
            else f"PyTorch cannot export the model ({first_line(error)})",
            where=where,
            cure="Replace the operator that is named by ordinary ones.",
        ) from error
    return exported.model_proto


def _named(program: Any, kind: str) -> str:
    """An operator with its node, module path and source line."""
    # The exporter names the operator that its own decomposition ends in, such as prims.x for aten.special_x.
    base = kind.rpartition(".")[2].rpartition(":")[2]
    for node in program.graph.nodes:
        if node.op == "call_function" and base in str(node.target):
            scopes = [path for path, _ in node.meta.get("nn_module_stack", {}).values()]
            return described(kind, node.name, scopes[-1] if scopes else "", node.meta.get("stack_trace", ""))
    return kind
