# SPDX-License-Identifier: Apache-2.0
"""The resize of a session's pictures as a shared library for this computer."""

from __future__ import annotations

from pathlib import Path

from arenite.errors import MissingToolError
from arenite_codegen.board_support import firmware_folder
from arenite_codegen.boards import load_board
from arenite_codegen.build import call_tool
from arenite_codegen.toolchain import OPTIMISE, Toolchain, find_toolchain

__all__ = ["build_resize"]

_FOLDERS = ("host", "kernels")
_LIBRARY = "libresize.so"
_SOURCES = ("host/arenite_resize_host.c", "kernels/arenite_host_isa.c")


def build_resize(folder: Path, soon: bool = False) -> tuple[Path, str]:
    """Compile it.

    Args:
        folder: Where; it takes the objects, too.
        soon: Without ziglang: the first time that it compiles for a computer it takes half a minute.

    Returns:
        The library, and name and version of the compiler.

    Raises:
        MissingToolError: No compiler is installed.
        ToolchainError: The compiler refused the sources.
    """
    tools = _quick_toolchain() if soon else find_toolchain(load_board("host"))
    includes = [f"-I{firmware_folder(name)}" for name in _FOLDERS]
    objects = []
    for source in _SOURCES:
        objects.append(f"{Path(source).stem}.o")
        flags = [*tools.compile_flags, OPTIMISE["speed"], *includes, "-c", str(firmware_folder(source))]
        call_tool([*tools.command, *flags, "-o", objects[-1]], folder, source)
    call_tool([*tools.command, *objects, "-o", _LIBRARY, *tools.link_flags], folder, _LIBRARY)
    return folder / _LIBRARY, tools.version


def _quick_toolchain() -> Toolchain:
    board = load_board("host")
    try:
        return find_toolchain(board, "gcc")
    except MissingToolError:
        return find_toolchain(board, "clang")
