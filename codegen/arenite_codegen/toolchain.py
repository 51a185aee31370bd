# SPDX-License-Identifier: Apache-2.0
"""Compilers: which one builds for a board, and with which flags.

GCC is preferred where it is on PATH, since its code is smaller; the `ziglang` package (clang, from pip, no
root) is the one that is always there.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from arenite.errors import MissingToolError, ToolchainError, UsageError
from arenite_codegen.boards import Board

__all__ = ["OPTIMISE", "TOOLCHAINS", "Toolchain", "check_optimise", "find_toolchain", "optimisation"]

TOOLCHAINS = ("gcc", "zig", "clang")
# What busy kernels and the executor are compiled with.
OPTIMISE = {"size": "-Os", "balanced": "-O2", "speed": "-O3"}

_COMMON = (
    "-std=c99",
    "-g",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-common",
    "-fno-strict-aliasing",
    "-fomit-frame-pointer",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Werror",
)
_ZIG_ONLY = ("-fno-sanitize=undefined", "-fstack-size-section")
_GCC_PROGRAMS = {"cortex-m": "arm-none-eabi-gcc", "riscv32": "riscv64-unknown-elf-gcc", "host": "gcc"}
_GCC_FPU = {
    ("cortex-m4", "single"): "fpv4-sp-d16",
    ("cortex-m7", "single"): "fpv5-sp-d16",
    ("cortex-m7", "double"): "fpv5-d16",
    ("cortex-m33", "single"): "fpv5-sp-d16",
    ("cortex-m55", "double"): "auto",
}
_ZIG_FPU = {
    ("cortex-m4", "single"): "vfp4d16sp",
    ("cortex-m7", "single"): "fp_armv8d16sp",
    ("cortex-m7", "double"): "fp_armv8d16",
    ("cortex-m33", "single"): "fp_armv8d16sp",
    ("cortex-m55", "double"): "fp_armv8d16",
}
_DSP_IS_PART_OF = ("cortex-m4", "cortex-m7")


@dataclass(frozen=True)
class Toolchain:
    """A compiler driver for one board.

    Attributes:
        name: `gcc`, `zig` or `clang`.
        version: What the compiler says of itself, one line.
        command: Program and leading arguments.
        compile_flags: For every C file.
        link_flags: For the link, after the objects.
    """

    name: str
    version: str
    command: tuple[str, ...]
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]


def find_toolchain(board: Board, choice: str | None = None) -> Toolchain:
    """Finds a compiler for a board.

    Args:
        board: The board.
        choice: One of `TOOLCHAINS`, or None for the best that is installed.

    Raises:
        UsageError: `choice` is not the name of a toolchain that builds for this board, or none of them does.
        MissingToolError: No compiler, or not the chosen one, is installed.
    """
    if choice is not None and choice not in TOOLCHAINS:
        raise UsageError(f"there is no toolchain {choice!r}", cure=f"Choose one of {', '.join(TOOLCHAINS)}")
    if board.architecture not in _GCC_PROGRAMS:
        problem = f"firmware for {board.name} is built by ESP-IDF"
        raise UsageError(problem, cure="Give `arenite bundle` --export esp-idf, and build the project that uses it")
    if choice == "clang" and board.architecture != "host":
        raise UsageError(f"toolchain 'clang' does not build for {board.name}", cure="Choose gcc or zig")
    for name in (choice,) if choice else ("gcc", "zig", "clang"):
        command = _command(board, name)
        if command is not None:
            return _make(board, name, command)
    raise _missing(board, choice)


def check_optimise(optimise: str) -> None:
    """Refuses what is no key of `OPTIMISE`.

    Raises:
        UsageError: There is no such key.
    """
    if optimise not in OPTIMISE:
        raise UsageError(f"firmware is not optimised for {optimise!r}", cure=f"Choose one of {', '.join(OPTIMISE)}")


def optimisation(source: str, optimise: str, busy: Collection[str]) -> str:
    """The flag for one source of a bundle: that of a key of `OPTIMISE` where the time goes, size elsewhere.

    Args:
        busy: The sources of kernels that have a share in the time.
    """
    is_busy = source in busy or source.startswith("runtime/")
    return OPTIMISE[optimise] if is_busy else OPTIMISE["size"]


def _command(board: Board, name: str) -> tuple[str, ...] | None:
    if name == "zig":
        found = importlib.util.find_spec("ziglang") is not None
        return (sys.executable, "-m", "ziglang", "cc") if found else None
    if name == "clang" and board.architecture != "host":
        return None
    program = shutil.which("clang" if name == "clang" else _GCC_PROGRAMS[board.architecture])
    return (program,) if program else None


def _missing(board: Board, choice: str | None) -> MissingToolError:
    gcc = _GCC_PROGRAMS[board.architecture]
    pip = "run pip install 'arenite[firmware]'"
    cure = {
        "gcc": f"Install {gcc} and put it on PATH, or leave the choice of toolchain open",
        "clang": "Install clang and put it on PATH, or leave the choice of toolchain open",
        "zig": pip[0].upper() + pip[1:],
        None: f"{pip[0].upper()}{pip[1:]}, or put {gcc} on PATH",
    }[choice]
    return MissingToolError(f"no compiler for {board.name} is installed", where=choice, cure=cure)


def _make(board: Board, name: str, command: tuple[str, ...]) -> Toolchain:
    if board.architecture == "host":
        machine, link = _host_flags()
    else:
        machine = (*(_gcc_machine(board) if name == "gcc" else _zig_machine(board)), "-ffreestanding")
        library = "-lgcc" if name == "gcc" else "-lcompiler_rt"
        entry = "-Wl,--gc-sections,--entry=Reset_Handler"
        link = ("-nostdlib", "-static", "-T", "board/link.ld", entry, library)
        link += () if name == "zig" else ("-Wl,--no-warn-rwx-segments",)
        if name == "gcc" and board.architecture == "riscv32":
            # No libgcc is filed under a name with zicsr: GCC would silently take that of another word size.
            link += (f"-march=rv32{board.features.extensions}",)
    own = {"zig": _ZIG_ONLY, "gcc": ("-fstack-usage",), "clang": ()}[name]
    return Toolchain(name, _version(name, command), command + machine, _COMMON + own, link)


def _host_flags() -> tuple[tuple[str, ...], tuple[str, ...]]:
    if sys.platform == "darwin":
        return ("-fPIC",), ("-dynamiclib",)
    return ("-fPIC",), ("-shared", "-Wl,-Bsymbolic")


def _gcc_machine(board: Board) -> tuple[str, ...]:
    if board.architecture == "riscv32":
        return (f"-march=rv32{board.features.extensions}_zicsr", "-mabi=ilp32", "-mcmodel=medany")
    if not board.has_fpu:
        return (f"-mcpu={board.cpu}", "-mthumb", "-mfloat-abi=soft")
    fpu = _lookup(_GCC_FPU, board)
    return (f"-mcpu={board.cpu}", "-mthumb", "-mfloat-abi=hard", f"-mfpu={fpu}")


def _zig_machine(board: Board) -> tuple[str, ...]:
    if board.architecture == "riscv32":
        letters = "".join(f"+{letter}" for letter in board.features.extensions if letter != "i")
        cpu = f"generic_rv32{letters}+zicsr"
        return ("-target", "riscv32-freestanding-none", f"-mcpu={cpu}", "-mabi=ilp32", "-mcmodel=medany")
    cpu = board.cpu.replace("-", "_")
    if board.has_fpu:
        cpu += f"+{_lookup(_ZIG_FPU, board)}"
    if board.features.dsp and board.cpu not in _DSP_IS_PART_OF:
        cpu += "+dsp"
    if board.features.mve:
        cpu += "+mve_fp" if board.has_fpu else "+mve"
    abi = "eabihf" if board.has_fpu else "eabi"
    return ("-target", f"thumb-freestanding-{abi}", f"-mcpu={cpu}")


def _lookup(table: dict[tuple[str, str], str], board: Board) -> str:
    try:
        return table[board.cpu, board.features.fpu]
    except KeyError:
        problem = f"no compiler flags are known for a {board.cpu} with a {board.features.fpu}-precision FPU"
        raise UsageError(problem, where=board.name, cure="Correct `features.fpu` in the board file") from None


def _version(name: str, command: tuple[str, ...]) -> str:
    arguments = [*command[:-1], "version"] if name == "zig" else [*command, "-dumpversion"]
    try:
        result = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True)
        if name == "gcc":  # its -dumpversion says only the major number; what is called gcc may be clang
            full = subprocess.run([*command, "-dumpfullversion"], capture_output=True, text=True, timeout=60)
            result = full if full.returncode == 0 else result
    except (OSError, subprocess.SubprocessError) as error:
        problem = f"the compiler does not start ({error})"
        cure = "Reinstall it, or choose another toolchain"
        raise ToolchainError(problem, where=" ".join(command), cure=cure) from error
    return f"{Path(command[0]).name if name != 'zig' else 'ziglang'} {result.stdout.strip()}"
