# SPDX-License-Identifier: Apache-2.0
"""A model in the app's process: SingleStream, batch 1, on the engine's own memory."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy.typing as npt

from arenite.cold_start import ColdStart
from arenite.engines import Engine, EngineReport, invoke
from arenite.errors import ConcurrentUseError, ContractError, UsageError
from arenite.graph import Graph
from arenite.output_view import OutputView, why_unreadable

if TYPE_CHECKING:
    from arenite.contract import Contract
    from arenite.detection import Detection, Detections
    from arenite.labels import Label
    from arenite.preprocess import PictureSource, Preprocessor
    from arenite.timing import Timing

__all__ = ["Classification", "Session"]

Array = npt.NDArray[Any]
View = TypeVar("View")


@dataclass(frozen=True)
class Classification:
    """The answer to one picture.

    Attributes:
        labels: Highest score first; none when all are below the threshold that was given.
        timing: Wall time of each stage.
    """

    labels: tuple[Label, ...]
    timing: Timing

    @property
    def best(self) -> Label:
        """The label with the highest score.

        Raises:
            UsageError: None reached the threshold.
        """
        if not self.labels:
            raise UsageError("no label reaches the threshold", cure="Look at `labels` first, or give a lower one.")
        return self.labels[0]


class Session:
    """One model on one engine.

    A session serves one thread at a time. The first thread that touches its inputs or outputs or runs it has it until
    `hand_over` or its own end; `classify` takes it for one picture only. Any other thread gets a
    `ConcurrentUseError` and never another picture's answer. Sessions of their own in several threads are free of this.

    Args:
        graph: The model.
        engine: Runs it.
        contract: How pictures become its input and what its output means; None if unknown.
        preprocessing: `exact` or `fast`, see `arenite.preprocess`.
        cold_start: How it was opened.
    """

    def __init__(
        self,
        graph: Graph,
        engine: Engine,
        contract: Contract | None,
        preprocessing: str = "exact",
        cold_start: ColdStart | None = None,
    ) -> None:
        self.path = graph.path
        self.model_sha256 = graph.sha256
        self.contract = contract
        self.cold_start = cold_start or ColdStart((), 0.0)
        self._engine = engine
        self._generation = [0]
        self._preprocessing = preprocessing
        self._preprocessor: Preprocessor | None = None
        # Weak: of a thread that Python did not start nothing tells the end but that its object goes.
        self._owner: weakref.ref[threading.Thread] | None = None
        self._claiming = threading.Lock()

    @property
    def report(self) -> EngineReport:
        """Which engine, version, kernels and rounding rule; which operators run where; what was refused."""
        return self._engine.report

    def _owning(self) -> threading.Thread | None:
        return None if self._owner is None else self._owner()

    def _claim(self) -> None:
        """Take the session for this thread.

        Raises:
            ConcurrentUseError: Another one that still lives has it.
        """
        # Not by its number, which the operating system gives to another thread once this one has ended.
        me = threading.current_thread()
        if self._owning() is me:
            return
        with self._claiming:
            owner = self._owning()
            if owner is not None and owner.is_alive():
                raise ConcurrentUseError(
                    f"the session is in use by the thread '{owner.name}'",
                    where=self.path,
                    cure="Open one session for each thread, or call session.hand_over() there first.",
                )
            self._owner = weakref.ref(me)

    def hand_over(self) -> None:
        """Let another thread have the session from now on.

        Raises:
            ConcurrentUseError: It belongs to another one.
        """
        self._claim()
        self._owner = None

    @property
    def inputs(self) -> tuple[Array, ...]:
        """Writable views on the input tensors, in the engine's memory. Load all of them before each run."""
        self._claim()
        return self._engine.inputs

    @property
    def input(self) -> Array:
        """The only input.

        Raises:
            UsageError: There are several.
        """
        return _only(self.inputs, "input", self.path)

    @property
    def outputs(self) -> tuple[OutputView, ...]:
        """Read-only views on the output tensors; reading one raises before the first run and once stale."""
        self._claim()
        return tuple(OutputView(view, self._generation) for view in self._engine.outputs)

    @property
    def output(self) -> OutputView:
        """The only output.

        Raises:
            UsageError: There are several.
        """
        return _only(self.outputs, "output", self.path)

    def run(self) -> None:
        """Run the model once on what lies in the inputs. Output views taken earlier become stale.

        Raises:
            ModelError: The engine fails; there is no output then.
            ConcurrentUseError: Another thread has the session.
        """
        self._claim()
        # Odd while a run lasts, and for good when it fails: then no output is fresh.
        self._generation[0] += 1 + self._generation[0] % 2
        invoke(self._engine, self.path)
        self._generation[0] += 1

    def reset(self) -> None:
        """Put a stateful model's variables back to their initial values."""
        self._claim()
        self._engine.reset()

    @property
    def preprocessor(self) -> Preprocessor:
        """Makes pictures into the input tensor.

        Raises:
            ContractError: The model's contract does not say how.
        """
        if self._preprocessor is None:
            from arenite.preprocess import Preprocessor

            self._preprocessor = Preprocessor(self.known_contract.input, self._preprocessing)
            if self._preprocessing == "fast" or self.report.engine == "aot":
                self._preprocessor.compile_resize()
        return self._preprocessor

    @property
    def known_contract(self) -> Contract:
        """The contract.

        Raises:
            ContractError: The model carries none and none was given.
        """
        if self.contract is None:
            raise ContractError(
                "the model carries no contract, so how a picture becomes its input is unknown",
                where=self.path,
                cure="Convert it with arenite, or open it with contract=arenite.make_contract(...).",
            )
        return self.contract

    def classify(
        self,
        picture: PictureSource,
        top_k: int = 5,
        *,
        threshold: float | None = None,
        temperature: float = 1.0,
    ) -> Classification:
        """Classify one picture by the contract.

        Args:
            picture: Path, file bytes, Pillow image, uint8 array H×W×3 in RGB order or H×W of any strides, or a camera's
                `Frame`.
            top_k: How many labels to return.
            threshold: The lowest score that counts; with it there may be no label.
            temperature: Divides logits before the softmax.

        Raises:
            ContractError: The contract does not say how a picture becomes the input.
            UsageError: The picture cannot be read or decoded, or another argument is wrong.
            ConcurrentUseError: Another thread has the session.
        """
        with self.held():
            marks, _ = self._infer(picture)
            labels = self.labels(top_k, threshold=threshold, temperature=temperature)
            return Classification(labels, _timing(marks))

    def detect(
        self, picture: PictureSource, *, threshold: float = 0.25, overlap: float = 0.45, most: int = 100
    ) -> Detections:
        """Find things in one picture, by a contract whose output holds boxes.

        Args:
            picture: As for `classify`.
            threshold: The lowest score that counts.
            overlap: Of two boxes of one class whose intersection over union is above, the lower one goes.
            most: Boxes at most.

        Raises:
            ContractError: The contract has no output of boxes, or does not say how a picture becomes the input.
            UsageError: The picture cannot be read or decoded, or another argument is wrong.
            ConcurrentUseError: Another thread has the session.
        """
        from arenite.detection import Detections, boxes_output

        with self.held():
            boxes_output(self.known_contract)
            marks, size = self._infer(picture)
            found = self.boxes(size, threshold=threshold, overlap=overlap, most=most)
            return Detections(found, _timing(marks))

    def labels(
        self, top_k: int = 5, *, threshold: float | None = None, temperature: float = 1.0
    ) -> tuple[Label, ...]:
        """What the last run answered, as labels; arguments and errors as for `classify`.

        Raises:
            StaleOutputError: The session has not run yet, or its last run failed.
        """
        from arenite.labels import top

        spec = self.known_contract.outputs[0]
        return top(self._answered()[0], spec, top_k, threshold, temperature)

    def boxes(
        self, size: tuple[int, int], *, threshold: float = 0.25, overlap: float = 0.45, most: int = 100
    ) -> tuple[Detection, ...]:
        """What the last run found, as boxes; arguments and errors as for `detect`.

        Args:
            size: Width and height of the upright picture, in whose pixels the boxes are.
            threshold: As for `detect`.
            overlap: As for `detect`.
            most: As for `detect`.

        Raises:
            StaleOutputError: The session has not run yet, or its last run failed.
        """
        from arenite.detection import detect

        how = self.preprocessor
        return detect(
            self._answered(),
            self.known_contract,
            how.size,
            how.box(size),
            size,
            threshold=threshold,
            overlap=overlap,
            most=most,
        )

    def _answered(self) -> tuple[Array, ...]:
        self._claim()
        generation = self._generation[0]
        if reason := why_unreadable(generation, generation):
            raise reason[1]
        return self._engine.outputs

    @contextmanager
    def held(self) -> Iterator[None]:
        """The session is this thread's for the block, and stays so only if it was before.

        Raises:
            ConcurrentUseError: Another thread has it.
        """
        had = self._owning() is threading.current_thread()
        self._claim()
        try:
            yield
        finally:
            if not had:
                self.hand_over()

    def _infer(self, picture: PictureSource) -> tuple[list[float], tuple[int, int]]:
        """Runs the model on a picture: the times between the stages, and the upright picture's extents."""
        from arenite.preprocess import read_picture

        preprocessor = self.preprocessor
        target = self.input
        where = str(picture) if isinstance(picture, (str, os.PathLike)) else None
        marks = [time.perf_counter()]
        content = read_picture(picture)
        # Only a file is read; passing anything else through takes no time that belongs to a stage.
        marks.append(time.perf_counter() if where else marks[0])
        image, size = preprocessor.decode_sized(content, where)
        marks.append(time.perf_counter())
        preprocessor.fit_into(image, target)
        marks.append(time.perf_counter())
        self.run()
        marks.append(time.perf_counter())
        return marks, size


def _timing(marks: list[float]) -> Timing:
    """What came after the last mark is the stage `post`."""
    from arenite.timing import Timing

    return Timing(*(1e3 * (b - a) for a, b in pairwise([*marks, time.perf_counter()])))


def _only(views: tuple[View, ...], what: str, where: str) -> View:
    if len(views) != 1:
        raise UsageError(f"the model has {len(views)} {what}s", where=where, cure=f"Use session.{what}s.")
    return views[0]
