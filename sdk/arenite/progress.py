# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: one line that is redrawn on a terminal, plain lines in a file.

A function that takes long accepts `progress: Progress | None` and reports into it:

    with progress.step("calibrate", total=200) as step:
        for sample in samples:
            step.advance()
"""

from __future__ import annotations

import io
import os
import sys
import time
from types import TracebackType
from typing import TextIO

__all__ = ["Progress", "Step", "console", "silent"]

_REDRAW_S = 0.1
_PLAIN_S = 5.0
_WIDTH = 24


class Progress:
    """Where steps are written to; without a stream nothing is written.

    The stream's file is duplicated, so progress still reaches the terminal while a noisy library's standard
    output and error are redirected.

    Args:
        stream: Text stream, a terminal or a file; None is silent.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = _duplicate(stream)
        self.is_terminal = self._stream is not None and self._stream.isatty()

    def step(self, title: str, total: int | None = None) -> Step:
        """Start a step of `total` parts (None: unknown). Use it as a context manager."""
        return Step(self, title, total)

    def write(self, text: str) -> None:
        """Write raw text; a stream that went away is not an error."""
        if self._stream is not None:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):
                self._stream = None


class Step:
    """One step. `advance` counts parts, `note` replaces the text at the end of its line."""

    def __init__(self, progress: Progress, title: str, total: int | None) -> None:
        self._progress = progress
        self._title = title
        self._total = total
        self._done = 0
        self._note = ""
        self._started = time.monotonic()
        self._drawn = self._started

    def __enter__(self) -> Step:
        if self._progress.is_terminal:
            self._draw()
        else:
            self._progress.write(f"{self._title} ...\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spent_s = time.monotonic() - self._started
        state = "failed" if kind else "done"
        tail = f" ({self._note})" if self._note else ""
        head = "\r\x1b[K" if self._progress.is_terminal else ""
        self._progress.write(f"{head}{self._title} {state} in {spent_s:.1f} s{tail}\n")

    def advance(self, parts: int = 1) -> None:
        """Count `parts` more as done."""
        self._done += parts
        self._draw_when_due()

    def note(self, text: str) -> None:
        """Say what is being worked on."""
        self._note = text
        self._draw_when_due()

    def _draw_when_due(self) -> None:
        now = time.monotonic()
        if now - self._drawn >= (_REDRAW_S if self._progress.is_terminal else _PLAIN_S):
            self._drawn = now
            self._draw()

    def _draw(self) -> None:
        count = f" {self._done}/{self._total}" if self._total else (f" {self._done}" if self._done else "")
        note = f" {self._note}" if self._note else ""
        if not self._progress.is_terminal:
            self._progress.write(f"{self._title}{count}{note}\n")
            return
        self._progress.write(f"\r\x1b[K{self._title} {self._bar()}{count}{note}"[:110])

    def _bar(self) -> str:
        if not self._total:
            return "…"
        full = min(_WIDTH, _WIDTH * self._done // self._total)
        return "[" + "#" * full + "-" * (_WIDTH - full) + "]"


def console() -> Progress:
    """Progress on standard error."""
    return Progress(sys.stderr)


def silent() -> Progress:
    """Progress that is not shown."""
    return Progress(None)


def _duplicate(stream: TextIO | None) -> TextIO | None:
    if stream is None:
        return None
    try:
        return os.fdopen(os.dup(stream.fileno()), "w", encoding=stream.encoding or "utf-8", errors="replace")
    except (OSError, ValueError, AttributeError, io.UnsupportedOperation):
        return stream
