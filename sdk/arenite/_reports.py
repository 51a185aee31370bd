# SPDX-License-Identifier: Apache-2.0
"""Reports as JSON: dataclasses, paths, NumPy numbers and bytes as plain values."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["plain", "print_json", "write_json"]


def plain(value: Any) -> Any:
    """A value that JSON can hold: bytes become hex, a number that is not finite becomes null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return _plain_scalar(value)


def print_json(report: Any) -> None:
    """Prints a report on standard output, indented."""
    print(_text(report))


def write_json(report: Any, path: Path) -> None:
    """Writes a report to a file, as `print_json` prints it."""
    path.write_text(_text(report) + "\n", encoding="ascii")


def _text(report: Any) -> str:
    return json.dumps(plain(report), indent=2, ensure_ascii=True, allow_nan=False)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, str | int):
        return value
    return str(value) if isinstance(value, Path) else repr(value)
