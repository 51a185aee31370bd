# SPDX-License-Identifier: Apache-2.0
"""Programs with standard streams on an emulated Cortex-M55 with Helium: Arm's MPS3 with the AN547 image in QEMU."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arenite_codegen.boards import load_board
from arenite_codegen.toolchain import find_toolchain
from support.host_compiler import HostCompiler

__all__ = ["BOARD", "Mps3Compiler", "find_mps3_compiler"]

BOARD = "qemu-mps3-an547"
_HERE = Path(__file__).parent
_QEMU = "qemu-system-arm"
_OPTIONS = ("-M", "mps3-an547", "-display", "none", "-monitor", "none", "-serial", "stdio")
_SEMIHOSTING = ("-semihosting-config", "enable=on,target=native")


@dataclass(frozen=True)
class Mps3Compiler(HostCompiler):
    """GCC for the board; a program ends when it is told so, since a serial port has no end."""

    farewell: bytes = b"\xff" * 64  # a request of any size for a model that is not there

    def link(self, objects: Sequence[Path], program: Path) -> None:
        """Links a program with newlib and what newlib needs."""
        with tempfile.TemporaryDirectory() as folder:
            system = self.compile([_HERE / "mps3_system.c"], [], Path(folder))
            options = ("-nostartfiles", "-specs=nano.specs", "-T", str(_HERE / "mps3.ld"), "-Wl,--no-warn-rwx-segments")
            command = [*self.command, *self.flags, *map(str, [*objects, *system]), *options, "-o", str(program)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-6000:])

    def launch(self, program: Path, *arguments: str) -> list[str]:
        """The command that runs a program; it gets no arguments."""
        return [_QEMU, *_OPTIONS, *_SEMIHOSTING, "-kernel", str(program)]


def find_mps3_compiler() -> Mps3Compiler | None:
    """The compiler, or None where it, its C library or QEMU is not installed."""
    gcc = shutil.which("arm-none-eabi-gcc")
    if gcc is None or shutil.which(_QEMU) is None:
        return None
    specs = subprocess.run([gcc, "-print-file-name=nano.specs"], capture_output=True, text=True, check=False)
    if not Path(specs.stdout.strip()).is_file():
        return None
    command = find_toolchain(load_board(BOARD), "gcc").command
    machine = tuple(flag for flag in command if flag != "-ffreestanding")
    flags = ("-O3", "-fno-strict-aliasing", "-ffunction-sections", "-fdata-sections")
    return Mps3Compiler("arm-none-eabi-gcc", machine, flags, "none")
