# SPDX-License-Identifier: Apache-2.0
"""Frames from a source to answers, every stage timed; the next frame is decoded while one is inferred.

    pipeline = arenite.Pipeline(session, "pictures/", budget_ms=50)
    for frame in pipeline:
        print(frame.name, frame.answer[0].text)
    print(pipeline.report())

Overlapped, a thread of its own takes frames from the source, reads, decodes and resizes them into tensors of its own;
the thread that iterates runs the model. It alone touches the session, so the session stays that thread's. Decoders,
resizers and engines let go of Python's lock while they work, so two cores work at once.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from typing import Any

from arenite._channel import Channel, end_feeder
from arenite.degrade import Chooser, FrameSkipper, as_chooser
from arenite.errors import FrameError, UsageError
from arenite.pipeline_report import PipelineReport, Recorder, check_budget
from arenite.preparing import Array, FrameAnswer, Post, Prepared, answer, answered, frames_of, prepare, standard_post
from arenite.preprocess import PictureSource
from arenite.session import Session
from arenite.sources import FrameSource, open_source
from arenite.thermal import ThermalWatch

__all__ = ["Pipeline", "post_of"]

# One is prepared while the other is copied into the model.
_TENSORS = 2


class Pipeline:
    """Runs once over a source; iterate over it, or `run` it.

    Args:
        model: A session, or what chooses one: `Cascade`, `AdaptiveSize`.
        source: Any iterable of pictures, a folder, a camera's name; see `arenite.open_source`. It is closed at the end.
        overlap: Prepare the next frame in a thread of its own.
        budget_ms: What a frame may take, from the moment the source gave it to its answer.
        percentile: So many per cent of the frames must keep it.
        every_ms: A frame is due so often: when frames cost more, some are skipped and the last answer stands for them.
        post: Makes the answer of a session that has run; None gives labels or boxes by the contract.
        top_k: Labels at most.
        threshold: The lowest score that counts.
        skip_damaged: Pass over frames that cannot be read or decoded and count them, instead of ending with an error.
        thermal: Watch temperature, frequency and throttling.

    Raises:
        UsageError: An argument makes no sense, or there is no such source.
        ContractError: The model's contract does not say how a picture becomes the input.
    """

    def __init__(
        self,
        model: Session | Chooser,
        source: Any,
        *,
        overlap: bool = True,
        budget_ms: float | None = None,
        percentile: float = 99.0,
        every_ms: float | None = None,
        post: Callable[[Session], Any] | None = None,
        top_k: int = 5,
        threshold: float | None = None,
        skip_damaged: bool = False,
        thermal: bool = True,
    ) -> None:
        if problem := check_budget(budget_ms, percentile):
            raise UsageError(problem, cure="Give milliseconds above 0 and a percentile up to 100.")
        self._chooser = as_chooser(model)
        for session in self._chooser.sessions:
            _ = session.preprocessor  # say now if there is none; it is made in this thread
        self._skipper = None if every_ms is None else FrameSkipper(every_ms)
        self._post = post_of(post, top_k, threshold)
        self._overlap, self._percentile, self._skip_damaged = overlap, percentile, skip_damaged
        self._recorder = Recorder(budget_ms)
        self._watch = ThermalWatch() if thermal else None
        self._started = False
        self._source: FrameSource = open_source(source)

    def __iter__(self) -> Iterator[FrameAnswer]:
        """Answers in the order of the frames.

        Raises:
            FrameError: A stage failed, or the source did: once, with the frame's name.
            ConcurrentUseError: Another thread has a session.
        """
        if self._started:
            raise UsageError("a pipeline runs once", cure="Make another one for another run.")
        self._started = True
        return self._run()

    def run(self) -> PipelineReport:
        """Go through the whole source, drop the answers, give the report."""
        for _ in self:
            pass
        return self.report()

    def report(self) -> PipelineReport:
        """What was measured, so far or in the whole run."""
        return self._recorder.report(
            source=self._source.name,
            source_skipped=self._source.skipped,
            period_ms=self._source.period_ms,
            chooser=self._chooser,
            overlap=self._overlap,
            percentile=self._percentile,
            thermal=None if self._watch is None else self._watch.report(),
        )

    def _run(self) -> Iterator[FrameAnswer]:
        with ExitStack() as stack:
            stack.callback(self._source.close)
            for session in self._chooser.sessions:
                stack.enter_context(session.held())
            if self._watch is not None:
                stack.enter_context(self._watch)
            frames = stack.enter_context(closing(self._ahead() if self._overlap else self._prepared(None)))
            start_s = time.perf_counter()
            last: Any = None
            for frame in frames:
                found = last = last if frame.skipped else answer(frame, self._chooser, self._post)
                answered_s = time.perf_counter()
                try:
                    yield answered(frame, found, answered_s)
                finally:
                    frame.lap.app_ms = 1e3 * (time.perf_counter() - answered_s)
                    self._record(frame)
                    self._recorder.duration_s = time.perf_counter() - start_s

    def _record(self, frame: Prepared) -> None:
        recorder, lap, session = self._recorder, frame.lap, frame.session
        if session is None:
            recorder.skipped += 1
            return
        recorder.add(lap)
        recorder.one_model &= session is self._chooser.sessions[0]
        feeding_ms = lap.read_ms + lap.decode_ms + lap.resize_ms
        invoking_ms = lap.invoke_ms + lap.post_ms + lap.second_ms + lap.app_ms
        cost_ms = max(feeding_ms, invoking_ms) if self._overlap else feeding_ms + invoking_ms
        self._chooser.learn(session, cost_ms)
        if self._skipper is not None:
            self._skipper.spent(cost_ms)

    def _ahead(self) -> Generator[Prepared, None, None]:
        """Frames that a thread of its own prepares; it ends with this generator."""
        channel: Channel[Prepared] = Channel()
        feeder = threading.Thread(target=self._feed, args=(channel,), name="arenite-feeder", daemon=True)
        feeder.start()
        try:
            while (frame := channel.get()) is not None:
                if not frame.skipped:
                    frame.lap.wait_ms = 1e3 * (time.perf_counter() - frame.ready_s)
                yield frame
        finally:
            channel.close()
            self._source.close()
            end_feeder(feeder, self._source.name)

    def _feed(self, channel: Channel[Prepared]) -> None:
        tensors = {
            session: itertools.cycle([session.preprocessor.tensor() for _ in range(_TENSORS)])
            for session in self._chooser.sessions
        }
        try:
            with closing(self._prepared(lambda session: next(tensors[session]))) as frames:
                for frame in frames:
                    if not channel.put(frame):
                        return
        except BaseException as error:
            channel.finish(error)
        else:
            channel.finish()

    def _prepared(self, target: Callable[[Session], Array] | None) -> Generator[Prepared, None, None]:
        """The source's frames, each with its tensor in the array that `target` gives, or skipped."""
        # What a skipped or damaged frame took is the next one's waiting.
        lost_ms = 0.0
        with closing(frames_of(self._source)) as frames:
            for frame, picture in frames:
                frame.lap.source_ms += lost_ms
                frame.skipped = self._skipper is not None and self._skipper.skip()
                if frame.skipped or self._could_prepare(frame, picture, target):
                    lost_ms = frame.lap.source_ms if frame.skipped else 0.0
                    yield frame
                else:
                    lost_ms = frame.lap.source_ms + 1e3 * (time.perf_counter() - frame.given_s)

    def _could_prepare(
        self, frame: Prepared, picture: PictureSource, target: Callable[[Session], Array] | None
    ) -> bool:
        try:
            prepare(frame, picture, self._chooser, target)
        except FrameError as error:
            if not self._skip_damaged or error.stage not in ("read", "decode"):
                raise
            self._recorder.damaged += 1
            return False
        return True


def post_of(post: Callable[[Session], Any] | None, top_k: int, threshold: float | None) -> Post:
    """What makes the answers: the app's own, or labels or boxes by the contract."""
    return standard_post(top_k, threshold) if post is None else lambda session, _: post(session)
