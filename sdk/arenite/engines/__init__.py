# SPDX-License-Identifier: Apache-2.0
"""Engines: what runs a model in this process, behind one small interface.

To add one: a module here with a class that has the members of `Engine`, a row in `ENGINES`, a test file.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from arenite.cold_start import Timeline
from arenite.errors import FallbackWarning, MissingToolError, ModelError, UsageError
from arenite.graph import Graph

__all__ = [
    "ENGINES",
    "Engine",
    "EngineOptions",
    "EngineReport",
    "Placement",
    "Refusal",
    "aligned_array",
    "first_line",
    "invoke",
    "kinds_of",
    "only_fast_kernels",
    "open_engine",
    "read_only",
    "refuse",
]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class EngineOptions:
    """What is asked of an engine.

    Attributes:
        threads: At least 1.
        kernels: `fast`, `builtin` or `reference`; the last two only where an engine has a choice.
        delegate: What shall run the operators instead of the engine's own kernels: for LiteRT and tflite-runtime the
            path of a delegate's library, for ONNX Runtime the name of an execution provider.
        delegate_options: Its own options.
        mmap: Let the engine map the model's file; without it the file is read, and may be replaced or removed after.
    """

    threads: int = 1
    kernels: str = "fast"
    delegate: str | None = None
    delegate_options: Mapping[str, str] = field(default_factory=dict)
    mmap: bool = True


@dataclass(frozen=True)
class Placement:
    """Operators that run in one place.

    Attributes:
        where: `LiteRT`, `XNNPACK`, a delegate, an execution provider or `generated C`.
        operators: How many of each kind; an engine that fuses operators names the fused ones.
    """

    where: str
    operators: Mapping[str, int]


@dataclass(frozen=True)
class Refusal:
    """Something that was asked for and not done.

    Attributes:
        what: The engine, delegate or option.
        reason: Why not, in the words of who refused.
        operators: Kinds of operators that run elsewhere in consequence.
    """

    what: str
    reason: str
    operators: tuple[str, ...] = ()


@dataclass(frozen=True)
class EngineReport:
    """Which engine runs the model, what runs where, and what was refused.

    Attributes:
        engine: Its name in `ENGINES`.
        version: Its package's version, or the compiler that built the code.
        kernels: `fast` (the engine's best), `builtin` or `reference`.
        rounding: Rule of its quantised kernels: `double` (the reference's and the firmware's), `float` (XNNPACK's and
            ONNX Runtime's), or `mixed` (double, but once in FULLY_CONNECTED). Bytes of two rules may differ by a step.
        threads: How many the engine runs on.
        placements: Which operators run where.
        refusals: What was asked for and not done, and why.
        keeps_inputs: False when a run may overwrite the inputs, so that they must be written before each run.
    """

    engine: str
    version: str
    kernels: str
    rounding: str
    threads: int
    placements: tuple[Placement, ...]
    refusals: tuple[Refusal, ...] = ()
    keeps_inputs: bool = True


class Engine(Protocol):
    """One model, ready to run.

    Attributes:
        inputs: Writable arrays, one a tensor, that `invoke` reads. They keep their memory alive.
        outputs: Read-only arrays that `invoke` fills; a model of dynamic shapes may have others after each run.
        invoke: One inference.
        report: What runs where.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    invoke: Callable[[], Any]
    report: EngineReport

    def reset(self) -> None:
        """Put a stateful model's variables back to their initial values."""


class _Row(NamedTuple):
    """Where an engine is, and for which formats it is tried when none is named (`chosen`) or only on request."""

    module: str
    kind: str
    format: str
    chosen: bool


ENGINES: Mapping[str, _Row] = {
    "litert": _Row("arenite.engines.litert", "LiteRt", "tflite", True),
    "tflite-runtime": _Row("arenite.engines.litert", "TfliteRuntime", "tflite", True),
    "aot": _Row("arenite.engines.aot", "Aot", "tflite", False),
    "onnxruntime": _Row("arenite.engines.ort", "OnnxRuntime", "onnx", True),
    "coreml": _Row("arenite.engines.coreml", "CoreMl", "coreml", True),
}


def open_engine(name: str | None, graph: Graph, options: EngineOptions, timeline: Timeline) -> Engine:
    """Open a model on the engine of that name, or on the first that is installed.

    A named engine opens or fails. Without a name, an engine whose package is missing is passed over, and the report of
    the one that opened says so.

    Raises:
        UsageError: No such engine, or it does not read this format.
        MissingToolError: Its package is not installed, or none is.
        ModelError: The engine refuses the model.
    """
    if name is not None:
        return _engine_class(name, graph)(graph, options, timeline)
    missing: list[tuple[str, MissingToolError]] = []
    for candidate, row in ENGINES.items():
        if row.format != graph.format or not row.chosen:
            continue
        try:
            engine = _engine_class(candidate, graph)(graph, options, timeline)
        except MissingToolError as error:
            missing.append((candidate, error))
            continue
        engine.report = _with_refusals(engine.report, missing)
        return engine
    raise missing[0][1]


def invoke(engine: Engine, path: str) -> None:
    """One inference.

    Args:
        engine: Runs it.
        path: Of the model, for the message.

    Raises:
        ModelError: The engine fails.
    """
    try:
        engine.invoke()
    except Exception as error:  # each engine has exceptions of its own
        raise ModelError(
            f"{engine.report.engine} failed to run the model ({first_line(error)})",
            where=path,
            cure="Try another engine, or look at the model with: arenite inspect MODEL",
        ) from error


def _engine_class(name: str, graph: Graph) -> Callable[[Graph, EngineOptions, Timeline], Engine]:
    able = [key for key, row in ENGINES.items() if row.format == graph.format]
    if name not in able:
        raise UsageError(
            f"there is no engine '{name}' for a {graph.format} model",
            where=graph.path,
            cure=f"Use {' or '.join(able)}, or leave the choice open.",
        )
    row = ENGINES[name]
    return cast("Callable[[Graph, EngineOptions, Timeline], Engine]", getattr(import_module(row.module), row.kind))


def _with_refusals(report: EngineReport, missing: list[tuple[str, MissingToolError]]) -> EngineReport:
    passed = tuple(Refusal(f"engine {name}", error.what) for name, error in missing)
    return replace(report, refusals=(*passed, *report.refusals))


def refuse(what: str, reason: str, operators: Iterable[str] = (), *, consequence: str) -> Refusal:
    """A refusal, said at once as a `FallbackWarning` that names the operators concerned."""
    kinds = tuple(sorted(set(operators)))
    named = f"; {consequence}" + (f": {', '.join(kinds)}" if kinds else "")
    warnings.warn(f"{what} was refused ({reason}){named}", FallbackWarning, stacklevel=2)
    return Refusal(what, reason, kinds)


def only_fast_kernels(engine: str, options: EngineOptions) -> None:
    """Refuse a choice of kernels where there is none.

    Raises:
        UsageError: `options.kernels` is not `fast`.
    """
    if options.kernels != "fast":
        raise UsageError(f"engine '{engine}' has no kernels '{options.kernels}'", cure="Use kernels='fast'.")


def kinds_of(graph: Graph) -> dict[str, int]:
    """How many operators of each kind a model holds."""
    return dict(sorted(Counter(op.kind for op in graph.operators).items()))


def first_line(error: Exception) -> str:
    """The first line that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def read_only(array: Array) -> Array:
    """A view that cannot be written through."""
    view: Array = array.view()
    view.flags.writeable = False
    return view


def aligned_array(shape: tuple[int, ...], dtype: npt.DTypeLike, alignment: int = 64) -> Array:
    """Zeros on a boundary that every engine's vector loads like."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    memory = np.zeros(size + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    return memory[start : start + size].view(kind).reshape(shape)
