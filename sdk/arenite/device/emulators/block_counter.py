# SPDX-License-Identifier: Apache-2.0
"""Counts instructions in Unicorn: a hook in C, compiled once and kept in the user's cache folder."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["BlockCounter"]

_SOURCE = Path(__file__).with_name("count_blocks.c")
_UC_HOOK_BLOCK = 8


class _Head(ctypes.Structure):
    _fields_ = (
        ("instructions", ctypes.c_uint64),
        ("origin", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("code", ctypes.c_void_p),
        ("compressed_isa", ctypes.c_uint32),
        ("stopped", ctypes.c_uint32),
        ("stop_at", ctypes.c_uint64),
        ("stop", ctypes.c_void_p),
    )


class BlockCounter:
    """Counts the instructions that an engine executes in one stretch of code.

    Args:
        library: What `load` returned.
        origin: Address of the code.
        code: Its bytes.
        is_riscv: RISC-V with compressed instructions, else Thumb.
    """

    def __init__(self, library: ctypes.CDLL, origin: int, code: bytes, is_riscv: bool) -> None:
        self._library = library
        self._code = ctypes.create_string_buffer(code, len(code) + 4)
        self._memory = ctypes.create_string_buffer(library.arenite_counter_bytes())
        self._head = _Head.from_buffer(self._memory)
        self._head.origin, self._head.length = origin, len(code)
        self._head.code = ctypes.addressof(self._code)
        self._head.compressed_isa = int(is_riscv)

    @property
    def instructions(self) -> int:
        """Instructions of all blocks entered so far."""
        return int(self._head.instructions)

    def stop_after(self, instructions: int) -> None:
        """Stops the engine once so many more instructions have run."""
        self._head.stopped = 0
        self._head.stop_at = self._head.instructions + instructions

    @property
    def stopped(self) -> bool:
        """Whether the engine stopped by itself since `stop_after`."""
        return bool(self._head.stopped)

    @staticmethod
    def load() -> ctypes.CDLL | None:
        """The compiled hook, or None when no compiler is at hand: then instructions are not counted."""
        path = _library_path()
        if not path.is_file() and not _compile(path):
            return None
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            return None

    def attach(self, engine: Any) -> None:
        """Installs the hook. `self` must live as long as the engine."""
        from unicorn.unicorn_py3.unicorn import uclib

        self._head.stop = ctypes.cast(uclib["uc_emu_stop"], ctypes.c_void_p).value
        handle = ctypes.c_size_t()
        function = ctypes.cast(self._library.arenite_count_block, ctypes.c_void_p)
        add = uclib["uc_hook_add"]
        add.restype = ctypes.c_int
        add.argtypes = (
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_size_t),
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_uint64,
            ctypes.c_uint64,
        )
        user = ctypes.addressof(self._memory)
        status = add(engine._uch, ctypes.byref(handle), _UC_HOOK_BLOCK, function, user, 1, 0)
        if status != 0:
            raise RuntimeError(f"uc_hook_add failed with status {status}")


def _library_path() -> Path:
    machine = f"{sys.platform} {platform.machine()}".encode()
    key = hashlib.sha256(_SOURCE.read_bytes() + machine).hexdigest()
    return _cache_folder() / f"count_blocks-{key[:16]}.so"


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    folder = Path(base).expanduser() / "arenite"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="arenite-"))
    return folder


def _compile(path: Path) -> bool:
    compiler = _compiler()
    if compiler is None:
        return False
    try:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / path.name
            flags = ["-O2", "-shared", *([] if sys.platform == "win32" else ["-fPIC"])]
            command = [*compiler, *flags, str(_SOURCE), "-o", str(made)]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            made.replace(path)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _compiler() -> list[str] | None:
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    return None
