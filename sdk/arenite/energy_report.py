# SPDX-License-Identifier: Apache-2.0
"""`arenite energy`: what an inference costs, whole and stage by stage.

Few meters are fast enough to see one stage of one inference. So after the whole pipeline each stage is repeated alone,
for as long as the meter needs, and its energy is that of its own block. A stage alone finds its data in the caches more
often than in the pipeline: the sum of stages may differ from the total, and both are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from arenite.energy import Energy, EnergyModel
from arenite.engines import EngineReport
from arenite.errors import UsageError
from arenite.labels import top
from arenite.machine import Machine, machine
from arenite.metering import Recording, Section
from arenite.meters import start_best, start_named
from arenite.model_cost import mac_count, moved_bytes
from arenite.preprocess import PictureSource, read_picture
from arenite.progress import Progress
from arenite.session import Session
from arenite.tflite_graph import read_graph

__all__ = ["EnergyReport", "StageEnergy", "declared_energy", "measure_energy", "open_recording"]

_HELD = 8


@dataclass(frozen=True)
class StageEnergy:
    """One stage.

    Attributes:
        stage: read, decode, resize, invoke, post; or total, the pipeline as it is used.
        time_ms: Mean wall time.
        energy: Of one inference's stage.
        share: Part of the sum of all stages' energies, 0..1; None when one of them is unknown, and for `total`.
    """

    stage: str
    time_ms: float
    energy: Energy
    share: float | None


@dataclass(frozen=True)
class EnergyReport:
    """Energy of a model on this machine.

    Attributes:
        meter: The meter's name; None without one.
        stages: Each stage, `total` last; without pictures `total` alone.
        energy: Of one inference, as in `total`.
        battery_wh: What was asked for.
        battery_inferences: How many inferences it gives; None when not known.
        against: The same by the other engine or delegate that was asked for, measured right after with the same meter.
    """

    model_sha256: str
    engine: EngineReport
    machine: Machine
    meter: str | None
    stages: tuple[StageEnergy, ...]
    energy: Energy
    battery_wh: float | None
    battery_inferences: float | None
    against: EnergyReport | None = None


def open_recording(source: str | None, idle_s: float | None = None, fallback: Energy | None = None) -> Recording:
    """See `arenite.meter`."""
    start = start_best if source is None else lambda: start_named(source)
    return Recording(start, idle_s=idle_s, strict=source is not None, fallback=fallback)


def measure_energy(
    session: Session,
    *,
    pictures: Sequence[PictureSource] = (),
    source: str | None = None,
    model: EnergyModel | None = None,
    duration_s: float = 10.0,
    battery_wh: float | None = None,
    against: Session | None = None,
    progress: Progress | None = None,
) -> EnergyReport:
    """Measure a session's energy, or that of two sessions side by side.

    Args:
        session: What to measure.
        pictures: Classified in turn; without them the model alone runs on what is in its input.
        source: The meter, as in `arenite.meter`; None takes the best of this machine.
        model: Declared costs, for a machine without a meter.
        duration_s: Of all measurements together, idle apart.
        battery_wh: Capacity of a battery, in watt-hours.
        against: A session of the same model elsewhere (another engine, another delegate): measured next, as long, with
            the same meter.
        progress: Where to report.

    Raises:
        UsageError: A number makes no sense, or there is no such meter.
        MeterError: The named meter cannot measure.
    """
    if not 0 < duration_s <= 3600 or (battery_wh is not None and not 0 < battery_wh < 1e9):
        raise UsageError("the duration must be within 0..3600 s and the battery above 0 Wh")
    first, *others = (
        _measured(each, pictures, source, model, duration_s, battery_wh, progress or Progress())
        for each in (session, against)
        if each is not None
    )
    return replace(first, against=others[0]) if others else first


def _measured(
    session: Session,
    pictures: Sequence[PictureSource],
    source: str | None,
    model: EnergyModel | None,
    duration_s: float,
    battery_wh: float | None,
    progress: Progress,
) -> EnergyReport:
    modelled = None if model is None else declared_energy(session, model, with_stages=False)
    loops = _loops(session, pictures)
    for query in loops.values():
        query(0)
    with progress.step("energy", len(loops)) as step, open_recording(source) as recording:
        sections = {}
        for name, query in loops.items():
            # The pipeline gets half of the time, the stages share the rest.
            part = 1.0 if len(loops) == 1 else 0.5 if name == "total" else 0.5 / (len(loops) - 1)
            with recording.section() as sections[name]:
                _repeat(query, sections[name], part * duration_s)
            step.advance()
    return _report(session, recording, sections, modelled, battery_wh, bool(pictures))


def _repeat(query: Callable[[int], object], section: Section, duration_s: float) -> None:
    while time.perf_counter() - section.start_s < duration_s:
        query(len(section.ticks_s))
        section.tick()


def _loops(session: Session, pictures: Sequence[PictureSource]) -> dict[str, Callable[[int], object]]:
    """What to repeat for each stage, and for the whole."""
    if not pictures:
        return {"invoke": lambda _: session.run()}
    preprocessor, contract = session.preprocessor, session.contract
    assert contract is not None
    spec = contract.outputs[0]
    # Decoded pictures are large: a few stand for the others.
    contents = [read_picture(picture) for picture in pictures[:_HELD]]
    images = [preprocessor.decode(content) for content in contents]
    count, held = len(pictures), len(contents)
    return {
        "read": lambda i: read_picture(pictures[i % count]),
        "decode": lambda i: preprocessor.decode(contents[i % held]),
        "resize": lambda i: preprocessor.fit_into(images[i % held], session.input),
        "invoke": lambda _: session.run(),
        "post": lambda _: top(session.outputs[0].copy(), spec),
        "total": lambda i: session.classify(pictures[i % count]),
    }


def declared_energy(session: Session, model: EnergyModel, *, with_stages: bool) -> Callable[[float], Energy]:
    """Energy by declared costs of one invocation that takes so many seconds; of an inference with its other stages it
    is the least. What the model computes and moves is counted now, and nothing runs.

    Raises:
        UnsupportedOperatorError: An operator's count is not known.
    """
    graph = read_graph(session.path)
    macs, moved = mac_count(graph), moved_bytes(graph)

    def energy_of(invoke_s: float) -> Energy:
        energy = model.energy(macs, moved, invoke_s)
        if not with_stages:
            return energy
        source = f"{energy.source}; the invocation alone, not the picture's other stages"
        return replace(energy, lower_bound=True, source=source)

    return energy_of


def _report(
    session: Session,
    recording: Recording,
    sections: dict[str, Section],
    modelled: Callable[[float], Energy] | None,
    battery_wh: float | None,
    has_pictures: bool,
) -> EnergyReport:
    energies = {name: section.per_inference() for name, section in sections.items()}
    if recording.source is None and modelled is not None:
        energies["invoke"] = modelled(_mean_s(sections["invoke"]))
    if not has_pictures:
        sections, energies = {"total": sections["invoke"]}, {"total": energies["invoke"]}
    parts = [energy.energy_mj for name, energy in energies.items() if name != "total"]
    sum_mj = None if None in parts else sum(part or 0.0 for part in parts)
    stages = []
    for name, section in sections.items():
        share = None
        if sum_mj and name != "total":
            share = (energies[name].energy_mj or 0.0) / sum_mj
        stages.append(StageEnergy(name, 1e3 * _mean_s(section), energies[name], share))
    energy = energies["total"]
    return EnergyReport(
        model_sha256=session.model_sha256,
        engine=session.report,
        machine=machine(),
        meter=recording.source,
        stages=tuple(stages),
        energy=energy,
        battery_wh=battery_wh,
        battery_inferences=None if battery_wh is None else energy.inferences_from(battery_wh),
    )


def _mean_s(section: Section) -> float:
    """Mean time of an inference in a section that is over."""
    end_s = section.start_s if section.end_s is None else section.end_s
    return (end_s - section.start_s) / len(section.ticks_s)
