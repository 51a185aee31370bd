# SPDX-License-Identifier: Apache-2.0
"""A board emulated by QEMU, in a process of its own, with its serial port on a local socket."""

from __future__ import annotations

import contextlib
import select
import shutil
import socket
import subprocess
import sys
import time

from arenite.device.client import RunResult
from arenite.device.emulators.ticks import ticks_to_instructions
from arenite.device.streams import Stream
from arenite.device.target import Target
from arenite.errors import LinkError, MissingToolError

__all__ = ["QemuBoard"]

_START_S = 20.0
_STOP_S = 5.0
_CURE = "Run it by hand to see why, or use the emulator unicorn"


class QemuBoard:
    """A board in QEMU, with one instruction lasting a fixed time, so that its clock counts instructions.

    Raises:
        MissingToolError: QEMU is not installed.
        LinkError: QEMU does not start.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._settings = target.emulators["qemu"]
        self.name = _version(self._settings["program"])
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._process = self._start(server.getsockname()[1])
            try:
                connection = self._accept(server)
            except BaseException:
                self._stop()
                raise
        self.stream: Stream = _SocketStream(connection, f"{target.board} in {self.name}", self._process)

    def instructions(self, result: RunResult) -> int | None:
        """Instructions of a run, exactly."""
        hz, log2 = self._target.counter["hz"], self._settings["instruction_ns_log2"]
        return ticks_to_instructions(result.counter, hz, log2)

    def close(self) -> None:
        """Ends QEMU."""
        self.stream.close()
        self._stop()

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        program = shutil.which(self._settings["program"])
        if program is None:
            raise MissingToolError("QEMU is not installed", where=self._settings["program"], cure=_CURE)
        command = [
            program,
            *self._settings["arguments"],
            *("-kernel", str(self._target.image), "-display", "none", "-monitor", "none"),
            *("-serial", f"tcp:127.0.0.1:{port}"),
            *("-icount", f"shift={self._settings['instruction_ns_log2']}"),
        ]
        try:
            return subprocess.Popen(
                [sys.executable, "-m", "arenite.device.emulators.supervise", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            problem = f"QEMU does not start ({error.strerror})"
            raise MissingToolError(problem, where=command[0], cure=_CURE) from error

    def _accept(self, server: socket.socket) -> socket.socket:
        server.settimeout(0.1)
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(TimeoutError):
                connection, _ = server.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
        problem = f"QEMU does not start: {_last_words(self._process)}"
        raise LinkError(problem, where=self._target.board, cure=_CURE)

    def _stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()


class _SocketStream:
    """The emulated serial port as a stream."""

    def __init__(self, connection: socket.socket, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self._connection = connection
        self._process = process

    def write(self, data: bytes) -> None:
        """Sends all of `data`."""
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise self._lost() from error

    def read(self, timeout_s: float) -> bytes:
        """Bytes that arrived; empty after `timeout_s`."""
        ready, _, _ = select.select([self._connection], [], [], timeout_s)
        if not ready:
            return b""
        try:
            data = self._connection.recv(65536)
        except OSError as error:
            raise self._lost() from error
        if not data:
            raise self._lost()
        return data

    def reopen(self, timeout_s: float) -> None:
        """QEMU keeps the socket over a reset."""

    def close(self) -> None:
        """Closes the socket."""
        self._connection.close()

    def _lost(self) -> LinkError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_S)
        return LinkError(f"QEMU ended: {_last_words(self._process)}", where=self.name, cure=_CURE)


def _last_words(process: subprocess.Popen[bytes]) -> str:
    if process.poll() is None or process.stderr is None:
        return "it does not connect"
    lines = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {process.returncode}"


def _version(program: str) -> str:
    try:
        result = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "qemu"
    words = result.stdout.split()
    return f"qemu {words[3]}" if len(words) > 3 else "qemu"
