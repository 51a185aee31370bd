# SPDX-License-Identifier: Apache-2.0
"""The row schedule and the table of scattered rows, as the executor reads them."""

from __future__ import annotations

import random

import pytest

from arenite_codegen.tables import fold_rows, packed_steps
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


@pytest.mark.parametrize("times", [1, 2, 7, 254, 255, 256, 257, 3000])
@pytest.mark.parametrize("stretch", [[(0, 1), (1, 1)], [(0, 2), (300, 1), (1, 20)], [(i % 9, 1) for i in range(100)]])
def test_stretches_that_come_again_are_kept(stretch: list[tuple[int, int]], times: int) -> None:
    steps = [(4, 2), *(stretch * times), (3, 1)]
    packed = packed_steps(steps)
    assert unpacked_steps(packed) == steps
    assert packed[-3] != 0x10, "an entry must follow the last count"


def test_a_stretch_is_there_once() -> None:
    steps = [(0, 2), *([(1, 1), (0, 2)] * 20), (1, 1)]
    assert packed_steps(steps) == bytes([0x82, 0x91, 0x72, 0x10, 2, 19, 0x91])


def test_random_repetitions_are_kept() -> None:
    chance = random.Random(2)
    for _ in range(200):
        steps: list[tuple[int, int]] = []
        while len(steps) < 150:
            body = [(chance.randrange(chance.choice([6, 400])), chance.choice([1, 1, 2, 40])) for _ in range(5)]
            steps += body[: chance.randint(1, 5)] * chance.randint(1, 9)
        assert unpacked_steps(packed_steps(steps)) == steps


def _unfolded(words: list[int], rows: int) -> list[int]:
    """Each row of a folded table, as arenite.h says."""
    first, period, turns, drift, *kept = words
    found = []
    for row in range(rows):
        turn = min(turns, (row - first) // period if row >= first else 0)
        found.append((kept[row - turn * period] + turn * drift) % 65536)
    return found


def test_rows_that_come_around_are_folded() -> None:
    rows = [7, 900, *(value + 336 * turn for turn in range(20) for value in (0, 100, 40000)), 5, 6]
    words = fold_rows(rows)
    assert _unfolded(words, len(rows)) == rows
    assert len(words) == 4 + 2 + 3 + 2


def test_any_rows_are_kept() -> None:
    chance = random.Random(3)
    for _ in range(300):
        rows = [chance.randrange(65536) for _ in range(chance.randint(1, 5))]
        for _ in range(chance.randint(0, 4)):
            length, drift = chance.randint(1, len(rows)), chance.choice([0, 0, 8, -8, 65000])
            for _ in range(chance.randint(1, 40)):
                rows.append((rows[-length] + drift) % 65536)
        assert _unfolded(fold_rows(rows), len(rows)) == rows
