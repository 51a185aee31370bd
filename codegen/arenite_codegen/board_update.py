# SPDX-License-Identifier: Apache-2.0
"""Firmware that is linked for a slot of a board with two, and the loader that chooses between them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.errors import UsageError
from arenite_codegen.board_flash import PAYLOAD_AT
from arenite_codegen.board_model import Board
from arenite_codegen.board_support import firmware_folder
from arenite_codegen.render import render

__all__ = ["LOADER_SCRIPT", "Slotted", "copy_update", "in_slot"]

LOADER_SCRIPT = "board/loader.ld"
_DRIVERS = {"memory": "flash_memory.c"}
_SOURCES = ("ed25519.c", "sha512.c", "update.c", "update_board.c", "update_image.c", "update_link.c")
_HEADERS = ("ed25519.h", "flash_driver.h", "sha512.h", "update.h", "update_image.h", "update_link.h")
_LOADER = "loader_cortex_m.c"


@dataclass(frozen=True)
class Slotted:
    """Firmware for a slot.

    Attributes:
        board: With the slot as its first flash region.
        whole: The board as it is.
        slot: 0 or 1.
        key: The owner's public key, 32 bytes.
    """

    board: Board
    whole: Board
    slot: int
    key: bytes


def in_slot(board: Board, slot: int | None, key: bytes | None) -> Slotted | None:
    """The board as firmware for one of its slots sees it; None when no slot is asked for.

    Raises:
        UsageError: The board has no such slot, or there is a slot and no key, or a key and no slot.
    """
    if slot is None and key is None:
        return None
    if slot is None or key is None:
        missing = "slot" if slot is None else "public key of the owner"
        raise UsageError(f"firmware for a slot needs the {missing}", cure="Give both --slot and --update-key")
    if board.update is None or board.architecture != "cortex-m":
        cure = "Add an [update] table to the board file; the loader runs on Cortex-M"
        raise UsageError("the board has no slots for updates", where=board.name, cure=cure)
    if slot not in (0, 1) or len(key) != 32:
        raise UsageError(f"a slot is 0 or 1 and a key has 32 bytes, not {slot} and {len(key)}")
    found = board.update
    room = found.slot_bytes - PAYLOAD_AT - found.sector_bytes
    region = replace(board.flash, origin=found.slots[slot] + PAYLOAD_AT, length=room)
    memory = tuple(region if one is board.flash else one for one in board.memory)
    return Slotted(replace(board, memory=memory), board, slot, key)


def copy_update(slotted: Slotted, bundle_dir: Path) -> tuple[list[str], list[str]]:
    """Writes `update/` and the loader's linker script; returns the sources of the firmware and those of the loader."""
    assert slotted.whole.update is not None
    folder, templates = bundle_dir / "update", firmware_folder("update")
    folder.mkdir()
    driver = _DRIVERS[slotted.whole.update.driver]
    for name in (*_SOURCES, *_HEADERS, driver, _LOADER):
        shutil.copyfile(templates / name, folder / name)
    context = {"board": slotted.whole, "key": list(slotted.key), "slot": slotted.slot}
    _write(folder / "update_config.h", render("update_config.h.j2", context, templates))
    before = min(slotted.whole.update.slots) - slotted.whole.flash.origin
    region = replace(slotted.whole.flash, length=before)
    memory = tuple(region if one is slotted.whole.flash else one for one in slotted.whole.memory)
    script = render("link.ld.j2", {"board": replace(slotted.whole, memory=memory)}, firmware_folder("startup"))
    _write(bundle_dir / LOADER_SCRIPT, script)
    return [f"update/{name}" for name in sorted((*_SOURCES, driver))], [f"update/{_LOADER}"]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
