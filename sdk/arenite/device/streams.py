# SPDX-License-Identifier: Apache-2.0
"""Byte streams to a board: what the link needs of one, and a serial port as one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from arenite.errors import LinkError, MissingToolError, UsageError

__all__ = ["SerialStream", "Stream", "UsbId", "find_usb"]

_USB = "usb:"
_LOOK_AGAIN_S = 0.1


class Stream(Protocol):
    """Two-way bytes. `name` says in messages which one."""

    name: str

    def write(self, data: bytes) -> None:
        """Sends all of `data`."""

    def read(self, timeout_s: float) -> bytes:
        """Bytes that arrived, at least one; empty when none comes within `timeout_s`, or none ever can."""

    def reopen(self, timeout_s: float) -> None:
        """The board restarts: finds the line again where it goes away meanwhile."""

    def close(self) -> None:
        """Frees the line."""


@dataclass(frozen=True)
class UsbId:
    """What tells a USB device from others: `usb:VID:PID` or `usb:VID:PID:SERIAL`."""

    vendor: int
    product: int
    serial: str | None = None

    @classmethod
    def parse(cls, text: str) -> UsbId:
        """Reads `usb:VID:PID[:SERIAL]`, numbers hexadecimal.

        Raises:
            UsageError: It is not so.
        """
        parts = text.removeprefix(_USB).split(":", 2)
        try:
            vendor, product = (int(part, 16) for part in parts[:2])
        except ValueError:
            cure = "Write usb:VID:PID or usb:VID:PID:SERIAL, numbers hexadecimal, such as usb:0483:374b"
            raise UsageError("this names no USB device", where=text, cure=cure) from None
        return cls(vendor, product, parts[2] if len(parts) == 3 else None)

    def __str__(self) -> str:
        tail = f":{self.serial}" if self.serial else ""
        return f"{_USB}{self.vendor:04x}:{self.product:04x}{tail}"

    def matches(self, port: Any) -> bool:
        """Whether a port that pyserial lists is this device."""
        same = (port.vid, port.pid) == (self.vendor, self.product)
        return same and self.serial in (None, port.serial_number)


def find_usb(wanted: UsbId, timeout_s: float = 0.0) -> str:
    """The port that a USB device has now: after a restart its name may be another.

    Raises:
        LinkError: It is not there within `timeout_s`, or it is there twice.
        MissingToolError: pyserial is not installed.
    """
    _import_pyserial()
    from serial.tools import list_ports

    deadline = time.monotonic() + timeout_s
    while True:
        found = sorted(port.device for port in list_ports.comports() if wanted.matches(port))
        if len(found) == 1:
            return str(found[0])
        if found:
            problem = f"{len(found)} such devices are plugged in: {', '.join(found)}"
            raise LinkError(problem, where=str(wanted), cure=f"Add its serial number: {wanted}:SERIAL")
        if time.monotonic() >= deadline:
            raise LinkError("no such device is plugged in", where=str(wanted), cure="Check the cable and the numbers")
        time.sleep(_LOOK_AGAIN_S)


class SerialStream:
    """A serial port by its pyserial URL: `/dev/ttyACM0`, `COM3`, `socket://host:port`, `rfc2217://host:port`, a pty; or
    by what it is, `usb:VID:PID:SERIAL`.

    DTR and RTS are set before the port is opened, since on many boards they are wired to reset.

    Raises:
        MissingToolError: pyserial is not installed.
        LinkError: The port cannot be opened.
    """

    def __init__(self, url: str, baud: int = 115200) -> None:
        self.name = url
        self._baud = baud
        self._usb = UsbId.parse(url) if url.startswith(_USB) else _usb_of(url)
        self._open(find_usb(self._usb) if self._usb is not None and url.startswith(_USB) else url)

    def _open(self, url: str) -> None:
        serial = _import_pyserial()
        try:
            self._port: Any = serial.serial_for_url(url, do_not_open=True)
            self._port.baudrate = self._baud
            self._port.timeout = 0.05
            self._port.dtr = False
            self._port.rts = False
            self._port.open()
        except (OSError, ValueError) as error:
            cure = "Check the cable, the port's name and that no other program has it open"
            raise LinkError(f"the port cannot be opened ({error})", where=self.name, cure=cure) from error

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

    def reopen(self, timeout_s: float) -> None:
        """A board with a USB port of its own leaves the bus when it restarts, and may come back under another name."""
        if self._usb is not None:
            self._port.close()
            self._open(find_usb(self._usb, timeout_s))

    def close(self) -> None:
        """Closes the port."""
        self._port.close()

    def _lost(self, error: OSError) -> LinkError:
        cure = "Plug the board in and try again"
        return LinkError(f"the port went away ({error})", where=self.name, cure=cure)


def _usb_of(url: str) -> UsbId | None:
    """What is plugged in at a port; None when it is not of USB."""
    if "://" in url:
        return None
    _import_pyserial()
    from serial.tools import list_ports

    port = next((port for port in list_ports.comports() if port.device == url and port.vid is not None), None)
    return None if port is None else UsbId(port.vid, port.pid, port.serial_number)


def _import_pyserial() -> Any:
    try:
        import serial
    except ImportError as error:
        cure = "Run pip install 'arenite[firmware]'"
        raise MissingToolError("talking to a board needs the package pyserial", cure=cure) from error
    return serial
