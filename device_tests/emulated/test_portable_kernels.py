# SPDX-License-Identifier: Apache-2.0
"""Kernels of int16 and float32, and what has no faster variant, equal the reference on an emulated Cortex-M4."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arenite._ulps import ulps_apart
from arenite.errors import MissingToolError
from support.cortex_m import CortexMModels
from support.graphs import random_graph
from support.int16_graphs import INT16
from support.random_graphs_cli import authority

KINDS = (
    *INT16,
    *("SUB_S16", "MAXIMUM_S16", "MINIMUM_S16", "SQUARED_DIFFERENCE_S16", "LOG_SOFTMAX", "DILATED_TRIPLE"),
    *("LOG_SOFTMAX_F32", "CONV_2D_F32", "DEPTHWISE_CONV_2D_F32"),
)
GRAPHS = [(kind, 60 + seed) for kind in KINDS for seed in range(3)]


def test_random_graphs_equal_the_reference_on_a_cortex_m4(tmp_path: Path) -> None:
    cases = [random_graph(kind, seed) for kind, seed in GRAPHS]
    try:
        models = CortexMModels([case.model_bytes for case in cases], tmp_path, "qemu-mps2-an386", "gcc")
    except MissingToolError as error:
        pytest.skip(str(error))
    for index, case in enumerate(cases):
        oracle = authority(case)
        for vector in case.vectors[:2]:
            expected = oracle.run(vector, case.outputs)
            found = models.run(index, vector, expected, 4 * (index % 4))
            for want, got in zip(expected, found, strict=True):
                near = want.dtype == np.float32 and case.ulps and ulps_apart(want, got).max() <= case.ulps
                assert near or got.tobytes() == want.tobytes(), f"{GRAPHS[index]}: {case.description}"
