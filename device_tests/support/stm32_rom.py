# SPDX-License-Identifier: Apache-2.0
"""The USART loader in the ROM of STM32 chips, from ST's application note AN3155, over a flash of bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import reduce
from operator import xor

from support.pty_line import Chip

__all__ = ["CHIPS", "Stm32Rom"]

_ACK, _NACK = b"\x79", b"\x1f"
_COMMANDS = bytes([0x00, 0x01, 0x02, 0x11, 0x21, 0x31, 0x44, 0x63, 0x73, 0x82, 0x92])


@dataclass(frozen=True)
class Stm32Chip:
    """Attributes: product id, where the size of the flash in KiB and the unique id (12 bytes) are read."""

    product: int
    size_address: int
    uid_address: int


CHIPS = {
    "stm32f405": Stm32Chip(0x413, 0x1FFF7A22, 0x1FFF7A10),
    "stm32g071": Stm32Chip(0x460, 0x1FFF75E0, 0x1FFF7590),
}

@dataclass
class Stm32Rom:
    """A chip whose BOOT0 pin is high.

    Attributes:
        base: Where its flash lies.
        read_protected: Every command but those that identify is refused.
        stuck: Bits of a byte that can be 1, by place in the flash.
        noise: Places that are read otherwise each time.
        on_write: Called before each block with its address.
        on_go: Starts what the flash holds at an address; that answers from then on.
        started: The address of a `go`.
    """

    chip: Stm32Chip
    flash_bytes: int = 1 << 20
    base: int = 0x08000000
    read_protected: bool = False
    stuck: dict[int, int] = field(default_factory=dict)
    noise: set[int] = field(default_factory=set)
    on_write: Callable[[int], None] = lambda address: None
    on_go: Callable[[int], Chip] | None = None
    flash: bytearray = field(default_factory=bytearray)
    erases: int = 0
    started: int | None = None

    def __post_init__(self) -> None:
        if not self.flash:
            self.flash = bytearray(b"\xff" * self.flash_bytes)
        self.application: Chip | None = None
        self._synchronised = False
        self._bytes = bytearray()
        self._out = bytearray()
        self._talk = self._converse()
        next(self._talk)

    def receive(self, data: bytes) -> bytes:
        """Takes bytes from the line; returns what the loader sends."""
        if self.application is not None:
            return self.application.receive(data)
        for byte in data:
            self._talk.send(byte)
        sent = bytes(self._out)
        self._out.clear()
        return sent

    def _converse(self) -> Generator[None, int, None]:
        """A coroutine that is sent one byte after the other."""
        while True:
            first = yield
            if first == 0x7F:
                # The first sets the baud rate; a later one is half a command, which its complement would end.
                self._out += _NACK if self._synchronised else _ACK
                self._synchronised = True
                continue
            if not self._synchronised:
                continue
            if (yield) != first ^ 0xFF or first not in _COMMANDS:
                self._out += _NACK
                continue
            if self.read_protected and first not in (0x00, 0x01, 0x02, 0x92):
                self._out += _NACK
                continue
            self._out += _ACK
            yield from self._command(first)

    def _command(self, command: int) -> Generator[None, int, None]:
        if command == 0x00:
            self._out += bytes([len(_COMMANDS), 0x31]) + _COMMANDS + _ACK
        elif command == 0x01:
            self._out += b"\x31\0\0" + _ACK
        elif command == 0x02:
            self._out += b"\x01" + struct.pack(">H", self.chip.product) + _ACK
        elif command == 0x11:
            yield from self._read()
        elif command == 0x21:
            address = yield from self._address()
            if address is not None:
                self.started = address
                self._out += _ACK
                self.application = self.on_go(address) if self.on_go is not None else None
        elif command == 0x31:
            yield from self._write()
        elif command == 0x44:
            yield from self._erase()

    def _take(self, count: int) -> Generator[None, int, bytes]:
        data = bytearray()
        for _ in range(count):
            data.append((yield))
        return bytes(data)

    def _address(self) -> Generator[None, int, int | None]:
        data = yield from self._take(5)
        if reduce(xor, data) != 0:
            self._out += _NACK
            return None
        return int.from_bytes(data[:4], "big")

    def _read(self) -> Generator[None, int, None]:
        address = yield from self._address()
        if address is None:
            return
        self._out += _ACK
        count, complement = yield from self._take(2)
        if count ^ complement != 0xFF:
            self._out += _NACK
            return
        self._out += _ACK + bytes(self._byte(address + i) for i in range(count + 1))

    def _byte(self, address: int) -> int:
        if self.base <= address < self.base + len(self.flash):
            place = address - self.base
            if place in self.noise:
                self.flash[place] = (self.flash[place] + 1) & 0xFF
            return self.flash[place]
        size = struct.pack("<H", len(self.flash) >> 10)
        if 0 <= address - self.chip.size_address < 2:
            return size[address - self.chip.size_address]
        if 0 <= address - self.chip.uid_address < 12:
            return 0x30 + address - self.chip.uid_address
        return 0

    def _write(self) -> Generator[None, int, None]:
        address = yield from self._address()
        if address is None:
            return
        at = address - self.base
        if not 0 <= at < len(self.flash):
            self._out += _NACK
            return
        self._out += _ACK
        count = yield
        data = yield from self._take(count + 1)
        if (yield) != reduce(xor, data, count):
            self._out += _NACK
            return
        self.on_write(address)
        # Programming only clears bits: what was not erased first comes out wrong.
        old = self.flash[at : at + len(data)]
        self.flash[at : at + len(data)] = bytes(a & b for a, b in zip(old, data, strict=False))
        for place, mask in self.stuck.items():
            self.flash[place] &= mask
        self._out += _ACK

    def _erase(self) -> Generator[None, int, None]:
        count = int.from_bytes((yield from self._take(2)), "big")
        if count != 0xFFFF:
            self._out += _NACK  # only mass erase is here
            return
        if (yield) != 0x00:
            self._out += _NACK
            return
        self.flash[:] = b"\xff" * len(self.flash)
        self.erases += 1
        self._out += _ACK
