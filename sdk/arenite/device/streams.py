# SPDX-License-Identifier: Apache-2.0
"""Byte streams to a board: what the link needs of one, and a serial port as one."""

from __future__ import annotations

from typing import Any, Protocol

from arenite.errors import LinkError, MissingToolError

__all__ = ["SerialStream", "Stream"]


class Stream(Protocol):
    """Two-way bytes. `name` says in messages which one."""

    name: str

    def write(self, data: bytes) -> None:
        """Sends all of `data`."""

    def read(self, timeout_s: float) -> bytes:
        """Bytes that arrived, at least one; empty when none comes within `timeout_s`, or none ever can."""

    def close(self) -> None:
        """Frees the line."""


class SerialStream:
    """A serial port by its pyserial URL: `/dev/ttyACM0`, `COM3`, `socket://host:port`, a pty.

    DTR and RTS are set before the port is opened, since on many boards they are wired to reset.

    Raises:
        MissingToolError: pyserial is not installed.
        LinkError: The port cannot be opened.
    """

    def __init__(self, url: str, baud: int = 115200) -> None:
        serial = _import_pyserial()
        self.name = url
        try:
            self._port: Any = serial.serial_for_url(url, do_not_open=True)
            self._port.baudrate = baud
            self._port.timeout = 0.05
            self._port.dtr = False
            self._port.rts = False
            self._port.open()
        except (OSError, ValueError) as error:
            cure = "Check the cable, the port's name and that no other program has it open"
            raise LinkError(f"the port cannot be opened ({error})", where=url, cure=cure) from error

    def write(self, data: bytes) -> None:
        """Sends all of `data`."""
        try:
            self._port.write(data)
            self._port.flush()
        except OSError as error:
            raise self._lost(error) from error

    def read(self, timeout_s: float) -> bytes:
        """Bytes that arrived; empty after `timeout_s`."""
        try:
            if self._port.timeout != timeout_s:
                self._port.timeout = timeout_s
            first = self._port.read(1)
            return bytes(first + self._port.read(self._port.in_waiting)) if first else b""
        except OSError as error:
            raise self._lost(error) from error

    def close(self) -> None:
        """Closes the port."""
        self._port.close()

    def _lost(self, error: OSError) -> LinkError:
        cure = "Plug the board in and try again"
        return LinkError(f"the port went away ({error})", where=self.name, cure=cure)


def _import_pyserial() -> Any:
    try:
        import serial
    except ImportError as error:
        cure = "Run pip install 'arenite[firmware]'"
        raise MissingToolError("talking to a board needs the package pyserial", cure=cure) from error
    return serial
