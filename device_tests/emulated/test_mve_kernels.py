# SPDX-License-Identifier: Apache-2.0
"""The kernels for Helium on an emulated Cortex-M55, byte for byte TFLM's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from arenite.tflite_graph import parse_graph
from arenite_codegen.boards import load_board
from arenite_codegen.legalise import legalise
from arenite_codegen.variants import VARIANTS, choose_for
from support.graph_batch import prebuild
from support.graphs import random_graph
from support.mps3 import BOARD, Mps3Compiler, find_mps3_compiler
from support.random_graphs_cli import check_graphs

KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "PAD_CONV", "CONV_CHAIN", "RELU6", "WIDE_CHAIN")


@pytest.fixture(scope="module")
def helium() -> Mps3Compiler:
    """The compiler for the board, or a skip."""
    found = find_mps3_compiler()
    if found is None:
        pytest.skip("arm-none-eabi-gcc with newlib and qemu-system-arm are not all installed")
    return found


@pytest.fixture(scope="module")
def built_for_helium(helium: Mps3Compiler) -> Sequence[Path]:
    """Kernels, executor and runner, compiled once."""
    return prebuild(helium)


def test_random_graphs_equal_tflm(helium: Mps3Compiler, built_for_helium: Sequence[Path]) -> None:
    """Also with each row in an allocation of its own, at offsets of 0 to 15, between guards."""
    wanted = [(kind, 800 + seed) for seed in range(6) for kind in KINDS] + [("MOBILE_BLOCKS", 800)]
    result = list(check_graphs(wanted, helium, built_for_helium, isa="mve"))[-1]
    assert result.failures == []
    assert sum(result.compared.values()) == len(wanted)


def test_the_report_names_what_refuses_a_layer() -> None:
    """The predicate that dispatches is the one that the report reads; most layers get the kernels for Helium."""
    choose, names = choose_for(load_board(BOARD)), Counter[str]()
    for kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "FULLY_CONNECTED"):
        for seed in range(40):
            for layer in legalise(parse_graph(random_graph(kind, seed).model_bytes)).layers:
                if not any(variant.name == "mve" for variant in VARIANTS.get(layer.kernel, ())):
                    continue
                choice = choose(layer)
                names[choice.variant.name] += 1
                mve = next(variant for variant in VARIANTS[layer.kernel] if variant.name == "mve")
                assert choice.passed_over.get("mve", "") == mve.refusal(layer.parameters)
    assert names["mve"] > 0.6 * names.total()
    assert names["mve"] < names.total()
