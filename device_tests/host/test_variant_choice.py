# SPDX-License-Identifier: Apache-2.0
"""One predicate decides which variant of a kernel a layer gets, and what memory it has: all variants, many shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from arenite.tflite_graph import parse_graph
from arenite_codegen.boards import load_board
from arenite_codegen.legalise import legalise
from arenite_codegen.network import Layer
from arenite_codegen.variants import VARIANTS, choose_for
from support.emission import KERNELS
from support.graphs import random_graph

BOARDS = {"host": "host", "dsp": "qemu-mps2-an386", "mve": "qemu-mps3-an547", "portable": "qemu-riscv32"}
KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "RELU6", "WIDE_CHAIN", "LOG_SOFTMAX")
ALL = [variant for variants in VARIANTS.values() for variant in variants]


@pytest.fixture(scope="module")
def layers() -> list[Layer]:
    """Layers of kernels that have variants."""
    return list(_layers())


def _layers() -> Iterator[Layer]:
    for kind in KINDS:
        for seed in range(40):
            network = legalise(parse_graph(random_graph(kind, 4000 + seed).model_bytes))
            yield from (layer for layer in network.layers if layer.kernel in VARIANTS)


@pytest.mark.parametrize("name", BOARDS)
def test_a_layer_gets_the_first_variant_that_does_not_refuse_it(name: str, layers: list[Layer]) -> None:
    board, got = load_board(BOARDS[name]), Counter[str]()
    choose = choose_for(board)
    for layer in layers:
        choice = choose(layer)
        order = [v for v in VARIANTS[layer.kernel] if v.architecture in (None, board.architecture)]
        before = order[: order.index(choice.variant)]
        has = {v.name: not v.feature or bool(getattr(board.features, v.feature)) for v in before}
        assert list(choice.passed_over) == [v.name for v in before]
        assert choice.variant.refusal(layer.parameters) == ""
        for variant in before:
            if has[variant.name]:
                assert choice.passed_over[variant.name] == variant.refusal(layer.parameters) != ""
        assert choice.pack(layer)
        got[choice.variant.name] += 1
    assert name == "portable" or len(got) > 1
    assert got[name] > 0


def test_no_variant_uses_scratch_and_the_plan_keeps_none(layers: list[Layer]) -> None:
    """What a variant needs besides rows is on its stack, whose bound the report gives: so no choice changes a plan."""
    assert {layer.scratch_bytes for layer in layers} == {0}
    for variant in ALL:
        source = (KERNELS / f"arenite_{variant.function}.c").read_text()
        assert source.count("(void)scratch;") >= 1, variant.function
