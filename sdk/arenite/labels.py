# SPDX-License-Identifier: Apache-2.0
"""Scores to labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import OutputSpec
from arenite.errors import UsageError

__all__ = ["Label", "dequantise", "read_labels", "top"]


@dataclass(frozen=True)
class Label:
    """One class of an answer.

    Attributes:
        index: Element of the output.
        text: Its label, or `class INDEX` when the contract has none.
        score: Probability, or the real value when the output's meaning is `values`.
    """

    index: int
    text: str
    score: float


def dequantise(values: npt.NDArray[Any], spec: OutputSpec) -> npt.NDArray[np.float64]:
    """Real values of an output, float64 of the same shape."""
    real = values.astype(np.float64)
    if spec.quantised is None:
        return real
    return (real - spec.quantised.zero_point) * spec.quantised.scale


def top(values: npt.NDArray[Any], spec: OutputSpec, count: int = 5) -> tuple[Label, ...]:
    """The `count` highest classes, highest first; equal scores in the order of their index.

    Raises:
        UsageError: `count` is below 1.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise UsageError(f"the number of labels must be an integer of at least 1, not {count!r}")
    scores = dequantise(values, spec).reshape(-1)
    if spec.meaning == "logits":
        exponents = np.exp(scores - scores.max())
        scores = exponents / exponents.sum()
    order = np.argsort(-scores, kind="stable")[:count]
    return tuple(
        Label(int(i), spec.labels[i] if spec.labels else f"class {i}", float(scores[i])) for i in order
    )


def read_labels(path: Path | str) -> tuple[str, ...]:
    """Labels from a UTF-8 text file, one a line; blank lines at the end do not count.

    Raises:
        UsageError: The file cannot be read, or a label is empty.
    """
    try:
        # A byte order mark is no part of the first label.
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the labels ({error})",
            where=str(path),
            cure="Give a UTF-8 text file, one label a line.",
        ) from error
    # Other separators that `splitlines` knows may be part of a label.
    labels = tuple(line.strip() for line in text.rstrip().split("\n"))
    if "" in labels:
        raise UsageError(
            f"line {labels.index('') + 1} of the labels is empty",
            where=str(path),
            cure="Give each class a label, one a line.",
        )
    return labels
