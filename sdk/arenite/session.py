# SPDX-License-Identifier: Apache-2.0
"""A model in the app's process: SingleStream, batch 1, on the engine's own memory."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import Contract, checked_contract, contract_of
from arenite.engines.litert import EngineReport, LiteRt
from arenite.errors import ContractError, UsageError
from arenite.labels import Label, top
from arenite.preprocess import PictureSource, Preprocessor, decode_picture, read_picture
from arenite.tflite_graph import Graph, read_graph
from arenite.timing import Timing

__all__ = ["Classification", "OutputView", "Session", "StaleOutputError", "open_session"]

Array = npt.NDArray[Any]


class StaleOutputError(UsageError):
    """An output view was read before the session's first run, or after the session ran again."""


@dataclass(frozen=True)
class Classification:
    """The answer to one picture.

    Attributes:
        labels: Highest score first.
        timing: Wall time of each stage.
    """

    labels: tuple[Label, ...]
    timing: Timing

    @property
    def best(self) -> Label:
        """The label with the highest score."""
        return self.labels[0]


class OutputView(np.lib.mixins.NDArrayOperatorsMixin):
    """Read-only view on an output tensor, good until the next run.

    It lives on the engine's memory and keeps the engine alive. Reading it before the first run or after the
    next one raises `StaleOutputError` instead of showing what is no answer of this inference; `copy()` and
    `numpy.asarray` give arrays of your own. Everything that an array can do works on it, on a copy.
    """

    def __init__(self, view: Array, generation: list[int]) -> None:
        self._view = view
        self._generation = generation
        self._born = generation[0]

    def _fresh(self) -> Array:
        if self._generation[0] == 0:
            raise StaleOutputError(
                "the session has not run yet, so there is no output",
                cure="Fill session.input, call session.run(), then read session.output.",
            )
        if self._generation[0] != self._born:
            raise StaleOutputError(
                "the output is stale: the session ran again after it was taken",
                cure="Take session.output after the run, or keep session.output.copy().",
            )
        return self._view

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor, readable when stale too."""
        return tuple(self._view.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the tensor, readable when stale too."""
        return self._view.dtype

    def copy(self) -> Array:
        """An array of your own."""
        return np.array(self._fresh())

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an output view cannot be shared: it goes stale at the next run; use a copy")
        return np.array(self._fresh(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(out, OutputView) for out in kwargs.get("out", ())):
            raise ValueError("an output view is read-only")
        plain = [value.copy() if isinstance(value, OutputView) else value for value in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        part = self._fresh()[key]
        return part.copy() if isinstance(part, np.ndarray) else part

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ValueError("an output view is read-only")

    def __len__(self) -> int:
        return len(self._view)

    def __bool__(self) -> bool:
        return bool(self._fresh())

    def __int__(self) -> int:
        return int(self._fresh().item())

    def __float__(self) -> float:
        return float(self._fresh().item())

    def __complex__(self) -> complex:
        return complex(self._fresh().item())

    def __index__(self) -> int:
        return operator.index(self._fresh().item())

    def __contains__(self, value: object) -> bool:
        return value in self._fresh()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.copy())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        copied = self.copy()
        copied.flags.writeable = False
        return getattr(copied, name)

    def __repr__(self) -> str:
        if self._generation[0] != self._born:
            return f"OutputView(stale, {self.dtype}{list(self.shape)})"
        if self._generation[0] == 0:
            return f"OutputView(not run yet, {self.dtype}{list(self.shape)})"
        return f"OutputView({self._view!r})"


class Session:
    """One model on one engine. Not for use by several threads at once.

    Args:
        graph: The model.
        engine: Runs it.
        contract: How pictures become its input and what its output means; None if unknown.
    """

    def __init__(self, graph: Graph, engine: LiteRt, contract: Contract | None) -> None:
        self.path = graph.path
        self.model_sha256 = graph.sha256
        self.contract = contract
        self._engine = engine
        self._generation = [0]
        self._preprocessor: Preprocessor | None = None

    @property
    def report(self) -> EngineReport:
        """Which engine, version, kernels and rounding rule; which operators run where."""
        return self._engine.report

    @property
    def inputs(self) -> tuple[Array, ...]:
        """Writable views on the input tensors, in the engine's memory. Load all of them before each run."""
        return self._engine.inputs

    @property
    def input(self) -> Array:
        """The only input.

        Raises:
            UsageError: There are several.
        """
        return _only(self._engine.inputs, "input", self.path)

    @property
    def outputs(self) -> tuple[OutputView, ...]:
        """Read-only views on the output tensors; reading one raises before the first run and once stale."""
        return tuple(OutputView(view, self._generation) for view in self._engine.outputs)

    @property
    def output(self) -> OutputView:
        """The only output.

        Raises:
            UsageError: There are several.
        """
        return OutputView(_only(self._engine.outputs, "output", self.path), self._generation)

    def run(self) -> None:
        """Run the model once on what lies in the inputs. Output views taken earlier become stale."""
        self._generation[0] += 1
        self._engine.invoke()

    def reset(self) -> None:
        """Put a stateful model's variables back to their initial values."""
        self._engine.reset()

    @property
    def preprocessor(self) -> Preprocessor:
        """Makes pictures into the input tensor.

        Raises:
            ContractError: The model's contract does not say how.
        """
        if self._preprocessor is None:
            self._preprocessor = Preprocessor(self._known_contract().input)
        return self._preprocessor

    def _known_contract(self) -> Contract:
        if self.contract is None:
            raise ContractError(
                "the model carries no contract, so how a picture becomes its input is unknown",
                where=self.path,
                cure="Convert it with arenite, or open it with contract=arenite.make_contract(...).",
            )
        return self.contract

    def classify(self, picture: PictureSource, top_k: int = 5) -> Classification:
        """Classify one picture by the contract.

        Args:
            picture: Path, file bytes, Pillow image, or uint8 array H×W×3 in RGB order or H×W.
            top_k: How many labels to return.

        Raises:
            ContractError: The contract does not say how a picture becomes the input.
            UsageError: The picture cannot be read or decoded, or `top_k` is below 1.
        """
        spec = self._known_contract().outputs[0]
        preprocessor = self.preprocessor
        target = self.input
        where = str(picture) if isinstance(picture, (str, Path)) else None
        marks = [time.perf_counter()]
        content = read_picture(picture)
        # Only a file is read; passing anything else through takes no time that belongs to a stage.
        marks.append(time.perf_counter() if where else marks[0])
        image = decode_picture(content, preprocessor.orientation, where)
        marks.append(time.perf_counter())
        preprocessor.write(preprocessor.fit(image), target)
        marks.append(time.perf_counter())
        self.run()
        marks.append(time.perf_counter())
        labels = top(self._engine.outputs[0], spec, top_k)
        marks.append(time.perf_counter())
        return Classification(labels, Timing(*(1e3 * (b - a) for a, b in pairwise(marks))))


def _only(views: tuple[Array, ...], what: str, where: str) -> Array:
    if len(views) != 1:
        raise UsageError(f"the model has {len(views)} {what}s", where=where, cure=f"Use session.{what}s.")
    return views[0]


def open_session(
    path: Path | str, *, threads: int = 1, kernels: str = "fast", contract: Contract | None = None
) -> Session:
    """Open a model; see `arenite.open`."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise UsageError(f"threads must be an integer of at least 1, not {threads!r}")
    graph = read_graph(path)
    contract = contract_of(graph) if contract is None else checked_contract(contract, graph)
    return Session(graph, LiteRt(graph, threads, kernels), contract)
