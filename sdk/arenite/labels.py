# SPDX-License-Identifier: Apache-2.0
"""Scores to labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import OutputSpec
from arenite.errors import ContractError, UsageError

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


def top(
    values: npt.NDArray[Any],
    spec: OutputSpec,
    count: int = 5,
    threshold: float | None = None,
    temperature: float = 1.0,
) -> tuple[Label, ...]:
    """The `count` highest classes, highest first; equal scores in the order of their index.

    Args:
        values: An output.
        spec: What it means.
        count: How many at most.
        threshold: The lowest score that counts; None counts all.
        temperature: Above 1 makes probabilities more even, below 1 less so: softmax(logits / temperature), which for
            probabilities is their power 1 / temperature, normalised.

    Raises:
        UsageError: `count` is below 1, the temperature not above 0, or other than 1 for plain values.
        ContractError: The output holds boxes.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise UsageError(f"the number of labels must be an integer of at least 1, not {count!r}")
    if spec.meaning == "boxes":
        raise ContractError("the output holds boxes, no classes", where=spec.name, cure="Use session.detect.")
    scores = _scores(dequantise(values, spec).reshape(-1), spec.meaning, temperature)
    order = np.argsort(-scores, kind="stable")[:count]
    return tuple(
        Label(int(i), spec.labels[i] if spec.labels else f"class {i}", float(scores[i]))
        for i in order
        if threshold is None or scores[i] >= threshold
    )


def _scores(real: npt.NDArray[np.float64], meaning: str, temperature: float) -> npt.NDArray[np.float64]:
    if not 0 < temperature < np.inf:
        raise UsageError(f"the temperature must be a number above 0, not {temperature!r}")
    if meaning == "logits":
        return _softmax(real / temperature)
    if temperature == 1:
        return real
    if meaning != "probabilities":
        raise UsageError("values have no temperature", cure="Leave it away, or say what they mean in the contract.")
    with np.errstate(divide="ignore"):
        logarithms = np.log(np.maximum(real, 0))
    return _softmax(logarithms / temperature) if logarithms.max() > -np.inf else real


def _softmax(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    exponents = np.exp(values - values.max())
    return np.asarray(exponents / exponents.sum())


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
