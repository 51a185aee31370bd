# SPDX-License-Identifier: Apache-2.0
"""The recipe of a conversion that was made."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from arenite_converters.report import Recipe

__all__ = ["make_recipe"]


def make_recipe(
    arguments: Mapping[str, Any],
    versions: Mapping[str, str],
    model: Path,
    loaded: bytes,
    samples: Mapping[str, str],
    result: str,
) -> Recipe:
    """The recipe of a conversion that was made; see `Recipe`. For a model that is no file stands what it `loaded`."""
    plain = {name: _plain(value) for name, value in arguments.items()}
    return Recipe(plain, {**versions, "python": platform.python_version()}, _digest(model, loaded), samples, result)


def _plain(value: Any) -> Any:
    """An argument as JSON holds it; None for samples that were given as values."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        items = [_plain(item) for item in value]
        return None if None in items else items
    return None


def _digest(model: Path, loaded: bytes) -> str:
    """SHA-256 of a file, or of the names and contents of all files of a folder."""
    if not model.exists():
        return hashlib.sha256(loaded).hexdigest()
    digest = hashlib.sha256()
    for path in sorted(p for p in model.rglob("*") if p.is_file()) if model.is_dir() else [model]:
        if model.is_dir():
            digest.update(path.relative_to(model).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest() if model.is_dir() else path.read_bytes())
    return digest.hexdigest()
