# SPDX-License-Identifier: Apache-2.0
"""A camera of Linux, through the kernel's own interface: no library, no root (the group `video` is enough).

The driver fills a few buffers in turn. Of those that are filled the newest is taken, copied and given back at once, so
a slow app sees the present and the camera never stalls; what was passed over is counted.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import select
import threading
from collections.abc import Iterator

import numpy as np

from arenite.errors import UsageError
from arenite.frames import Frame
from arenite.preprocess import PictureSource
from arenite.sources import FrameSource, Named
from arenite.sources import v4l2_abi as abi

__all__ = ["V4l2Camera"]

_BUFFERS = 4
# A camera that starts may need a second or two for its first frame.
_PATIENCE_S = 10.0


class V4l2Camera(FrameSource):
    """Frames of a video device.

    Args:
        device: Such as /dev/video0.
        width: Pixels. The driver may choose others near by; `width` and `height` are what it chose.
        height: Pixels.
        format: A key of `PIXEL_FORMATS`; None takes the first of them that the driver offers. MJPEG frames are given as
            the bytes of a JPEG file.
        fps: Frames a second; the driver may choose another rate.

    Raises:
        UsageError: No such device, no camera, in use by somebody else, or a format it does not have.
    """

    def __init__(
        self, device: str, width: int, height: int, *, format: str | None = None, fps: float | None = None
    ) -> None:
        import fcntl  # Linux only, as the rest

        self._ioctl = fcntl.ioctl
        self.name = f"v4l2:{device}"
        if format is not None and format not in abi.PIXEL_FORMATS:
            raise self._error(f"there is no camera format '{format}'", f"Use one of {', '.join(abi.PIXEL_FORMATS)}.")
        try:
            self._file = os.open(device, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            cure = "See `ls /dev/video*`; to open one, be in the group `video`."
            raise self._error(f"cannot open the camera ({error.strerror})", cure) from error
        self._wake, self._waker = os.pipe()
        self._over = self._closed = False
        self._lock, self._closing = threading.Lock(), threading.Lock()
        self._memory: list[mmap.mmap] = []
        try:
            self._open(width, height, format, fps)
        except BaseException:
            self.close()
            raise

    def _error(self, what: str, cure: str) -> UsageError:
        return UsageError(what, where=self.name, cure=cure)

    def _call(self, request: str, argument: ctypes.Structure | ctypes.c_int32) -> None:
        self._ioctl(self._file, abi.REQUESTS[request], argument, True)

    def _open(self, width: int, height: int, format: str | None, fps: float | None) -> None:
        self._check_device()
        self.format = self._choose_format(width, height, format)
        self.period_ms = self._choose_rate(fps)
        try:
            self._start()
        except OSError as error:
            raise self._error(f"the camera does not start ({error.strerror})", "Close what else uses it.") from error

    def _check_device(self) -> None:
        found = abi.Capability()
        cure = "Name another; one camera often has several, see `v4l2-ctl --list-devices`."
        try:
            self._call("VIDIOC_QUERYCAP", found)
        except OSError as error:
            raise self._error("this is no video device", cure) from error
        here = found.device_caps if found.capabilities & abi.CAP_DEVICE_CAPS else found.capabilities
        if not (here & abi.CAP_VIDEO_CAPTURE and here & abi.CAP_STREAMING):
            raise self._error("this video device gives no pictures", cure)

    def _choose_format(self, width: int, height: int, wanted: str | None) -> str:
        for name in [wanted] if wanted else abi.PIXEL_FORMATS:
            asked = abi.Format(type=abi.CAPTURE)
            pixels = asked.fmt.pix
            pixels.width, pixels.height, pixels.pixelformat = width, height, abi.fourcc(abi.PIXEL_FORMATS[name])
            try:
                self._call("VIDIOC_S_FMT", asked)
            except OSError as error:
                raise self._error(f"the camera refuses a format ({error.strerror})", "Close what uses it.") from error
            if asked.fmt.pix.pixelformat == abi.fourcc(abi.PIXEL_FORMATS[name]):
                self.width, self.height = int(pixels.width), int(pixels.height)
                self._stride_bytes = int(pixels.bytesperline)
                self._matrix = "bt709" if pixels.colorspace == abi.COLORSPACE_REC709 else "bt601"
                self._full_range = pixels.quantization == abi.QUANTIZATION_FULL_RANGE
                return name
        what = f"the format {wanted}" if wanted else "any format that is known here"
        raise self._error(f"the camera does not offer {what}", "See `v4l2-ctl --list-formats-ext`.")

    def _choose_rate(self, fps: float | None) -> float | None:
        """The time between two frames, as far as the driver knows it."""
        asked = abi.StreamParameters(type=abi.CAPTURE)
        capture = asked.parm.capture
        capture.numerator, capture.denominator = (0, 0) if fps is None else (1000, round(1000 * fps))
        try:
            self._call("VIDIOC_S_PARM", asked)
        except OSError:
            return None  # many drivers have no rate to set
        return 1e3 * capture.numerator / capture.denominator if capture.numerator and capture.denominator else None

    def _start(self) -> None:
        wanted = abi.RequestBuffers(count=_BUFFERS, type=abi.CAPTURE, memory=abi.MMAP)
        self._call("VIDIOC_REQBUFS", wanted)
        for index in range(wanted.count):
            buffer = abi.Buffer(type=abi.CAPTURE, memory=abi.MMAP, index=index)
            self._call("VIDIOC_QUERYBUF", buffer)
            self._memory.append(mmap.mmap(self._file, buffer.length, offset=buffer.m.offset))
            self._call("VIDIOC_QBUF", buffer)
        self._call("VIDIOC_STREAMON", ctypes.c_int32(abi.CAPTURE))

    def __iter__(self) -> Iterator[PictureSource | Named]:
        last: int | None = None
        while True:
            with self._lock:
                if not self._wait():
                    return
                taken = self._take()
            if taken is not None:
                number, frame = taken
                # The driver counts the frames that it dropped, too.
                self.skipped += 0 if last is None else max(0, number - last - 1)
                last = number
                yield frame

    def _wait(self) -> bool:
        """Until a frame is there; False once the camera is closed."""
        if self._over:
            return False
        ready, _, _ = select.select([self._file, self._wake], [], [], _PATIENCE_S)
        if not ready:
            raise self._error(f"the camera gives no frame for {_PATIENCE_S:g} s", "Unplug it and plug it in again.")
        return self._wake not in ready

    def _take(self) -> tuple[int, PictureSource] | None:
        """The newest filled buffer's number and frame; None when there is none, or it came empty."""
        newest: abi.Buffer | None = None
        while (buffer := self._filled()) is not None:
            if newest is not None:
                self._call("VIDIOC_QBUF", newest)
            newest = buffer
        if newest is None:
            return None
        content = np.frombuffer(self._memory[newest.index], np.uint8, newest.bytesused).copy()
        self._call("VIDIOC_QBUF", newest)
        return (int(newest.sequence), self._picture(content)) if content.size else None

    def _filled(self) -> abi.Buffer | None:
        buffer = abi.Buffer(type=abi.CAPTURE, memory=abi.MMAP)
        try:
            self._call("VIDIOC_DQBUF", buffer)
        except BlockingIOError:
            return None
        except OSError as error:
            raise self._error(f"the camera is gone ({error.strerror})", "Plug it in again.") from error
        return buffer

    def _picture(self, content: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> PictureSource:
        if self.format == "MJPEG":
            return content.tobytes()
        stride = self._stride_bytes or None
        options = {"matrix": self._matrix, "full_range": self._full_range}
        return Frame(content, self.width, self.height, self.format, stride_bytes=stride, **options)

    def close(self) -> None:
        """Stops the camera and wakes the thread that waits for its next frame."""
        with self._closing:
            if self._closed:
                return
            self._over = self._closed = True
            os.write(self._waker, b"x")
            with self._lock:
                with contextlib.suppress(OSError):
                    self._call("VIDIOC_STREAMOFF", ctypes.c_int32(abi.CAPTURE))
                for memory in self._memory:
                    memory.close()
                for handle in (self._file, self._wake, self._waker):
                    os.close(handle)
