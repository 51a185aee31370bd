# SPDX-License-Identifier: Apache-2.0
"""The firmware's update code in this process, over a flash that obeys a real one's rules and loses power on demand."""

from __future__ import annotations

import ctypes
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

from arenite_codegen.board_support import firmware_folder
from support.host_compiler import HostCompiler

__all__ = ["Cut", "Flash", "Slots", "UpdateCode", "build_update_code"]

SLOTS = 2
MANNERS = ("nothing", "half", "torn", "all")
STATUS = (
    "OK", "NO_IMAGE", "BAD_SIGNATURE", "OTHER_KIND", "OTHER_BOARD", "OTHER_BUILD", "TOO_LARGE", "DAMAGED",
    "OLD_VERSION", "FLASH_FAILED", "OUT_OF_ORDER", "TRUNCATED", "UNCONFIRMED",
)  # fmt: skip

_READ = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint32
)
_ERASE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint32)


class _Flash(ctypes.Structure):
    _fields_ = [
        ("context", ctypes.c_void_p),
        ("sector_bytes", ctypes.c_uint32),
        ("write_bytes", ctypes.c_uint32),
        ("read", _READ),
        ("erase", _ERASE),
        ("write", _READ),
    ]


class _Rules(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_char_p),
        ("board", ctypes.c_char_p),
        ("build", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("payload_limit_bytes", ctypes.c_uint32),
    ]


class _Slots(ctypes.Structure):
    _fields_ = [
        ("flash", ctypes.POINTER(_Flash)),
        ("rules", _Rules),
        ("start", ctypes.c_uint32 * SLOTS),
        ("slot_bytes", ctypes.c_uint32),
        ("has_own", ctypes.c_bool),
    ]


class Boot(ctypes.Structure):
    """`update_boot_t`."""

    _fields_ = [
        ("slot", ctypes.c_int),
        ("version", ctypes.c_uint32),
        ("confirmed", ctypes.c_bool),
        ("on_trial", ctypes.c_bool),
        ("rolled_back", ctypes.c_bool),
        ("status", ctypes.c_int * SLOTS),
    ]


class Cut(Exception):
    """Power failed."""


class Flash:
    """Bytes that are erased by sectors and written once in between, in whole units.

    `operations` counts erasures and writes; operation `cut_at` happens as `manner` says, and then power is gone until
    `power_up`.
    """

    def __init__(self, size_bytes: int, sector_bytes: int, write_bytes: int) -> None:
        self.data = bytearray(random.Random(0).randbytes(size_bytes))
        self.sector_bytes, self.write_bytes = sector_bytes, write_bytes
        self.written: set[int] = set(range(0, size_bytes, write_bytes))
        self.operations = 0
        self.cut_at: int | None = None
        self.manner = "nothing"
        self.dead = False
        self.broken_rule = ""

    def power_up(self, cut_at: int | None = None, manner: str = "nothing") -> None:
        """Power is back; it may fail again at a coming operation."""
        self.dead, self.cut_at, self.manner, self.operations = False, cut_at, manner, 0

    def erase(self, address: int) -> bool:
        """Erases a sector."""
        if address % self.sector_bytes or not 0 <= address < len(self.data):
            self.broken_rule = f"erase at {address:#x}"
        units = range(address, address + self.sector_bytes, self.write_bytes)
        return self._change(address, b"\xff" * self.sector_bytes, lambda: self.written.difference_update(units))

    def write(self, address: int, data: bytes) -> bool:
        """Writes units that are erased."""
        units = range(address, address + len(data), self.write_bytes)
        whole = address % self.write_bytes == 0 and len(data) % self.write_bytes == 0
        if not whole or not 0 <= address <= len(self.data) - len(data) or not self.written.isdisjoint(units):
            self.broken_rule = f"write of {len(data)} bytes at {address:#x}"
        return self._change(address, data, lambda: self.written.update(units))

    def _change(self, address: int, new: bytes, began: Callable[[], None]) -> bool:
        if self.dead:
            return False
        self.operations += 1
        cut = self.cut_at is not None and self.operations > self.cut_at
        if not (cut and self.manner == "nothing"):
            began()
        if cut:
            self.dead = True
            old = self.data[address : address + len(new)]
            self.data[address : address + len(new)] = _torn(bytes(old), new, self.manner, self.operations)
            return False
        self.data[address : address + len(new)] = new
        return True


def _torn(old: bytes, new: bytes, manner: str, seed: int) -> bytes:
    """What is left of an operation that power cut short."""
    if manner == "nothing":
        return old
    if manner == "all":
        return new
    if manner == "half":
        return new[: len(new) // 2] + old[len(new) // 2 :]
    rng = random.Random(seed)
    mask = rng.randbytes(len(new))
    return bytes(a & ~m & 0xFF | b & m for a, b, m in zip(old, new, mask, strict=True))


class UpdateCode:
    """The compiled functions."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.update_boot.restype = Boot
        self._library.update_payload_limit.restype = ctypes.c_uint32

    def slots(
        self, flash: Flash, key: bytes, board: str, kind: int, build: bytes | None = None, has_own: bool = False
    ) -> Slots:
        """Two slots that fill a flash."""
        return Slots(self._library, flash, key, board, kind, build, has_own)


class Slots:
    """`update_slots_t`. Each call raises `Cut` when power failed during it."""

    def __init__(
        self,
        library: ctypes.CDLL,
        flash: Flash,
        key: bytes,
        board: str,
        kind: int,
        build: bytes | None,
        has_own: bool,
    ) -> None:
        self._library, self.flash = library, flash
        self._flash = _Flash(
            None, flash.sector_bytes, flash.write_bytes, _READ(self._read), _ERASE(self._erase), _READ(self._write)
        )
        half = len(flash.data) // SLOTS
        self.starts = (0, half)
        self._keep = (key, board.encode(), build)
        rules = _Rules(*self._keep, kind, 0)
        self._slots = _Slots(ctypes.pointer(self._flash), rules, (ctypes.c_uint32 * SLOTS)(0, half), half, has_own)
        self.payload_limit = int(library.update_payload_limit(ctypes.byref(self._flash), half))
        self._install = ctypes.create_string_buffer(1024)

    def boot(self) -> Boot:
        """A start."""
        boot: Boot = self._library.update_boot(ctypes.byref(self._slots))
        self._check()
        return boot

    def confirm(self, slot: int) -> str:
        """What runs says that it works."""
        return self._status(self._library.update_confirm(ctypes.byref(self._slots), slot))

    def install(self, running: Boot, image: bytes, chunk: int = 100) -> str:
        """A whole update, in chunks, up to the first status that is not OK."""
        status = self.begin(running, image)
        for at in range(256, len(image), chunk):
            if status == "OK":
                status = self.take(at - 256, image[at : at + chunk])
        return self.finish() if status == "OK" else status

    def begin(self, running: Boot, image: bytes) -> str:
        """The header."""
        arguments = (self._install, ctypes.byref(self._slots), ctypes.byref(running), image[:256].ljust(256, b"\0"))
        return self._status(self._library.update_begin(*arguments))

    def take(self, offset: int, data: bytes) -> str:
        """Bytes of the payload."""
        return self._status(self._library.update_take(self._install, offset, data, len(data)))

    def finish(self) -> str:
        """The end."""
        return self._status(self._library.update_finish(self._install))

    def _status(self, value: int) -> str:
        self._check()
        return STATUS[value]

    def _check(self) -> None:
        assert not self.flash.broken_rule, self.flash.broken_rule
        if self.flash.dead:
            raise Cut

    def _read(self, context: object, address: int, to: object, count: int) -> bool:
        ctypes.memmove(to, bytes(self.flash.data[address : address + count]), count)  # type: ignore[arg-type]
        return not self.flash.dead

    def _erase(self, context: object, address: int) -> bool:
        return self.flash.erase(address)

    def _write(self, context: object, address: int, data: object, count: int) -> bool:
        return self.flash.write(address, ctypes.string_at(data, count))  # type: ignore[arg-type]


def build_update_code(compiler: HostCompiler, folder: Path) -> UpdateCode:
    """Compiles the update code to a library, under the strict warnings of the firmware."""
    update = firmware_folder("update")
    plain = HostCompiler(compiler.name, compiler.command, ("-O2", "-g"), "none")
    sources = [update / name for name in ("ed25519.c", "sha512.c", "update.c", "update_image.c")]
    objects = plain.compile(sources, [update, firmware_folder("app")], folder, "-fPIC")
    library = folder / "libupdate.so"
    subprocess.run([*plain.command, "-shared", *map(str, objects), "-o", str(library)], check=True)
    return UpdateCode(library)
