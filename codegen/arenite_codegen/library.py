# SPDX-License-Identifier: Apache-2.0
"""A model as a shared library for this computer, built once and kept in the user's cache.

The key is the model's digest, Arenite's version, the compiler and the generator's own files (flags and kernels are in
them). A library is made in a folder of its own and takes its place by one rename: a reader sees a whole one or none,
and of two processes that build the same model the later one uses the earlier one's.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from arenite.errors import OutputError, ToolchainError
from arenite.tflite_graph import Graph
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from arenite_codegen.host import HostModel
from arenite_codegen.toolchain import TOOLCHAINS, compiler_command, find_toolchain

__all__ = ["HostLibrary", "cache_folder", "host_library"]

_LIBRARY = "libmodel.so"
_ABOUT = "library.json"


@dataclass(frozen=True)
class HostLibrary:
    """A compiled model.

    Attributes:
        model: Loaded, with an arena of its own.
        path: The library in the cache.
        toolchain: Name and version of the compiler that built it.
        built: False when it was in the cache already.
    """

    model: HostModel
    path: Path
    toolchain: str
    built: bool


def cache_folder() -> Path:
    """Where libraries are kept: `ARENITE_CACHE`, else the user's cache folder."""
    named = os.environ.get("ARENITE_CACHE")
    if named:
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "arenite"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "arenite"


def host_library(graph: Graph) -> HostLibrary:
    """Compile a model for this computer, or take it from the cache.

    Args:
        graph: A full-INT8 model, read from its file.

    Raises:
        UnsupportedOperatorError: It holds something without a kernel.
        MissingToolError: It is not in the cache and there is no compiler, or Jinja2 is missing.
        OutputError: The cache cannot be written.
    """
    place = cache_folder() / "host" / _key(graph)
    if place.is_dir():
        try:
            return _load(place, built=False)
        except (ToolchainError, OSError, ValueError, KeyError):
            # Damaged from outside: a full disk, a cleaner that took one file.
            shutil.rmtree(place, ignore_errors=True)
    _build_into(place, graph)
    return _load(place, built=True)


def _load(place: Path, built: bool) -> HostLibrary:
    about = json.loads((place / _ABOUT).read_text(encoding="utf-8"))
    library = place / _LIBRARY
    try:
        # What lies under a key never changes, so the file itself is mapped.
        model = HostModel(ctypes.CDLL(str(library)))
    except OSError as error:
        raise ToolchainError(f"cannot load the compiled model ({error})", where=str(library)) from error
    return HostLibrary(model, library, str(about["toolchain"]), built)


def _build_into(place: Path, graph: Graph) -> None:
    from arenite_codegen.bundle import bundle

    find_toolchain(load_board("host"))  # before the work that would be in vain without it
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=place.parent) as folder:
            work = Path(folder)
            bundle(graph.path, "host", work / "bundle", vectors=0)
            report = build(work / "bundle")
            finished = work / "finished"
            finished.mkdir()
            shutil.move(report.elf, finished / _LIBRARY)
            (finished / _ABOUT).write_text(json.dumps(_about(graph, report.toolchain), indent=1) + "\n")
            _publish(finished, place)
    except OSError as error:
        raise OutputError(
            f"the cache of compiled models cannot be written ({error.strerror or error})",
            where=str(place.parent),
            cure="Name another folder in the environment variable ARENITE_CACHE.",
        ) from error


def _publish(finished: Path, place: Path) -> None:
    try:
        finished.rename(place)
    except OSError:
        if not place.is_dir():
            raise


def _about(graph: Graph, toolchain: str) -> dict[str, str]:
    return {"model": Path(graph.path).name, "model_sha256": graph.sha256, "toolchain": toolchain}


def _key(graph: Graph) -> str:
    """The compiler goes in by its file, not by asking it: a start of it takes longer than loading the library."""
    parts = [graph.sha256, platform.machine(), *_stamps(_compiler_files()), *_stamps(_generator_files())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:40]


def _compiler_files() -> list[Path]:
    board = load_board("host")
    for name in TOOLCHAINS:
        command = compiler_command(board, name)
        if command is not None:
            return [Path(shutil.which(command[0]) or command[0]).resolve()]
    return []


def _generator_files() -> Iterator[Path]:
    import arenite

    yield Path(arenite.__file__)  # holds the version
    for package in ("arenite_codegen", "arenite_firmware"):
        folder = Path(str(resources.files(package)))
        yield from sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".pyc", ".md"))


def _stamps(files: Sequence[Path] | Iterator[Path]) -> Iterator[str]:
    for path in files:
        found = path.stat()
        yield f"{path} {found.st_size} {found.st_mtime_ns}"
