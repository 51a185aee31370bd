# SPDX-License-Identifier: Apache-2.0
"""Where a generated graph's free choices come from: a seeded generator, or hypothesis, which shrinks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Choices"]

T = TypeVar("T")


class Choices:
    """Draws integers from `draw(low, high)` and everything else from those.

    Args:
        draw: Returns an integer in [low, high], both included.
    """

    def __init__(self, draw: Callable[[int, int], int]) -> None:
        self._draw = draw
        self._bulk = np.random.default_rng(draw(0, 2**32 - 1))

    @classmethod
    def seeded(cls, *seed: int) -> Choices:
        """The same choices for the same numbers, on every machine."""
        generator = np.random.default_rng(list(seed))
        return cls(lambda low, high: int(generator.integers(low, high, endpoint=True)))

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return self._draw(low, high)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self._draw(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True in about `percent` of a hundred draws."""
        return self._draw(0, 99) >= 100 - percent

    def real(self, low: float, high: float) -> float:
        """A positive number in [low, high], uniform in its logarithm, exact in float32."""
        position = self._draw(0, 1 << 16) / (1 << 16)
        return float(np.float32(math.exp(math.log(low) + position * (math.log(high) - math.log(low)))))

    def zero_point(self, dtype: str = "int8") -> int:
        """A zero point, often at a rail of the type."""
        low, high = (-128, 127) if dtype == "int8" else (0, 255)
        return self.pick([low, high, (low + high + 1) // 2, self.integer(low, high), self.integer(low, high)])

    def matching_zero_point(self, point: int) -> int:
        """A zero point for the output of an operator that keeps values about as they are."""
        return point if self.chance(60) else self.zero_point()

    def channels(self, limit: int = 33) -> int:
        """A channel count in [1, limit], often beside a vector length."""
        edges = [count for count in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 80, 128) if count <= limit]
        return self.pick(edges) if self.chance(60) else self.integer(1, limit)

    def batch(self) -> int:
        """1, or 3 so that pointer errors of one item add up."""
        return self.pick([1, 1, 3])

    def bytes_of(self, shape: Sequence[int], dtype: str = "int8", rails: bool = False) -> npt.NDArray[Any]:
        """Random contents over the whole range, or from the rails and their neighbours only.

        Numbers of float32 are small, rails among them; int32 has small numbers too.
        """
        if dtype == "float32":
            return self._reals(shape, rails)
        if dtype == "bool":
            return self._bulk.integers(0, 2, tuple(shape)).astype(np.bool_)
        if dtype == "int32" and not rails:
            return self._bulk.integers(-9, 9, tuple(shape), dtype=dtype, endpoint=True)
        info = np.iinfo(dtype)
        if rails:
            edges = np.array([info.min, info.min + 1, info.max - 1, info.max], dtype)
            return np.asarray(self._bulk.choice(edges, tuple(shape)), dtype)
        return self._bulk.integers(info.min, info.max, tuple(shape), dtype=dtype, endpoint=True)

    def near(self, shape: Sequence[int], centre: int, spread: float, dtype: str = "int8") -> npt.NDArray[Any]:
        """Random contents in a bell around a centre, clipped to the type."""
        if dtype in ("float32", "bool"):
            return self.bytes_of(shape, dtype)
        info = np.iinfo(dtype)
        values = np.rint(self._bulk.normal(centre, spread, tuple(shape)))
        return np.clip(values, info.min, info.max).astype(dtype)

    def _reals(self, shape: Sequence[int], rails: bool) -> npt.NDArray[np.float32]:
        if rails:
            edges = np.array([-100.0, -1.0, -0.0, 0.0, 1.0, 6.0, 88.0], np.float32)
            return np.asarray(self._bulk.choice(edges, tuple(shape)), np.float32)
        return self._bulk.normal(0.0, 3.0, tuple(shape)).astype(np.float32)

    def weights(self, shape: Sequence[int]) -> npt.NDArray[np.int8]:
        """Weights in [-127, 127], as TFLite's symmetric quantisation has them."""
        return self._bulk.integers(-127, 127, tuple(shape), dtype=np.int8, endpoint=True)

    def normal(self, count: int, spread: float) -> npt.NDArray[np.float64]:
        """`count` numbers of a normal distribution around 0."""
        return self._bulk.normal(0.0, spread, count)
