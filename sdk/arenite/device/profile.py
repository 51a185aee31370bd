# SPDX-License-Identifier: Apache-2.0
"""Where an inference on a board spends its time: by layer, with what each layer moves and which kernel runs it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arenite._manifest import read_manifest
from arenite.device.client import Device, RunResult
from arenite.device.emulators import EmulatedBoard
from arenite.device.messages import LayerTrace
from arenite.device.target import read_target
from arenite.device.tracing import run_once, trace_run
from arenite.device.verify import check_board, connect
from arenite.energy import Energy
from arenite.errors import LinkError, UsageError
from arenite.progress import Progress, silent

__all__ = ["LayerProfile", "ProfileReport", "profile"]

_RUN_S = 900.0
_METER_S = 3.0
_MEMORY_BOUND = 0.5  # of a layer's cycles


@dataclass(frozen=True)
class LayerProfile:
    """One layer of an inference.

    Attributes:
        operators: Those of the model file that run in it.
        variants: The kernel variant of each; `passed_over` are faster ones, and why they cannot run it.
        cost: Instructions where the emulator counts them, else the counter's advance; of the whole batch.
        share: Of the sum over all layers.
        per_mac: Cost of a multiply-accumulate; None where it has none.
        touches: Bytes that its kernel is handed and writes, by memory; `weights` are counted once for each row.
        hint: What bounds it, as far as these figures tell; modelled.
    """

    layer: int
    operators: tuple[int, ...]
    kind: str
    output: str
    variants: tuple[str, ...]
    passed_over: Mapping[str, str]
    cost: int
    share: float
    macs: int
    per_mac: float | None
    touches: Mapping[str, int]
    hint: str


@dataclass(frozen=True)
class ProfileReport:
    """An inference of one model of a bundle.

    Attributes:
        unit: `instructions`, `cycles` or `ticks`: what costs are counted in; `counter_hz` is the rate of the last two.
        total: Of one inference that was not traced; what no layer accounts for is the executor's: `executor`.
        energy: Of an inference by an attached meter; None without one.
        emulator: Emulator and version; None on a real board.
    """

    model: str
    board: str
    emulator: str | None
    unit: str
    counter_hz: int
    total: int
    executor: int
    macs: int
    stack_peak_bytes: int | None
    layers: tuple[LayerProfile, ...]
    energy: Energy | None = field(default=None)


def profile(
    bundle_dir: Path,
    on: str = "emulator",
    *,
    model: int = 0,
    meter: str | None = None,
    meter_s: float = _METER_S,
    baud: int | None = None,
    progress: Progress | None = None,
) -> ProfileReport:
    """Runs a model of a built bundle on its first golden input, or on zeros, once plain and once traced.

    Args:
        bundle_dir: A built bundle.
        on: As `verify` takes it.
        model: Place of the model in the bundle.
        meter: A meter of the board's supply, such as `ppk2:/dev/ttyACM1`; the model then runs `meter_s` seconds more.
        baud: Rate of a real port; None takes the board's.

    Raises:
        UsageError: The folder is no built bundle, has no such model, the board has no counter, or a row-fed model is to
            be metered: its rows come over the link, and so would their energy.
        MissingToolError: The emulator or pyserial is not installed.
        LinkError: The board does not answer, or holds another model.
        MeterError: The meter cannot measure.
    """
    bundle_dir = Path(bundle_dir)
    manifest = read_manifest(bundle_dir)
    entry = _entry(manifest, model, meter, bundle_dir)
    with connect(bundle_dir, on, baud) as (device, board):
        check_board(device, manifest)
        device.select(model)
        if device.identity.counter_unit == "none":
            cure = "Bundle for a board with a counter, such as an emulated one: arenite boards"
            raise UsageError(f"the board {device.identity.board} counts nothing", where=str(bundle_dir), cure=cure)
        inputs = _inputs(bundle_dir, entry)
        with (progress or silent()).step(f"profile on {board.name if board else on}", 2) as step:
            plain = run_once(device, inputs, _RUN_S)
            step.advance()
            _, records = trace_run(device, inputs, checksums=False, timeout_s=_RUN_S)
            step.advance()
        energy = None if meter is None else _metered(device, inputs, meter, meter_s)
        return _report(bundle_dir, entry, device, board, plain, records, energy)


def _entry(manifest: Mapping[str, Any], model: int, meter: str | None, bundle_dir: Path) -> Mapping[str, Any]:
    models: Sequence[Mapping[str, Any]] = manifest["models"]
    if not 0 <= model < len(models):
        raise UsageError(f"the bundle has no model {model}: it has {len(models)}", where=str(bundle_dir))
    if "layers" not in models[model]:
        cure = "Bundle the model again with this version"
        raise UsageError("the bundle does not say what its layers are", where=str(bundle_dir), cure=cure)
    if meter is not None and models[model]["row_fed"]:
        cure = "Bundle it without --row-fed to meter it"
        raise UsageError("a row-fed model cannot be metered: its rows come over the link", cure=cure)
    return models[model]


def _inputs(bundle_dir: Path, model: Mapping[str, Any]) -> list[bytes]:
    sizes = [int(tensor["bytes"]) for tensor in model["inputs"]]
    path = bundle_dir / model["vectors"]["folder"] / "input_000.bin"
    data = path.read_bytes() if model["vectors"]["count"] else bytes(sum(sizes))
    return [data[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]


def _metered(device: Device, inputs: Sequence[bytes], meter: str, meter_s: float) -> Energy:
    """Energy of an inference: the board runs by itself for most of the window, with no traffic on its line."""
    from arenite.energy_report import open_recording

    start = time.perf_counter()
    run_once(device, inputs, _RUN_S)
    count = max(1, int(meter_s / max(time.perf_counter() - start, 1e-3)))
    with open_recording(meter) as recording:
        for index, data in enumerate(inputs):
            device.load(index, data)
        with recording.section() as section:
            device.run(count=count, timeout_s=_RUN_S + 4 * meter_s)
        return section.per_inference(count)


def _report(
    bundle_dir: Path,
    entry: Mapping[str, Any],
    device: Device,
    board: EmulatedBoard | None,
    plain: RunResult,
    records: Sequence[LayerTrace],
    energy: Energy | None,
) -> ProfileReport:
    if len(records) != len(entry["layers"]):
        problem = f"the board has {len(records)} layers, this bundle {len(entry['layers'])}"
        raise LinkError(problem, where=device.name, cure="Build and flash this bundle, or give the right one")
    unit = plain.unit
    if board is not None and board.instructions(plain) is not None:
        unit = "instructions"

    def cost(counter: int) -> int:
        counted = board.instructions(RunResult(counter, plain.unit, 0)) if board is not None else None
        return counter if counted is None else counted

    costs = [cost(record.counter) for record in records]
    word_cycles = {region["name"]: int(region["word_cycles"]) for region in read_target(bundle_dir).memory}
    rows = zip(entry["layers"], costs, strict=True)
    total = cost(plain.counter)
    return ProfileReport(
        model=str(entry["name"]),
        board=device.identity.board,
        emulator=board.name if board is not None else None,
        unit=unit,
        counter_hz=device.identity.counter_hz,
        total=total,
        executor=max(0, total - sum(costs)),
        macs=sum(int(layer["macs"]) for layer in entry["layers"]),
        stack_peak_bytes=plain.stack_peak_bytes or None,
        layers=tuple(
            _layer(i, layer, spent, sum(costs), unit, word_cycles) for i, (layer, spent) in enumerate(rows)
        ),
        energy=energy,
    )


def _layer(
    index: int, layer: Mapping[str, Any], spent: int, whole: int, unit: str, word_cycles: Mapping[str, int]
) -> LayerProfile:
    macs = int(layer["macs"])
    return LayerProfile(
        layer=index,
        operators=tuple(layer["operators"]),
        kind=str(layer["kind"]),
        output=str(layer["output"]),
        variants=tuple(dict.fromkeys(layer["variants"])),
        passed_over=dict(layer["passed_over"]),
        cost=spent,
        share=spent / whole if whole else 0.0,
        macs=macs,
        per_mac=spent / macs if macs else None,
        touches=dict(layer["touches"]),
        hint=_hint(macs, spent, unit, layer["touches"], word_cycles),
    )


def _hint(macs: int, spent: int, unit: str, touches: Mapping[str, int], word_cycles: Mapping[str, int]) -> str:
    """The memory where words wait longest, if that is much of the layer; else what else it does."""
    slow = {
        name: count // 4 * (word_cycles[name] - 1) for name, count in touches.items() if word_cycles.get(name, 1) > 1
    }
    if slow and spent and unit != "ticks":
        name = max(slow, key=lambda key: slow[key])
        waits = slow[name] / (spent if unit == "cycles" else spent + sum(slow.values()))
        if waits > _MEMORY_BOUND:
            return f"bound by {name}: {waits:.0%} of its cycles wait for it, modelled"
    if not macs:
        return "moves or maps bytes, multiplies nothing"
    return f"bound by arithmetic: {macs / max(1, sum(touches.values())):.1f} MAC a byte touched"
