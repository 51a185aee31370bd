# SPDX-License-Identifier: Apache-2.0
"""The files of a bundle: generated C, copied C, vectors, maps and the manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from arenite._manifest import FORMAT, MANIFEST
from arenite_codegen.application import Benchmark, benchmark_defines
from arenite_codegen.arena_page import arena_page
from arenite_codegen.board_support import APP_DEFINES, firmware_folder
from arenite_codegen.board_update import Slotted, copy_update
from arenite_codegen.boards import Board, copy_support
from arenite_codegen.bundle_models import EmittedModel, Options, PlannedModel, camera_bytes, chooser
from arenite_codegen.bundle_report import digest_of
from arenite_codegen.camera import camera_entry
from arenite_codegen.contract_files import CAMERA_SOURCES, contract_files
from arenite_codegen.cost_model import busy_kernels
from arenite_codegen.emit import SINGLE_SYMBOL
from arenite_codegen.export import export_files
from arenite_codegen.firmware import Shared, shared_files
from arenite_codegen.network import IoTensor
from arenite_codegen.planning import mac_factor
from arenite_codegen.render import render
from arenite_codegen.report import arena_text, guard_names, layer_rows, operator_rows, operators_text, region_rows
from arenite_codegen.sbom import sbom
from arenite_codegen.variants import Choose
from arenite_codegen.vectors import Vectors

__all__ = ["write_bundle"]

_RUNTIME = ("arenite.h", "arenite.c")
_GUARDS = ("arenite_guards.h", "arenite_guards.c")


def write_bundle(
    folder: Path,
    board: Board,
    models: Sequence[EmittedModel],
    golden: Sequence[Vectors],
    shared: Shared,
    options: Options,
    benchmark: Benchmark | None,
) -> dict[str, Any]:
    """Write every file of a bundle.

    Args:
        folder: An empty one.
        board: As the firmware sees it, with its baud rate.
        golden: Vectors of each model.
        shared: What the models have in common.

    Returns:
        The manifest.
    """
    sources = _write_sources(folder, board, models, shared, options.slotted, benchmark)
    choose = chooser(models, options)
    entries = [_write_model(folder, board, one, vectors, choose) for one, vectors in zip(models, golden, strict=True)]
    busy = busy_kernels([one.network for one in models], choose)
    manifest = _manifest(board, models, shared, options, benchmark) | {
        "models": entries,
        "sources": sources,
        "busy_sources": [f"kernels/arenite_{kernel}.c" for kernel in sorted(busy)],
    }
    _write_text(folder / "README.md", render("bundle_readme.md.j2", {"manifest": manifest, "board": board}))
    _write_text(folder / "CMakeLists.txt", render("CMakeLists.txt.j2", {"manifest": manifest}))
    for name in options.exports:
        for file, data in export_files(name, folder, manifest, models[0].contract, _version()).items():
            _write_bytes(folder / "exports" / name / file, data)
    manifest["files"] = _digests(folder)
    _write_text(folder / "sbom.spdx.json", sbom(manifest, digest_of(entries)))
    _write_text(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=True) + "\n")
    return manifest


def _write_sources(
    folder: Path,
    board: Board,
    models: Sequence[EmittedModel],
    shared: Shared,
    slotted: Slotted | None,
    benchmark: Benchmark | None,
) -> list[str]:
    """All C, generated and copied; returns what is to be compiled."""
    generated = dict(shared_files([one.emitted for one in models], [one.plan for one in models], shared))
    for one in models:
        generated |= one.emitted.files
        generated |= contract_files(one.symbol, one.contract, one.camera)
    for name, text in generated.items():
        _write_text(folder / "model" / name, text)
    kernels = tuple(sorted({kernel for one in models for kernel in one.emitted.kernels}))
    runtime = _RUNTIME + (_GUARDS if _are_guarded(models) else ())
    _copy_firmware(folder, runtime, kernels)
    copied = [f"runtime/{name}" for name in runtime] + [f"kernels/arenite_{kernel}.c" for kernel in kernels]
    copied += [f"camera/{name}" for name in _copy_camera(folder, models)]
    sources = [name for name in [*(f"model/{name}" for name in sorted(generated)), *copied] if name.endswith(".c")]
    sources += copy_support(board, folder, benchmark=benchmark)
    return sources + ([] if slotted is None else copy_update(slotted, folder))


def _are_guarded(models: Sequence[PlannedModel]) -> bool:
    return any(one.plan.guards for one in models)


def _manifest(
    board: Board,
    models: Sequence[EmittedModel],
    shared: Shared,
    options: Options,
    benchmark: Benchmark | None,
) -> dict[str, Any]:
    """What holds for the whole bundle."""
    slotted, has_camera = options.slotted, any(one.camera is not None for one in models)
    folders = ["runtime", "kernels", *(["camera"] if has_camera else []), "model", "app", "board"]
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "board": board.name,
        "baud": board.uart.baud,
        "arena_bytes": shared.arena_bytes,
        "weights_bytes": sum(one.emitted.weights_bytes for one in models),
        "table_bytes": sum(one.emitted.table_bytes + one.camera_table_bytes for one in models),
        "regions": region_rows([*shared.buffers, *shared.flash]),
        "optimize": options.optimise,
        "guards": _are_guarded(models),
        "defines": [
            *(APP_DEFINES if benchmark is None else benchmark_defines(board)),
            *(slotted.defines if slotted is not None and benchmark is None else []),
        ],
        "include_dirs": [*folders, *(["update"] if slotted is not None else [])],
        "licences": {
            f"kernels, runtime, {'camera, ' if has_camera else ''}app, board": "Apache-2.0",
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
    if has_camera:
        manifest["camera_bytes"] = camera_bytes(models)
    return manifest


def _write_model(folder: Path, board: Board, one: EmittedModel, golden: Vectors, choose: Choose) -> dict[str, Any]:
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
    for name in _kernel_files(root / "kernels", kernels):
        _write_bytes(folder / "kernels" / name, (root / "kernels" / name).read_bytes())


def _copy_camera(folder: Path, models: Sequence[PlannedModel]) -> list[str]:
    """The hand-written C of the preprocessing, if a model has it; returns the names."""
    readers = sorted({f"{one.camera.kernel}.c" for one in models if one.camera is not None})
    names = [*CAMERA_SOURCES, *readers] if readers else []
    for name in names:
        _write_bytes(folder / "camera" / name, (firmware_folder("camera") / name).read_bytes())
    return names


def _kernel_files(folder: Path, kernels: tuple[str, ...]) -> list[str]:
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


def _write_text(path: Path, text: str) -> None:
    _write_bytes(path, text.encode("utf-8"))


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
