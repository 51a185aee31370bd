# SPDX-License-Identifier: Apache-2.0
"""Programs compiled for AArch64 and run on an emulated processor, in this process."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from support.emission import KERNELS, RUNTIME, emit_models, kernel_sources
from support.host_compiler import HostCompiler

__all__ = ["Aarch64Models", "Aarch64Program", "compile_for_aarch64"]

Array = npt.NDArray[Any]
RUNNER = Path(__file__).parent / "aarch64_runner.c"
_TARGET = ("-target", "aarch64-freestanding-none")
_MAPPED_BYTES, _PAGE = 64 << 20, 1 << 16
_STACK, _STOP = 0x50000000, 0x60000000
_DATA_BYTES, _STACK_BYTES = 1 << 20, 1 << 20
_RUN, _INPUT, _OUTPUT = 0, 1, 2
_LOAD = 1  # a program header's type


def compile_for_aarch64(sources: Sequence[Path], includes: Sequence[Path], folder: Path, mcpu: str) -> Path:
    """An ELF program without an operating system, its entry the function `start`.

    Args:
        folder: Where to compile.
        mcpu: The compiler's name of the processor: `generic`, `generic+dotprod`.
    """
    command = (sys.executable, "-m", "ziglang", "cc", *_TARGET, f"-mcpu={mcpu}")
    compiler = HostCompiler("zig", command, ("-O2", "-fno-sanitize=undefined"), "none")
    objects = compiler.compile(sources, includes, folder / "obj")
    program = folder / "program.elf"
    options = ("-nostdlib", "-static", "-Wl,--entry=start", "-lcompiler_rt")
    subprocess.run([*command, *map(str, objects), *options, "-o", str(program)], check=True)
    return program


class Aarch64Program:
    """An ELF program in an emulated processor, with a mebibyte of memory for its data from `data` on."""

    data = 0x40000000

    def __init__(self, program: Path) -> None:
        self._image = program.read_bytes()
        self._entry = struct.unpack_from("<Q", self._image, 24)[0]
        self._emulator = self._booted()

    def write(self, address: int, data: bytes) -> None:
        """Put bytes into its memory."""
        self._emulator.mem_write(address, data)

    def read(self, address: int, count: int) -> bytes:
        """Take bytes out of its memory."""
        return bytes(self._emulator.mem_read(address, count))

    def call(self, *arguments: int) -> int:
        """Call `start`; at most eight arguments."""
        from unicorn import arm64_const as registers

        for number, value in enumerate(arguments):
            self._emulator.reg_write(registers.UC_ARM64_REG_X0 + number, value)
        self._emulator.reg_write(registers.UC_ARM64_REG_SP, _STACK + _STACK_BYTES)
        self._emulator.reg_write(registers.UC_ARM64_REG_LR, _STOP)
        self._emulator.emu_start(self._entry, _STOP)
        return int(self._emulator.reg_read(registers.UC_ARM64_REG_X0))

    def _booted(self) -> Any:
        from unicorn import UC_ARCH_ARM64, UC_MODE_ARM, Uc
        from unicorn.arm64_const import UC_ARM64_REG_CPACR_EL1, UC_CPU_ARM64_MAX

        emulator = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        emulator.ctl_set_cpu_model(UC_CPU_ARM64_MAX)
        first = min(address for address, _ in self._segments()) // _PAGE * _PAGE
        places = ((first, _MAPPED_BYTES), (self.data, _DATA_BYTES), (_STACK, _STACK_BYTES), (_STOP, _PAGE))
        for base, size in places:
            emulator.mem_map(base, size)
        for address, data in self._segments():
            emulator.mem_write(address, data)
        emulator.reg_write(UC_ARM64_REG_CPACR_EL1, 3 << 20)  # vector registers on
        return emulator

    def _segments(self) -> list[tuple[int, bytes]]:
        """What the ELF file loads, and where."""
        offset = struct.unpack_from("<Q", self._image, 32)[0]
        size, count = struct.unpack_from("<HH", self._image, 54)
        found = []
        for i in range(count):
            kind, _, start, address, _, length = struct.unpack_from("<IIQQQQ", self._image, offset + i * size)
            if kind == _LOAD:
                found.append((address, self._image[start : start + length]))
        return found


class Aarch64Models:
    """Some models in one program, with the kernels for computers.

    Args:
        models: TFLite files that codegen takes.
        folder: Where to compile.
        mcpu: As for `compile_for_aarch64`.
    """

    def __init__(self, models: Sequence[bytes], folder: Path, mcpu: str) -> None:
        emission = emit_models(models, folder, board="host", spread=False)
        assert not emission.refusals
        sources = [*emission.sources, *sorted(RUNTIME.glob("*.c")), *kernel_sources(), RUNNER]
        includes = [folder, RUNTIME, KERNELS, *emission.includes]
        self._program = Aarch64Program(compile_for_aarch64(sources, includes, folder, mcpu))

    def run(self, model: int, inputs: Sequence[Array], outputs: Sequence[Array], isa: int) -> list[Array]:
        """One inference; `outputs` gives shapes and types, `isa` caps the level of instructions."""
        for i, values in enumerate(inputs):
            self._program.write(self._call(model, _INPUT, i, isa), values.tobytes())
        self._call(model, _RUN, 0, isa)
        read = [self._program.read(self._call(model, _OUTPUT, i, isa), o.nbytes) for i, o in enumerate(outputs)]
        return [np.frombuffer(data, o.dtype).reshape(o.shape) for data, o in zip(read, outputs, strict=True)]

    def _call(self, model: int, what: int, i: int, isa: int) -> int:
        return self._program.call(model, Aarch64Program.data, what, i, isa)
