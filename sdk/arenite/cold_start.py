# SPDX-License-Identifier: Apache-2.0
"""Opening a session as a timeline, and what a program can do to make its start and its runs steady."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from arenite.errors import UsageError

__all__ = ["ColdStart", "Step", "Timeline", "lock_memory", "pin_to_cpus"]

_MCL_CURRENT = 1


@dataclass(frozen=True)
class Step:
    """One part of opening a session.

    Attributes:
        name: `read` (read, hash and check the model's file), `import` (the engine's package), `build` (map the model,
            prepare its operators, allocate), `delegate` (load it), `lock`, `pin` or `warm-up`.
        start_ms: Since opening began.
        duration_ms: Wall time.
        note: What was refused, or how many runs.
    """

    name: str
    start_ms: float
    duration_ms: float
    note: str = ""


@dataclass(frozen=True)
class ColdStart:
    """From the call of `arenite.open` to a session that is ready.

    Attributes:
        steps: In order; they do not overlap.
        total_ms: Wall time, which the steps' sum cannot exceed.
    """

    steps: tuple[Step, ...]
    total_ms: float


class Timeline:
    """Collects steps."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._steps: list[Step] = []

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Times its block; texts appended to the list that it gives become the step's note."""
        notes: list[str] = []
        start = time.perf_counter()
        try:
            yield notes
        finally:
            end = time.perf_counter()
            self._steps.append(
                Step(name, 1e3 * (start - self._start), 1e3 * (end - start), "; ".join(notes))
            )

    def finish(self) -> ColdStart:
        """All steps so far."""
        return ColdStart(tuple(self._steps), 1e3 * (time.perf_counter() - self._start))


def lock_memory() -> str | None:
    """Lock all memory of this process, as it is now, in RAM: code, weights and buffers are never paged out.

    Returns:
        None, or what the operating system refused.
    """
    try:
        function = ctypes.CDLL(None, use_errno=True).mlockall
    except (OSError, AttributeError, TypeError):
        return "this system has no mlockall"
    if function(_MCL_CURRENT) == 0:
        return None
    reason = os.strerror(ctypes.get_errno())
    return f"mlockall: {reason} (raise the limit: ulimit -l, or systemd's LimitMEMLOCK=)"


def pin_to_cpus(cpus: Sequence[int]) -> str | None:
    """Let the calling thread, and threads that it makes from now on, run on these CPUs only.

    Returns:
        None, or what the operating system refused.

    Raises:
        UsageError: No CPU is named, or something that is no CPU's number.
    """
    if not cpus or not all(isinstance(cpu, int) and not isinstance(cpu, bool) and cpu >= 0 for cpu in cpus):
        raise UsageError(f"cpus must be numbers of CPUs, not {list(cpus)!r}", cure="Give for example cpus=[2, 3].")
    if not hasattr(os, "sched_setaffinity"):
        return "this system cannot pin threads to CPUs"
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        return f"sched_setaffinity: {error.strerror or error} (CPUs here: {_allowed()})"
    return None


def _allowed() -> str:
    return ", ".join(map(str, sorted(os.sched_getaffinity(0)))) if hasattr(os, "sched_getaffinity") else "unknown"
