# SPDX-License-Identifier: Apache-2.0
"""Where frames come from: a folder, a camera, any iterable of pictures.

A source is iterated by one thread, which may not be the one that closes it.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from arenite.errors import UsageError
from arenite.preprocess import PICTURE_SUFFIXES, PictureSource, pictures_in

__all__ = ["FrameSource", "Named", "PictureFolder", "open_source"]


class Named(NamedTuple):
    """A picture with the name that messages and answers give it."""

    name: str
    picture: PictureSource


class FrameSource:
    """Gives frames, one after the other: pictures as `Session.classify` takes them, or `Named` ones.

    Attributes:
        name: For messages.
        period_ms: A live source gives a frame so often whether or not somebody takes it; None for one that waits.
        skipped: Frames of a live source that nobody took in time.
    """

    name: str = "source"
    period_ms: float | None = None
    skipped: int = 0

    def __iter__(self) -> Iterator[PictureSource | Named]:
        raise NotImplementedError

    def close(self) -> None:
        """End the source; a thread that waits for its next frame gets the end. May be called twice."""


class _Pictures(FrameSource):
    """Any iterable of pictures."""

    def __init__(self, pictures: Iterable[PictureSource | Named]) -> None:
        self.name = type(pictures).__name__
        self._pictures = pictures

    def __iter__(self) -> Iterator[PictureSource | Named]:
        return iter(self._pictures)


class PictureFolder(FrameSource):
    """The pictures of a folder in the order of their paths, or one picture file.

    Args:
        path: Folder or file.
        repeat: How often to go through it; 0 never ends.
        fps: Give so many frames a second, as a camera does: a frame that nobody takes in time is skipped and counted.

    Raises:
        UsageError: No picture there, or a number makes no sense.
    """

    def __init__(self, path: Path | str, *, repeat: int = 1, fps: float | None = None) -> None:
        path = Path(path)
        if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 0:
            raise UsageError(f"cannot repeat a folder {repeat!r} times", cure="Give a whole number; 0 never ends.")
        if fps is not None and not 0 < fps <= 1e4:
            raise UsageError(f"cannot give {fps!r} frames a second", cure="Give a number above 0.")
        self.name = str(path)
        self.period_ms = None if fps is None else 1e3 / fps
        self._files = [path] if path.is_file() else pictures_in(path, "source")
        self._repeat = repeat
        self._over = threading.Event()

    def __iter__(self) -> Iterator[PictureSource | Named]:
        rounds = itertools.count() if self._repeat == 0 else range(self._repeat)
        files = (file for _ in rounds for file in self._files)
        yield from files if self.period_ms is None else self._paced(files, self.period_ms / 1e3)

    def _paced(self, files: Iterator[Path], period_s: float) -> Iterator[Path]:
        start_s = time.perf_counter()
        for number, file in enumerate(files):
            late_s = time.perf_counter() - start_s - number * period_s
            if late_s > period_s:
                self.skipped += 1
            elif not self._over.wait(max(0.0, -late_s)):
                yield file
            if self._over.is_set():
                return

    def close(self) -> None:
        """Wakes a thread that waits for the next frame's time."""
        self._over.set()


def open_source(source: Any) -> FrameSource:
    """A source by name, or of an iterable.

    Args:
        source: A folder or picture file; `v4l2:/dev/video0?size=1280x720&format=YUYV&fps=30` (each option may be left
            away); `picamera2` or `picamera2:0?size=1280x720&fps=30`; any iterable of pictures; or a `FrameSource`.

    Raises:
        UsageError: No such source, or a wrong option.
        MissingToolError: picamera2 is not installed.
    """
    if isinstance(source, FrameSource):
        return source
    if isinstance(source, str) and re.match(r"(v4l2|picamera2)([:?]|$)", source):
        return _camera(source)
    if isinstance(source, (str, Path)):
        if not Path(source).exists():
            cure = f"Give a folder, a picture ({', '.join(PICTURE_SUFFIXES)}), v4l2:/dev/video0 or picamera2."
            raise UsageError("there is no such frame source", where=str(source), cure=cure)
        return PictureFolder(source)
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        cure = "Give a folder, a camera's name, or an iterable of pictures."
        raise UsageError(f"a {type(source).__name__} is no frame source", cure=cure)
    return _Pictures(source)


def _camera(spec: str) -> FrameSource:
    name, _, query = spec.partition("?")
    kind, _, device = name.partition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    try:
        size = tuple(int(extent) for extent in options.pop("size", "1280x720").split("x"))
        fps = float(options.pop("fps")) if "fps" in options else None
        width, height = size
    except ValueError as error:
        raise UsageError("a size or rate that is no number", where=spec, cure="Write size=1280x720&fps=30.") from error
    if kind == "v4l2":
        from arenite.sources.v4l2 import V4l2Camera

        frame_format = options.pop("format", None)
        _no_more(options, spec, "size, format and fps")
        return V4l2Camera(device or "/dev/video0", width, height, format=frame_format, fps=fps)
    from arenite.sources.picamera import PiCamera

    _no_more(options, spec, "size and fps")
    if device and not device.isdigit():
        raise UsageError("a camera's number is needed", where=spec, cure="Write picamera2:0.")
    return PiCamera(int(device or 0), width, height, fps=fps)


def _no_more(options: dict[str, str], spec: str, known: str) -> None:
    if options:
        raise UsageError(f"there is no option '{next(iter(options))}'", where=spec, cure=f"The options are {known}.")
