# SPDX-License-Identifier: Apache-2.0
"""A serial port for real programs to open: the slave of a pty, with an emulated chip behind its master."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
import time
import tty
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

__all__ = ["Chip", "PtyLine"]


class Chip(Protocol):
    """What is at the end of the line."""

    def receive(self, data: bytes) -> bytes:
        """Takes bytes from the host; returns what the chip sends."""


class PtyLine:
    """Runs a chip behind a pty while the context is open.

    Args:
        chip: Answers.
        filter_in, filter_out: What the line makes of bytes to the chip and from it.
        hold: This process keeps the port open, so that others see it in use.
    """

    def __init__(
        self,
        chip: Chip,
        filter_in: Callable[[bytes], bytes] = bytes,
        filter_out: Callable[[bytes], bytes] = bytes,
        hold: bool = True,
    ) -> None:
        self.chip = chip
        self._in, self._out = filter_in, filter_out
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        if not hold:
            os.close(self._slave)
        self._stop = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> PtyLine:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(10)
        os.close(self._master)
        with contextlib.suppress(OSError):
            os.close(self._slave)
        if self.error is not None and error is None:
            raise self.error

    def _read(self) -> bytes:
        try:
            return os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # which means that nobody has the slave open
                raise
            time.sleep(0.02)
            return b""

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if not select.select([self._master], [], [], 0.02)[0]:
                    continue
                answer = self._out(self.chip.receive(self._in(self._read())))
                while answer:
                    answer = answer[os.write(self._master, answer) :]
        except BaseException as error:
            self.error = error
