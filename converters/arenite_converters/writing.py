# SPDX-License-Identifier: Apache-2.0
"""Write a model file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from arenite.errors import OutputError

__all__ = ["check_folder", "write_whole"]


def check_folder(target: Path, cure: str) -> None:
    """Find out before a long conversion that its output has no place.

    Raises:
        OutputError: The output's folder does not exist or cannot be written.
    """
    if not target.parent.is_dir():
        raise OutputError("the output's folder does not exist", where=str(target.parent), cure=cure)
    if not os.access(target.parent, os.W_OK):
        raise OutputError("the output's folder cannot be written", where=str(target.parent), cure=cure)


def write_whole(target: Path, content: bytes) -> None:
    """Put a file in its place in one step; an earlier one stays until then.

    Raises:
        OutputError: It cannot be written. Nothing half-written is left.
    """
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise OutputError(
            f"cannot write the model ({error.strerror or error})",
            where=str(target),
            cure="Free some space or choose another folder.",
        ) from error
