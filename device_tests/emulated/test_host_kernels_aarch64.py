# SPDX-License-Identifier: Apache-2.0
"""The kernels for computers on an emulated AArch64 processor, byte for byte TFLM's."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.aarch64 import Aarch64Models
from support.graphs import random_graph
from support.tflm import TflmModel

GRAPHS = [
    (kind, 300 + seed)
    for kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "PAD_CONV", "CONV_CHAIN")
    for seed in range(8)
]
PLAIN, NEON = 0, 1  # as ARENITE_ISA_PLAIN, ARENITE_ISA_NEON


@pytest.mark.parametrize("mcpu", ["generic", "generic+dotprod"])
def test_random_graphs_equal_tflm(mcpu: str, tmp_path: Path) -> None:
    cases = [random_graph(kind, seed) for kind, seed in GRAPHS]
    models = Aarch64Models([case.model_bytes for case in cases], tmp_path, mcpu)
    for index, case in enumerate(cases):
        oracle = TflmModel(case.model_bytes)
        for vector in case.vectors:
            expected = oracle.run(vector)
            for isa in (PLAIN, NEON):
                found = models.run(index, vector, expected, isa)
                assert found[0].tobytes() == expected[0].tobytes(), f"{GRAPHS[index]}, level {isa}"
