# SPDX-License-Identifier: Apache-2.0
"""The firmware application on an emulated Cortex-M4, fast enough for a million frames, with its memory watched.

The firmware is that of any other build for the board `qemu-mps2-an386`, its serial driver included; only the linker
script differs: it puts painted words before and behind each object in RAM.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from arenite.device.emulators.unicorn_runner import UnicornBoard
from arenite.device.target import read_target
from arenite_codegen.build import build
from arenite_codegen.elf import Symbol, read_elf
from support.fake_bundle import TENSOR_PLACES, make_fake_bundle
from support.host_compiler import STRICT, find_compiler

__all__ = ["EmulatedLink", "build_watched_firmware"]

BOARD = "qemu-mps2-an386"
PAINT = 0x6D
_GUARD_WORDS = 16
_OBJECT = 1  # ELF's symbol kind of data
_PAGE = 4096
_ANSWER_LIMIT_BYTES = 8 << 20
# A request of the fake model takes less than 0.3 million instructions; a byte of the line about 200.
_LIMIT_INSTRUCTIONS, _LIMIT_PER_BYTE = 50_000_000, 50_000
_SOURCE = Path(__file__).with_name("emulated_uart.c")


_Bytes = np.ndarray[Any, np.dtype[Any]]


class _Line(ctypes.Structure):
    _fields_ = (
        ("to_board", ctypes.c_char_p),
        ("to_board_bytes", ctypes.c_uint64),
        ("taken", ctypes.c_uint64),
        ("from_board", ctypes.c_void_p),
        ("from_board_limit", ctypes.c_uint64),
        ("sent", ctypes.c_uint64),
        ("idle_polls", ctypes.c_uint64),
        ("stop", ctypes.c_void_p),
    )


class EmulatedLink:
    """A running board, as what takes bytes and gives back what is answered.

    Args:
        bundle: What `build_watched_firmware` made.
        folder: For the compiled registers.
    """

    def __init__(self, bundle: Path, folder: Path) -> None:
        target = read_target(bundle)
        self._board = UnicornBoard(target)
        self._answer = ctypes.create_string_buffer(_ANSWER_LIMIT_BYTES)
        self._line = _Line(from_board=ctypes.addressof(self._answer), from_board_limit=_ANSWER_LIMIT_BYTES)
        self._connect(target.uart["base"], _compile(folder))
        flash, ram = target.memory
        self._engine.mem_protect(flash["origin"], flash["length"], 5)  # to read and to execute
        self._origin = ram["origin"]
        self._length = -(-ram["length"] // _PAGE) * _PAGE
        symbols = read_elf(target.image).symbols
        self._objects = sorted((s.value, s.size, s.name) for s in symbols if _is_object(s, self._origin))
        self.banner = self._run(b"")
        self._watched = self._watch(symbols)
        self._expected = self._memory()

    @property
    def instructions(self) -> int:
        """Executed so far."""
        counter = self._board._counter
        assert counter is not None
        return counter.instructions

    def exchange(self, data: bytes) -> bytes:
        """Gives bytes to the board and returns what it sent until it waits for more.

        Raises:
            AssertionError: The board hangs, or has written where nothing of it lies.
            LinkError: It has faulted, or has written to its flash.
        """
        answer = self._run(data)
        now = self._memory()
        spoilt = np.flatnonzero((now != self._expected) & self._watched)
        if spoilt.size:
            address = self._origin + int(spoilt[0])
            raise AssertionError(f"the byte at {address:#x}, {self._place(address)}, was overwritten")
        return answer

    def _run(self, data: bytes) -> bytes:
        line = self._line
        line.to_board, line.to_board_bytes, line.taken, line.sent = data, len(data), 0, 0
        most = self.instructions + _LIMIT_INSTRUCTIONS + _LIMIT_PER_BYTE * len(data)
        while not (self._board.resume() and line.taken == len(data)):
            assert self.instructions < most, f"the board hangs at {self._board._pc:#x}"
        assert line.sent <= _ANSWER_LIMIT_BYTES, "the answer exceeds the buffer: give fewer bytes at a time"
        return ctypes.string_at(self._answer, line.sent)

    def _connect(self, base: int, library: ctypes.CDLL) -> None:
        uclib = importlib.import_module("unicorn.unicorn_py3.unicorn").uclib
        self._engine: Any = self._board._engine
        self._line.stop = ctypes.cast(uclib["uc_emu_stop"], ctypes.c_void_p).value
        self._board._serial = self._line  # type: ignore[assignment]
        self._engine.mem_unmap(base, _PAGE)
        pointer, number = ctypes.c_void_p, ctypes.c_uint64
        mmio_map = uclib["uc_mmio_map"]
        mmio_map.argtypes = (pointer, number, ctypes.c_size_t, pointer, pointer, pointer, pointer)
        read = ctypes.cast(library.emulated_uart_read, pointer)
        write = ctypes.cast(library.emulated_uart_write, pointer)
        user = ctypes.addressof(self._line)
        status = mmio_map(self._engine._uch, base, _PAGE, read, user, write, user)
        assert status == 0, f"uc_mmio_map failed with status {status}"

    def _watch(self, symbols: Iterable[Symbol]) -> _Bytes:
        """Which bytes of RAM nobody may write: all but stack, objects and tensors. Paints those behind the objects."""
        places = {symbol.name: symbol.value - self._origin for symbol in symbols}
        free = np.ones(self._length, np.bool_)
        free[places["__stack_start"] : places["__stack_end"]] = False
        for address, size, name in self._objects:
            if name != "buffer_0":
                free[address - self._origin : address - self._origin + size] = False
        for at, size in TENSOR_PLACES:
            free[places["buffer_0"] + at : places["buffer_0"] + at + size] = False
        memory = self._memory()
        behind = free.copy()
        behind[: places["__bss_end"]] = False  # there the image has put guards
        memory[behind] = PAINT
        self._engine.mem_write(self._origin, memory.tobytes())
        return free

    def _memory(self) -> _Bytes:
        memory: bytearray = self._engine.mem_read(self._origin, self._length)
        return np.frombuffer(memory, np.uint8)

    def _place(self, address: int) -> str:
        before = [entry for entry in self._objects if entry[0] <= address]
        if not before:
            return "below all objects"
        start, size, name = before[-1]
        return f"{address - start} bytes from the start of {name} ({size} bytes)"


def build_watched_firmware(folder: Path) -> Path:
    """Builds the two fake models' firmware with guards around its objects in RAM, and returns the bundle.

    Raises:
        MissingToolError: There is no compiler for the board.
    """
    bundle = make_fake_bundle(folder / "bundle", BOARD, vectors=0)
    manifest = bundle / "manifest.json"
    settings = json.loads(manifest.read_text())
    settings["defines"].append("FAKE_MIRROR")
    manifest.write_text(json.dumps(settings))
    image = read_elf(build(bundle).elf)
    bss = next(section for section in image.sections if section.name == ".bss")
    names = sorted(s.name for s in image.symbols if s.section == bss.index and s.kind == _OBJECT and s.size)
    guard = f"LONG({PAINT * 0x01010101:#x}) " * _GUARD_WORDS
    guarded = "".join(f"\n        {guard}\n        *(.bss.{name})" for name in names)
    script = bundle / "board" / "link.ld"
    text = script.read_text()
    line = "*(.data .data.*)"
    assert text.count(line) == 1
    script.write_text(text.replace(line, f"{line}{guarded}\n        {guard}"))
    image = read_elf(build(bundle).elf)
    assert image.size_of(".bss") == 0, "an object lies outside of the guards"
    return bundle


def _is_object(symbol: Symbol, origin: int) -> bool:
    return symbol.kind == _OBJECT and symbol.size > 0 and symbol.value >= origin


def _compile(folder: Path) -> ctypes.CDLL:
    """The registers of the serial port, as a library."""
    compiler = find_compiler(sanitise=False)
    assert compiler is not None, "no C compiler is here"
    library = folder / "emulated_uart.so"
    command = [*compiler.command, *STRICT, "-O2", "-shared", "-fPIC", str(_SOURCE), "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))
