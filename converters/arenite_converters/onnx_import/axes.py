# SPDX-License-Identifier: Apache-2.0
"""The order in which a value's axes lie in memory, and what a reshape makes of it.

An order is a tuple: memory axis i holds the value's axis order[i]. Channel-last of N×C×H×W is (0, 2, 3, 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Order", "Shuffle", "channel_last", "natural", "regroup", "same_bytes", "transposed"]

Order = tuple[int, ...]


@dataclass(frozen=True)
class Shuffle:
    """A flattened map whose bytes stayed where they were: the last axis in memory has a sequence of its own.

    Attributes:
        extents: Of the axes that were flattened, in the value's own sequence.
        order: In which they lie in memory.
    """

    extents: tuple[int, ...]
    order: Order

    def indices(self) -> npt.NDArray[Any]:
        """For each position in memory the position in the value."""
        positions = np.arange(math.prod(self.extents)).reshape(self.extents)
        return np.asarray(positions.transpose(self.order).reshape(-1))


def natural(rank: int) -> Order:
    """Every axis where the value has it."""
    return tuple(range(rank))


def channel_last(rank: int) -> Order:
    """The second axis at the end, from rank 3."""
    return (0, *range(2, rank), 1) if rank > 2 else natural(rank)


def transposed(order: Order, permutation: Sequence[int]) -> Order:
    """The order of a transposed value that stayed where it was; its axis j was axis permutation[j]."""
    return tuple(list(permutation).index(axis) for axis in order)


def same_bytes(shape: Sequence[int], first: Order, second: Order) -> bool:
    """True when two orders of one value differ in axes of extent 1 only."""
    return [a for a in first if shape[a] > 1] == [a for a in second if shape[a] > 1]


def regroup(old: Sequence[int], order: Order, new: Sequence[int]) -> tuple[Order, Shuffle | None] | None:
    """The order of a reshaped value that stays where it is in memory.

    Args:
        old: The value's shape.
        order: How it lies in memory.
        new: The shape that it takes, as many elements.

    Returns:
        Its order, and a shuffle when axes that lie in another sequence became the last one in memory; None when bytes
        would have to move.
    """
    memory = [axis for axis in order if old[axis] > 1]
    placed: list[tuple[int, list[int]]] = []
    shuffle = None
    for taken, given in _groups(old, new):
        start = min(memory.index(axis) for axis in taken)
        lying = memory[start : start + len(taken)]
        if sorted(lying) != taken:
            return None
        if lying != taken:
            if len(given) > 1 or start + len(taken) < len(memory):
                return None
            shuffle = Shuffle(tuple(old[a] for a in taken), tuple(taken.index(a) for a in lying))
        placed.append((start, given))
    sequence = [axis for _, given in sorted(placed) for axis in given]
    return _with_ones(sequence, new), shuffle


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest groups of axes, extents above 1, that have as many elements before and after."""
    before = [axis for axis, extent in enumerate(old) if extent > 1]
    after = [axis for axis, extent in enumerate(new) if extent > 1]
    groups: list[tuple[list[int], list[int]]] = []
    while before or after:
        taken, given = [before.pop(0)], [after.pop(0)]
        sizes = [old[taken[0]], new[given[0]]]
        while sizes[0] != sizes[1]:
            if sizes[0] < sizes[1]:
                taken.append(before.pop(0))
                sizes[0] *= old[taken[-1]]
            else:
                given.append(after.pop(0))
                sizes[1] *= new[given[-1]]
        groups.append((taken, given))
    return groups


def _with_ones(sequence: list[int], shape: Sequence[int]) -> Order:
    """The usual order that has this sequence of axes, or the sequence with the axes of extent 1 before it."""
    for order in (channel_last(len(shape)), natural(len(shape))):
        if [axis for axis in order if shape[axis] > 1] == sequence:
            return order
    return (*(axis for axis, extent in enumerate(shape) if extent == 1), *sequence)
