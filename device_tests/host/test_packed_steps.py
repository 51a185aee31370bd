# SPDX-License-Identifier: Apache-2.0
"""The row schedule as the executor reads it."""

from __future__ import annotations

import random

import pytest

from arenite_codegen.emit import packed_steps
from support.mutants import unpacked_steps


@pytest.mark.parametrize("steps", [[(0, 1)], [(9, 1), (1, 15), (8, 16)], [(65535, 65535), (0, 1)], [(7, 3), (15, 1)]])
def test_entries_keep_layers_and_counts(steps: list[tuple[int, int]]) -> None:
    assert unpacked_steps(packed_steps(steps)) == steps


def test_any_schedule_is_kept() -> None:
    chance = random.Random(1)
    steps = [
        (chance.randrange(chance.choice([4, 30, 65536])), chance.choice([1, 2, 15, 16, 65535])) for _ in range(999)
    ]
    assert unpacked_steps(packed_steps(steps)) == steps


def test_neighbours_take_a_byte() -> None:
    """A depth-first schedule moves to the next layer or a few back."""
    assert len(packed_steps([(0, 3), (1, 1), (2, 1), (0, 2), (7, 15)])) == 5
