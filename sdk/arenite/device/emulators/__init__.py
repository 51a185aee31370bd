# SPDX-License-Identifier: Apache-2.0
"""Emulated boards: Unicorn in this process (pip alone) and QEMU in its own (when installed)."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Protocol

from arenite.device.client import RunResult
from arenite.device.streams import Stream
from arenite.device.target import Target, read_segments, read_target
from arenite.errors import MissingToolError, UsageError

__all__ = ["EMULATORS", "EmulatedBoard", "available_emulators", "start_emulator"]

EMULATORS = ("unicorn", "qemu")
_EXTRA = "Run pip install 'arenite[firmware]'"


class EmulatedBoard(Protocol):
    """A running board. `name` says which emulator, with its version; `stream` is the board's serial port."""

    name: str
    stream: Stream

    def instructions(self, result: RunResult) -> int | None:
        """Instructions that an inference took, exactly; None when this emulator cannot count."""

    def close(self) -> None:
        """Stops the emulator."""


def available_emulators(target: Target) -> list[str]:
    """Emulators that are installed and can run a board, fastest first."""
    return [name for name in EMULATORS if name in target.emulators and _is_installed(name, target)]


def start_emulator(bundle_dir: Path, name: str | None = None) -> EmulatedBoard:
    """Starts a built bundle on its emulated board.

    Args:
        bundle_dir: A built bundle.
        name: `unicorn`, `qemu`, or None for the fastest that is installed.

    Raises:
        UsageError: The bundle is not built, or is for a slot, or the board has no such emulator.
        MissingToolError: The emulator is not installed.
        LinkError: The emulator does not start.
    """
    target = read_target(bundle_dir)
    if name is None:
        name = next(iter(available_emulators(target)), None)
    if not target.emulators:
        raise UsageError(f"no emulator knows {target.board}", cure="Give the serial port of a real board instead")
    if name is None:
        raise MissingToolError(f"no emulator for {target.board} is installed", cure=_EXTRA)
    if name not in target.emulators:
        known = ", ".join(sorted(target.emulators))
        raise UsageError(f"{target.board} has no emulator {name!r}", cure=f"Its emulators: {known}")
    if not _is_installed(name, target):
        raise MissingToolError(f"the emulator {name} is not installed", cure=_cure(name, target))
    _check_start(target)
    if name == "qemu":
        from arenite.device.emulators.qemu_runner import QemuBoard

        return QemuBoard(target)
    from arenite.device.emulators.unicorn_runner import UnicornBoard

    return UnicornBoard(target)


def _check_start(target: Target) -> None:
    start = next(region["origin"] for region in target.memory if region["kind"] == "flash")
    if not any(s.address <= start < s.address + len(s.data) for s in read_segments(target.image)):
        problem = f"nothing in the firmware lies at {start:#x}, where {target.board} starts: it is for a slot"
        cure = "Verify it at the port of a board that has the loader, or bundle it without --slot"
        raise UsageError(problem, where=str(target.image), cure=cure)


def _is_installed(name: str, target: Target) -> bool:
    if name == "qemu":
        return shutil.which(target.emulators[name]["program"]) is not None
    return importlib.util.find_spec("unicorn") is not None


def _cure(name: str, target: Target) -> str:
    if name == "qemu":
        return f"Install {target.emulators[name]['program']} and put it on PATH, or use the emulator unicorn"
    return _EXTRA
