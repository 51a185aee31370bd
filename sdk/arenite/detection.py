# SPDX-License-Identifier: Apache-2.0
"""Outputs to boxes on the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.boxes import Boxes, suppress
from arenite.contract import Contract, OutputSpec
from arenite.errors import ContractError, UsageError
from arenite.labels import Label, dequantise
from arenite.timing import Timing

__all__ = ["Detection", "Detections", "boxes_output", "detect"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Detection:
    """One thing found.

    Attributes:
        label: Its class and score.
        left, top, right, bottom: Pixels of the upright picture, clipped to it.
    """

    label: Label
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Detections:
    """What was found in one picture.

    Attributes:
        found: Highest score first.
        timing: Wall time of each stage.
    """

    found: tuple[Detection, ...]
    timing: Timing


def boxes_output(contract: Contract) -> tuple[int, OutputSpec, Boxes]:
    """The output that holds boxes: its place, its description, what its numbers mean.

    Raises:
        ContractError: There is none.
    """
    for place, spec in enumerate(contract.outputs):
        if spec.boxes is not None:
            return place, spec, spec.boxes
    raise ContractError(
        "the contract names no output of boxes",
        where=contract.name,
        cure="Use classify, or open it with contract=arenite.make_contract(..., boxes=arenite.Boxes(...)).",
    )


def detect(
    outputs: Sequence[Array],
    contract: Contract,
    extents: tuple[int, int],
    box: tuple[float, float, float, float],
    picture: tuple[int, int],
    *,
    threshold: float,
    overlap: float,
    most: int,
) -> tuple[Detection, ...]:
    """Scores above the threshold, overlapping boxes of one class thinned out, on the picture.

    Args:
        outputs: The model's.
        contract: Says what they mean.
        extents: Width and height of the input.
        box: Left, top, right, bottom of the part of the picture that the input shows.
        picture: Width and height of the picture.
        threshold: Lowest score that counts.
        overlap: See `suppress`.
        most: Boxes at most.

    Raises:
        ContractError: No output holds boxes.
        UsageError: A threshold is outside 0..1, or `most` below 1.
    """
    for name, value in (("threshold", threshold), ("overlap", overlap)):
        if not 0 <= value <= 1:
            raise UsageError(f"the {name} must lie within 0..1, not {value!r}")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise UsageError(f"the number of boxes must be an integer of at least 1, not {most!r}")
    place, spec, how = boxes_output(contract)
    rows = _rows(outputs[place], spec, how)
    scores = _scores(rows, outputs, contract, how)
    corners = how.corners(rows, extents)
    kept = _kept(corners, scores, threshold, overlap)[:most]
    return tuple(_placed(corners[i], spec, box, picture, c, float(scores[i, c])) for i, c in kept)


def _rows(values: Array, spec: OutputSpec, how: Boxes) -> npt.NDArray[np.float64]:
    real: npt.NDArray[np.float64] = dequantise(values, spec)[0]
    return real if how.layout == "rows" else real.T


def _scores(rows: Array, outputs: Sequence[Array], contract: Contract, how: Boxes) -> npt.NDArray[np.float64]:
    """[boxes, classes]; what is no number counts as 0."""
    behind = 4 + how.objectness
    if how.scores_output is None:
        numbers = rows[:, behind:]
    else:
        numbers = _rows(outputs[how.scores_output], contract.outputs[how.scores_output], how)
    scores = how.activated(numbers)
    if how.objectness:
        certainty = rows[:, 4:5]
        scores = scores * (how.activated(certainty) if how.activation == "sigmoid" else certainty)
    return np.nan_to_num(scores, nan=0.0)


def _kept(corners: Array, scores: Array, threshold: float, overlap: float) -> list[tuple[int, int]]:
    """Box and class, highest score first; each class by itself."""
    sound = np.isfinite(corners).all(axis=1) & (corners[:, 2:] > corners[:, :2]).all(axis=1)
    kept: list[tuple[int, int]] = []
    for c in range(scores.shape[1]):
        rows = np.flatnonzero(sound & (scores[:, c] >= threshold))
        kept += [(int(rows[i]), c) for i in suppress(corners[rows], scores[rows, c], overlap, rows.size)]
    return sorted(kept, key=lambda pair: -float(scores[pair]))


def _placed(
    corners: Array,
    spec: OutputSpec,
    box: tuple[float, float, float, float],
    picture: tuple[int, int],
    index: int,
    score: float,
) -> Detection:
    left, top, right, bottom = box
    low, high = np.array([left, top]), np.array([right, bottom])
    ends = [np.clip(low + corners[i : i + 2] * (high - low), 0, picture) for i in (0, 2)]
    text = spec.labels[index] if spec.labels else f"class {index}"
    (x0, y0), (x1, y1) = ends[0].tolist(), ends[1].tolist()
    return Detection(Label(index, text, score), x0, y0, x1, y1)
