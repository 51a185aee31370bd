# SPDX-License-Identifier: Apache-2.0
"""Chains of convolutions in strips: what they repeat is counted exactly, and the planner keeps to its allowance."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from arenite.errors import UsageError
from arenite.host_model import HostModel
from arenite.reference import reference_outputs
from arenite.tflite_graph import parse_graph, read_graph
from arenite_codegen import bundle
from arenite_codegen.build import build
from arenite_codegen.legalise import legalise
from arenite_codegen.network import Layer, Network
from arenite_codegen.plan import make_plan
from arenite_codegen.planning import Planned, mac_factor, plan_network
from arenite_codegen.row_feed import feed_by_rows
from arenite_codegen.schedule import make_schedule
from arenite_codegen.strips import chains_of, in_strips
from support.emission import random_strips
from support.graphs import random_graph
from support.plan_checker import replay

MOBILENET = "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq.tflite"


def _chain_network(seed: int) -> Network:
    return legalise(parse_graph(random_graph("CONV_CHAIN", seed).model_bytes))


def _pixels(layer: Layer, wanted: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Input pixels that output pixels depend on, by the definition of a convolution."""
    read, p = layer.reads[0], layer.parameters
    found = set()
    for y, x in wanted:
        for ky, kx in product(range(p["kernel_h"]), range(p["kernel_w"])):
            row = y * read.stride - read.pad_top + ky * read.dilation
            column = x * p["stride_w"] - p["pad_left"] + kx * p["dilation_w"]
            if 0 <= row < read.rows and 0 <= column < p["in_w"]:
                found.add((row, column))
    return found


def _reads_all_rows(layer: Layer) -> bool:
    read = layer.reads[0]
    return (layer.steps - 1) * read.stride - read.pad_top + layer.parameters["kernel_h"] >= read.rows


def _least_macs(layers: list[Layer], width: int) -> int:
    """MACs when each strip of each output row makes exactly the pixels that it depends on."""
    total, last = 0, layers[-1]
    for row, first in product(range(last.steps), range(0, last.parameters["out_w"], width)):
        wanted = {(row, x) for x in range(first, min(first + width, last.parameters["out_w"]))}
        for layer in reversed(layers):
            total += len(wanted) * (layer.macs // (layer.steps * layer.parameters["out_w"]))
            wanted = _pixels(layer, wanted)
    return total


def test_repeated_macs_are_those_of_the_pixels_that_strips_depend_on() -> None:
    chance, seen = random.Random(0), 0
    for seed in range(60):
        network = _chain_network(seed)
        for chain in chains_of(network):
            layers = [network.layers[i] for i in chain]
            width = chance.randint(1, layers[-1].parameters["out_w"])
            merged = next(layer for layer in in_strips(network, {chain: width}).layers if layer.stages)
            run, least = merged.macs + merged.repeated_macs, _least_macs(layers, width)
            # Strips are rectangles: columns in the gaps of a dilated or sparse window are made too. Rows that no window
            # reaches are counted as the model's.
            is_dense = all(la.parameters["dilation_w"] == 1 for la in layers[1:]) and all(
                la.parameters["kernel_w"] >= la.parameters["stride_w"] and _reads_all_rows(la) for la in layers[1:]
            )
            assert run == least if is_dense else run >= least
            seen += is_dense
    assert seen > 60


@pytest.mark.parametrize("row_fed", [False, True])
def test_plans_with_strips_keep_every_row_that_is_needed(row_fed: bool) -> None:
    for seed in range(80):
        network = _chain_network(seed)
        if row_fed:
            network = feed_by_rows(network, "random")
        merged = in_strips(network, random_strips(network, random.Random(seed)))
        schedule = make_schedule(merged)
        replay(merged, schedule, make_plan(merged, schedule))


def test_a_1x1_convolution_behind_another_repeats_nothing() -> None:
    seen = 0
    for seed in range(40):
        network = _chain_network(seed)
        for chain in chains_of(network):
            later = [network.layers[i] for i in chain[1:]]
            if all(la.parameters["kernel_w"] == la.parameters["kernel_h"] == 1 for la in later):
                merged = in_strips(network, {chain: 1})
                seen += 1
                # With a stride it even leaves out what nobody reads.
                assert sum(layer.repeated_macs for layer in merged.layers) <= 0
    assert seen > 10


def _planned(network: Network, factor: float) -> Planned:
    planned = plan_network(network, factor)
    replay(planned.network, planned.schedule, planned.plan)
    assert mac_factor(planned.network, planned.schedule) <= factor
    return planned


@pytest.mark.reference
def test_mobilenet_v2_gets_smaller_the_more_may_be_repeated(shared_data: Path) -> None:
    network = legalise(read_graph(shared_data / MOBILENET))
    # 172 KB at x1.10 is the lowest published plan.
    assert _planned(network, 1.0).plan.arena_bytes <= 190_000
    assert _planned(network, 1.1).plan.arena_bytes <= 166_000
    fed = feed_by_rows(network, "MobileNetV2")
    assert _planned(fed, 1.4).plan.arena_bytes <= 51_200 < _planned(fed, 1.0).plan.arena_bytes


@pytest.mark.parametrize("row_fed", [False, True])
def test_bundles_with_strips_equal_the_reference(tmp_path: Path, row_fed: bool) -> None:
    """An inverted residual on a wide picture, as the first blocks of mobile networks are."""
    case, reports = random_graph("MOBILE_BLOCKS", 0), {}
    model = tmp_path / "model.tflite"
    model.write_bytes(case.model_bytes)
    expected = reference_outputs(case.model_bytes, [list(vector) for vector in case.vectors])
    for factor in (1.0, 3.0):
        folder = tmp_path / f"b{factor}"
        reports[factor] = bundle(model, "host", folder, row_fed=row_fed, max_mac_factor=factor, vectors=0)
        compiled = HostModel(build(folder).elf)
        for vector, outputs in zip(case.vectors, expected, strict=True):
            assert compiled.run(list(vector))[0].tobytes() == outputs[0].tobytes()
    # A row at the bottom that nobody reads is not made.
    assert reports[1.0].mac_factor <= 1.0 < reports[3.0].mac_factor <= 3.0
    assert reports[3.0].arena_bytes < 0.9 * reports[1.0].arena_bytes
    assert {row.kernel for row in reports[3.0].operators} >= {"conv_2d_s8", "depthwise_conv_2d_s8"}
    assert any("columns at a time" in row.note for row in reports[3.0].operators)


@pytest.mark.parametrize("factor", [0.99, 0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_below_one_is_refused(tmp_path: Path, factor: float) -> None:
    with pytest.raises(UsageError, match=r"max_mac_factor is .* at least 1"):
        bundle(tmp_path / "model.tflite", "host", tmp_path / "b", max_mac_factor=factor)
