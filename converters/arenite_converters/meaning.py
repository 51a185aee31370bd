# SPDX-License-Identifier: Apache-2.0
"""A model's name and what its scores mean, from the model and from what the user says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from arenite.errors import ContractError
from arenite.labels import read_labels

__all__ = ["default_name", "label_texts", "settled_meaning"]


def default_name(source: Path) -> str:
    """A model's name when nobody gives one: its file's, or its function's for `package.module:function`."""
    return source.name.rpartition(":")[2] if ":" in source.name else source.stem


def label_texts(labels: Sequence[str] | Path | str | None) -> tuple[str, ...]:
    """Labels as they were given, or from a file with one a line."""
    return read_labels(labels) if isinstance(labels, (str, Path)) else tuple(labels or ())


def settled_meaning(last: str, meaning: str | None, labels: Sequence[str], where: str) -> str:
    """The meaning of the first output.

    Args:
        last: Kind of the operator that computes it, or ''.
        meaning: What the user says; None when nothing.
        labels: Of the classes, if any.
        where: The model, for messages.

    Raises:
        ContractError: Model and user contradict each other, or nobody knows.
    """
    if last.lower() == "softmax":
        if meaning not in (None, "values", "probabilities"):
            raise ContractError(
                f"the model ends in a softmax, so its output is probabilities, not {meaning}",
                where=where,
                cure="Leave meaning away, or give values for the plain numbers.",
            )
        return meaning or "probabilities"
    if meaning is None and labels:
        raise ContractError(
            f"the model ends in {last or 'no operator'} and has labels, but what its scores mean is not given",
            where=where,
            cure="Give meaning: logits, probabilities or values.",
        )
    return meaning or "values"
