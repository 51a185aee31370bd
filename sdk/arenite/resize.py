# SPDX-License-Identifier: Apache-2.0
"""Pillow's 8-bit resize as tables of integers: which source pixels make a pixel, and with which weights.

Pillow resizes one axis after the other. A pixel is the sum of its neighbours times weights in steps of 1 / 2^22, plus
one half, shifted and clipped to 8 bits. The weights are not computed here but read out of Pillow, so that they are its
own whatever the filter and the version: an image of 32-bit integers goes through the same weights without their
rounding to 2^22, so a line that is 2^22 at one pixel and 0 elsewhere becomes the rounded weights of that pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from arenite.errors import CheckFailedError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Axis", "ONE", "axis_of", "takes_rows_first"]

ONE = 1 << 22
# Pixels of the result to each side that LANCZOS, the widest filter, takes part in.
_WIDEST = 3
# Columns of the input that are compared at once, so that large frames need little memory.
_STRIP = 16

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Axis:
    """The resize of one axis.

    Attributes:
        weights: int32 [pixels of the input, pixels of the frame].
    """

    weights: Array

    @cached_property
    def first(self) -> list[int]:
        """For each pixel of the input the first of the frame that it needs; never decreases."""
        ends = np.where(self.weights.any(1), (self.weights != 0).argmax(1), self.weights.shape[1])
        return [int(first) for first in np.minimum.accumulate(ends[::-1])[::-1]]

    @cached_property
    def stop(self) -> list[int]:
        """For each pixel of the input the one behind the last that it needs."""
        last = self.weights.shape[1] - (self.weights[:, ::-1] != 0).argmax(1)
        used = np.where(self.weights.any(1), last, 0)
        return [max(int(stop), first) for stop, first in zip(used, self.first, strict=True)]

    @property
    def taps(self) -> list[tuple[int, int]]:
        """First and count for each pixel of the input, its first from the first of all."""
        return [(first - self.first[0], stop - first) for first, stop in zip(self.first, self.stop, strict=True)]

    @property
    def flat_weights(self) -> list[int]:
        """The weights of each pixel's taps, one pixel after the other."""
        return [
            int(w) for row, a, b in zip(self.weights, self.first, self.stop, strict=True) for w in row[a:b]
        ]

    @property
    def span(self) -> int:
        """Pixels of the frame that are needed, from the first to the last."""
        return max(self.stop) - self.first[0]

    @property
    def ring(self) -> int:
        """The most pixels of the frame that must be there at once when they come in order."""
        return max(1, int((np.maximum.accumulate(self.stop) - np.array(self.first)).max()))


def axis_of(source: int, out: int, low: float, high: float, filter: str) -> Axis:
    """The weights by which Pillow makes `out` pixels of the part `low`..`high` of `source` pixels.

    Args:
        filter: One of `arenite.contract.FILTERS`.
    """
    from PIL import Image

    # The widest filter reaches so many pixels to each side of the place of a pixel.
    reach = ceil(_WIDEST * max((high - low) / out, 1)) + 1
    every = min(2 * reach + 1, source)
    # One in `every` pixels is lit in each line, another one in the next: of those that make a pixel of the result just
    # one is.
    lines = np.zeros((every, source), np.int32)
    lit = np.arange(source)
    lines[lit % every, lit] = ONE
    resample = getattr(Image.Resampling, filter.upper())
    found = np.asarray(Image.fromarray(lines).resize((out, every), resample, (low, 0, high, every)))
    places = np.floor(low + (np.arange(out) + 0.5) * (high - low) / out).astype(np.int64)
    near = places[:, None] + np.arange(-reach, reach + 1)
    x, tap = np.nonzero((near >= 0) & (near < source))
    weights = np.zeros((out, source), np.int32)
    weights[x, near[x, tap]] = found[near[x, tap] % every, x]
    return Axis(weights)


def takes_rows_first(fit: Callable[[Image], Image], size: tuple[int, int], mode: str, axes: tuple[Axis, Axis]) -> bool:
    """Whether Pillow resizes rows before columns; found by trying both on noise.

    Pillow 12 and older always took columns first; newer ones take what costs less.

    Args:
        fit: The resize.
        size: Width and height of the frame.
        mode: L or RGB.
        axes: Of columns and of rows.

    Raises:
        CheckFailedError: It is neither.
    """
    from PIL import Image, __version__

    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], len(mode)), dtype=np.uint8)
    expected = np.asarray(fit(Image.fromarray(noise[..., 0] if mode == "L" else noise)))
    columns, rows = axes
    possible = [False, True]
    for start in range(0, len(columns.weights), _STRIP):
        weights = columns.weights[start : start + _STRIP]
        strip = expected[:, start : start + _STRIP].reshape(len(rows.weights), len(weights), len(mode))
        used = np.flatnonzero(weights.any(0))
        passes = [(weights[:, used], 1), (rows.weights, 0)]
        found = (_resized(noise[:, used], passes[::-1] if order else passes) for order in possible)
        possible = [order for order, made in zip(possible, found, strict=True) if np.array_equal(made, strip)]
    if not possible:
        raise CheckFailedError(
            f"Pillow {__version__} resizes otherwise than the C would",
            cure="Install another version of Pillow, and report this message.",
        )
    return possible[0]


def _resized(pixels: Array, passes: Sequence[tuple[Array, int]]) -> Array:
    """The arithmetic of the C on uint8 pixels: weights and number of one axis, then of the other.

    Every sum is exact in float64.
    """
    for weights, number in passes:
        sums = np.moveaxis(np.tensordot(weights.astype(np.float64), pixels, (1, number)), 0, number)
        pixels = np.clip(np.floor(sums / ONE + 0.5), 0, 255).astype(np.uint8)
    return pixels
