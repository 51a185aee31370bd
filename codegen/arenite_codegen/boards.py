# SPDX-License-Identifier: Apache-2.0
"""Boards: what a `board.toml` says, checked field by field, and the C that a board needs.

Adding a board is one folder `boards/NAME/` with a `board.toml`, when its processor, serial port and counter
are of kinds that are already here.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from arenite.errors import UsageError
from arenite_codegen.board_model import Board, Counter, Emulator, Features, MemoryRegion, Uart
from arenite_codegen.board_schema import read_board
from arenite_codegen.board_support import copy_support, firmware_folder
from arenite_codegen.board_table import Table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "Board",
    "Counter",
    "Emulator",
    "Features",
    "MemoryRegion",
    "Uart",
    "built_in_boards",
    "copy_support",
    "list_boards",
    "load_board",
    "own_boards_folder",
]


def built_in_boards() -> list[str]:
    """Names of the boards that come with Arenite, sorted."""
    return _boards_in(firmware_folder("boards"))


def list_boards() -> list[str]:
    """Names of all boards: those that come with Arenite and those that the user added; sorted."""
    return sorted({*built_in_boards(), *_boards_in(own_boards_folder())})


def own_boards_folder() -> Path:
    """Where boards that the user added are kept: `ARENITE_BOARDS`, else in the user's data folder."""
    named = os.environ.get("ARENITE_BOARDS")
    if named:
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "arenite" / "boards"
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "share") / "arenite" / "boards"


def _boards_in(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/board.toml"))


def load_board(name_or_path: str | Path) -> Board:
    """Reads a board.

    Args:
        name_or_path: A name out of `list_boards()`, a `board.toml`, or a folder that holds one.

    Returns:
        The board; every field was checked.

    Raises:
        UsageError: No such board, or a field is missing, unknown, of the wrong type or out of range.
    """
    path = _find(name_or_path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the board file cannot be read ({error})", where=str(path)) from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the board file is not valid TOML ({error})", where=str(path)) from error
    return replace(read_board(Table(path, values), path.parent), file=path.name)


def _find(name_or_path: str | Path) -> Path:
    for folder, names in ((firmware_folder("boards"), built_in_boards()), (own_boards_folder(), list_boards())):
        if str(name_or_path) in names:
            return folder / str(name_or_path) / "board.toml"
    path = Path(name_or_path)
    path = path / "board.toml" if path.is_dir() else path
    if path.is_file():
        return path
    raise UsageError(
        f"there is no board {str(name_or_path)!r}",
        cure=f"The boards are {', '.join(list_boards())}; a path to a board.toml of your own works too",
    )
