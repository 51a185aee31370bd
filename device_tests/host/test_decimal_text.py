# SPDX-License-Identifier: Apache-2.0
"""Decimal text of the firmware against this computer's own printing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from arenite_codegen.board_support import firmware_folder
from support.host_compiler import HostCompiler

SUPPORT = Path(__file__).parent.parent / "support"


def test_three_digits_are_those_of_printf(compiler: HostCompiler, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 1 << 32, 20_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ties = (rng.integers(-(1 << 20), 1 << 20, 5_000) / 2**4).astype(np.float32)
    near = rng.normal(0, 1, 20_000).astype(np.float32)
    special = np.array([0, -0.0, 0.0005, 0.0015, np.inf, -np.inf, np.nan, 1e-45, 2**53], np.float32)
    values = np.concatenate([anything, ties, near, special])
    values = values[~(np.abs(values) > 2**53) | np.isinf(values)]
    folder = firmware_folder("mlperf")
    objects = compiler.compile([folder / "decimal.c", SUPPORT / "decimal_runner.c"], [folder], tmp_path)
    compiler.link(objects, tmp_path / "runner")
    done = subprocess.run([tmp_path / "runner"], input=values.tobytes(), capture_output=True, check=True)
    lines = done.stdout.decode().split()
    assert lines[:-1] == [f"{float(value):.3f}" for value in values]
    assert lines[-1] == str((1 << 64) - 1)
