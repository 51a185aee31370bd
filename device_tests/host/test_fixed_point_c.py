# SPDX-License-Identifier: Apache-2.0
"""The kernels' high multiplication in all its forms, against exact integers."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from arenite_codegen.rounding import INT32_MAX, INT32_MIN, rounding_doubling_high_mul
from support.emission import KERNELS
from support.host_compiler import find_compiler

_EDGES = (INT32_MIN, INT32_MIN + 1, -(1 << 30), -65537, -65536, -65535, -1, 0, 1, 2, 65535, 65536, 1 << 30, INT32_MAX)
_SOURCE = """
#include "arenite_fixed_point.h"
int32_t multiply(int32_t a, int32_t b);
int32_t multiply(int32_t a, int32_t b) { return arenite_doubling_high_mul(a, b); }
"""


@pytest.mark.parametrize("option", ["-DARENITE_LONG", "-DARENITE_NO_CARRY", "-DARENITE_NO_LONG_MULTIPLY"])
def test_high_multiplication_is_exact(option: str, tmp_path: Path) -> None:
    compiler = find_compiler(sanitise=False)
    if compiler is None:
        pytest.skip("no C compiler: pip install 'arenite[firmware]'")
    source, library = tmp_path / "multiply.c", tmp_path / "multiply.so"
    source.write_text(_SOURCE)
    objects = compiler.compile([source], [KERNELS], tmp_path, "-fPIC", option)
    subprocess.run([*compiler.command, "-shared", *map(str, objects), "-o", str(library)], check=True)
    multiply = ctypes.CDLL(str(library)).multiply
    random = np.random.default_rng(3).integers(INT32_MIN, INT32_MAX, (20_000, 2), endpoint=True).tolist()
    ties = [(a, 1 << shift) for a in range(-9, 10) for shift in range(25, 31)]
    for a, b in [*((a, b) for a in _EDGES for b in _EDGES), *ties, *random]:
        if b > INT32_MIN:
            assert multiply(a, b) == rounding_doubling_high_mul(a, b), (a, b)
