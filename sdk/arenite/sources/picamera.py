# SPDX-License-Identifier: Apache-2.0
"""A Raspberry Pi's camera through picamera2, which Raspberry Pi OS brings."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from arenite.errors import MissingToolError, UsageError
from arenite.preprocess import PictureSource
from arenite.sources import FrameSource, Named

__all__ = ["PiCamera"]


class PiCamera(FrameSource):
    """Frames of one camera.

    Args:
        number: Which camera.
        width: Pixels.
        height: Pixels.
        fps: Frames a second; None leaves it to the camera.

    Raises:
        MissingToolError: picamera2 is not installed.
        UsageError: The camera cannot be opened so.
    """

    def __init__(self, number: int, width: int, height: int, *, fps: float | None = None) -> None:
        try:
            picamera2 = import_module("picamera2")
        except ImportError as error:
            cure = "On Raspberry Pi OS: sudo apt install python3-picamera2, in a venv with --system-site-packages."
            raise MissingToolError("picamera2 is not installed", cure=cure) from error
        self.name = f"picamera2:{number}"
        self.period_ms = None if fps is None else 1e3 / fps
        self._over = threading.Event()
        self._capturing = threading.Lock()
        controls = {} if fps is None else {"FrameRate": fps}
        try:
            self._camera: Any = picamera2.Picamera2(number)
            # libcamera names the order of the bits in a word: BGR888 lies in memory as R, G, B.
            main = {"size": (width, height), "format": "BGR888"}
            self._camera.configure(self._camera.create_video_configuration(main=main, controls=controls))
            self._camera.start()
        except (IndexError, RuntimeError, ValueError) as error:
            raise UsageError(
                f"the camera cannot be opened ({error})", where=self.name, cure="See `rpicam-hello --list-cameras`."
            ) from error

    def __iter__(self) -> Iterator[PictureSource | Named]:
        while True:
            with self._capturing:
                if self._over.is_set():
                    return
                frame = self._camera.capture_array("main")
            yield frame

    def close(self) -> None:
        """Stops the camera after the frame that is being taken."""
        if self._over.is_set():
            return
        self._over.set()
        with self._capturing:
            self._camera.stop()
            self._camera.close()
