# SPDX-License-Identifier: Apache-2.0
"""Guard words of validation builds: a piece more behind every block, alive as long as the block.

The runtime writes the word before the block's first step and looks at it after each step until the block's last. What
writes past the end of a block, be it by one byte, is so found at the step that did it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from arenite_codegen.placement import Block

__all__ = ["GUARD_BYTES", "Guard", "guarded", "guards_of"]

GUARD_BYTES = 4


@dataclass(frozen=True)
class Guard:
    """One guard word.

    Attributes:
        block: Name of the block that it lies behind.
        place: Its offset; right behind the block, so at any alignment.
        first: The step before which it is written.
        last: The last step after which it is looked at.
    """

    block: str
    place: int
    first: int
    last: int


def guarded(block: Block) -> Block:
    """The block with its guard as one more piece, the last.

    It is alive from before the reads of the block's first step, when the runtime writes it, to after the writes of its
    last step.
    """
    first, last = int(block.born.min()) // 2, int(block.died.max()) // 2
    piece = (block.size, block.size + GUARD_BYTES, max(-1, 2 * first), 2 * last + 1)
    start, stop, born, died = (
        np.append(old, np.int64(new))
        for old, new in zip((block.start, block.stop, block.born, block.died), piece, strict=True)
    )
    return replace(block, size=block.size + GUARD_BYTES, start=start, stop=stop, born=born, died=died)


def guards_of(placed: Sequence[tuple[Block, int]], steps: int) -> tuple[Guard, ...]:
    """The guards of guarded blocks at their offsets, in a schedule of `steps` steps."""
    return tuple(
        Guard(
            block=block.name,
            place=offset + int(block.start[-1]),
            first=max(0, int(block.born[-1]) // 2),
            last=min(steps - 1, int(block.died[-1]) // 2),
        )
        for block, offset in placed
    )
