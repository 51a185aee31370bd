# SPDX-License-Identifier: Apache-2.0
"""Models + board -> a folder of C that builds by itself, with its golden vectors and a manifest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from arenite._manifest import FORMAT, MANIFEST
from arenite.contract import Contract, contract_of
from arenite.errors import ContractError, DoesNotFitError, UsageError
from arenite.graph import Graph
from arenite.progress import Progress, silent
from arenite_codegen.application import Benchmark, benchmark_defines, benchmark_of
from arenite_codegen.arena_page import arena_page
from arenite_codegen.board_schema import BAUD_HIGH, BAUD_LOW
from arenite_codegen.board_support import APP_DEFINES, firmware_folder
from arenite_codegen.board_update import Slotted, copy_update, in_slot
from arenite_codegen.boards import Board, copy_support, load_board
from arenite_codegen.bundle_report import BundleReport, ModelReport, OperatorReport, RegionReport
from arenite_codegen.caller_memory import caller_memory, keep_inputs
from arenite_codegen.camera import Camera, Preprocessing, camera_entry, make_preprocessing
from arenite_codegen.contract_files import CAMERA_SOURCES, contract_files
from arenite_codegen.cost_model import busy_kernels
from arenite_codegen.emit import SINGLE_SYMBOL, Emitted, emit
from arenite_codegen.ends import BoardModel, read_for_board
from arenite_codegen.export import check_exports, export_files
from arenite_codegen.firmware import Shared, shared_files, symbols_of
from arenite_codegen.fit import check_fit, flash_of, ram_of
from arenite_codegen.legalise import legalise
from arenite_codegen.network import IoTensor, Network
from arenite_codegen.plan import Plan
from arenite_codegen.planning import mac_factor, plan_network
from arenite_codegen.regions import Memory, Region
from arenite_codegen.render import render
from arenite_codegen.report import arena_text, guard_names, layer_rows, operator_rows, operators_text, region_rows
from arenite_codegen.row_feed import feed_by_rows
from arenite_codegen.sbom import sbom
from arenite_codegen.schedule import Schedule
from arenite_codegen.staging import Staging, output_folder
from arenite_codegen.tables import table_bytes
from arenite_codegen.toolchain import check_optimise
from arenite_codegen.variants import Choose, choose_for
from arenite_codegen.vectors import Vectors, make_vectors

__all__ = ["bundle"]

# The link counts models in a byte.
MAX_MODELS = 255
_RUNTIME = ("arenite.h", "arenite.c")
_GUARDS = ("arenite_guards.h", "arenite_guards.c")


@dataclass(frozen=True)
class _Source:
    """One model before anything is known of the others."""

    model: Path
    symbol: str
    read: BoardModel
    network: Network
    schedule: Schedule
    plan: Plan
    contract: Contract | None
    camera: Preprocessing | None

    @property
    def graph(self) -> Graph:
        """Of the model as the board runs it."""
        return self.read.graph

    @property
    def camera_bytes(self) -> int:
        """RAM of the preprocessing."""
        return 0 if self.camera is None else self.camera.memory_bytes

    @property
    def camera_table_bytes(self) -> int:
        """Its flash."""
        return 0 if self.camera is None else self.camera.table_bytes


@dataclass(frozen=True)
class _Stages(_Source):
    """One model as it goes into the bundle."""

    emitted: Emitted


@dataclass(frozen=True)
class _Options:
    """What holds for each model of a bundle."""

    board: Board
    float_ends: bool
    caller_inputs: bool | Sequence[int]
    caller_outputs: bool | Sequence[int]
    keep_input: bool
    max_mac_factor: float
    optimise: str
    guards: bool
    camera: Camera | None
    exports: tuple[str, ...]
    app: str
    baud: int | None
    slotted: Slotted | None


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
        options = _Options(
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
    if not 1 <= len(models) <= MAX_MODELS:
        raise UsageError(f"a bundle has 1 to {MAX_MODELS} models, not {len(models)}")
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


def _check_camera(models: Sequence[_Source], options: _Options) -> None:
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
    models: Sequence[_Stages],
    options: _Options,
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
    check_fit(target, shared.buffers, shared.flash, tables, where, _camera_bytes(models))
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
        manifest = _write(folder, target, models, golden, shared, options, benchmark)
    return _report(place, manifest)


def _plan_model(
    model: Path, symbol: str, row_fed: bool, options: _Options, say: Callable[[str], None]
) -> _Source:
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
    return _Source(model, symbol, read, planned.network, planned.schedule, planned.plan, contract, camera)


def _camera_bytes(models: Sequence[_Source]) -> int:
    """RAM of the preprocessing of models that take turns."""
    return max(one.camera_bytes for one in models)


def _chooser(models: Sequence[_Source], options: _Options) -> Choose:
    return choose_for(options.board, options.optimise, [layer for one in models for layer in one.network.layers])


def _emitted(models: Sequence[_Source], options: _Options) -> list[_Stages]:
    """Each model's C; its weights get the flash that the tables of all models and the weights before it leave."""
    tables = sum(table_bytes(one.network, one.schedule, one.plan) + one.camera_table_bytes for one in models)
    flash, choose = flash_of(options.board, tables), _chooser(models, options)
    stages = []
    for one in models:
        emitted = emit(one.network, one.schedule, one.plan, one.symbol, flash, choose)
        flash = _left(flash, emitted.flash)
        stages.append(_Stages(**vars(one), emitted=emitted))
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


def _write(
    folder: Path,
    board: Board,
    models: Sequence[_Stages],
    golden: Sequence[Vectors],
    shared: Shared,
    options: _Options,
    benchmark: Benchmark | None,
) -> dict[str, Any]:
    slotted, exports = options.slotted, options.exports
    kernels = tuple(sorted({kernel for one in models for kernel in one.emitted.kernels}))
    generated = dict(shared_files([one.emitted for one in models], [one.plan for one in models], shared))
    for one in models:
        generated |= one.emitted.files
        generated |= contract_files(one.symbol, one.contract, one.camera)
    for name, text in generated.items():
        _write_text(folder / "model" / name, text)
    sources = [f"model/{name}" for name in sorted(generated) if name.endswith(".c")]
    guards = any(one.plan.guards for one in models)
    runtime = _RUNTIME + (_GUARDS if guards else ())
    sources += [f"runtime/{name}" for name in runtime if name.endswith(".c")]
    sources += [f"kernels/arenite_{kernel}.c" for kernel in kernels]
    _copy_firmware(folder, runtime, kernels)
    cameras = _copy_camera(folder, models)
    sources += [f"camera/{name}" for name in cameras if name.endswith(".c")]
    sources += copy_support(board, folder, benchmark=benchmark)
    sources += [] if slotted is None else copy_update(slotted, folder)
    choose = _chooser(models, options)
    busy = busy_kernels([one.network for one in models], choose)
    entries = [_write_model(folder, board, one, vectors, choose) for one, vectors in zip(models, golden, strict=True)]
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "board": board.name,
        "baud": board.uart.baud,
        "arena_bytes": shared.arena_bytes,
        "weights_bytes": sum(one.emitted.weights_bytes for one in models),
        "table_bytes": sum(one.emitted.table_bytes + one.camera_table_bytes for one in models),
        "regions": region_rows([*shared.buffers, *shared.flash]),
        "optimize": options.optimise,
        "guards": guards,
        "models": entries,
        "sources": sources,
        "busy_sources": [f"kernels/arenite_{kernel}.c" for kernel in sorted(busy)],
        "defines": [
            *(APP_DEFINES if benchmark is None else benchmark_defines(board)),
            *(slotted.defines if slotted is not None and benchmark is None else []),
        ],
        "include_dirs": ["runtime", "kernels", *(["camera"] if cameras else []), "model", "app", "board"]
        + (["update"] if slotted is not None else []),
        "licences": {
            f"kernels, runtime, {'camera, ' if cameras else ''}app, board": "Apache-2.0",
            "models": "the models' own",
        },
        "generator": f"arenite {_version()}",
    }
    if board.flashing is not None:
        whole = board if slotted is None else slotted.whole
        spans = [[region.origin, region.origin + region.length] for region in whole.flashes]
        manifest["flash"] = asdict(board.flashing) | {"origin": whole.flash.origin, "spans": spans}
    if slotted is not None:
        manifest |= slotted.entries()
    if benchmark is not None:
        manifest["benchmark"] = asdict(benchmark)
    if cameras:
        manifest["camera_bytes"] = _camera_bytes(models)
    _write_text(folder / "README.md", render("bundle_readme.md.j2", {"manifest": manifest, "board": board}))
    _write_text(folder / "CMakeLists.txt", render("CMakeLists.txt.j2", {"manifest": manifest}))
    for name in exports:
        for file, data in export_files(name, folder, manifest, models[0].contract, _version()).items():
            _write_bytes(folder / "exports" / name / file, data)
    manifest["files"] = _digests(folder)
    _write_text(folder / "sbom.spdx.json", sbom(manifest, _digest_of(entries)))
    _write_text(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=True) + "\n")
    return manifest


def _write_model(folder: Path, board: Board, one: _Stages, golden: Vectors, choose: Choose) -> dict[str, Any]:
    """Write a model's vectors and arena maps; returns its entry in the manifest."""
    alone = one.symbol == SINGLE_SYMBOL
    _write_bytes(folder / "reference" / f"{one.symbol}.tflite", one.read.content)
    vectors = folder / "vectors" if alone else folder / "vectors" / one.symbol
    for name, data in golden.files().items():
        _write_bytes(vectors / name, data)
    arena = folder / "arena" if alone else folder / "arena" / one.symbol
    _write_text(arena.with_suffix(".txt"), arena_text(one.network, one.schedule, one.plan))
    page = arena_page(one.network, one.schedule, one.plan, f"{one.model.stem} on {board.name}")
    _write_text(arena.with_suffix(".html"), page)
    operators = operator_rows(one.graph, one.network, one.schedule, choose, board)
    named = folder / "operators" if alone else folder / "operators" / one.symbol
    _write_text(named.with_suffix(".txt"), operators_text(operators))
    entry = {
        "name": one.model.stem,
        "symbol": one.symbol,
        "sha256": one.graph.sha256,
        "integer_ends": list(one.read.integer_ends),
        "arena_bytes": one.plan.arena_bytes,
        "arena_lower_bound_bytes": one.plan.lower_bound_bytes,
        "weights_bytes": one.emitted.weights_bytes,
        "regions": region_rows([*one.plan.regions, *one.emitted.flash]),
        "macs": one.network.macs,
        "mac_factor": mac_factor(one.network, one.schedule),
        "row_fed": one.network.row_fed,
        "keep_input": one.network.keep_input,
        "inputs": [_io(io) for io in one.network.inputs],
        "outputs": [_io(io) for io in one.network.outputs],
        "operators": operators,
        "layers": layer_rows(one.graph, one.network, one.schedule, one.plan, choose),
        "reference": f"reference/{one.symbol}.tflite",
        "vectors": {
            "authority": golden.authority,
            "count": golden.count,
            "folder": vectors.relative_to(folder).as_posix(),
        },
    }
    if one.camera is not None:
        entry |= {"camera_bytes": one.camera_bytes, "camera": camera_entry(one.camera)}
    return entry | ({"guards": guard_names(one.network, one.plan)} if one.plan.guards else {})


def _digest_of(models: Sequence[dict[str, Any]]) -> str:
    """What tells one set of models from another: a model's own digest, or that of several in order."""
    digests = [str(model["sha256"]) for model in models]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def _io(io: IoTensor) -> dict[str, Any]:
    return {
        "name": io.name,
        "shape": list(io.shape),
        "dtype": io.dtype,
        "scale": io.scale,
        "zero_point": io.zero_point,
        "bytes": io.bytes,
    }


def _copy_firmware(folder: Path, runtime: tuple[str, ...], kernels: tuple[str, ...]) -> None:
    root = Path(str(resources.files("arenite_firmware")))
    for name in runtime:
        _write_bytes(folder / "runtime" / name, (root / "runtime" / name).read_bytes())
    for name in kernel_files(root / "kernels", kernels):
        _write_bytes(folder / "kernels" / name, (root / "kernels" / name).read_bytes())


def _copy_camera(folder: Path, models: Sequence[_Source]) -> list[str]:
    """The hand-written C of the preprocessing, if a model has it; returns the names."""
    readers = sorted({f"{one.camera.kernel}.c" for one in models if one.camera is not None})
    names = [*CAMERA_SOURCES, *readers] if readers else []
    for name in names:
        _write_bytes(folder / "camera" / name, (firmware_folder("camera") / name).read_bytes())
    return names


def kernel_files(folder: Path, kernels: tuple[str, ...]) -> list[str]:
    """Sources of the kernels and every header that they include, and no other."""
    wanted = [f"arenite_{kernel}.c" for kernel in kernels]
    found: list[str] = []
    while wanted:
        name = wanted.pop()
        if name in found or not (folder / name).is_file():
            continue
        found.append(name)
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            if line.startswith('#include "'):
                wanted.append(line.split('"')[1])
    return sorted(found)


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _version() -> str:
    try:
        return metadata.version("arenite")
    except metadata.PackageNotFoundError:
        return "0"


def _report(place: Path, manifest: dict[str, Any]) -> BundleReport:
    models: list[dict[str, Any]] = manifest["models"]
    macs = sum(model["macs"] for model in models)
    run = sum(model["macs"] * model["mac_factor"] for model in models)
    return BundleReport(
        out_dir=str(place),
        board=manifest["board"],
        model_sha256=_digest_of(models),
        arena_bytes=manifest["arena_bytes"],
        arena_lower_bound_bytes=max(model["arena_lower_bound_bytes"] for model in models),
        weights_bytes=manifest["weights_bytes"],
        code_bytes=None,
        macs=macs,
        row_fed=all(model["row_fed"] for model in models),
        mac_factor=models[0]["mac_factor"] if len(models) == 1 else run / macs if macs else 1.0,
        stack_bytes=None,
        regions=tuple(RegionReport(**region) for region in manifest["regions"]),
        operators=tuple(
            OperatorReport(**row, model=index) for index, model in enumerate(models) for row in model["operators"]
        ),
        vectors=sum(model["vectors"]["count"] for model in models),
        authority=models[0]["vectors"]["authority"],
        guards=manifest["guards"],
        camera_bytes=manifest.get("camera_bytes", 0),
        models=tuple(_model_report(model) for model in models),
    )


def _model_report(model: dict[str, Any]) -> ModelReport:
    own = {field.name: model[field.name] for field in fields(ModelReport) if field.name in model}
    own |= {"vectors": model["vectors"]["count"], "integer_ends": tuple(model["integer_ends"])}
    return ModelReport(**own)


def _write_text(path: Path, text: str) -> None:
    _write_bytes(path, text.encode("utf-8"))


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
