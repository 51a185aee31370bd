# SPDX-License-Identifier: Apache-2.0
"""From a network to its plan: which chains of convolutions run in strips, then schedule and placement.

Strips lower the arena at the moment when most bytes are alive, often at the price of multiply-accumulates that run
twice. Chains are taken greedily: of those that touch the dearest moment the one that flattens the peaks most for each
repeated multiply-accumulate, until nothing helps or the allowance is used up. Chains that turn out to be of no use are
then given back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from arenite_codegen.network import Network
from arenite_codegen.packing import FLASH_PER_RAM
from arenite_codegen.plan import Plan, make_plan
from arenite_codegen.regions import ANYWHERE, Memory
from arenite_codegen.schedule import Schedule, SegmentCosts, Times, live_bytes, make_schedule, schedule_with
from arenite_codegen.strips import Chain, chains_of, in_strips, out_width, repeated_macs
from arenite_codegen.traffic import steps_run

__all__ = ["Planned", "mac_factor", "plan_network"]

# Flash of the kernel that runs chains, and of a chain's tables: what strips must save, in RAM's worth.
KERNEL_BYTES = 1200
CHAIN_BYTES = 150
# How much more the dearest moments count than the others.
_POWER = 24
_FEWEST_COLUMNS = 2
# Of the search's states that are placed.
_KEPT_STATES = 3

Widths = Mapping[Chain, int]


@dataclass(frozen=True)
class Planned:
    """A network as it will run, with chains merged, its order of rows, and where everything lies."""

    network: Network
    schedule: Schedule
    plan: Plan


def plan_network(
    network: Network, max_mac_factor: float = 1.0, memories: Sequence[Memory] = (ANYWHERE,), guards: bool = False
) -> Planned:
    """Plan the smallest arena that multiply-accumulates up to `max_mac_factor` times the network's allow.

    Strips must save more RAM, in flash's worth, than their kernel and tables take.
    """
    costs: SegmentCosts = {}
    schedule = make_schedule(network, costs)
    divided = [
        Planned(state.network, state.schedule, make_plan(state.network, state.schedule, memories, guards))
        for state in _Search(network, schedule, costs, max_mac_factor).found()
    ]
    least = (0, FLASH_PER_RAM * schedule.live_bytes)
    if divided and min(map(_price, divided)) < least:
        return min(divided, key=_price)
    whole = Planned(network, schedule, make_plan(network, schedule, memories, guards))
    return min((whole, *divided), key=_price)


def _price(planned: Planned) -> tuple[int, int]:
    """Bytes for which there is no room; then the flash that a plan takes, RAM included at its worth."""
    missing = sum(max(0, part.bytes - part.capacity_bytes) for part in planned.plan.arena)
    chains = sum(1 for layer in planned.network.layers if layer.stages)
    flash = planned.plan.table_bytes + CHAIN_BYTES * chains + (KERNEL_BYTES if chains else 0)
    return missing, FLASH_PER_RAM * planned.plan.arena_bytes + flash


def mac_factor(network: Network, schedule: Schedule) -> float:
    """MACs that the schedule runs, over those of the network; counted step by step."""
    steps = steps_run(schedule)
    run = sum((layer.macs + layer.repeated_macs) / layer.steps * steps[layer.index] for layer in network.layers)
    once = sum(layer.macs for layer in network.layers)
    return run / once if once else 1.0


@dataclass(frozen=True)
class _State:
    """Chains taken so far, the schedule that they give, and the bytes alive at each half step."""

    widths: Widths
    network: Network
    schedule: Schedule
    alive: Times


class _Search:
    def __init__(self, network: Network, schedule: Schedule, costs: SegmentCosts, max_mac_factor: float) -> None:
        self._network, self._first, self._costs = network, schedule, costs
        self._allowance = int((max_mac_factor - 1.0) * sum(layer.macs for layer in network.layers))
        self._repeats = {
            (chain, width): repeated_macs(network, chain, width)
            for chain in chains_of(network)
            for width in self._widths_of(chain)
        }
        self._options: dict[Chain, list[int]] = {}
        for (chain, width), repeated in self._repeats.items():
            if repeated <= self._allowance:
                self._options.setdefault(chain, []).append(width)

    def found(self) -> list[_State]:
        """The last and lowest states of the search: what can be placed best is not always the lowest."""
        states = [_state({}, self._network, self._first)]
        while (better := self._improved(states[-1])) is not None:
            states.append(better)
        kept = [self._without_useless(state) for state in states[1:][-_KEPT_STATES:]]
        # What is left of two states may be the same, or nothing: then it is the whole network's.
        return list({frozenset(state.widths.items()): state for state in kept if state.widths}.values())

    def _widths_of(self, chain: Chain) -> Iterator[int]:
        out_w = out_width(self._network.layers[chain[-1]])
        parts = 1
        while parts == 1 or -(-out_w // parts) >= _FEWEST_COLUMNS:
            yield -(-out_w // parts)
            parts *= 2

    def _roughness(self, state: _State) -> float:
        """How high the peaks are, the highest counting most."""
        return float(np.sum((state.alive / max(1, self._first.live_bytes)) ** _POWER))

    def _improved(self, state: _State) -> _State | None:
        at_peak = self._values_at_peak(state)
        best, best_gain, roughness = None, 0.0, self._roughness(state)
        for chain in self._options:
            inner = {self._network.layers[i].output for i in chain[:-1]}
            if inner & at_peak:
                for candidate in self._with(state, chain):
                    repeated = self._total(candidate.widths) - self._total(state.widths)
                    gain = (roughness - self._roughness(candidate)) / max(repeated, 1)
                    if candidate.schedule.live_bytes <= state.schedule.live_bytes and gain > best_gain:
                        best, best_gain = candidate, gain
        if best is None:
            return None
        schedule = make_schedule(best.network, self._costs)
        is_lower = schedule.live_bytes < best.schedule.live_bytes
        return _state(best.widths, best.network, schedule) if is_lower else best

    def _with(self, state: _State, chain: Chain) -> Iterator[_State]:
        """The state with one more chain, at every width that the allowance pays for."""
        others = {c: w for c, w in state.widths.items() if not set(c) & set(chain)}
        schedule = None
        for width in self._options[chain]:
            widths = {**others, chain: width}
            if state.widths.get(chain) == width or self._total(widths) > self._allowance:
                continue
            network = in_strips(self._network, widths)
            if schedule is None:
                made = {layer.output for layer in network.layers}
                schedule = schedule_with(network, [v for v in state.schedule.materialised if v in made])
            yield _state(widths, network, schedule)

    def _total(self, widths: Widths) -> int:
        return sum(self._repeats[chain, width] for chain, width in widths.items())

    def _values_at_peak(self, state: _State) -> set[int]:
        """What is alive at the dearest moment, values inside running chains included."""
        timeline = state.schedule.timeline
        moment = int(state.alive.argmax()) - 1
        found = {v for v, born in timeline.born.items() if np.any((born <= moment) & (timeline.died[v] >= moment))}
        for index, (first, last) in timeline.scratch.items():
            if np.any((first <= moment) & (last >= moment)):
                found.update(stage.layer.output for stage in state.network.layers[index].stages[:-1])
        return found

    def _without_useless(self, state: _State) -> _State:
        """Give back chains, dearest first, that do not lower the peak."""
        for chain in sorted(state.widths, key=lambda c: -self._repeats[c, state.widths[c]]):
            widths = {c: w for c, w in state.widths.items() if c != chain}
            network = in_strips(self._network, widths)
            without = _state(widths, network, schedule_with(network, state.schedule.materialised))
            if without.schedule.live_bytes <= state.schedule.live_bytes:
                state = without
        return state


def _state(widths: Widths, network: Network, schedule: Schedule) -> _State:
    # The order of rows does not depend on the widths of strips, only the size of the scratch does.
    alive = live_bytes(network, schedule.timeline)
    return _State(widths, network, replace(schedule, live_bytes=int(alive.max())), alive)
