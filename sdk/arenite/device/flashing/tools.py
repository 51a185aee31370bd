# SPDX-License-Identifier: Apache-2.0
"""Runs a flashing tool as a program of its own and reads what it says, line by line."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from arenite.device.flashing.model import FlashState
from arenite.errors import FlashError, MissingToolError

__all__ = ["PortErrors", "ToolRun", "check_port", "find_tool", "holders", "run_tool"]

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class ToolRun:
    """What a tool said. `code` is its exit status."""

    def __init__(self, code: int, lines: list[str]) -> None:
        self.code, self.lines = code, lines
        self.text = "\n".join(lines)

    def field(self, pattern: str) -> str | None:
        """The first group of a pattern in the text, or None."""
        match = re.search(pattern, self.text, re.MULTILINE)
        return None if match is None else match[1].strip()

    @property
    def last_words(self) -> str:
        """The line that says what went wrong, as well as one can tell."""
        wrong = [line for line in self.lines if re.search(r"error|fail|timed? ?out|no ack|denied|busy", line, re.I)]
        words = [line for line in self.lines if line.strip()]
        return (wrong or words or [f"exit code {self.code}"])[-1].strip().removeprefix("A fatal error occurred: ")[:200]


class PortErrors:
    """What tools behind one serial port say alike when something fails."""

    def __init__(self, port: str) -> None:
        self._port = port

    def _not_opened(self, run: ToolRun) -> FlashError:
        cure = "Check the port's name, the cable and that no other program has it open"
        return self._failed(f"the port cannot be opened: {run.last_words}", "port", FlashState(), cure)

    def _shared(self, state: FlashState) -> FlashError:
        who = ", ".join(holders(self._port)) or "a program that has ended"
        return self._failed(f"another program reads from the port: {who}", "port", state, "Close it and flash again")

    def _failed(self, problem: str, stage: str, state: FlashState, cure: str | None = None) -> FlashError:
        return FlashError(problem, stage=stage, state=state, where=self._port, cure=cure)


def find_tool(name: str) -> list[str]:
    """The command that runs a Python tool.

    Raises:
        MissingToolError: It is not installed.
    """
    if importlib.util.find_spec(name) is not None:
        return [sys.executable, "-m", name]
    program = shutil.which(name)
    if program is None:
        raise MissingToolError(f"{name} is not installed", cure="Run pip install 'arenite[flash]'")
    return [program]


def run_tool(command: Sequence[str], heard: Callable[[str], None] | None = None) -> ToolRun:
    """Runs a program to its end.

    Args:
        command: Program and arguments.
        heard: Told of each line as it comes.

    Raises:
        MissingToolError: It cannot be started.
    """
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "COLUMNS": "200"}
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
    except OSError as error:
        cure = "Install it and put it on PATH"
        raise MissingToolError(f"it cannot be started ({error.strerror})", where=command[0], cure=cure) from error
    lines: list[str] = []
    with process:
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                for line in _ESCAPES.sub("", raw.decode("utf-8", "replace")).replace("\r", "\n").splitlines():
                    lines.append(line)
                    if heard is not None:
                        heard(line)
        except BaseException:
            process.kill()
            raise
    return ToolRun(process.returncode, lines)


def check_port(port: str) -> None:
    """Makes sure that a port is there and no other program has it open.

    Raises:
        FlashError: It is not, or one has.
    """
    if "://" in port:
        return
    if os.name == "posix" and not Path(port).exists():
        cure = "Plug the board in; see which ports there are with `ls /dev/tty*`"
        raise _port_error("there is no such port", port, cure)
    others = holders(port)
    if others:
        raise _port_error(f"the port is open in another program: {', '.join(others)}", port, "Close it and try again")
    if os.name == "posix" and not os.access(port, os.R_OK | os.W_OK):
        cure = "Add yourself to the group that owns it (often dialout), log in again"
        raise _port_error("you may not open the port", port, cure)


def _port_error(problem: str, port: str, cure: str) -> FlashError:
    return FlashError(problem, stage="port", state=FlashState(), where=port, cure=cure)


def holders(port: str) -> list[str]:
    """Other programs that have a port open, as `name (pid)`; empty where the system does not tell."""
    try:
        wanted = Path(port).stat().st_rdev
        processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return []
    others = [process for process in processes if int(process.name) != os.getpid() and _has_open(process, wanted)]
    return [f"{_name(process)} ({process.name})" for process in others]


def _has_open(process: Path, device: int) -> bool:
    try:
        return any(_device(entry) == device for entry in (process / "fd").iterdir())
    except OSError:
        return False


def _device(path: Path) -> int:
    try:
        return path.stat().st_rdev
    except OSError:
        return 0


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8").strip()
    except OSError:
        return "?"
