# SPDX-License-Identifier: Apache-2.0
"""No row is overwritten while it is needed, no layer runs twice, the arena is as small as promised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arenite.tflite_graph import read_graph
from arenite_codegen.legalise import legalise
from arenite_codegen.network import Network
from arenite_codegen.plan import Place, make_plan
from arenite_codegen.schedule import make_schedule
from support.plan_checker import replay
from support.random_networks import random_network

# Arena in bytes that each model must not exceed.
REFERENCE_MODELS = {
    "mlperf_tiny/ad01_int8.tflite": 832,
    "mlperf_tiny/kws_ref_model.tflite": 4_608,
    "mlperf_tiny/pretrainedResnet_quant.tflite": 11_776,
    "mlperf_tiny/str_ww_ref_model.tflite": 4_096,
    "mlperf_tiny/vww_96_int8.tflite": 29_696,
    "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq.tflite": 196_608,
    "mobilenet_v2/mobilenet_v2_quantized_1x3x224x224.tflite": 200_704,
    "tflm/hello_world_int8.tflite": 64,
    "tflm/micro_speech_quantized.tflite": 4_352,
}


@pytest.mark.parametrize("block", range(20))
def test_random_networks_keep_every_row_that_is_needed(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        network = random_network(seed)
        schedule = make_schedule(network)
        plan = make_plan(network, schedule)
        try:
            replay(network, schedule, plan)
        except AssertionError as error:
            raise AssertionError(f"random_network({seed}): {error}") from error
        assert plan.lower_bound_bytes <= plan.arena_bytes


@pytest.mark.reference
@pytest.mark.parametrize(("name", "most_bytes"), REFERENCE_MODELS.items())
def test_real_models_are_planned_soundly_and_small(shared_data: Path, name: str, most_bytes: int) -> None:
    network = legalise(read_graph(shared_data / name))
    schedule = make_schedule(network)
    plan = make_plan(network, schedule)
    replay(network, schedule, plan)
    assert plan.lower_bound_bytes <= plan.arena_bytes <= most_bytes


def test_the_checker_sees_a_ring_that_is_one_row_too_small() -> None:
    caught = 0
    for seed in range(40):
        network = random_network(seed)
        schedule = make_schedule(network)
        for value, rows in schedule.ring_rows.items():
            if rows > 1 and network.values[value].role.value == "internal":
                smaller = replace(schedule, ring_rows={**schedule.ring_rows, value: rows - 1})
                caught += _is_refused(network, smaller)
    assert caught > 20


def test_the_checker_sees_two_blocks_that_are_swapped() -> None:
    caught = 0
    for seed in range(40):
        network = random_network(seed)
        schedule = make_schedule(network)
        plan = make_plan(network, schedule)
        moved = replace(plan, values=dict.fromkeys([*plan.values, *plan.rows], Place(0, 0)), rows={})
        try:
            replay(network, schedule, moved)
        except AssertionError:
            caught += 1
    assert caught > 20


def _is_refused(network: Network, schedule: object) -> bool:
    try:
        replay(network, schedule, make_plan(network, schedule))  # type: ignore[arg-type]
    except (AssertionError, ValueError):
        return True
    return False


def test_planning_is_deterministic() -> None:
    network = random_network(7)
    first, second = (make_plan(network, make_schedule(network)) for _ in range(2))
    assert first.values == second.values
    assert first.arena_bytes == second.arena_bytes
