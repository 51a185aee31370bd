# SPDX-License-Identifier: Apache-2.0
"""Write a folder whole or not at all, and never over something that is not ours."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from arenite.errors import OutputError, UsageError

__all__ = ["Staging", "output_folder"]

_CHOOSE = "Choose another folder with -o."


def output_folder(wanted: Path | str, sources: Sequence[Path], is_ours: Callable[[Path], bool], force: bool) -> Path:
    """Where to write, resolved.

    Args:
        wanted: The folder that the user named.
        sources: Files that must survive.
        is_ours: Whether an existing folder was made by the same command.
        force: Replace a folder that was not.

    Raises:
        UsageError: The folder is, or holds, the working directory or a source, or somebody else's files.
        OutputError: There is something that is not a folder.
    """
    if not str(wanted):
        raise UsageError("the output folder has no name", cure=_CHOOSE)
    place = Path(wanted).resolve()
    precious = [("the current folder", Path.cwd())]
    precious += [(f"the model {source}", source.resolve()) for source in sources]
    for what, inside in precious:
        if place == inside or place in inside.parents:
            raise UsageError(f"replacing the output folder would remove {what}", where=str(place), cure=_CHOOSE)
    if place.exists() and not place.is_dir():
        raise OutputError("the output exists and is not a folder", where=str(place), cure=_CHOOSE)
    if place.is_dir() and any(place.iterdir()) and not is_ours(place) and not force:
        raise UsageError(
            "the output folder holds something that is not a bundle",
            where=str(place),
            cure="Choose another with -o, or replace it with --force.",
        )
    return place


class Staging:
    """A temporary folder beside the output that takes its place when everything is written, else vanishes.

    The old output is moved aside first and comes back if the new one cannot take its place.
    """

    def __init__(self, place: Path) -> None:
        self._place = place

    def __enter__(self) -> Path:
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._root = Path(tempfile.mkdtemp(prefix=f".{self._place.name}-", dir=self._place.parent))
            self._new, self._old = self._root / "new", self._root / "old"
            self._new.mkdir(mode=0o755)
        except OSError as error:
            raise self._error(error) from error
        return self._new

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: Any) -> None:
        try:
            if error is None:
                self._swap()
        except OSError as failure:
            raise self._error(failure) from failure
        finally:
            shutil.rmtree(self._root, ignore_errors=True)
        if isinstance(error, OSError):
            raise self._error(error) from error

    def _swap(self) -> None:
        if self._place.exists():
            self._place.replace(self._old)
        try:
            self._new.replace(self._place)
        except OSError:
            if self._old.exists():
                self._old.replace(self._place)
            raise

    def _error(self, error: OSError) -> OutputError:
        return OutputError(
            f"cannot write the bundle ({error.strerror or error})",
            where=str(self._place),
            cure="Check permissions and free space, or choose another folder with -o.",
        )
