# SPDX-License-Identifier: Apache-2.0
"""Plans over several memories: every row is there when it is needed, capacities hold, the fast memory is well used."""

from __future__ import annotations

import itertools
import random

import pytest

from arenite_codegen.caller_memory import MOST_CALLER_REGIONS, caller_memory, keep_inputs
from arenite_codegen.network import Network
from arenite_codegen.packing import pack
from arenite_codegen.placement import Block, make_blocks
from arenite_codegen.plan import Plan, make_plan
from arenite_codegen.regions import ANYWHERE, Memory
from arenite_codegen.row_placement import row_unit
from arenite_codegen.schedule import Schedule, make_schedule
from arenite_codegen.traffic import block_traffic, value_traffic
from support.plan_checker import replay
from support.random_networks import random_network

BLOCKS, BLOCK = 10, 30


def random_memories(seed: int, arena_bytes: int) -> list[Memory]:
    """One to four memories; together they have from half of an arena to three times as much."""
    chance = random.Random(seed)
    count = chance.randint(1, 4)
    whole = arena_bytes * chance.uniform(0.5, 3)
    parts = [chance.random() + 0.05 for _ in range(count)]
    return [
        Memory(f"m{i}", int(whole * part / sum(parts)), chance.choice((1, 1, 2, 5, 40))) for i, part in enumerate(parts)
    ]


def random_case(seed: int) -> tuple[Network, Schedule]:
    """A random network, one in four with inputs or outputs in the caller's memory, one in four keeps its inputs."""
    network, chance = random_network(seed), random.Random(seed)
    if chance.random() < 0.25 and len(network.inputs) + len(network.outputs) <= MOST_CALLER_REGIONS:
        network = caller_memory(network, inputs=chance.random() < 0.7, outputs=chance.random() < 0.5)
    if chance.random() < 0.25:
        network = keep_inputs(network)
    return network, make_schedule(network)


def fits(plan: Plan) -> bool:
    return all(part.bytes <= part.capacity_bytes for part in plan.arena)


def cost(plan: Plan) -> int:
    return sum(part.traffic_bytes * part.word_cycles for part in plan.arena)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_networks_keep_every_row_in_every_region(block: int) -> None:
    spread = 0
    for seed in range(block * BLOCK, block * BLOCK + BLOCK):
        network, schedule = random_case(seed)
        alone = make_plan(network, schedule)
        plan = make_plan(network, schedule, random_memories(seed, alone.arena_bytes))
        try:
            traffic = replay(network, schedule, plan)
        except AssertionError as error:
            raise AssertionError(f"random_case({seed}): {error}") from error
        assert traffic == [region.traffic_bytes for region in plan.regions], seed
        assert plan.arena_bytes >= plan.lower_bound_bytes == alone.lower_bound_bytes or len(plan.arena) > 1
        names = [part.name for part in plan.arena]
        assert len(set(names)) == len(names)
        assert [part.word_cycles for part in plan.arena] == sorted(part.word_cycles for part in plan.arena)
        # At most one memory is too small: what fits nowhere goes to one place.
        assert sum(part.bytes > part.capacity_bytes for part in plan.arena) <= 1
        spread += len(plan.arena) > 1 and fits(plan)
    assert spread >= BLOCK // 5


@pytest.mark.parametrize("seed", range(30))
def test_a_fast_memory_that_holds_everything_gets_everything(seed: int) -> None:
    network, schedule = random_case(seed)
    alone = make_plan(network, schedule)
    fast, slow = Memory("fast", alone.arena_bytes, 2), Memory("slow", 1 << 20, 3)
    plan = make_plan(network, schedule, (slow, fast))
    assert [part.name for part in plan.arena] == ["fast"]
    assert (plan.values, plan.rows, plan.scratch, plan.counters) == (
        alone.values,
        alone.rows,
        alone.scratch,
        alone.counters,
    )
    # The slow one is not preferred because it is whole.
    smaller = make_plan(network, schedule, (slow, Memory("fast", alone.lower_bound_bytes - 1, 2)))
    assert smaller.arena[0].name == "fast" or len(smaller.arena) == 1


def best_cost(network: Network, schedule: Schedule, memories: list[Memory]) -> int:
    """The least cost of all ways to share the blocks between two memories, each packed as the planner packs."""
    blocks = make_blocks(network, schedule)
    traffic = block_traffic(network, schedule, blocks, value_traffic(network, schedule))
    best = 1 << 62
    for choice in itertools.product((0, 1), repeat=len(blocks)):
        price = sum(t * memories[m].word_cycles for t, m in zip(traffic, choice, strict=True))
        if price < best and all(
            _packs(network, schedule, [b for b, m in zip(blocks, choice, strict=True) if m == side], memories[side])
            for side in set(choice)
        ):
            best = price
    return best


def _packs(network: Network, schedule: Schedule, blocks: list[Block], memory: Memory) -> bool:
    unit = row_unit(memory.capacity_bytes)
    return pack(network, schedule, blocks, memory.capacity_bytes, unit).bytes <= memory.capacity_bytes


def test_the_choice_is_near_the_best_of_all() -> None:
    """Against every assignment of small networks to a fast memory of half the arena and a slow one."""
    ratios = []
    for seed in range(260):
        network, schedule = random_case(seed)
        if not 3 <= len(make_blocks(network, schedule)) <= 8:
            continue
        size = make_plan(network, schedule).arena_bytes
        memories = [Memory("fast", size // 2 // 4 * 4, 1), Memory("slow", 4 * size, 10)]
        plan = make_plan(network, schedule, memories)
        assert fits(plan)
        ratios.append(cost(plan) / best_cost(network, schedule, memories))
    assert len(ratios) >= 40
    assert min(ratios) >= 1
    assert sum(ratios) / len(ratios) < 1.02
    assert max(ratios) < 1.5


def test_planning_is_deterministic() -> None:
    network, schedule = random_case(11)
    memories = [Memory("a", 200, 1), Memory("b", 1000, 3), ANYWHERE]
    plans = [make_plan(network, schedule, memories) for _ in range(2)]
    assert plans[0].values == plans[1].values
    assert plans[0].regions == plans[1].regions
