# SPDX-License-Identifier: Apache-2.0
"""What commands share: a report shown, files checked, work told."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from arenite import progress
from arenite._reports import print_json

__all__ = [
    "NO",
    "YES",
    "check_writable",
    "chosen",
    "show",
    "shown_progress",
    "update_key",
]

YES, NO = 0, 1


def chosen(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The options that were given."""
    given = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def check_writable(*paths: Path | str | None) -> None:
    """Finds out before a long run whether its files can be written; leaves none behind.

    Raises:
        OSError: One cannot.
    """
    for path in (Path(path) for path in paths if path is not None):
        fresh = not path.exists()
        # A pipe or a device would not take it as nothing that it is opened.
        if fresh or path.is_file() or path.is_dir():
            path.open("ab").close()
        if fresh:
            path.resolve().unlink()


def update_key(path: str | None) -> bytes | None:
    """The public key of a file."""
    if path is None:
        return None
    from arenite.device.updating import read_public_key

    return read_public_key(Path(path))


def shown_progress() -> progress.Progress:
    """For a person at a terminal alone."""
    return progress.console() if sys.stderr.isatty() else progress.silent()


def show(arguments: argparse.Namespace, report: Any, text: Callable[[Any], list[str]]) -> int:
    """A report, as JSON where it is asked for."""
    if arguments.json:
        print_json(report)
    else:
        print("\n".join(text(report)))
    return YES
