# SPDX-License-Identifier: Apache-2.0
"""One frame through its stages, each timed; what a pipeline and a multi-stream share."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from arenite.degrade import Chooser
from arenite.errors import AreniteError, FrameError
from arenite.preprocess import PictureSource, read_picture
from arenite.replay import Lap
from arenite.session import Session
from arenite.sources import FrameSource, Named
from arenite.timing import Timing

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["FrameAnswer", "Prepared", "answer", "answered", "failing_as", "frames_of", "prepare", "standard_post"]

Array = npt.NDArray[Any]
Post = Callable[[Session, tuple[int, int]], Any]


@dataclass(frozen=True)
class FrameAnswer:
    """A frame's answer.

    Attributes:
        number: Of the frame, from 0.
        name: Its path, the name that the source gave it, or `frame NUMBER`.
        answer: Labels, boxes or what `post` gave; of a skipped frame that of the last one before.
        timing: Wall time of its stages; `invoke` holds a second model's whole.
        latency_ms: From the moment the source gave it to its answer, waiting included.
        image: Upright and decoded, in the mode `fast` maybe at a fraction of its size; None of a skipped one.
        skipped: The frame was skipped to keep the pace.
    """

    number: int
    name: str
    answer: Any
    timing: Timing
    latency_ms: float
    image: Image | None
    skipped: bool


@dataclass
class Prepared:
    """A frame on its way.

    Attributes:
        number: Of those that the source gave, from 0.
        name: For messages and the answer.
        lap: Its times so far.
        given_s: When the source gave it, on the clock `perf_counter`.
        ready_s: When its tensor was ready.
        skipped: It goes no further.
        session: Will answer it.
        image: Decoded, upright; in the mode `fast` maybe smaller than the picture.
        size: Width and height of the whole upright picture.
        tensor: The input; None when it lies in the session already.
    """

    number: int
    name: str
    lap: Lap
    given_s: float
    ready_s: float = 0.0
    skipped: bool = False
    session: Session | None = None
    image: Image | None = None
    size: tuple[int, int] = (0, 0)
    tensor: Array | None = field(default=None, repr=False)


@contextmanager
def failing_as(stage: str, frame: str) -> Iterator[None]:
    """What goes wrong inside is a `FrameError` that names the stage and the frame."""
    try:
        yield
    except FrameError:
        raise
    except AreniteError as error:
        raise FrameError(error.what, stage=stage, frame=frame, cure=error.cure) from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise FrameError(reason, stage=stage, frame=frame) from error


def frames_of(source: FrameSource) -> Generator[tuple[Prepared, PictureSource], None, None]:
    """The frames of a source and their pictures; how long each was waited for is in its lap.

    Raises:
        FrameError: The source failed.
    """
    with failing_as("source", source.name):
        items = iter(source)
    try:
        for number in itertools.count():
            start_s = time.perf_counter()
            with failing_as("source", f"{source.name}, frame {number}"):
                try:
                    item = next(items)
                except StopIteration:
                    return
            name, picture = item if isinstance(item, Named) else (None, item)
            if name is None:
                name = str(picture) if isinstance(picture, (str, Path)) else f"frame {number}"
            given_s = time.perf_counter()
            yield Prepared(number, name, Lap(source_ms=1e3 * (given_s - start_s)), given_s), picture
    finally:
        if isinstance(items, Generator):
            items.close()


def prepare(
    frame: Prepared, picture: PictureSource, chooser: Chooser, target: Callable[[Session], Array] | None
) -> None:
    """Read, decode and resize.

    Args:
        frame: Takes the result and the times.
        picture: What the source gave.
        chooser: Says which session will answer.
        target: Gives an array for that session's input; None writes into the session itself.

    Raises:
        FrameError: A stage failed.
    """
    session = frame.session = chooser.pick()
    start_s = frame.given_s
    with failing_as("read", frame.name):
        content = read_picture(picture)
    read_s = time.perf_counter()
    with failing_as("decode", frame.name):
        frame.image, frame.size = chooser.decoder(session).decode_sized(content, frame.name)
    decoded_s = time.perf_counter()
    with failing_as("resize", frame.name):
        frame.tensor = None if target is None else target(session)
        tensor = session.input if frame.tensor is None else frame.tensor
        session.preprocessor.fit_into(frame.image, tensor)
    frame.ready_s = time.perf_counter()
    lap = frame.lap
    lap.read_ms, lap.decode_ms = 1e3 * (read_s - start_s), 1e3 * (decoded_s - read_s)
    lap.resize_ms = 1e3 * (frame.ready_s - decoded_s)


def answer(frame: Prepared, chooser: Chooser, post: Post) -> Any:
    """Invoke and post, by the second model too when the first is unsure.

    Raises:
        FrameError: A stage failed.
    """
    session, lap = frame.session, frame.lap
    assert session is not None
    start_s = time.perf_counter()
    with failing_as("invoke", frame.name):
        if frame.tensor is not None:
            np.copyto(session.input, frame.tensor)
        session.run()
    invoked_s = time.perf_counter()
    with failing_as("post", frame.name):
        found = post(session, frame.size)
    posted_s = time.perf_counter()
    lap.invoke_ms, lap.post_ms = 1e3 * (invoked_s - start_s), 1e3 * (posted_s - invoked_s)
    with failing_as("second", frame.name):
        other = chooser.second(found)
        if other is not None:
            assert frame.image is not None
            other.preprocessor.fit_into(frame.image, other.input)
            other.run()
            found = post(other, frame.size)
            lap.second_ms = 1e3 * (time.perf_counter() - posted_s)
    return found


def answered(frame: Prepared, found: Any, answered_s: float) -> FrameAnswer:
    """What the app gets of a frame."""
    lap = frame.lap
    timing = Timing(lap.read_ms, lap.decode_ms, lap.resize_ms, lap.invoke_ms + lap.second_ms, lap.post_ms)
    latency_ms = 1e3 * (answered_s - frame.given_s)
    return FrameAnswer(frame.number, frame.name, found, timing, latency_ms, frame.image, frame.skipped)


def standard_post(top_k: int = 5, threshold: float | None = None) -> Post:
    """Labels or boxes, by what the contract says of the output."""

    def post(session: Session, size: tuple[int, int]) -> Any:
        if any(spec.boxes is not None for spec in session.known_contract.outputs):
            return session.boxes(size) if threshold is None else session.boxes(size, threshold=threshold)
        return session.labels(top_k, threshold=threshold)

    return post
