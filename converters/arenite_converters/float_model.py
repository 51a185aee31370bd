# SPDX-License-Identifier: Apache-2.0
"""A trained model once it is loaded: float TFLite, and the model itself to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import ModelError

__all__ = ["FloatModel", "dims", "first_line", "package_version", "several"]


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
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


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


def first_line(error: BaseException) -> str:
    """What an error of a foreign library says first."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return line if len(line) <= 160 else line[:159] + "…"
