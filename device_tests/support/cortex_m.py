# SPDX-License-Identifier: Apache-2.0
"""Models compiled for a Cortex-M and run on an emulated processor, in this process."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.device.target import Segment, read_segments
from arenite_codegen.boards import load_board
from arenite_codegen.toolchain import find_toolchain
from support.emission import FIRMWARE, KERNELS, RUNTIME, emit_models, kernel_sources
from support.host_compiler import HostCompiler

__all__ = ["CortexMModels"]

Array = npt.NDArray[Any]
RUNNER = Path(__file__).parent / "aarch64_runner.c"  # any processor without an operating system
_MAPPED_BYTES, _PAGE = 16 << 20, 1 << 12
_ARENA, _STACK, _STOP = 0x20000000, 0x30000000, 0x10000000  # the last where code may run
_ARENA_BYTES, _STACK_BYTES = 1 << 20, 1 << 16
_RUN, _INPUT, _OUTPUT = 0, 1, 2
_LIBRARY = {"gcc": "-lgcc", "zig": "-lcompiler_rt"}


class CortexMModels:
    """Some models in one program, with the kernels and the compiler flags of a board.

    Args:
        models: TFLite files that codegen takes.
        folder: Where to compile.
        board: Name of a board that Unicorn emulates.
        toolchain: `gcc` or `zig`.

    Raises:
        MissingToolError: That compiler is not installed.
    """

    def __init__(self, models: Sequence[bytes], folder: Path, board: str, toolchain: str) -> None:
        emission = emit_models(models, folder, board=board, spread=False)
        assert not emission.refusals
        target = load_board(board)
        self._cpu = next(str(emulator.cpu) for emulator in target.emulators if emulator.name == "unicorn")
        tools = find_toolchain(target, toolchain)
        flags = (*(flag for flag in tools.compile_flags if flag != "-Werror"), "-O3")
        compiler = HostCompiler(toolchain, tools.command, flags, "none")
        sources = [
            *emission.sources,
            *sorted(RUNTIME.glob("*.c")),
            *kernel_sources(),
            FIRMWARE / "app" / "mem.c",
            RUNNER,
        ]
        includes = [folder, RUNTIME, KERNELS, *emission.includes]
        objects = compiler.compile(sources, includes, folder / "obj")
        self._program = folder / "program.elf"
        options = ("-nostdlib", "-static", "-Wl,--gc-sections,--entry=start", _LIBRARY[toolchain])
        subprocess.run([*tools.command, *map(str, objects), *options, "-o", str(self._program)], check=True)
        self._entry = int.from_bytes(self._program.read_bytes()[24:28], "little")
        self._emulator = self._booted()

    def run(self, model: int, inputs: Sequence[Array], outputs: Sequence[Array], offset: int = 0) -> list[Array]:
        """One inference; `outputs` gives shapes and types, `offset` moves the arena off a boundary of 16 bytes."""
        for i, values in enumerate(inputs):
            self._emulator.mem_write(self._call(model, offset, _INPUT, i), values.tobytes())
        self._call(model, offset, _RUN, 0)
        found = []
        for i, like in enumerate(outputs):
            data = bytes(self._emulator.mem_read(self._call(model, offset, _OUTPUT, i), like.nbytes))
            found.append(np.frombuffer(data, like.dtype).reshape(like.shape))
        return found

    def _booted(self) -> Any:
        from unicorn import UC_ARCH_ARM, UC_MODE_MCLASS, UC_MODE_THUMB, Uc, arm_const

        emulator = Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
        emulator.ctl_set_cpu_model(getattr(arm_const, f"UC_CPU_ARM_{self._cpu.upper().replace('-', '_')}"))
        for base, size in ((0, _MAPPED_BYTES), (_ARENA, _ARENA_BYTES), (_STACK, _STACK_BYTES), (_STOP, _PAGE)):
            emulator.mem_map(base, size)
        for segment in self._segments():
            emulator.mem_write(segment.address, segment.data)
        return emulator

    def _segments(self) -> list[Segment]:
        return read_segments(self._program)

    def _call(self, model: int, offset: int, what: int, i: int) -> int:
        from unicorn import arm_const as registers

        for number, value in enumerate((model, _ARENA + offset, what, i)):
            self._emulator.reg_write(registers.UC_ARM_REG_R0 + number, value)
        top = _STACK + _STACK_BYTES - 16
        self._emulator.mem_write(top, bytes(16))  # the fifth argument, a level of instructions that only hosts have
        self._emulator.reg_write(registers.UC_ARM_REG_SP, top)
        self._emulator.reg_write(registers.UC_ARM_REG_LR, _STOP | 1)
        self._emulator.emu_start(self._entry | 1, _STOP)
        return int(self._emulator.reg_read(registers.UC_ARM_REG_R0))
