# SPDX-License-Identifier: Apache-2.0
"""Builds a bundle: compiles its C, links it for its board, measures the result."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from arenite._manifest import read_manifest
from arenite.errors import DoesNotFitError, OutputError, ToolchainError
from arenite.progress import Progress, silent
from arenite_codegen.boards import Board, load_board
from arenite_codegen.constants import WEIGHTS_SECTION
from arenite_codegen.elf import ALLOC, NOBITS, WRITE, ElfFile, read_elf
from arenite_codegen.stack import stack_bound_bytes
from arenite_codegen.toolchain import OPTIMISE, Toolchain, check_optimise, find_toolchain, optimisation

__all__ = ["BuildReport", "build", "call_tool"]

_JOBS = 2
_BUILD_ID_DIGITS = 16
_OVERFLOW = (
    re.compile(r"region [`'](?P<region>[\w-]+)' overflowed by (?P<bytes>\d+) bytes"),
    re.compile(r"will not fit in region '(?P<region>[\w-]+)': overflowed by (?P<bytes>\d+) bytes"),
)


@dataclass(frozen=True)
class BuildReport:
    """What a build made. Sizes in bytes; `code_bytes` is code and constants without the weights.

    Attributes:
        elf: The firmware, or on the host the shared library.
        toolchain: Name and version of the compiler.
        stack_bytes: The most stack that the firmware can use; 0 on the host. It is a bound over all paths through
            its calls, or, where `stack_is_bound` is false, what the linker script reserves.
    """

    elf: Path
    toolchain: str
    code_bytes: int
    weights_bytes: int
    data_bytes: int
    bss_bytes: int
    stack_bytes: int
    stack_is_bound: bool


def build(
    bundle_dir: Path, toolchain: str | None = None, progress: Progress | None = None, optimise: str | None = None
) -> BuildReport:
    """Builds `DIR/build/firmware.elf` (board `host`: `DIR/build/libmodel.so`) and `DIR/build/build.json`.

    Args:
        bundle_dir: A folder that `bundle` made.
        toolchain: `gcc`, `zig`, `clang`, or None for the best that is installed.
        progress: Told of each compiled file.
        optimise: `size`, `balanced` or `speed`: how kernels and executor are compiled. None takes what the bundle was
            made for.

    Raises:
        UsageError: `bundle_dir` is not a bundle, or there is no such optimisation.
        MissingToolError: No compiler is installed.
        DoesNotFitError: Code, weights or arena are larger than the board's memory.
        ToolchainError: The compiler or the linker refused the sources.
        OutputError: The output cannot be written.
    """
    bundle_dir = Path(bundle_dir)
    manifest = read_manifest(bundle_dir)
    optimise = optimise or str(manifest.get("optimize", "speed"))
    check_optimise(optimise)
    board = load_board(bundle_dir / "board")
    tools = find_toolchain(board, toolchain)
    out = bundle_dir / "build"
    output = "build/libmodel.so" if board.architecture == "host" else "build/firmware.elf"
    try:
        (out / "obj").mkdir(parents=True, exist_ok=True)
        (out / "build.json").unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"the build folder cannot be written ({error.strerror})", where=str(out)) from error
    digest = _build_digest(bundle_dir, manifest, tools, optimise)
    objects = _compile_all(bundle_dir, manifest, tools, digest, progress or silent(), optimise)
    _link(bundle_dir, tools, objects, output)
    _link_loader(bundle_dir, manifest, tools)
    report = _measure(board, bundle_dir / output, tools, int(manifest["weights_bytes"]))
    bound = _stack_bound(board, bundle_dir, objects)
    if bound is not None:
        report = replace(report, stack_bytes=bound, stack_is_bound=True)
    _write_report(out / "build.json", board, manifest, tools, report, digest, optimise)
    return report


def _build_digest(bundle_dir: Path, manifest: dict[str, Any], tools: Toolchain, optimise: str) -> str:
    """What tells this firmware from others: a digest of its sources and of the compiler, in hexadecimal digits."""
    digest = hashlib.sha256(" ".join((tools.version, *tools.command[1:], *tools.compile_flags, optimise)).encode())
    folders = sorted({*(source.split("/")[0] for source in manifest["sources"]), *manifest["include_dirs"]})
    for path in sorted(file for folder in folders for file in (bundle_dir / folder).rglob("*") if file.is_file()):
        digest.update(path.relative_to(bundle_dir).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _compile_all(
    bundle_dir: Path, manifest: dict[str, Any], tools: Toolchain, digest: str, progress: Progress, optimise: str
) -> list[str]:
    sources: list[str] = manifest["sources"]
    includes = [f"-I{folder}" for folder in manifest["include_dirs"]]
    includes += [f"-D{name}" for name in manifest.get("defines", ())]
    kernels = [source for source in sources if source.startswith("kernels/")]
    busy: list[str] = manifest.get("busy_sources", kernels)
    identity = [f"-DARENITE_BUILD_ID=0x{digest[:_BUILD_ID_DIGITS]}ull"]
    if "model_slots" in manifest:
        identity.append("-DARENITE_BUILD_DIGEST=" + ",".join(map(str, bytes.fromhex(digest))))
    if (bundle_dir / "app" / "freestanding").is_dir():
        includes += ["-isystem", "app/freestanding"]

    def compile_one(source: str) -> str:
        # Kernels are called alike for every model, so that a compiler's cache knows them again.
        own = [] if source.startswith(("kernels/", "runtime/")) else identity
        return _compile(bundle_dir, tools, [*includes, *own], source, optimisation(source, optimise, busy))

    objects = []
    with progress.step(f"compile with {tools.version}", len(sources)) as step, ThreadPoolExecutor(_JOBS) as pool:
        for made in pool.map(compile_one, sources):
            objects.append(made)
            step.advance()
    return objects


def _compile(bundle_dir: Path, tools: Toolchain, includes: Sequence[str], source: str, level: str) -> str:
    target = _object(source)
    flags = [] if source.endswith(".S") else [*tools.compile_flags, level]
    prefix = f"-ffile-prefix-map={bundle_dir.resolve()}=."
    call_tool([*tools.command, *flags, prefix, *includes, "-c", source, "-o", target], bundle_dir, source)
    return target


def _link(bundle_dir: Path, tools: Toolchain, objects: Sequence[str], output: str) -> None:
    call_tool([*tools.command, "-g", *objects, "-o", output, *tools.link_flags], bundle_dir, output)


def _link_loader(bundle_dir: Path, manifest: dict[str, Any], tools: Toolchain) -> None:
    """Of a bundle for a slot: the program that chooses the slot, out of the board's own support."""
    loader = manifest.get("loader")
    if loader is None:
        return
    includes = [f"-I{folder}" for folder in manifest["include_dirs"]] + ["-isystem", "app/freestanding"]
    own = [_compile(bundle_dir, tools, includes, source, OPTIMISE["size"]) for source in loader["sources"]]
    shared = [name for name in manifest["sources"] if _is_shared_with_loader(name)]
    objects = [*own, *(_object(name) for name in shared)]
    flags = [loader["script"] if flag == "board/link.ld" else flag for flag in tools.link_flags]
    call_tool([*tools.command, "-g", *objects, "-o", "build/loader.elf", *flags], bundle_dir, "build/loader.elf")


def _is_shared_with_loader(source: str) -> bool:
    folder, _, name = source.partition("/")
    of_application = name in ("update_link.c", "model_slot.c")
    return folder == "board" or name in ("mem.c", "crc32.c") or (folder == "update" and not of_application)


def _object(source: str) -> str:
    return "build/obj/" + source.replace("/", "_") + ".o"


def call_tool(command: Sequence[str], cwd: Path, what: str) -> None:
    """Runs a compiler or linker.

    Raises:
        DoesNotFitError: The linker says that a region is too small.
        ToolchainError: It does not start, or refuses `what`; its first complaint is in the message.
    """
    try:
        result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise ToolchainError(f"the compiler does not start ({error.strerror})", where=command[0]) from error
    if result.returncode == 0:
        return
    _raise_if_too_large(result.stderr)
    lines = result.stderr.splitlines()
    first = next((line for line in lines if "error" in line or "undefined" in line), result.stderr.strip()[-300:])
    raise ToolchainError(
        f"the compiler refused it: {first.strip() or f'exit code {result.returncode}'}",
        where=what,
        cure="If the bundle was not edited by hand, this is a fault of Arenite: report it with this message",
    )


def _raise_if_too_large(text: str) -> None:
    missing: dict[str, int] = {}
    for pattern in _OVERFLOW:
        for match in pattern.finditer(text):
            region = match["region"]
            missing[region] = max(missing.get(region, 0), int(match["bytes"]))
    if missing:
        parts = [f"region {region} lacks {count} bytes" for region, count in sorted(missing.items())]
        raise DoesNotFitError(
            f"the firmware is too large for the board: {' and '.join(parts)}",
            cure="Choose a board with more memory or a smaller model",
        )


def _measure(board: Board, elf: Path, tools: Toolchain, weights_bytes: int) -> BuildReport:
    """Sizes; a host library does not keep the weights apart, so there they are as the manifest says."""
    if board.architecture == "host" and elf.read_bytes()[:4] != b"\x7fELF":
        code_bytes = elf.stat().st_size - weights_bytes
        return BuildReport(elf, tools.version, code_bytes, weights_bytes, 0, 0, 0, False)
    image = read_elf(elf)
    weights = weights_bytes if board.architecture == "host" else _weights_bytes(image)
    return BuildReport(
        elf=elf,
        toolchain=tools.version,
        code_bytes=_constant_bytes(image) - weights,
        weights_bytes=weights,
        data_bytes=image.size_of(".data"),
        bss_bytes=image.size_of(".bss"),
        stack_bytes=image.size_of(".stack"),
        stack_is_bound=False,
    )


def _weights_bytes(image: ElfFile) -> int:
    """Weights in all flash regions; those beside the code's have sections with the region's name behind."""
    return sum(s.size for s in image.sections if f"{s.name}.".startswith(f"{WEIGHTS_SECTION}."))


def _stack_bound(board: Board, bundle_dir: Path, objects: Sequence[str]) -> int | None:
    if board.architecture == "host":
        return None
    bound = stack_bound_bytes([bundle_dir / name for name in objects], "Reset_Handler")
    if bound is not None and bound > board.stack_bytes:
        raise DoesNotFitError(
            f"the firmware may use {bound} bytes of stack, {board.stack_bytes} are reserved",
            where=board.name,
            cure="Raise `stack_bytes` in the board file",
        )
    return bound


def _constant_bytes(image: ElfFile) -> int:
    loaded = [s for s in image.sections if s.flags & ALLOC and s.kind != NOBITS]
    return sum(section.size for section in loaded if not section.flags & WRITE)


def _write_report(
    path: Path,
    board: Board,
    manifest: dict[str, Any],
    tools: Toolchain,
    report: BuildReport,
    digest: str,
    optimise: str,
) -> None:
    values = {
        "format": 1,
        "board": board.name,
        "models": [model["sha256"] for model in manifest["models"]],
        "image": report.elf.name,
        "optimize": optimise,
        "build_id": digest[:_BUILD_ID_DIGITS],
        "build_digest": digest,
        "toolchain": {"name": tools.name, "version": tools.version, "flags": list(tools.compile_flags)},
        "code_bytes": report.code_bytes,
        "weights_bytes": report.weights_bytes,
        "data_bytes": report.data_bytes,
        "bss_bytes": report.bss_bytes,
        "stack_bytes": report.stack_bytes,
        "stack_is_bound": report.stack_is_bound,
        "target": _target(board, int(manifest.get("baud", board.uart.baud))),
    }
    try:
        path.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        problem = f"the build report cannot be written ({error.strerror})"
        raise OutputError(problem, where=str(path)) from error


def _target(board: Board, baud: int) -> dict[str, Any]:
    """What an emulator must know of the board, so that it needs nothing but the build folder."""
    return {
        "architecture": board.architecture,
        "cpu": board.cpu,
        "memory": [asdict(region) for region in board.memory],
        "uart": asdict(board.uart) | {"baud": baud},
        "counter": asdict(board.counter),
        "emulators": {emulator.name: asdict(emulator) for emulator in board.emulators},
    }
