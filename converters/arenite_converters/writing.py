# SPDX-License-Identifier: Apache-2.0
"""Write a model file whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from arenite.errors import OutputError

__all__ = ["write_whole"]


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
