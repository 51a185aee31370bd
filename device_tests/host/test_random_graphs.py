# SPDX-License-Identifier: Apache-2.0
"""Random single-operator graphs against the reference kernels, byte for byte, under sanitisers.

`python -m support.random_graphs_cli --count 5000 --sanitize`, run in device_tests, does the same for longer.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from support.graphs import KINDS, GraphCase, graph_cases, random_graph, random_graphs
from support.host_compiler import HostCompiler
from support.random_graphs_cli import authority, check_cases, check_graphs

BATCHES, BATCH = 10, 50


@pytest.mark.parametrize("kind", list(KINDS))
def test_generator_makes_telling_graphs(kind: str) -> None:
    """All load in their authority, and few have an output that is one value throughout."""
    constant = 0
    for seed in range(40):
        case = random_graph(kind, seed)
        output = authority(case).run(case.inputs)[0]
        constant += output.size > 2 and np.unique(output).size == 1
    assert constant <= 16


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_graphs_equal_the_reference(batch: int, compiler: HostCompiler, prebuilt: list[Path]) -> None:
    wanted = random_graphs(BATCHES * BATCH, seed=0)[batch * BATCH : (batch + 1) * BATCH]
    result = list(check_graphs(wanted, compiler, prebuilt))[-1]
    assert result.failures == []
    assert not result.refused
    assert sum(result.compared.values()) == BATCH


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(case=graph_cases())
def test_any_graph_equals_the_reference(case: GraphCase, compiler: HostCompiler, prebuilt: list[Path]) -> None:
    """One at a time, so that a failure shrinks to the smallest shapes that show it."""
    assert check_cases([(case.description, 1, case)], compiler, prebuilt).failures == []
