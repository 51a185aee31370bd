# SPDX-License-Identifier: Apache-2.0
"""What is compiled for this computer, models and the resize of pictures, built once and kept in the user's cache.

The key is the model's digest, the machine and the generator's own files (Arenite's version, kernels and compiler flags
are in them); beside the library stand the compiler's version and file, and when that file has changed the library is
built anew. A library is made in a folder of its own and takes its place by one rename: a reader sees a whole one or
none, and of two processes that build the same model the later one uses the earlier one's. What a session must know of
the model lies beside the library too, with a digest of its own, so that opening it again reads neither the model's
graph nor the generator. Nor does it import `pathlib` and `hashlib`, which take as long as all the rest here.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from arenite.errors import AreniteError, ModelError, OutputError, ToolchainError
from arenite.graph import CONTRACT_METADATA, Graph, Operator, Quantisation, Tensor
from arenite.host_model import HostModel

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HostLibrary", "cache_folder", "host_library", "read_compiled", "resize_library"]

T = TypeVar("T")

_MODEL, _RESIZE = "libmodel.so", "libresize.so"
_ABOUT = "library.json"
_OTHER_FOLDER = "Name another folder in the environment variable ARENITE_CACHE."
# OpenSSL, which `hashlib` loads, is the faster one from about this size on, loading it included.
_LARGE_BYTES = 1 << 19
_DAMAGED = (ToolchainError, OSError, ValueError, LookupError, TypeError, RecursionError)


@dataclass(frozen=True)
class HostLibrary:
    """A compiled model.

    Attributes:
        model: Loaded, with an arena of its own.
        toolchain: Name and version of the compiler that built it.
        built: False when it was in the cache already.
    """

    model: HostModel
    toolchain: str
    built: bool


def cache_folder() -> Path:
    """Where libraries are kept: `ARENITE_CACHE`, else the user's cache folder."""
    from pathlib import Path

    return Path(_cache_folder())


def _cache_folder() -> str:
    named = os.environ.get("ARENITE_CACHE")
    if named:
        return named
    if sys.platform == "darwin":
        return os.path.join(_home(), "Library", "Caches", "arenite")
    base = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.join(_home(), ".cache"), "arenite")


def _home() -> str:
    home = os.path.expanduser("~")
    if home == "~":
        raise OutputError("this user has no home folder for the cache of compiled models", cure=_OTHER_FOLDER)
    return home


def read_compiled(path: Path | str) -> Graph:
    """What a session must know of a model: from the cache when it was compiled before, else from its file.

    Raises:
        ModelError: The file is missing, is no TFLite model, or is corrupt.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            content = file.read()
    except OSError:
        return _read_anew(path)  # which says what is wrong
    sha256 = _sha256(content)
    try:
        about = _about(_place(sha256))
        return _graph_of(json.loads(about["known"]), str(path), sha256)
    except _DAMAGED:
        return _read_anew(path)


def _read_anew(path: Path | str) -> Graph:
    # The reader is not loaded for a model that was compiled before.
    from arenite.tflite_graph import read_graph

    return read_graph(path)


def host_library(graph: Graph) -> HostLibrary:
    """Compile a model for this computer, or take it from the cache.

    Args:
        graph: A full-INT8 model, read from its file.

    Raises:
        UnsupportedOperatorError: It holds something without a kernel.
        ModelError: The file is another one than when the graph was read.
        MissingToolError: It is not in the cache and there is no compiler, or Jinja2 is missing.
        OutputError: The cache cannot be written.
    """
    found = HostLibrary(*_cached(graph.sha256, _MODEL, lambda work: _build_model(work, graph), HostModel))
    if found.built:
        # Whoever prepares a computer by opening the model once has all that its sessions need.
        with suppress(AreniteError):
            resize_library(soon=False)
    return found


def resize_library(soon: bool) -> tuple[ctypes.CDLL, str]:
    """The resize of pictures for this computer, compiled or from the cache, and the compiler that built it.

    Args:
        soon: Not compiled by what can take half a minute.

    Raises:
        MissingToolError: It is not in the cache and there is no compiler.
        OutputError: The cache cannot be written.
    """
    from arenite.compiled_resize import declared

    return _cached("resize", _RESIZE, lambda work: _build_resize(work, soon), declared)[:2]


def _cached(
    name: str, file: str, make: Callable[[Path], tuple[Path, str, str]], use: Callable[[ctypes.CDLL], T]
) -> tuple[T, str, bool]:
    """What `use` makes of a library, its compiler, and whether it was built now.

    Args:
        name: What the library is of, for its key.
        file: Its name in the cache.
        make: Builds it in a folder; returns the library, its compiler, and a text to be kept beside it.
        use: Of the loaded library.
    """
    place = _place(name)
    if os.path.isdir(place):
        try:
            return *_load(place, file, use), False
        except _DAMAGED:
            import shutil

            # Damaged from outside (a full disk, a cleaner that took one file), or built by a compiler that changed.
            shutil.rmtree(place, ignore_errors=True)
    _build_into(place, file, make)
    return *_load(place, file, use), True


def _place(name: str) -> str:
    key = _sha256("\n".join((name, platform.machine(), *_generator())).encode())
    return os.path.join(_cache_folder(), "host", key[:40])


def _sha256(content: bytes) -> str:
    if "hashlib" not in sys.modules and len(content) < _LARGE_BYTES:
        try:
            module = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256")
            return str(module.sha256(content).hexdigest())
        except ImportError:
            pass  # an interpreter that was built without it
    import hashlib

    return hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=1)
def _generator() -> tuple[str, ...]:
    """Name, size and time of each file that decides what is built."""
    import arenite

    folders = [os.path.dirname(arenite.__file__)]
    for package in ("arenite_codegen", "arenite_firmware"):
        spec = find_spec(package)
        folders += (spec.submodule_search_locations or ()) if spec else ()
    return tuple(sorted(stamp for folder in folders for stamp in _stamps(folder)))


def _stamps(folder: str) -> Iterator[str]:
    for entry in os.scandir(folder):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _stamps(entry.path)
        else:
            found = entry.stat()
            yield f"{entry.path} {found.st_size} {found.st_mtime_ns}"


def _about(place: str) -> dict[str, Any]:
    """What stands beside a library, if it is whole and the compiler that built it is still the same or gone."""
    file = os.path.join(place, _ABOUT)
    with open(file, encoding="utf-8") as text:
        about: dict[str, Any] = json.load(text)
    if _sha256(str(about["known"]).encode()) != about["known_sha256"]:
        raise ToolchainError("what is known of what was compiled is damaged", where=file)
    compiler = about["compiler"]
    if compiler is not None and os.path.exists(compiler["file"]) and _compiler(compiler["file"]) != compiler:
        raise ToolchainError("the compiler has changed", where=compiler["file"])
    return about


def _load(place: str, file: str, use: Callable[[ctypes.CDLL], T]) -> tuple[T, str]:
    about = _about(place)
    library = os.path.join(place, file)
    try:
        # What lies under a key is replaced but never changed, so the file itself is mapped.
        loaded = use(ctypes.CDLL(library))
    except OSError as error:
        raise ToolchainError(f"cannot load what was compiled ({error})", where=library) from error
    return loaded, str(about["toolchain"])


def _build_into(folder: str, file: str, make: Callable[[Path], tuple[Path, str, str]]) -> None:
    import shutil
    import tempfile
    from pathlib import Path

    place = Path(folder)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=place.parent) as made:
            work, finished = Path(made), Path(made) / "finished"
            finished.mkdir()
            library, toolchain, known = make(work)
            shutil.move(library, finished / file)
            about = {
                "toolchain": toolchain,
                "compiler": _compiler(_compiler_file(toolchain)),
                "known": known,
                "known_sha256": _sha256(known.encode()),
            }
            (finished / _ABOUT).write_text(json.dumps(about) + "\n", encoding="utf-8")
            _publish(finished, place)
    except OSError as error:
        raise OutputError(
            f"the cache of what is compiled cannot be written ({error.strerror or error})",
            where=str(place.parent),
            cure=_OTHER_FOLDER,
        ) from error


def _build_model(work: Path, graph: Graph) -> tuple[Path, str, str]:
    import arenite

    bundled = arenite.bundle(graph.path, "host", work / "bundle", float_ends=True, vectors=0)
    if bundled.model_sha256 != graph.sha256:
        raise ModelError("the file changed while it was opened", where=graph.path, cure="Open it again.")
    report = arenite.build(work / "bundle")
    return report.elf, report.toolchain, json.dumps(_summary(graph))


def _build_resize(work: Path, soon: bool) -> tuple[Path, str, str]:
    import arenite

    return *arenite._build_resize(work, soon), ""


def _publish(finished: Path, place: Path) -> None:
    try:
        finished.rename(place)
    except OSError:
        if not place.is_dir():
            raise


def _compiler_file(toolchain: str) -> str | None:
    import shutil

    name = toolchain.split()[0]
    if name == "ziglang":
        spec = find_spec(name)
        return spec.origin if spec else None
    return shutil.which(name)


def _compiler(file: str | None) -> dict[str, Any] | None:
    """The compiler by its file: asking it for its version takes longer than loading the library."""
    if file is None:
        return None
    found = os.stat(file)
    return {"file": file, "bytes": found.st_size, "changed_ns": found.st_mtime_ns}


def _summary(graph: Graph) -> dict[str, Any]:
    tensors = [graph.tensors[i] for i in (*graph.inputs, *graph.outputs)]
    contract = graph.metadata.get(CONTRACT_METADATA)
    return {
        "inputs": len(graph.inputs),
        "tensors": [_tensor_summary(tensor) for tensor in tensors],
        "operators": [op.kind for op in graph.operators],
        "contract": None if contract is None else contract.decode(),
    }


def _tensor_summary(tensor: Tensor) -> dict[str, Any]:
    how = tensor.quantisation
    quantisation = None if how is None else [list(how.scales), list(how.zero_points), how.axis]
    return {"name": tensor.name, "shape": tensor.shape, "dtype": tensor.dtype, "quantisation": quantisation}


def _graph_of(fields: dict[str, Any], path: str, sha256: str) -> Graph:
    tensors = tuple(_tensor(i, values) for i, values in enumerate(fields["tensors"]))
    count = int(fields["inputs"])
    contract = fields["contract"]
    return Graph(
        path=path,
        sha256=sha256,
        tensors=tensors,
        operators=tuple(Operator(i, kind, 1, (), (), {}) for i, kind in enumerate(fields["operators"])),
        inputs=tuple(range(count)),
        outputs=tuple(range(count, len(tensors))),
        metadata={} if contract is None else {CONTRACT_METADATA: contract.encode()},
    )


def _tensor(index: int, fields: dict[str, Any]) -> Tensor:
    how = fields["quantisation"]
    quantisation = None if how is None else Quantisation(tuple(how[0]), tuple(how[1]), int(how[2]))
    return Tensor(index, fields["name"], tuple(fields["shape"]), fields["dtype"], quantisation, None)
