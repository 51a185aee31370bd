# SPDX-License-Identifier: Apache-2.0
"""A board emulated in this process by Unicorn. It runs only while someone reads from its serial port."""

from __future__ import annotations

import importlib.metadata
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from arenite.device.client import RunResult
from arenite.device.emulators.block_counter import BlockCounter
from arenite.device.emulators.ticks import instructions_to_ticks, ticks_to_instructions
from arenite.device.streams import Stream
from arenite.device.target import Segment, Target, read_segments
from arenite.errors import LinkError, MissingToolError

__all__ = ["UnicornBoard"]

_PAGE = 4096
# The emulation returns to Python this often, so that Ctrl-C and time-outs work.
_SLICE_INSTRUCTIONS = 50_000_000
_SLICE_US = 500_000
_IDLE_POLLS = 8  # firmware that does not sleep and found no byte this often in a row waits for us
_SYSTEM_CONTROL = 0xE000E000
_AIRCR, _RESET_REQUEST = 0xE000ED0C, 0x05FA0004
_PLIC_BYTES = 0x400000
_NEVER = 0xFFFFFFFE


class UnicornBoard:
    """A board in Unicorn.

    Raises:
        MissingToolError: Unicorn is not installed.
        LinkError: The firmware cannot be started.
    """

    def __init__(self, target: Target) -> None:
        self._unicorn = _import_unicorn()
        self._target = target
        self._reset_asked = False
        self.name = f"unicorn {importlib.metadata.version('unicorn')}"
        self._engine = _make_engine(self._unicorn, target)
        segments = read_segments(target.image)
        self._map_memory(segments)
        self._counter = self._count_instructions(segments)
        self._serial = _Serial(self)
        self._map_devices()
        self._pc = self._start_address()
        self.stream: Stream = self._serial

    def instructions(self, result: RunResult) -> int | None:
        """Instructions of a run; None when no compiler was there to build the counting hook."""
        if self._counter is None:
            return None
        return ticks_to_instructions(result.counter, self._target.counter["hz"], self._log2())

    def close(self) -> None:
        """Nothing to stop: it does not run by itself."""

    def resume(self) -> bool:
        """Emulates until the firmware waits for input (True), or for a slice of time (False).

        Raises:
            LinkError: The firmware faulted.
        """
        self._serial.idle_polls = 0
        thumb = 1 if self._target.architecture == "cortex-m" else 0
        if self._counter is not None:
            self._counter.stop_after(_SLICE_INSTRUCTIONS)
        try:
            # A time-out is a thread that polls, and it stops at a block that the counter has already counted.
            timeout_us = _SLICE_US if self._counter is None else 0
            self._engine.emu_start(self._pc | thumb, _NEVER, timeout=timeout_us)
        except self._unicorn.UcError as error:
            raise self._fault(str(error)) from error
        self._pc = self._program_counter()
        if self._reset_asked:
            self._reset_asked = False
            self._pc = self._start_address()
            return False
        if self._counter is not None:
            sliced = self._counter.stopped
        else:
            sliced = bool(self._engine.query(self._unicorn.UC_QUERY_TIMEOUT))
        return self._serial.idle_polls > 0 and not sliced

    def stop(self) -> None:
        """Ends `resume` soon; called from the emulated serial port."""
        self._engine.emu_stop()

    def ticks(self) -> int:
        """The emulated clock in ticks of the board's counter: it advances with the instructions."""
        executed = self._counter.instructions if self._counter is not None else 0
        return instructions_to_ticks(executed, self._target.counter["hz"], self._log2())

    def _log2(self) -> int:
        return int(self._target.emulators["unicorn"]["instruction_ns_log2"])

    def _map_memory(self, segments: list[Segment]) -> None:
        for region in self._target.memory:
            self._engine.mem_map(region["origin"], -(-region["length"] // _PAGE) * _PAGE)
        if self._target.architecture == "cortex-m":
            self._engine.mem_map(_SYSTEM_CONTROL, _PAGE)
            hook = self._unicorn.UC_HOOK_MEM_WRITE
            self._engine.hook_add(hook, self._system_control_written, begin=_AIRCR, end=_AIRCR + 3)
        for segment in segments:
            self._engine.mem_write(segment.address, segment.data)

    def _system_control_written(self, engine: Any, access: int, address: int, size: int, value: int, user: Any) -> None:
        """The firmware asks for a reset of the core."""
        if address == _AIRCR and value == _RESET_REQUEST:
            self._reset_asked = True
            self.stop()

    def _count_instructions(self, segments: list[Segment]) -> BlockCounter | None:
        library = BlockCounter.load()
        if library is None:
            return None
        start = self._flash()["origin"]
        code = next(s for s in segments if s.address <= start < s.address + len(s.data))
        counter = BlockCounter(library, code.address, code.data, self._target.architecture == "riscv32")
        counter.attach(self._engine)
        return counter

    def _map_devices(self) -> None:
        uart = self._target.uart
        pages = {uart["base"]: _UARTS[uart["kind"]](self._serial)}
        clock = self._target.counter
        pages |= _CLOCKS[clock["kind"]](clock, self.ticks)
        if uart["plic_base"] is not None:
            self._engine.mmio_map(uart["plic_base"], _PLIC_BYTES, lambda *_: 0, None, lambda *_: None, None)
        for base, (read, write) in pages.items():
            page = base - base % _PAGE
            into = base - page
            self._engine.mmio_map(page, _PAGE, _from_base(read, into), None, _to_base(write, into), None)

    def _start_address(self) -> int:
        flash = self._flash()
        if self._target.architecture == "riscv32":
            return int(flash["origin"])
        vectors = bytes(self._engine.mem_read(flash["origin"], 8))
        self._engine.reg_write(self._unicorn.arm_const.UC_ARM_REG_SP, int.from_bytes(vectors[:4], "little"))
        return int.from_bytes(vectors[4:], "little") & ~1

    def _flash(self) -> dict[str, Any]:
        """The region of the code."""
        return next(region for region in self._target.memory if region["kind"] == "flash")

    def _program_counter(self) -> int:
        if self._target.architecture == "riscv32":
            return int(self._engine.reg_read(self._unicorn.riscv_const.UC_RISCV_REG_PC))
        return int(self._engine.reg_read(self._unicorn.arm_const.UC_ARM_REG_PC)) & ~1

    def _fault(self, reason: str) -> LinkError:
        problem = f"the firmware faulted at address {self._program_counter():#x} ({reason})"
        cure = "If the bundle was not edited by hand, this is a fault of Arenite: report it with this message"
        return LinkError(problem, where=f"{self._target.board} in {self.name}", cure=cure)


class _Serial:
    """The wire between the emulated UART and the host; reading from it is what makes the board run."""

    def __init__(self, board: UnicornBoard) -> None:
        self.name = f"{board._target.board} in {board.name}"
        self.to_board: deque[int] = deque()
        self.from_board = bytearray()
        self.idle_polls = 0
        self._board = board

    def write(self, data: bytes) -> None:
        """Bytes for the board to find when it runs."""
        self.to_board.extend(data)

    def read(self, timeout_s: float) -> bytes:
        """Runs the board until it has sent something and waits; empty when it waits without having sent."""
        deadline = time.monotonic() + timeout_s
        while True:
            waits = self._board.resume()
            if waits or time.monotonic() >= deadline:
                data = bytes(self.from_board)
                self.from_board.clear()
                return data

    def reopen(self, timeout_s: float) -> None:
        """The wire is never away."""

    def close(self) -> None:
        """Nothing to free."""

    def ready(self) -> bool:
        """Whether a byte is there for the board; stops the emulation when the board keeps asking in vain."""
        if self.to_board:
            self.idle_polls = 0
            return True
        self.idle_polls += 1
        if self.idle_polls >= _IDLE_POLLS:
            self._board.stop()
        return False

    def receive(self) -> int:
        """The board takes a byte."""
        return self.to_board.popleft() if self.to_board else 0

    def send(self, byte: int) -> None:
        """The board gives a byte."""
        self.idle_polls = 0
        self.from_board.append(byte & 0xFF)


_Read = Callable[[int], int]
_Write = Callable[[int, int], None]


def _cmsdk_uart(serial: _Serial) -> tuple[_Read, _Write]:
    def read(offset: int) -> int:
        if offset == 0:
            return serial.receive()
        return 2 if offset == 4 and serial.ready() else 0

    def write(offset: int, value: int) -> None:
        if offset == 0:
            serial.send(value)

    return read, write


def _uart_16550(serial: _Serial) -> tuple[_Read, _Write]:
    latch = False  # the divisor latch lies over the data register

    def read(offset: int) -> int:
        if offset == 0 and not latch:
            return serial.receive()
        return (0x60 | int(serial.ready())) if offset == 5 else 0

    def write(offset: int, value: int) -> None:
        nonlocal latch
        if offset == 3:
            latch = bool(value & 0x80)
        elif offset == 0 and not latch:
            serial.send(value)

    return read, write


def _nrf_uart(serial: _Serial) -> tuple[_Read, _Write]:
    def read(offset: int) -> int:
        if offset == 0x518:
            return serial.receive()
        return int(serial.ready()) if offset == 0x108 else int(offset == 0x11C)

    def write(offset: int, value: int) -> None:
        if offset == 0x51C:
            serial.send(value)

    return read, write


def _stm32_v1_uart(serial: _Serial) -> tuple[_Read, _Write]:
    def read(offset: int) -> int:
        if offset == 4:
            return serial.receive()
        return (0xC0 | int(serial.ready()) << 5) if offset == 0 else 0

    def write(offset: int, value: int) -> None:
        if offset == 4:
            serial.send(value)

    return read, write


def _cmsdk_clock(clock: dict[str, Any], ticks: Callable[[], int]) -> dict[int, tuple[_Read, _Write]]:
    def fine(offset: int) -> int:
        return 0xFFFFFFFF - (ticks() & 0xFFFFFFFF) if offset == 4 else 0

    def coarse(offset: int) -> int:
        return 0xFFFFFFFF - (ticks() >> 8 & 0xFFFFFFFF) if offset == 4 else 0

    return {clock["base"]: (fine, _ignore), clock["coarse_base"]: (coarse, _ignore)}


def _mtime_clock(clock: dict[str, Any], ticks: Callable[[], int]) -> dict[int, tuple[_Read, _Write]]:
    def read(offset: int) -> int:
        return ticks() >> (8 * offset) & 0xFFFFFFFF if offset in (0, 4) else 0

    return {clock["base"]: (read, _ignore)}


def _register_clock(register: int) -> Callable[..., dict[int, tuple[_Read, _Write]]]:
    """A timer whose register at this offset is the count, in 32 bits."""

    def make(clock: dict[str, Any], ticks: Callable[[], int]) -> dict[int, tuple[_Read, _Write]]:
        return {clock["base"]: (lambda offset: ticks() & 0xFFFFFFFF if offset == register else 0, _ignore)}

    return make


def _no_clock(clock: dict[str, Any], ticks: Callable[[], int]) -> dict[int, tuple[_Read, _Write]]:
    return {}


_UARTS = {"cmsdk": _cmsdk_uart, "16550": _uart_16550, "nrf": _nrf_uart, "stm32-v1": _stm32_v1_uart}
_CLOCKS = {
    "cmsdk": _cmsdk_clock,
    "mtime": _mtime_clock,
    "nrf": _register_clock(0x540),
    "stm32-tim": _register_clock(0x24),
    "none": _no_clock,
}


def _ignore(offset: int, value: int) -> None:
    return None


def _from_base(read: _Read, base: int) -> Callable[..., int]:
    return lambda engine, offset, size, user: read(offset - base)


def _to_base(write: _Write, base: int) -> Callable[..., None]:
    return lambda engine, offset, size, value, user: write(offset - base, value)


def _make_engine(unicorn: Any, target: Target) -> Any:
    if target.architecture == "riscv32":
        return unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
    engine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    cpu = target.emulators["unicorn"]["cpu"].upper().replace("-", "_")
    engine.ctl_set_cpu_model(getattr(unicorn.arm_const, f"UC_CPU_ARM_{cpu}"))
    return engine


def _import_unicorn() -> Any:
    try:
        import unicorn
        import unicorn.arm_const
        import unicorn.riscv_const
    except ImportError as error:
        cure = "Run pip install 'arenite[firmware]'"
        raise MissingToolError("the emulator unicorn is not installed", cure=cure) from error
    return unicorn
