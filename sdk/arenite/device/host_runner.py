# SPDX-License-Identifier: Apache-2.0
"""The board `host`: the firmware's link code and the model, in a shared library in this process."""

from __future__ import annotations

import ctypes

from arenite._library import fresh_library
from arenite.device.client import RunResult
from arenite.device.streams import Stream
from arenite.device.target import Target
from arenite.errors import LinkError

__all__ = ["HostBoard"]

_REPLY_CAPACITY = 1 << 16


class HostBoard:
    """A bundle built for this computer, behind the same link as a board.

    Raises:
        LinkError: The library cannot be loaded.
    """

    def __init__(self, target: Target) -> None:
        self.name = "host"
        try:
            library = fresh_library(target.image)
            self.stream: Stream = _LibraryStream(library, str(target.image))
        except (OSError, AttributeError) as error:
            problem = f"the library cannot be loaded ({error})"
            cure = "Build the bundle again on this computer"
            raise LinkError(problem, where=str(target.image), cure=cure) from error

    def instructions(self, result: RunResult) -> int | None:
        """Not counted on the host."""
        return None

    def close(self) -> None:
        """Nothing to stop."""


class _LibraryStream:
    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.name = name
        self._exchange = library.arenite_host_exchange
        self._exchange.restype = ctypes.c_size_t
        self._exchange.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
        library.arenite_host_start.restype = ctypes.c_size_t
        library.arenite_host_start.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
        self._out = ctypes.create_string_buffer(_REPLY_CAPACITY)
        self._arrived = bytearray(self._take(library.arenite_host_start(self._out, _REPLY_CAPACITY)))

    def write(self, data: bytes) -> None:
        """Gives the bytes to the firmware, which answers at once."""
        self._arrived += self._take(self._exchange(data, len(data), self._out, _REPLY_CAPACITY))

    def read(self, timeout_s: float) -> bytes:
        """What the firmware sent since the last call."""
        data = bytes(self._arrived)
        self._arrived.clear()
        return data

    def reopen(self, timeout_s: float) -> None:
        """The library is never away."""

    def close(self) -> None:
        """The library stays loaded: a process cannot unload it safely."""

    def _take(self, sent: int) -> bytes:
        return self._out.raw[: min(sent, _REPLY_CAPACITY)]
