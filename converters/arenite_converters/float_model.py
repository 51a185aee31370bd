# SPDX-License-Identifier: Apache-2.0
"""A trained model once it is loaded: float TFLite, and the model itself to compare with."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite import engines
from arenite.errors import ModelError
from arenite.machine import installed_version

__all__ = [
    "FloatModel",
    "dims",
    "first_line",
    "first_value",
    "package_version",
    "several",
    "tool_versions",
]


@dataclass(frozen=True)
class FloatModel:
    """A trained model with one input and one output.

    Attributes:
        content: Float32 TFLite: batch 1, maps channel-last.
        shape: Of the input.
        loader: Format of the source, and the library that loaded it with its version.
        run: The trained model itself in its own framework: an input of `shape` to the output, both as the TFLite
            model has them.
        function: Frozen TensorFlow function of one float32 tensor; None when the source is not TensorFlow.
        quantised: The source itself when it is INT8 TFLite already; `content` is what its numbers stand for.
    """

    content: bytes
    shape: tuple[int, ...]
    loader: str
    run: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]
    function: Any = None
    quantised: bytes | None = None


def package_version(package: str) -> str:
    """Version of an installed package."""
    return installed_version(package) or "unknown"


def tool_versions(packages: Sequence[str], loader: str) -> dict[str, str]:
    """What made a file, for its contract: versions, what loaded the model, the kind of machine."""
    return {**{name: package_version(name) for name in packages}, "loader": loader, "machine": platform.machine()}


def first_value(value: Any) -> Any:
    """What a model with one output returns, out of the containers that it may lie in."""
    while isinstance(value, (list, tuple, dict)):
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return value


def dims(shape: Sequence[int | None]) -> str:
    """A shape as text, `?` where it is open."""
    return "×".join("?" if d is None else str(d) for d in shape)


def several(what: str, count: int, where: str) -> ModelError:
    """The error for a model with several inputs or outputs."""
    return ModelError(
        f"the model has {count} {what}",
        where=where,
        cure="Only models with one input and one output convert.",
    )


def first_line(error: Exception) -> str:
    """What an error of a foreign library says first."""
    line = engines.first_line(error)
    return line if len(line) <= 160 else line[:159] + "…"
