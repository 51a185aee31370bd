# SPDX-License-Identifier: Apache-2.0
"""Models compiled for AArch64 and run on an emulated processor, in this process."""

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

__all__ = ["Aarch64Models"]

Array = npt.NDArray[Any]
RUNNER = Path(__file__).parent / "aarch64_runner.c"
_TARGET = ("-target", "aarch64-freestanding-none")
_MAPPED_BYTES, _PAGE = 64 << 20, 1 << 16
_ARENA, _STACK, _STOP = 0x40000000, 0x50000000, 0x60000000
_ARENA_BYTES, _STACK_BYTES = 1 << 20, 1 << 20
_RUN, _INPUT, _OUTPUT = 0, 1, 2
_LOAD = 1  # a program header's type


class Aarch64Models:
    """Some models in one program, with the kernels for computers.

    Args:
        models: TFLite files that codegen takes.
        folder: Where to compile.
        mcpu: The compiler's name of the processor: `generic`, `generic+dotprod`.
    """

    def __init__(self, models: Sequence[bytes], folder: Path, mcpu: str) -> None:
        emission = emit_models(models, folder, board="host", spread=False)
        assert not emission.refusals
        command = (sys.executable, "-m", "ziglang", "cc", *_TARGET, f"-mcpu={mcpu}")
        compiler = HostCompiler("zig", command, ("-O2", "-fno-sanitize=undefined"), "none")
        sources = [*emission.sources, *sorted(RUNTIME.glob("*.c")), *kernel_sources(), RUNNER]
        objects = compiler.compile(sources, [folder, RUNTIME, KERNELS, *emission.includes], folder / "obj")
        program = folder / "program.elf"
        options = ("-nostdlib", "-static", "-Wl,--entry=start", "-lcompiler_rt")
        subprocess.run([*command, *map(str, objects), *options, "-o", str(program)], check=True)
        self._image = program.read_bytes()
        self._entry = struct.unpack_from("<Q", self._image, 24)[0]
        self._emulator = self._booted()

    def run(self, model: int, inputs: Sequence[Array], outputs: Sequence[Array], isa: int) -> list[Array]:
        """One inference; `outputs` gives shapes and types, `isa` caps the level of instructions."""
        for i, values in enumerate(inputs):
            self._emulator.mem_write(self._call(model, _INPUT, i, isa), values.tobytes())
        self._call(model, _RUN, 0, isa)
        read = [
            self._emulator.mem_read(self._call(model, _OUTPUT, i, isa), o.nbytes) for i, o in enumerate(outputs)
        ]
        return [
            np.frombuffer(bytes(data), o.dtype).reshape(o.shape) for data, o in zip(read, outputs, strict=True)
        ]

    def _booted(self) -> Any:
        from unicorn import UC_ARCH_ARM64, UC_MODE_ARM, Uc
        from unicorn.arm64_const import UC_ARM64_REG_CPACR_EL1, UC_CPU_ARM64_MAX

        emulator = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        emulator.ctl_set_cpu_model(UC_CPU_ARM64_MAX)
        first = min(address for address, _ in self._segments()) // _PAGE * _PAGE
        for base, size in ((first, _MAPPED_BYTES), (_ARENA, _ARENA_BYTES), (_STACK, _STACK_BYTES), (_STOP, _PAGE)):
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

    def _call(self, *arguments: int) -> int:
        from unicorn import arm64_const as registers

        model, what, i, isa = arguments
        for number, value in enumerate((model, _ARENA, what, i, isa)):
            self._emulator.reg_write(registers.UC_ARM64_REG_X0 + number, value)
        self._emulator.reg_write(registers.UC_ARM64_REG_SP, _STACK + _STACK_BYTES)
        self._emulator.reg_write(registers.UC_ARM64_REG_LR, _STOP)
        self._emulator.emu_start(self._entry, _STOP)
        return int(self._emulator.reg_read(registers.UC_ARM64_REG_X0))
