# SPDX-License-Identifier: Apache-2.0
"""A model that is linked for a slot of its own: constants alone, against the kernels of firmware that was built before.

The firmware's code stays where it is, so the model's tables point into it; the digest of that build goes into the
signed image, and a board takes the image only if its own firmware has this digest.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from arenite._manifest import read_manifest
from arenite.errors import DoesNotFitError, OutputError, UsageError
from arenite_codegen.board_flash import PAYLOAD_AT
from arenite_codegen.boards import load_board
from arenite_codegen.build import call_tool
from arenite_codegen.elf import ALLOC, NOBITS, WRITE, read_elf
from arenite_codegen.toolchain import Toolchain, find_toolchain

__all__ = ["ModelSlotReport", "build_model"]

_HEAD = "arenite_model_head"
_SOURCES = ("model.c", "weights.c")
_SCRIPT = """/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of a model for the slot at {slot:#010x}; the kernels lie in the firmware. */
{kernels}
SECTIONS
{{
    .rodata {start:#010x} :
    {{
        KEEP(*(.{head}))
        *(.rodata .rodata.* .srodata .srodata.* .data.rel.ro .data.rel.ro.*)
        . = ALIGN(4);
    }}
    /DISCARD/ :
    {{
        *(.ARM.exidx .ARM.exidx.* .ARM.extab .ARM.extab.* .eh_frame .eh_frame.* .note .note.* .comment)
    }}
}}
"""


@dataclass(frozen=True)
class ModelSlotReport:
    """What was linked.

    Attributes:
        elf: The model, at the addresses of the slot.
        slot: 0 or 1.
        address: Of the slot.
        payload_bytes: Of the model in it.
        payload_limit_bytes: What the slot has room for.
        firmware_digest: Of the firmware build whose kernels it calls, 64 hexadecimal digits.
    """

    elf: Path
    slot: int
    address: int
    payload_bytes: int
    payload_limit_bytes: int
    firmware_digest: str


def build_model(bundle_dir: Path, firmware_dir: Path, slot: int) -> ModelSlotReport:
    """Builds `DIR/build/model.elf` and `model.json`: the bundle's model for a slot of a board with this firmware.

    Args:
        bundle_dir: A bundle of one model for the same board.
        firmware_dir: A built bundle whose model may be replaced (`model_slots`).
        slot: 0 or 1.

    Raises:
        UsageError: One of the two is no such bundle.
        DoesNotFitError: The model is larger than the slot, or needs a kernel, memory or tables that the firmware lacks.
        MissingToolError: The firmware's compiler is not installed. ToolchainError: It refuses the model.
        OutputError: The output cannot be written.
    """
    model, firmware = read_manifest(bundle_dir), read_manifest(firmware_dir)
    slots, built = _slots(firmware_dir, firmware), _built(firmware_dir)
    if slot not in (0, 1):
        raise UsageError(f"a slot is 0 or 1, not {slot}")
    _check_pair(bundle_dir, model, firmware)
    limits = _limits(bundle_dir)
    _check_limits(bundle_dir, limits, _limits(firmware_dir))
    board = load_board(firmware_dir / "board")
    tools = find_toolchain(board, built["toolchain"]["name"])
    address = int(slots["addresses"][slot])
    objects = _compile(bundle_dir, firmware_dir, firmware, tools, limits)
    kernels = _kernels(bundle_dir, [bundle_dir / name for name in objects], firmware_dir / "build" / built["image"])
    elf = _link(bundle_dir, tools, objects, kernels, address)
    size, room = _payload_bytes(elf), int(slots["payload_limit_bytes"])
    if size > room:
        problem = f"the model has {size:,} bytes, the slot has room for {room:,} ({size - room:,} too few)"
        raise DoesNotFitError(problem, where=str(bundle_dir), cure="Use a smaller model, or new firmware and slots")
    report = ModelSlotReport(elf, slot, address, size, room, built["build_digest"])
    _write_report(bundle_dir / "build" / "model.json", report, board.name)
    return report


def _slots(firmware_dir: Path, firmware: dict[str, Any]) -> dict[str, Any]:
    slots = firmware.get("model_slots")
    if not isinstance(slots, dict):
        cure = "Make it with `arenite bundle --model-slots --update-key FILE`"
        raise UsageError("this firmware's model cannot be replaced alone", where=str(firmware_dir), cure=cure)
    return slots


def _built(firmware_dir: Path) -> dict[str, Any]:
    path = firmware_dir / "build" / "build.json"
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        cure = f"Run arenite build {firmware_dir}"
        raise UsageError("the firmware is not built", where=str(firmware_dir), cure=cure) from error
    return report


def _check_pair(bundle_dir: Path, model: dict[str, Any], firmware: dict[str, Any]) -> None:
    """The model must find in the firmware what it counts on: board, memory, way of building."""
    if len(model["models"]) != 1:
        raise UsageError(f"the bundle has {len(model['models'])} models; a slot takes one", where=str(bundle_dir))
    if model["board"] != firmware["board"] or model["guards"] != firmware["guards"]:
        problem = f"the bundle is for {_kind_of(model)}, the firmware for {_kind_of(firmware)}"
        raise UsageError(problem, where=str(bundle_dir), cure="Bundle the model for the firmware's board, likewise")
    there = _memory(firmware["models"][0])
    for position, (place, size) in enumerate(_memory(model["models"][0])):
        if position >= len(there) or there[position][0] != place or there[position][1] < size:
            have = f"{there[position][1]:,}" if position < len(there) and there[position][0] == place else "none"
            problem = f"the model needs {size:,} bytes of {' '.join(place)}, the firmware has {have}"
            raise _mismatch(problem, bundle_dir)


def _kind_of(manifest: dict[str, Any]) -> str:
    return f"{manifest['board']}{' with guards' if manifest['guards'] else ''}"


def _memory(model: dict[str, Any]) -> list[tuple[tuple[str, str], int]]:
    """What a model has in RAM, in order: memory and what it holds there, bytes."""
    rows = [row for row in model["regions"] if row["holds"] != "weights"]
    return [((str(row["holds"]), str(row["name"])), int(row["bytes"])) for row in rows]


def _limits(bundle_dir: Path) -> dict[str, int]:
    text = (bundle_dir / "model" / "arenite_limits.h").read_text(encoding="utf-8")
    names = ("MAX_POINTERS", "MOST_LAYERS")
    found = {name: re.search(rf"^#define ARENITE_{name} (\d+)$", text, re.MULTILINE) for name in names}
    return {name: int(match[1]) for name, match in found.items() if match is not None}


def _check_limits(bundle_dir: Path, wanted: dict[str, int], there: dict[str, int]) -> None:
    words = {"MAX_POINTERS": "rows at a time for a kernel", "MOST_LAYERS": "layers"}
    for name, number in wanted.items():
        if number > there[name]:
            raise _mismatch(f"the model has {number} {words[name]}, the firmware is made for {there[name]}", bundle_dir)


def _mismatch(problem: str, bundle_dir: Path) -> DoesNotFitError:
    return DoesNotFitError(problem, where=str(bundle_dir), cure="Update the firmware instead, with this model inside")


def _compile(
    bundle_dir: Path, firmware_dir: Path, firmware: dict[str, Any], tools: Toolchain, limits: dict[str, int]
) -> list[str]:
    """Compiles the model by the firmware's headers: so a table means to its kernels what it says."""
    folder = bundle_dir / "build" / "slot"
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in (*_SOURCES, "arenite_model.h"):
            shutil.copyfile(bundle_dir / "model" / name, folder / name)
        for name in ("model_head.c", "model_slot.h"):
            shutil.copyfile(firmware_dir / "update" / name, folder / name)
    except OSError as error:
        raise OutputError(f"the build folder cannot be written ({error.strerror})", where=str(folder)) from error
    root = firmware_dir.resolve()
    includes = ["-Ibuild/slot", *(f"-I{root / name}" for name in firmware["include_dirs"])]
    includes += ["-isystem", str(root / "app" / "freestanding")]
    defines = [f"-D{name}" for name in firmware["defines"]]
    defines += [f"-DMODEL_{name}={number}u" for name, number in limits.items()]
    objects = []
    for name in (*_SOURCES, "model_head.c"):
        source, target = f"build/slot/{name}", f"build/slot/{name}.o"
        flags = [*tools.compile_flags, *defines, *includes]
        call_tool([*tools.command, *flags, "-c", source, "-o", target], bundle_dir, name)
        objects.append(target)
    return objects


def _kernels(bundle_dir: Path, objects: Sequence[Path], firmware_elf: Path) -> dict[str, int]:
    """The firmware's functions that the model calls, with their addresses."""
    there = {symbol.name: symbol.value for symbol in read_elf(firmware_elf).symbols if symbol.section}
    files = [read_elf(path) for path in objects]
    own = {symbol.name for file in files for symbol in file.symbols if symbol.section}
    wanted = {symbol.name for file in files for symbol in file.symbols if not symbol.section and symbol.name} - own
    missing = sorted(wanted - there.keys())
    if missing:
        names = ", ".join(name.removeprefix("arenite_") for name in missing)
        raise _mismatch(f"the firmware lacks kernels that the model calls: {names}", bundle_dir)
    return {name: there[name] for name in sorted(wanted)}


def _link(bundle_dir: Path, tools: Toolchain, objects: Sequence[str], kernels: dict[str, int], address: int) -> Path:
    lines = "\n".join(f"{name} = {value:#010x};" for name, value in kernels.items())
    script = "build/slot/model.ld"
    text = _SCRIPT.format(slot=address, start=address + PAYLOAD_AT, kernels=lines, head=_HEAD)
    (bundle_dir / script).write_text(text, encoding="utf-8", newline="\n")
    flags = [flag.replace("board/link.ld", script).replace("Reset_Handler", _HEAD) for flag in tools.link_flags]
    call_tool([*tools.command, *objects, "-o", "build/model.elf", *flags], bundle_dir, "build/model.elf")
    return bundle_dir / "build" / "model.elf"


def _payload_bytes(elf: Path) -> int:
    sections = [section for section in read_elf(elf).sections if section.flags & ALLOC and section.size]
    changing = [section.name for section in sections if section.flags & WRITE or section.kind == NOBITS]
    if changing or [section.name for section in sections] != [".rodata"]:
        names = ", ".join(section.name for section in sections)
        raise UsageError(f"the model is not made of constants alone, but of {names}", where=str(elf))
    return sections[0].size


def _write_report(path: Path, report: ModelSlotReport, board: str) -> None:
    values = {"format": 1, "board": board, **asdict(report), "elf": report.elf.name}
    try:
        path.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"the build report cannot be written ({error.strerror})", where=str(path)) from error
