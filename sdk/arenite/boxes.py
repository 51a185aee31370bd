# SPDX-License-Identifier: Apache-2.0
"""How an output holds boxes, as a contract says it, and how overlapping ones are thinned out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["BOX_ACTIVATIONS", "BOX_FORMATS", "BOX_LAYOUTS", "BOX_UNITS", "Boxes", "suppress"]

Array = npt.NDArray[Any]

# Name: where left, top, right, bottom are; or that it is centre and extents.
BOX_FORMATS = ("cxcywh", "xywh", "xyxy", "yxyx")
BOX_UNITS = ("input", "unit")
BOX_LAYOUTS = ("columns", "rows")
BOX_ACTIVATIONS = ("none", "sigmoid", "softmax")


@dataclass(frozen=True)
class Boxes:
    """What the numbers of a box mean.

    Attributes:
        format: `xyxy` (left, top, right, bottom), `yxyx`, `xywh` (left, top, width, height) or `cxcywh` (centre, width,
            height).
        units: `input` pixels of the input tensor, or `unit`: 0..1 of it.
        layout: `rows` is [1, boxes, numbers], `columns` [1, numbers, boxes].
        objectness: A number behind the box that each class's score is multiplied with.
        activation: What makes scores of the numbers: `none`, `sigmoid` or `softmax` over the classes.
        scores_output: The output that holds the scores, in the same layout; None when they follow each box.
    """

    format: str = "xyxy"
    units: str = "unit"
    layout: str = "rows"
    objectness: bool = False
    activation: str = "none"
    scores_output: int | None = None

    def numbers(self, shape: tuple[int, ...]) -> int:
        """How many numbers an output of this shape has for a box."""
        return shape[2] if self.layout == "rows" else shape[1]

    def classes(self, shape: tuple[int, ...]) -> int:
        """How many classes' scores follow each box."""
        return self.numbers(shape) - 4 - self.objectness

    def corners(self, values: Array, extents: tuple[int, int]) -> npt.NDArray[np.float64]:
        """Left, top, right, bottom as parts of the input, [boxes, 4].

        Args:
            values: Real values, [boxes, 4 or more].
            extents: Width and height of the input.
        """
        a, b, c, d = (values[:, i] for i in range(4))
        if self.format == "yxyx":
            found = np.stack([b, a, d, c], 1)
        elif self.format == "xywh":
            found = np.stack([a, b, a + c, b + d], 1)
        elif self.format == "cxcywh":
            found = np.stack([a - c / 2, b - d / 2, a + c / 2, b + d / 2], 1)
        else:
            found = np.stack([a, b, c, d], 1)
        return found / np.array(extents * 2, np.float64) if self.units == "input" else found

    def activated(self, values: Array) -> npt.NDArray[np.float64]:
        """Scores, [boxes, classes]."""
        if self.activation == "none":
            return values
        with np.errstate(over="ignore"):
            if self.activation == "sigmoid":
                return np.asarray(1 / (1 + np.exp(-values)))
        exponents = np.exp(values - values.max(axis=1, keepdims=True))
        return np.asarray(exponents / exponents.sum(axis=1, keepdims=True))


def suppress(boxes: Array, scores: Array, overlap: float, most: int) -> list[int]:
    """Non-maximum suppression: from the highest score down, take each box that no taken one overlaps by more.

    Args:
        boxes: Left, top, right, bottom, [boxes, 4].
        scores: One a box; among equal ones the first comes first.
        overlap: Intersection over union above which the lower box goes.
        most: Boxes to take at most.

    Returns:
        Indices, highest score first.
    """
    areas = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=1)
    order = np.argsort(-scores, kind="stable")
    taken: list[int] = []
    while order.size and len(taken) < most:
        first, rest = order[0], order[1:]
        taken.append(int(first))
        low = np.maximum(boxes[first, :2], boxes[rest, :2])
        high = np.minimum(boxes[first, 2:], boxes[rest, 2:])
        shared = np.prod(np.maximum(high - low, 0), axis=1)
        union = areas[first] + areas[rest] - shared
        order = rest[shared <= overlap * union]
    return taken
