# SPDX-License-Identifier: Apache-2.0
"""Firmware that is linked for a slot of a board with two, or runs its model from one of two, and the loader."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arenite.errors import UsageError
from arenite_codegen.board_flash import DRIVERS, PAYLOAD_AT, UpdateSlots
from arenite_codegen.board_model import Board
from arenite_codegen.board_support import firmware_folder
from arenite_codegen.render import render

__all__ = ["LOADER_SCRIPT", "Slotted", "copy_update", "in_slot"]

LOADER_SCRIPT = "board/loader.ld"
_SOURCES = (
    "ed25519.c",
    "flash_mapped.c",
    "sha512.c",
    "update.c",
    "update_board.c",
    "update_image.c",
    "update_link.c",
)
_HEADERS = ("ed25519.h", "flash_driver.h", "sha512.h", "update.h", "update_image.h", "update_link.h")
_MODEL_FILES = ("model_slot.c", "model_slot.h", "model_head.c")
_LOADER = "loader_cortex_m.c"


@dataclass(frozen=True)
class Slotted:
    """Firmware that takes updates.

    Attributes:
        board: What of the board's flash the firmware may use.
        whole: The board as it is.
        update: Its slots.
        slot: 0 or 1: the firmware is for this slot; None: for the start of the flash.
        models: Its model may come from a slot of its own.
        key: The owner's public key, 32 bytes.
    """

    board: Board
    whole: Board
    update: UpdateSlots
    slot: int | None
    models: bool
    key: bytes

    def entries(self) -> dict[str, Any]:
        """What the bundle's manifest says of it."""
        entries: dict[str, Any] = {}
        if self.slot is not None:
            address = self.board.flash.origin - PAYLOAD_AT
            sources = [f"update/{_LOADER}"]
            entries["loader"] = {"sources": sources, "script": LOADER_SCRIPT, "slot": self.slot, "address": address}
        if self.models and self.update.model_slots is not None:
            room = self.update.model_slot_bytes - PAYLOAD_AT - self.update.sector_bytes
            entries["model_slots"] = {"addresses": list(self.update.model_slots), "payload_limit_bytes": room}
        return entries

    @property
    def defines(self) -> list[str]:
        """Of the application."""
        return ["ARENITE_UPDATE", *(["ARENITE_MODEL_SLOTS"] if self.models else [])]


def in_slot(board: Board, slot: int | None, key: bytes | None, models: bool = False) -> Slotted | None:
    """The board as firmware that takes updates sees it; None when nothing of the kind is asked for.

    Raises:
        UsageError: The board has no such slots, or there are slots and no key, or a key and no slots.
    """
    if slot is None and not models and key is None:
        return None
    if key is None or (slot is None and not models):
        missing = "public key of the owner" if key is None else "slot"
        cure = "Give --update-key, and --slot or --model-slots or both"
        raise UsageError(f"firmware that takes updates needs the {missing}", cure=cure)
    update = board.update
    if update is None or (slot is not None and (update.slots is None or board.architecture != "cortex-m")):
        cure = "Add an [update] table to the board file; the loader runs on Cortex-M"
        raise UsageError("the board has no slots for updates", where=board.name, cure=cure)
    if models and update.model_slots is None:
        cure = "Add `model_slots` to the [update] table of the board file"
        raise UsageError("the board has no slots for models", where=board.name, cure=cure)
    if slot not in (0, 1, None) or len(key) != 32:
        raise UsageError(f"a slot is 0 or 1 and a key has 32 bytes, not {slot} and {len(key)}")
    region = replace(board.flash, length=_end_before_slots(board, update) - board.flash.origin)
    if slot is not None and update.slots is not None:
        room = update.slot_bytes - PAYLOAD_AT - update.sector_bytes
        region = replace(board.flash, origin=update.slots[slot] + PAYLOAD_AT, length=room)
    return Slotted(_with_flash(board, region), board, update, slot, models, key)


def copy_update(slotted: Slotted, bundle_dir: Path) -> list[str]:
    """Writes `update/` and, for firmware in a slot, the loader's linker script; returns the firmware's sources."""
    folder, templates = bundle_dir / "update", firmware_folder("update")
    folder.mkdir()
    driver = DRIVERS[slotted.update.driver]
    own = _MODEL_FILES if slotted.models else ()
    for name in (*_SOURCES, *_HEADERS, *own, *driver, *([_LOADER] if slotted.slot is not None else [])):
        shutil.copyfile(templates / name, folder / name)
    context = {"board": slotted.whole, "key": list(slotted.key), "slot": slotted.slot, "models": slotted.models}
    _write(folder / "update_config.h", render("update_config.h.j2", context, templates))
    if slotted.slot is not None:
        whole = slotted.whole
        region = replace(whole.flash, length=_end_before_slots(whole, slotted.update) - whole.flash.origin)
        script = render("link.ld.j2", {"board": _with_flash(whole, region)}, firmware_folder("startup"))
        _write(bundle_dir / LOADER_SCRIPT, script)
    names = (*_SOURCES, driver[0], *(name for name in own if name == "model_slot.c"))
    return [f"update/{name}" for name in sorted(names)]


def _end_before_slots(board: Board, update: UpdateSlots) -> int:
    """Where what starts at the flash's beginning must end."""
    flash = board.flash
    slots = (*(update.slots or ()), *(update.model_slots or ()))
    return min((at for at in slots if at > flash.origin), default=flash.origin + flash.length)


def _with_flash(board: Board, region: Any) -> Board:
    return replace(board, memory=tuple(region if one is board.flash else one for one in board.memory))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
