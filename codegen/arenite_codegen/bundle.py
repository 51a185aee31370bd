# SPDX-License-Identifier: Apache-2.0
"""Model + board -> a folder of C that builds by itself, with its golden vectors and a manifest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from arenite._manifest import MANIFEST
from arenite.errors import DoesNotFitError, UsageError
from arenite.progress import Progress, silent
from arenite.tflite_graph import Graph, read_graph
from arenite_codegen.arena_page import arena_page
from arenite_codegen.boards import Board, copy_support, load_board
from arenite_codegen.emit import Emitted, emit
from arenite_codegen.fit import check_fit
from arenite_codegen.legalise import legalise
from arenite_codegen.network import IoTensor, Network
from arenite_codegen.plan import Plan
from arenite_codegen.planning import mac_factor, plan_network
from arenite_codegen.render import render
from arenite_codegen.report import arena_text, operator_rows
from arenite_codegen.row_feed import feed_by_rows
from arenite_codegen.schedule import Schedule
from arenite_codegen.staging import Staging, output_folder
from arenite_codegen.variants import Choose, choose_for
from arenite_codegen.vectors import Vectors, make_vectors

__all__ = ["BundleReport", "OperatorReport", "bundle"]

FORMAT = 1


@dataclass(frozen=True)
class OperatorReport:
    """What became of one operator of the model file.

    Attributes:
        index: Its place in the file.
        kind: Its TFLite name.
        kernel: The kernel that runs it; None if it needs none.
        macs: Multiply-accumulates of one inference.
        ring_rows: Rows of its output that exist at once; 0 if it needs no memory of its own.
        note: Why it has no kernel.
        variant: Which implementation of the kernel the board and the layer allow; None if it needs none.
        passed_over: Faster variants of the kernel, and why they cannot run it.
    """

    index: int
    kind: str
    kernel: str | None
    macs: int
    ring_rows: int
    note: str = ""
    variant: str | None = None
    passed_over: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BundleReport:
    """What `bundle` made. Sizes in bytes.

    Attributes:
        arena_bytes: All the RAM that the model needs while it runs, inputs and outputs included.
        arena_lower_bound_bytes: Rows alive at the worst moment of this schedule: no placement needs less.
        weights_bytes: Constants in flash.
        code_bytes, stack_bytes: Known after `build`.
        row_fed: The input comes row by row and is not in the arena.
        mac_factor: MACs that run, over those of the model; 1.0 means that nothing is computed twice, less that rows
            which nobody reads are not made.
    """

    out_dir: str
    board: str
    model_sha256: str
    arena_bytes: int
    arena_lower_bound_bytes: int
    weights_bytes: int
    code_bytes: int | None
    macs: int
    row_fed: bool
    mac_factor: float
    stack_bytes: int | None
    operators: tuple[OperatorReport, ...]
    vectors: int
    authority: str | None


@dataclass(frozen=True)
class _Stages:
    graph: Graph
    network: Network
    schedule: Schedule
    plan: Plan
    emitted: Emitted
    choose: Choose


def bundle(
    model: Path | str,
    board: str | Path,
    out_dir: Path | str,
    *,
    arena_bytes: int | None = None,
    row_fed: bool = False,
    max_mac_factor: float = 1.0,
    vectors: int = 3,
    force: bool = False,
    progress: Progress | None = None,
) -> BundleReport:
    """Write the firmware bundle of a model for a board.

    Args:
        model: A full-INT8 TFLite file.
        board: Name of a board, or the path of a `board.toml`.
        out_dir: Folder to write; an earlier bundle there is replaced.
        arena_bytes: Refuse a plan that needs more.
        row_fed: Take the input row by row, so that the frame is never stored.
        max_mac_factor: How many times the model's multiply-accumulates may run, to make rows again instead of
            keeping them. At 1.0 nothing is computed twice.
        vectors: Random golden vectors, beside those that the model's contract carries.
        force: Replace `out_dir` even if it is no bundle.
        progress: Told of each stage.

    Raises:
        ModelError: The file is corrupt; UnsupportedOperatorError: it holds something without a kernel.
        ContractError: Its contract is damaged.
        DoesNotFitError: The plan needs more than the board or `arena_bytes` has.
        UsageError: `max_mac_factor` is below 1 or not finite, or writing `out_dir` would remove the model, the current
            folder or somebody else's files.
        OutputError: The folder cannot be written. Nothing half-written is left.
    """
    if not (math.isfinite(max_mac_factor) and max_mac_factor >= 1.0):
        raise UsageError(
            f"max_mac_factor is {max_mac_factor}; it must be a number of at least 1",
            cure="Give 1.0 to compute nothing twice, or for example 1.4 for a smaller arena.",
        )
    target, place = load_board(board), output_folder(out_dir, Path(model), _is_bundle, force)
    with (progress or silent()).step(f"bundle {Path(model).name} for {target.name}") as step:
        stages = _plan_model(Path(model), target, row_fed, max_mac_factor, step.note)
        report = _bundle(Path(model), stages, target, place, arena_bytes, vectors, step.note)
        step.note("")
    return report


def _bundle(
    model: Path,
    stages: _Stages,
    target: Board,
    place: Path,
    arena_bytes: int | None,
    vectors: int,
    say: Callable[[str], None],
) -> BundleReport:
    check_fit(target, stages.plan.arena_bytes, stages.emitted.weights_bytes, str(model))
    if arena_bytes is not None and stages.plan.arena_bytes > arena_bytes:
        raise DoesNotFitError(
            f"the model needs an arena of {stages.plan.arena_bytes:,} bytes, {arena_bytes:,} are allowed "
            f"({stages.plan.arena_bytes - arena_bytes:,} too few)",
            where=str(model),
            cure="Allow more, or use a smaller width or resolution.",
        )
    say("golden vectors")
    golden = make_vectors(model.read_bytes(), stages.graph, vectors)
    say("write")
    with Staging(place) as folder:
        manifest = _write(folder, target, model, stages, golden)
    return _report(place, target, stages, golden, manifest)


def _plan_model(
    model: Path, target: Board, row_fed: bool, max_mac_factor: float, say: Callable[[str], None]
) -> _Stages:
    say("read")
    graph = read_graph(model)
    say("legalise")
    network = legalise(graph)
    if row_fed:
        network = feed_by_rows(network, str(model))
    say("plan")
    planned = plan_network(network, max_mac_factor)
    say("emit")
    network, schedule, plan = planned.network, planned.schedule, planned.plan
    choose = choose_for(target)
    return _Stages(graph, network, schedule, plan, emit(network, schedule, plan, choose=choose), choose)


def _is_bundle(place: Path) -> bool:
    try:
        manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and {"format", "model_sha256", "board"} <= set(manifest)


def _write(folder: Path, board: Board, model: Path, stages: _Stages, golden: Vectors) -> dict[str, Any]:
    emitted = stages.emitted
    sources = ["model/model.c", "model/weights.c", "runtime/arenite.c"]
    sources += [f"kernels/arenite_{kernel}.c" for kernel in emitted.kernels]
    for name, text in emitted.files.items():
        _write_text(folder / "model" / name, text)
    _copy_firmware(folder, emitted.kernels)
    sources += copy_support(board, folder)
    for name, data in golden.files().items():
        _write_bytes(folder / "vectors" / name, data)
    include_dirs = ["runtime", "kernels", "model", "app", "board"]
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "name": model.stem,
        "model_sha256": stages.graph.sha256,
        "board": board.name,
        "arena_bytes": stages.plan.arena_bytes,
        "arena_lower_bound_bytes": stages.plan.lower_bound_bytes,
        "weights_bytes": emitted.weights_bytes,
        "table_bytes": emitted.table_bytes,
        "macs": stages.network.macs,
        "row_fed": stages.network.row_fed,
        "mac_factor": mac_factor(stages.network, stages.schedule),
        "inputs": [_io(io) for io in stages.network.inputs],
        "outputs": [_io(io) for io in stages.network.outputs],
        "operators": operator_rows(stages.graph, stages.network, stages.schedule, stages.choose),
        "sources": sources,
        "include_dirs": include_dirs,
        "vectors": {"authority": golden.authority, "count": golden.count},
        "licences": {"kernels, runtime, app, board": "Apache-2.0", "model": "the model's own"},
        "generator": f"arenite {_version()}",
    }
    _write_text(folder / "arena.txt", arena_text(stages.network, stages.schedule, stages.plan))
    page = arena_page(stages.network, stages.schedule, stages.plan, f"{model.stem} on {board.name}")
    _write_text(folder / "arena.html", page)
    _write_text(folder / "README.md", render("bundle_readme.md.j2", {"manifest": manifest, "board": board}))
    _write_text(folder / "CMakeLists.txt", render("CMakeLists.txt.j2", {"manifest": manifest}))
    manifest["files"] = _digests(folder)
    _write_text(folder / "sbom.spdx.json", _sbom(manifest))
    _write_text(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=True) + "\n")
    return manifest


def _io(io: IoTensor) -> dict[str, Any]:
    return {
        "name": io.name,
        "shape": list(io.shape),
        "dtype": io.dtype,
        "scale": io.scale,
        "zero_point": io.zero_point,
        "bytes": io.bytes,
    }


def _copy_firmware(folder: Path, kernels: tuple[str, ...]) -> None:
    root = Path(str(resources.files("arenite_firmware")))
    for name in ("arenite.h", "arenite.c"):
        _write_bytes(folder / "runtime" / name, (root / "runtime" / name).read_bytes())
    for name in kernel_files(root / "kernels", kernels):
        _write_bytes(folder / "kernels" / name, (root / "kernels" / name).read_bytes())


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


def _sbom(manifest: dict[str, Any]) -> str:
    """An SPDX 2.3 document: one package, its files with their digests. No time, so that it is reproducible."""
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"arenite-bundle-{manifest['model_sha256'][:16]}-{manifest['board']}",
        "documentNamespace": f"urn:arenite:bundle:{manifest['model_sha256']}:{manifest['board']}",
        "creationInfo": {"created": "1970-01-01T00:00:00Z", "creators": [f"Tool: {manifest['generator']}"]},
        "packages": [
            {
                "SPDXID": "SPDXRef-bundle",
                "name": "firmware-bundle",
                "downloadLocation": "NOASSERTION",
                "filesAnalyzed": False,
                "licenseConcluded": "NOASSERTION",
                "licenseDeclared": "Apache-2.0",
                "copyrightText": "NOASSERTION",
            }
        ],
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": "SPDXRef-bundle",
            }
        ],
        "files": [
            {
                "SPDXID": f"SPDXRef-file-{position}",
                "fileName": f"./{name}",
                "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
                "licenseConcluded": "NOASSERTION",
                "copyrightText": "NOASSERTION",
            }
            for position, (name, digest) in enumerate(manifest["files"].items())
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _version() -> str:
    try:
        return metadata.version("arenite")
    except metadata.PackageNotFoundError:
        return "0"


def _report(
    place: Path, board: Board, stages: _Stages, golden: Vectors, manifest: dict[str, Any]
) -> BundleReport:
    return BundleReport(
        out_dir=str(place),
        board=board.name,
        model_sha256=stages.graph.sha256,
        arena_bytes=stages.plan.arena_bytes,
        arena_lower_bound_bytes=stages.plan.lower_bound_bytes,
        weights_bytes=stages.emitted.weights_bytes,
        code_bytes=None,
        macs=stages.network.macs,
        row_fed=stages.network.row_fed,
        mac_factor=manifest["mac_factor"],
        stack_bytes=None,
        operators=tuple(OperatorReport(**row) for row in manifest["operators"]),
        vectors=golden.count,
        authority=golden.authority,
    )


def _write_text(path: Path, text: str) -> None:
    _write_bytes(path, text.encode("utf-8"))


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
