# SPDX-License-Identifier: Apache-2.0
"""Flash controllers of real chips for Unicorn, after their manuals: what a driver does in the wrong order is a fault.

The flash itself is memory of the emulation; each store into it is held against the controller's state.
"""

from __future__ import annotations

import importlib
from typing import Any

from arenite.device.emulators import EmulatedBoard

__all__ = ["FlashController", "Nvmc", "Stm32F4", "Stm32L4"]

_PAGE = 4096
_BUSY_POLLS = 3  # how often a controller says that it is busy, after each operation
_WORD = 4


class FlashController:
    """A controller at an address; `faults` says what a real one would not have done.

    Args:
        board: A board in Unicorn that has not run yet.
        flash: Address and bytes of its flash.
    """

    BASE = 0
    UNIT_BYTES = _WORD  # that are written at once

    def __init__(self, board: EmulatedBoard, flash: tuple[int, int]) -> None:
        self.engine: Any = board._engine  # type: ignore[attr-defined]
        self.flash = flash
        self.faults: list[str] = []
        self.erased: list[int] = []
        self.words = 0
        self._busy = 0
        self._next: int | None = None  # where the rest of a unit must follow
        page = self.BASE - self.BASE % _PAGE
        into = self.BASE - page
        self.engine.mmio_map(
            page,
            _PAGE,
            lambda engine, at, size, user: self.read(at - into),
            None,
            lambda engine, at, size, value, user: self.write(at - into, value),
            None,
        )
        hook = importlib.import_module("unicorn").UC_HOOK_MEM_WRITE
        self.engine.hook_add(hook, self._stored, begin=flash[0], end=sum(flash) - 1)

    def read(self, offset: int) -> int:
        """A register."""
        raise NotImplementedError

    def write(self, offset: int, value: int) -> None:
        """A register."""
        raise NotImplementedError

    def writable(self) -> bool:
        """Whether a store reaches the flash now."""
        raise NotImplementedError

    def is_busy(self) -> bool:
        """Asked by the driver: some time after an operation it is not any more."""
        self._busy = max(0, self._busy - 1)
        return self._busy > 0

    def begin(self) -> None:
        """An operation begins."""
        if self._busy:
            self.faults.append("an operation while one is under way")
        self._busy = _BUSY_POLLS

    def erase(self, address: int, count: int) -> None:
        """Erases."""
        self.begin()
        self.erased.append(address)
        self.engine.mem_write(address, b"\xff" * count)

    def _stored(self, engine: Any, access: int, address: int, size: int, value: int, user: Any) -> None:
        if not self.writable():
            self.faults.append(f"a store at {address:#x} while the flash cannot be written")
        if size != _WORD or address % _WORD:
            self.faults.append(f"{size} bytes at once at {address:#x}")
        if bytes(engine.mem_read(address, _WORD)) != b"\xff" * _WORD:
            self.faults.append(f"the word at {address:#x} is not erased")
        if self._next not in (None, address) or (self._next is None and address % self.UNIT_BYTES):
            self.faults.append(f"{address:#x} is not where the unit goes on")
        self._next = address + _WORD if (address + _WORD) % self.UNIT_BYTES else None
        if self._next is None:
            self.begin()
        self.words += 1


class Nvmc(FlashController):
    """Nordic's (nRF52840 Product Specification, NVMC), with pages of 4 KB."""

    BASE = 0x4001E000
    PAGE_BYTES = 4096

    def __init__(self, board: EmulatedBoard, flash: tuple[int, int]) -> None:
        self._config = 0
        super().__init__(board, flash)

    def read(self, offset: int) -> int:
        """READY, CONFIG."""
        if offset == 0x400:
            return int(not self.is_busy())
        return self._config if offset == 0x504 else 0

    def write(self, offset: int, value: int) -> None:
        """CONFIG, ERASEPAGE."""
        if offset == 0x504:
            self._config = value
        elif offset == 0x508 and self._config == 2 and value % self.PAGE_BYTES == 0:
            self.erase(value, self.PAGE_BYTES)
        else:
            self.faults.append(f"write of {value:#x} to register {offset:#x} with CONFIG {self._config}")

    def writable(self) -> bool:
        """CONFIG.WEN."""
        return self._config == 1


class _Stm32(FlashController):
    """What ST's controllers share: keys, lock, a sector's number in the command, caches that are emptied while off."""

    KEYR, SR, CR = 0x00, 0x00, 0x00
    ERASED_BITS = 0  # of the number of a sector
    WRITES = 1  # of the control register while the flash is written
    _KEYS = (0x45670123, 0xCDEF89AB)
    _LOCK, _START, _PROGRAM, _ERASE = 1 << 31, 1 << 16, 1, 2

    def __init__(self, board: EmulatedBoard, flash: tuple[int, int]) -> None:
        self._control, self._access, self._keys = self._LOCK, 0x705, 0
        super().__init__(board, flash)

    def sector(self, number: int) -> tuple[int, int] | None:
        """Place in the flash and bytes of a sector."""
        raise NotImplementedError

    def read(self, offset: int) -> int:
        """ACR, SR, CR."""
        if offset == self.SR:
            return int(self.is_busy()) << 16
        return {0x00: self._access, self.CR: self._control}.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        """KEYR, SR, CR, ACR."""
        if offset == self.KEYR:
            right = self._keys < 2 and value == self._KEYS[self._keys]
            self._keys = self._keys + 1 if right else 0
            if self._keys == 2:
                self._control, self._keys = self._control & ~self._LOCK, 0
        elif offset == self.CR:
            self._write_control(value)
        elif offset == 0x00:
            if value & 0x1800 and value & 0x600:
                self.faults.append("the caches were reset while they were on")
            self._access = value & ~0x1800

    def _write_control(self, value: int) -> None:
        if self._control & self._LOCK:
            self.faults.append("the control register is locked")
            return
        self._control = value & ~self._START
        if value & self._START:
            found = self.sector(value >> 3 & self.ERASED_BITS)
            if value & (self._PROGRAM | self._ERASE) != self._ERASE or found is None:
                self.faults.append(f"an erase with {value:#x}")
                return
            self.erase(self.flash[0] + found[0], found[1])

    def writable(self) -> bool:
        """Unlocked, and told to write."""
        return self._control & ~(self.ERASED_BITS << 3) == self.WRITES


class Stm32F4(_Stm32):
    """That of an STM32F405 (RM0090, 3.9), with its twelve sectors; 32 bits at once."""

    BASE = 0x40023C00
    KEYR, SR, CR = 0x04, 0x0C, 0x10
    ERASED_BITS, WRITES = 15, 0x201
    SECTORS = (*(0x4000,) * 4, 0x10000, *(0x20000,) * 7)

    def sector(self, number: int) -> tuple[int, int] | None:
        """Of four sizes."""
        if number >= len(self.SECTORS):
            return None
        return sum(self.SECTORS[:number]), self.SECTORS[number]


class Stm32L4(_Stm32):
    """That of an STM32L43x (RM0394, 3.7), as an STM32G0 has it too: pages of 2 KB, double words."""

    BASE = 0x40022000
    UNIT_BYTES = 8
    KEYR, SR, CR = 0x08, 0x10, 0x14
    ERASED_BITS, WRITES = 255, 1

    def sector(self, number: int) -> tuple[int, int] | None:
        """A page."""
        return number * 2048, 2048
