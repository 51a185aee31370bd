# SPDX-License-Identifier: Apache-2.0
"""The compiled resize with NEON on an emulated AArch64 processor: the arithmetic that is Pillow's."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from arenite.resize import ONE
from support.aarch64 import Aarch64Program, compile_for_aarch64
from support.emission import FIRMWARE, KERNELS

Array = npt.NDArray[Any]
RUNNER = Path(__file__).parents[1] / "support" / "resize_runner.c"
RUNS_HERE, COLUMNS, ROWS, BYTES = range(4)
_PIXEL = 4
# Places in the program's memory: the description, its arrays, what is read, what is written.
_HOW, _FIRST, _WEIGHTS, _IN, _OUT = (Aarch64Program.data + (i << 16) for i in range(5))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Aarch64Program:
    sources = [FIRMWARE / "host" / "arenite_resize_host.c", KERNELS / "arenite_host_isa.c", RUNNER]
    folder = tmp_path_factory.mktemp("resize")
    return Aarch64Program(compile_for_aarch64(sources, [FIRMWARE / "host", KERNELS], folder, "generic"))


def called(program: Aarch64Program, what: int, how: bytes, data: Array, *sizes: int, out: int) -> Array:
    """What one of the functions writes, `out` bytes; two more must stay as they are."""
    program.write(_HOW, how)
    program.write(_IN, data.tobytes())
    program.write(_OUT, b"\x5a" * (out + 2))
    program.call(what, _HOW, _IN, *(*sizes, 0)[:2], _OUT)
    found = program.read(_OUT, out + 2)
    assert found[out:] == b"\x5a" * 2
    return np.frombuffer(found[:out], np.uint8)


def axis(program: Aarch64Program, random: np.random.Generator, source: int, count: int, taps: int, times: int) -> Any:
    """First taps and weights of some pixels, in the program's memory too, and their description."""
    first = np.sort(random.integers(0, source - taps + 1, count)).astype(np.uint32)
    weights = random.integers(-ONE // taps, 2 * ONE // taps, (count, taps)).astype(np.int32)
    weights[0], weights[-1] = 2 * ONE // taps, -ONE // taps  # both clips bind
    program.write(_FIRST, first.tobytes())
    program.write(_WEIGHTS, np.repeat(weights, times, 1).tobytes())
    return first, weights, struct.pack("<QQII", _FIRST, _WEIGHTS, count, taps)


def rounded(sums: Array) -> Array:
    return np.clip((sums + ONE // 2) >> 22, 0, 255).astype(np.uint8)


def test_it_runs_here(program: Aarch64Program) -> None:
    assert program.call(RUNS_HERE, 0, 0, 0, 0, 0) == 1


@pytest.mark.parametrize(("source", "count", "taps"), [(2, 1, 2), (31, 17, 6), (50, 80, 4), (90, 5, 40)])
def test_columns(program: Aarch64Program, source: int, count: int, taps: int) -> None:
    random = np.random.default_rng(taps)
    pixels = random.integers(0, 256, (3, source, _PIXEL), dtype=np.uint8)
    first, weights, how = axis(program, random, source, count, taps, _PIXEL)
    taken = pixels[:, first[:, None] + np.arange(taps)].astype(np.int64)
    expected = rounded((taken * weights[None, :, :, None]).sum(2))
    found = called(program, COLUMNS, how, pixels, source * _PIXEL, 3, out=expected.size)
    assert np.array_equal(found, expected.ravel())
    assert count == 1 or {0, 255} < set(expected.ravel().tolist())


@pytest.mark.parametrize(("source", "count", "taps", "width"), [(1, 1, 1, 1), (9, 20, 3, 2), (40, 7, 21, 13)])
def test_rows(program: Aarch64Program, source: int, count: int, taps: int, width: int) -> None:
    random = np.random.default_rng(width)
    pixels = random.integers(0, 256, (source, width * _PIXEL), dtype=np.uint8)
    first, weights, how = axis(program, random, source, count, taps, 1)
    taken = pixels[first[:, None] + np.arange(taps)].astype(np.int64)
    expected = rounded((taken * weights[:, :, None]).sum(1))
    found = called(program, ROWS, how, pixels, width * _PIXEL, width * _PIXEL, out=expected.size)
    assert np.array_equal(found, expected.ravel())


@pytest.mark.parametrize("planar", [False, True])
def test_bytes(program: Aarch64Program, planar: bool) -> None:
    random = np.random.default_rng(7)
    pixels = random.integers(0, 256, (19, _PIXEL), dtype=np.uint8)
    table = random.integers(0, 256, (3, 256), dtype=np.uint8)
    program.write(_FIRST, table.tobytes())
    how = struct.pack("<Q5I", _FIRST, 2, 1, 0, *((1, 19) if planar else (3, 1)))
    values = np.stack([table[channel][pixels[:, 2 - channel]] for channel in range(3)], 0 if planar else 1)
    assert np.array_equal(called(program, BYTES, how, pixels, 19, out=57), values.ravel())
