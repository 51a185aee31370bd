# SPDX-License-Identifier: Apache-2.0
"""Open a model as a session, each part of it timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from arenite.cold_start import Timeline, lock_memory, pin_to_cpus
from arenite.engines import Engine, EngineOptions, Refusal, invoke, open_engine, refuse
from arenite.errors import UsageError
from arenite.graph import CONTRACT_METADATA, Graph
from arenite.model_file import read_model
from arenite.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from arenite.contract import Contract

__all__ = ["open_session"]


def open_session(
    path: Path | str,
    *,
    engine: str | None,
    threads: int,
    kernels: str,
    delegate: str | None,
    delegate_options: Mapping[str, str] | None,
    contract: Contract | None,
    preprocessing: str,
    mmap: bool,
    lock: bool,
    cpus: Sequence[int] | None,
    warm_up: int,
) -> Session:
    """Open a model; see `arenite.open`."""
    _at_least("threads", threads, 1)
    _at_least("warm_up", warm_up, 0)
    if preprocessing != "exact":
        from arenite.preprocess import check_mode

        check_mode(preprocessing)
    options = EngineOptions(threads, kernels, delegate, dict(delegate_options or {}), mmap)
    timeline = Timeline()
    refusals: list[Refusal] = []
    if cpus is not None:
        # Before the engine, so that its threads are born there.
        refusals += _asked(timeline, "pin", f"CPUs {list(cpus)}", lambda: pin_to_cpus(cpus))
    with timeline.step("read"):
        graph = read_model(path, engine)
        contract = _contract(graph, contract)
    runner = open_engine(engine, graph, options, timeline)
    if lock:
        refusals += _asked(timeline, "lock", "locking in RAM", lock_memory)
    if warm_up:
        _warm_up(runner, graph.path, warm_up, timeline)
    runner.report = replace(runner.report, refusals=(*runner.report.refusals, *refusals))
    return Session(graph, runner, contract, preprocessing, timeline.finish())


def _contract(graph: Graph, given: Contract | None) -> Contract | None:
    if given is None and CONTRACT_METADATA not in graph.metadata:
        return None
    from arenite.contract import checked_contract, contract_of

    return contract_of(graph) if given is None else checked_contract(given, graph)


def _asked(timeline: Timeline, name: str, what: str, ask: Callable[[], str | None]) -> list[Refusal]:
    """Asks the operating system for something; what it refuses is said and does not stop the session."""
    with timeline.step(name) as notes:
        reason = ask()
        if reason is None:
            return []
        notes.append(f"refused: {reason}")
        return [refuse(what, reason, consequence="the session runs without")]


def _at_least(name: str, value: object, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise UsageError(f"{name} must be an integer of at least {low}, not {value!r}")


def _warm_up(engine: Engine, path: str, runs: int, timeline: Timeline) -> None:
    with timeline.step("warm-up") as notes:
        notes.append(f"{runs} runs on zeros")
        for _ in range(runs):
            invoke(engine, path)
        engine.reset()
