# SPDX-License-Identifier: Apache-2.0
"""Load a compiled model."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["fresh_library"]


def fresh_library(path: Path | str) -> ctypes.CDLL:
    """Load what the file holds now, with variables of its own.

    A loader gives the library back that it loaded before under the same path, even when the file was built anew: a copy
    has another path.

    Raises:
        OSError: The file is missing or is no library for this computer.
    """
    import shutil
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
        copy = Path(folder) / Path(path).name
        shutil.copyfile(path, copy)
        return ctypes.CDLL(str(copy))
