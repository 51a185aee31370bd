# SPDX-License-Identifier: Apache-2.0
"""Models + board -> a folder of C that builds by itself, with its golden vectors and a manifest."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from arenite._manifest import MANIFEST
from arenite.contract import contract_of
from arenite.errors import ContractError, DoesNotFitError, UsageError
from arenite.progress import Progress, silent
from arenite_codegen.application import benchmark_of
from arenite_codegen.board_schema import BAUD_HIGH, BAUD_LOW
from arenite_codegen.board_update import in_slot
from arenite_codegen.boards import load_board
from arenite_codegen.bundle_files import write_bundle
from arenite_codegen.bundle_models import EmittedModel, Options, PlannedModel, camera_bytes, chooser
from arenite_codegen.bundle_report import BundleReport, report_of
from arenite_codegen.caller_memory import caller_memory, keep_inputs
from arenite_codegen.camera import Camera, make_preprocessing
from arenite_codegen.emit import emit
from arenite_codegen.ends import read_for_board
from arenite_codegen.export import check_exports
from arenite_codegen.firmware import Shared, symbols_of
from arenite_codegen.fit import check_fit, flash_of, ram_of
from arenite_codegen.legalise import legalise
from arenite_codegen.planning import plan_network
from arenite_codegen.regions import Memory, Region
from arenite_codegen.row_feed import feed_by_rows
from arenite_codegen.staging import Staging, output_folder
from arenite_codegen.tables import table_bytes
from arenite_codegen.toolchain import check_optimise
from arenite_codegen.vectors import make_vectors

__all__ = ["bundle"]

# The link counts models in a byte.
_MAX_MODELS = 255


def bundle(
    model: Path | str | Sequence[Path | str],
    board: str | Path,
    out_dir: Path | str,
    *,
    arena_bytes: int | None = None,
    float_ends: bool = False,
    row_fed: bool | Sequence[bool] = False,
    caller_inputs: bool | Sequence[int] = False,
    caller_outputs: bool | Sequence[int] = False,
    keep_input: bool = False,
    max_mac_factor: float = 1.0,
    optimise: str = "speed",
    guards: bool = False,
    camera: Camera | str | None = None,
    exports: Sequence[str] = (),
    app: str = "link",
    baud: int | None = None,
    slot: int | None = None,
    model_slots: bool = False,
    update_key: bytes | None = None,
    vectors: int = 3,
    force: bool = False,
    progress: Progress | None = None,
) -> BundleReport:
    """Write the firmware bundle of one or more models for a board.

    Several models never run at once and share one arena, as large as the largest needs.

    Args:
        model: A full-INT8 TFLite file, or several.
        board: Name of a board, or the path of a `board.toml`.
        out_dir: Folder to write; an earlier bundle there is replaced.
        arena_bytes: Refuse a plan that needs more.
        float_ends: Leave inputs and outputs that are float32 as they are, with four bytes an element, where the model
            quantises them itself; otherwise they are the integers behind its QUANTIZE and before its DEQUANTIZE.
        row_fed: Take the input row by row, so that the frame is never stored; one answer for each model, or for all.
        caller_inputs, caller_outputs: Positions of those whose memory the application gives at run time, or True for
            all: they are not in the arena, and a run does not overwrite such an input.
        keep_input: No run overwrites an input, wherever it lies.
        max_mac_factor: How many times a model's multiply-accumulates may run, to make rows again instead of keeping
            them. At 1.0 nothing is computed twice.
        optimise: `speed`, `balanced` or `size`: which variants of the kernels layers get, how `build` compiles.
        guards: Make a validation build, which watches a word behind every block of the arena while it runs.
        camera: Frames such as `320x240:RGB565` (see `Camera.parse`): the bundle gets the C that makes the input of such
            a frame as the contract says, for each model whose contract speaks of pictures.
        exports: Components for projects of other kinds, made in `exports/` of the bundle: keys of
            `arenite_codegen.export.FORMATS`, such as `esp-idf`.
        app: What the firmware does at its serial port: `link`, or MLPerf Tiny's protocol as `mlperf` (the board tells
            its own time) or `mlperf-energy` (a pin marks the time for a power monitor). The latter two keep the input,
            which one load gives to many inferences.
        baud: Of the serial port; None takes the board's, or the benchmark's.
        slot: Firmware for this slot of a board with slots for updates, 0 or 1, and the loader that chooses between
            them.
        model_slots: The model may be replaced alone: it runs from one of the board's slots for models, or, where none
            of them counts, as it lies in the firmware.
        update_key: Public key of who may sign updates (32 bytes).
        vectors: Random golden vectors of each model, beside those that its contract carries.
        force: Replace `out_dir` even if it is no bundle.
        progress: Told of each stage.

    Raises:
        ModelError: A file is corrupt; UnsupportedOperatorError: it holds something without a kernel.
        ContractError: A model's contract is damaged, or no contract says how a camera's frame becomes an input.
        DoesNotFitError: The plan needs more than the board or `arena_bytes` has.
        UsageError: There is no model; there is no such input or output, or no such camera frame; an input that is fed
            row by row is to be kept or to lie in the caller's memory; `max_mac_factor` is below 1 or not finite; there
            is no such optimisation; the model or the board is not for the benchmark; or writing `out_dir` would remove
            a model, the current folder or somebody else's files.
        OutputError: The folder cannot be written. Nothing half-written is left.
    """
    paths = [Path(model)] if isinstance(model, str | Path) else [Path(one) for one in model]
    fed = _fed(paths, row_fed)
    _check_baud(baud)
    _check_factor(max_mac_factor)
    check_optimise(optimise)
    check_exports(exports, len(paths), bool(caller_inputs) or bool(caller_outputs), guards)
    frames = Camera.parse(camera) if isinstance(camera, str) else camera
    target, place = load_board(board), output_folder(out_dir, paths, _is_bundle, force)
    with (progress or silent()).step(f"bundle {_names(paths)} for {target.name}") as step:
        slotted = in_slot(target, slot, update_key, model_slots)
        if model_slots and (len(paths) != 1 or app != "link"):
            problem = "a model in a slot is alone in its firmware, which speaks the serial link"
            raise UsageError(problem, cure="Leave out --model-slots, or bundle one model without --app")
        target = target if slotted is None else slotted.board
        options = Options(
            board=target,
            float_ends=float_ends,
            caller_inputs=caller_inputs,
            caller_outputs=caller_outputs,
            keep_input=keep_input,
            max_mac_factor=max_mac_factor,
            optimise=optimise,
            guards=guards,
            camera=frames,
            exports=tuple(exports),
            app=app,
            baud=baud,
            slotted=slotted,
        )
        if app != "link":
            options = replace(options, keep_input=True)
        planned = [
            _plan_model(path, symbol, rows, options, _prefixed(step.note, path, len(paths)))
            for path, symbol, rows in zip(paths, symbols_of(paths), fed, strict=True)
        ]
        _check_camera(planned, options)
        step.note("emit")
        report = _bundle(_emitted(planned, options), options, place, arena_bytes, vectors, step.note)
        step.note("")
    return report


def _fed(models: Sequence[Path], row_fed: bool | Sequence[bool]) -> Sequence[bool]:
    if not 1 <= len(models) <= _MAX_MODELS:
        raise UsageError(f"a bundle has 1 to {_MAX_MODELS} models, not {len(models)}")
    fed = [row_fed] * len(models) if isinstance(row_fed, bool) else list(row_fed)
    if len(fed) != len(models):
        raise UsageError(f"row_fed has {len(fed)} answers for {len(models)} models")
    return fed


def _check_factor(max_mac_factor: float) -> None:
    if not (math.isfinite(max_mac_factor) and max_mac_factor >= 1.0):
        raise UsageError(
            f"max_mac_factor is {max_mac_factor}; it must be a number of at least 1",
            cure="Give 1.0 to compute nothing twice, or for example 1.4 for a smaller arena.",
        )


def _check_baud(baud: int | None) -> None:
    if baud is not None and not BAUD_LOW <= baud <= BAUD_HIGH:
        raise UsageError(f"the baud rate is {baud}; it must be between {BAUD_LOW} and {BAUD_HIGH}")


def _check_camera(models: Sequence[PlannedModel], options: Options) -> None:
    if options.camera is not None and all(one.camera is None for one in models):
        raise ContractError(
            "the model's contract does not say how a picture becomes its input"
            if len(models) == 1
            else "no model's contract says how a picture becomes its input",
            where=_names([one.model for one in models]),
            cure="Leave out --camera, or give it a contract: see `arenite contract set`.",
        )


def _names(models: Sequence[Path]) -> str:
    return " + ".join(model.name for model in models)


def _prefixed(say: Callable[[str], None], model: Path, count: int) -> Callable[[str], None]:
    return say if count == 1 else lambda stage: say(f"{model.name}: {stage}")


def _bundle(
    models: Sequence[EmittedModel],
    options: Options,
    place: Path,
    arena_bytes: int | None,
    vectors: int,
    say: Callable[[str], None],
) -> BundleReport:
    where = " + ".join(str(one.model) for one in models)
    target = options.board
    benchmark = benchmark_of(
        options.app, [one.network for one in models], [one.contract for one in models], target, options.baud
    )
    baud = options.baud if benchmark is None else benchmark.baud
    if baud is not None:
        target = replace(target, uart=replace(target.uart, baud=baud))
    emitted = [one.emitted for one in models]
    shared = Shared.of(emitted, [one.plan for one in models])
    needed = shared.arena_bytes
    tables = sum(one.table_bytes for one in emitted) + sum(one.camera_table_bytes for one in models)
    check_fit(target, shared.buffers, shared.flash, tables, where, camera_bytes(models))
    if arena_bytes is not None and needed > arena_bytes:
        raise DoesNotFitError(
            f"the model needs an arena of {needed:,} bytes, {arena_bytes:,} are allowed "
            f"({needed - arena_bytes:,} too few)",
            where=str(max(models, key=lambda one: one.plan.arena_bytes).model),
            cure="Allow more, or use a smaller width or resolution.",
        )
    say("golden vectors")
    golden = [make_vectors(one.read.content, one.graph, vectors) for one in models]
    say("write")
    with Staging(place) as folder:
        manifest = write_bundle(folder, target, models, golden, shared, options, benchmark)
    return report_of(place, manifest)


def _plan_model(
    model: Path, symbol: str, row_fed: bool, options: Options, say: Callable[[str], None]
) -> PlannedModel:
    say("read")
    read = read_for_board(model, options.float_ends)
    graph = read.graph
    say("legalise")
    network = legalise(graph)
    network = feed_by_rows(network, str(model)) if row_fed else network
    network = keep_inputs(network) if options.keep_input else network
    network = caller_memory(network, options.caller_inputs, options.caller_outputs)
    say("plan")
    contract = contract_of(graph)
    camera = None
    if options.camera is not None and contract is not None and contract.input.picture is not None:
        camera = make_preprocessing(contract.input, network.inputs[0], options.camera, str(model))
    ram = ram_of(options.board, 0 if camera is None else camera.memory_bytes)
    planned = plan_network(network, options.max_mac_factor, ram, options.guards)
    return PlannedModel(model, symbol, read, planned.network, planned.schedule, planned.plan, contract, camera)


def _emitted(models: Sequence[PlannedModel], options: Options) -> list[EmittedModel]:
    """Each model's C; its weights get the flash that the tables of all models and the weights before it leave."""
    tables = sum(table_bytes(one.network, one.schedule, one.plan) + one.camera_table_bytes for one in models)
    flash, choose = flash_of(options.board, tables), chooser(models, options)
    stages = []
    for one in models:
        emitted = emit(one.network, one.schedule, one.plan, one.symbol, flash, choose)
        flash = _left(flash, emitted.flash)
        stages.append(EmittedModel(**vars(one), emitted=emitted))
    return stages


def _left(flash: Sequence[Memory], weights: Sequence[Region]) -> tuple[Memory, ...]:
    taken = {region.name: region.bytes for region in weights}
    return tuple(
        replace(memory, capacity_bytes=max(0, memory.capacity_bytes - taken.get(memory.name, 0))) for memory in flash
    )


def _is_bundle(place: Path) -> bool:
    try:
        manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    known = set(manifest) if isinstance(manifest, dict) else set()
    return {"format", "board"} <= known and not known.isdisjoint({"models", "model_sha256"})
