# SPDX-License-Identifier: Apache-2.0
"""The kernels for Helium on an emulated Cortex-M55, byte for byte TFLM's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from arenite.tflite_graph import parse_graph
from arenite_codegen.boards import load_board
from arenite_codegen.legalise import legalise
from arenite_codegen.variants import VARIANTS, choose_for
from support.choices import Choices
from support.graph_batch import prebuild
from support.graph_case import GraphCase, Window
from support.graphs import random_graph
from support.mps3 import BOARD, Mps3Compiler, find_mps3_compiler
from support.random_graphs_cli import check_cases, check_graphs
from support.spatial_graphs import conv_2d_of, depthwise_conv_2d_of, padded_rows_conv_of

KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "PAD_CONV", "CONV_CHAIN", "RELU6", "WIDE_CHAIN")
# Bytes of a window on both sides of every step of the kernels: registers hold 16 to 128, turns take 16, 32 or 48.
BYTES = (1, 15, 16, 17, 32, 33, 47, 48, 64, 65, 95, 96, 112, 113, 128, 129, 144, 160, 257)
POINT = Window((1, 1), (1, 1), (1, 1), "SAME")
# Rows of a window as runs of their own, of one turn, of several, of a part; copied; and tap by tap.
WINDOWS = [
    ((1, 4, 7, in_c), Window((3, 3), (stride, stride), (1, 1), "SAME"), 17)
    for in_c in (3, 15, 16, 17, 32, 43, 48, 64)
    for stride in (1, 2)
]
WINDOWS += [
    ((1, 6, 6, 16), Window((3, 3), (1, 1), (2, 2), "SAME"), 18),
    ((1, 6, 6, 64), Window((3, 3), (1, 1), (2, 2), "SAME"), 18),
    ((1, 6, 8, 24), Window((5, 5), (1, 1), (1, 1), "SAME"), 20),
    ((1, 6, 8, 33), Window((5, 5), (1, 1), (1, 1), "SAME"), 3),
    ((1, 9, 2, 48), Window((9, 1), (1, 1), (1, 1), "SAME"), 16),
    ((1, 1, 9, 40), Window((1, 4), (1, 1), (1, 1), "SAME"), 33),
]


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


def test_every_way_to_multiply_equals_tflm(helium: Mps3Compiler, built_for_helium: Sequence[Path]) -> None:
    """Windows of every number of steps, in tiles of one, two and three pixels, whole blocks of channels and parts."""
    points = [
        ((1, 2, 1 + (index + channels) % 5, in_c), POINT, channels)
        for index, in_c in enumerate(BYTES)
        for channels in (16, 35 + index % 2)
    ]
    shapes = [*points, *WINDOWS]
    cases = [(f"shape {index}", index, conv_2d_of(Choices.seeded(index), *shape)) for index, shape in enumerate(shapes)]
    result = check_cases(cases, helium, built_for_helium, isa="mve")
    assert result.failures == []
    assert sum(result.compared.values()) == len(shapes)


def _chosen(name: str, make: Callable[[Choices], GraphCase], modes: int = 2) -> dict[int, GraphCase]:
    """By mode of requantisation, graphs whose first layer gets a variant."""
    choose, found = choose_for(load_board(BOARD)), dict[int, GraphCase]()
    for seed in range(200):
        case = make(Choices.seeded(seed))
        layer = legalise(parse_graph(case.model_bytes)).layers[0]
        choice = choose(layer)
        if choice.variant.name == name:
            found.setdefault(int(choice.pack(layer)["per_channel"]), case)
        if len(found) == modes:
            return found
    raise AssertionError(f"no 200 graphs have {modes} modes of {name}")


def _check(cases: Iterable[GraphCase], helium: Mps3Compiler, prebuilt: Sequence[Path]) -> None:
    named = [(f"case {index}", index, case) for index, case in enumerate(cases)]
    result = check_cases(named, helium, prebuilt, isa="mve")
    assert result.failures == []
    assert sum(result.compared.values()) == len(named) > 0


def test_single_pixels_equal_tflm(helium: Mps3Compiler, built_for_helium: Sequence[Path]) -> None:
    """All numbers of steps of 16 channels, whole fours of output channels and parts; rows that lie in pads."""
    cases = [
        case
        for index, in_c in enumerate(count for count in BYTES if count <= 128)
        for channels in (1 + index % 3, 4 + index, 33)
        for case in _chosen(
            "mve-pixel", partial(conv_2d_of, shape=(1, 3, 1, in_c), window=POINT, channels=channels)
        ).values()
    ]
    padded = _chosen("mve-pixel", partial(padded_rows_conv_of, shape=(1, 2, 1, 21), rows=2, channels=7))
    _check([*cases, *padded.values()], helium, built_for_helium)


def test_columns_equal_tflm(helium: Mps3Compiler, built_for_helium: Sequence[Path]) -> None:
    """All numbers of taps, whole blocks of channels and parts, strides and dilations, rows that lie in pads."""
    steps = (((1, 1), (1, 1)), ((2, 1), (1, 1)), ((1, 1), (2, 1)))
    cases: list[GraphCase] = []
    for index, (taps, channels) in enumerate(product(range(2, 11), (16, 17, 31, 40))):
        stride, dilation = steps[index % 3]
        window = Window((taps, 1), stride, dilation, "SAME" if index % 2 else "VALID")
        shape = (1, 2 * taps, 1, 257 if index % 9 == 0 else channels)
        cases += _chosen("mve-column", partial(depthwise_conv_2d_of, shape=shape, window=window), modes=1).values()
    _check(cases, helium, built_for_helium)


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
    helium = sum(count for name, count in names.items() if name.startswith("mve"))
    assert 0.6 * names.total() < helium < names.total()
    assert {"mve", "mve-pixel"} <= names.keys()
