# SPDX-License-Identifier: Apache-2.0
"""LiteRT (`ai-edge-litert`) as an engine, with views on its own input and output memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import MissingToolError, ModelError, UsageError
from arenite.tflite_graph import Graph

__all__ = ["EngineReport", "KERNELS", "LiteRt"]

Array = npt.NDArray[Any]
# Name: member of LiteRT's OpResolverType, and the rounding rule of its quantised kernels.
KERNELS = {
    "fast": ("AUTO", "float"),
    "builtin": ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "mixed"),
    "reference": ("BUILTIN_REF", "mixed"),
}


@dataclass(frozen=True)
class EngineReport:
    """Which engine runs the model, and what runs where.

    Attributes:
        engine: Name of the engine.
        version: Its package's version.
        kernels: `fast` (XNNPACK where it can), `builtin` or `reference`.
        rounding: Rule of its quantised kernels: `float` (XNNPACK's), or `mixed` (double rounding, but once in
            FULLY_CONNECTED). Output bytes may differ by a step from firmware, which rounds twice throughout.
        threads: How many were asked of the engine.
        delegated: Operators that the XNNPACK delegate runs.
        own: Operators that the engine's own kernels run, by kind.
    """

    engine: str
    version: str
    kernels: str
    rounding: str
    threads: int
    delegated: int
    own: tuple[str, ...]


class LiteRt:
    """One interpreter. Inputs are writable views on its memory, outputs read-only ones.

    Args:
        graph: The model, already read; its file is mapped by the interpreter.
        threads: At least 1.
        kernels: A key of `KERNELS`.

    Raises:
        MissingToolError: `ai-edge-litert` is not installed.
        ModelError: LiteRT refuses the model.
    """

    def __init__(self, graph: Graph, threads: int = 1, kernels: str = "fast") -> None:
        if kernels not in KERNELS:
            raise UsageError(f"unknown kernels '{kernels}'", cure="Use one of " + ", ".join(KERNELS) + ".")
        self._interpreter = _interpreter(graph, threads, KERNELS[kernels][0])
        self.inputs = tuple(self._view(d, True) for d in self._interpreter.get_input_details())
        self.outputs = tuple(self._view(d, False) for d in self._interpreter.get_output_details())
        self.invoke = self._interpreter.invoke
        self.report = _report(self._interpreter, graph, threads, kernels)

    def reset(self) -> None:
        """Put a stateful model's variables back to their initial values."""
        self._interpreter.reset_all_variables()

    def _view(self, details: dict[str, Any], writable: bool) -> Array:
        # LiteRT refuses to run while one of its own views lives, so only the address is taken from it. The
        # address stays: shapes are static and tensors are allocated once.
        own = self._interpreter.tensor(details["index"])()
        address, shape, dtype = own.__array_interface__["data"][0], own.shape, own.dtype
        del own
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory: Any = (ctypes.c_uint8 * count).from_address(address)
        # Every view and slice ends in `memory`, which keeps the interpreter alive.
        memory.owner = self._interpreter
        view: Array = np.frombuffer(memory, dtype).reshape(shape)
        view.flags.writeable = writable
        return view


def _interpreter(graph: Graph, threads: int, resolver: str) -> Any:
    try:
        from ai_edge_litert import interpreter as litert
    except ImportError as error:
        raise MissingToolError(
            "no engine to run the model: the package ai-edge-litert is not installed",
            where=graph.path,
            cure="pip install 'arenite[litert]'",
        ) from error
    try:
        interpreter = litert.Interpreter(
            model_path=graph.path,
            num_threads=threads,
            experimental_op_resolver_type=getattr(litert.OpResolverType, resolver),
        )
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise ModelError(
            f"LiteRT refuses the model ({_first_line(error)})",
            where=graph.path,
            cure="Look for what it names with: arenite inspect MODEL",
        ) from error
    return interpreter


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _report(interpreter: Any, graph: Graph, threads: int, kernels: str) -> EngineReport:
    delegated = _delegated(interpreter._get_ops_details(), graph)
    own = sorted({op.kind for op in graph.operators if op.index not in delegated})
    return EngineReport(
        engine="litert",
        version=_version("ai-edge-litert"),
        kernels=kernels,
        rounding=KERNELS[kernels][1] if kernels != "fast" or delegated else "mixed",
        threads=threads,
        delegated=len(delegated),
        own=tuple(own),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _delegated(details: Sequence[dict[str, Any]], graph: Graph) -> set[int]:
    """Operators that lie between the inputs and the outputs of a delegate's nodes."""
    producers = {index: op for op in graph.operators for index in op.outputs}
    found: set[int] = set()
    for node in details:
        if node["op_name"] != "DELEGATE":
            continue
        stop = {int(i) for i in node["inputs"]}
        pending = [int(i) for i in node["outputs"]]
        while pending:
            tensor = pending.pop()
            op = producers.get(tensor)
            if op is None or tensor in stop or op.index in found:
                continue
            found.add(op.index)
            pending.extend(op.inputs)
    return found
