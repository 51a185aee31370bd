# SPDX-License-Identifier: Apache-2.0
"""Boards with two slots for firmware as a factory makes them: loader, and a signed image in the first slot."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from arenite.device import Device
from arenite.device.emulators import EmulatedBoard, start_emulator
from arenite.device.updating import factory_segments, public_key_of, sign_bundle
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from support.dense_network import dense_network
from support.elf_file import elf_of

__all__ = ["FirmwareFactory", "answers", "update_table"]


def update_table(slots: tuple[int, int], slot_bytes: int, sector_bytes: int, write_bytes: int, driver: str) -> str:
    """A board file's `[update]`."""
    return (
        f"\n[update]\nslots = {list(slots)}\nslot_bytes = {slot_bytes}\nsector_bytes = {sector_bytes}\n"
        f'write_bytes = {write_bytes}\ndriver = "{driver}"\n'
    )


class FirmwareFactory:
    """Bundles for both slots: the first with one model, the second with another.

    Args:
        folder: Where they are made.
        board: An emulated board.
        table: Its slots, of `update_table`.
        owner: Private key.
    """

    def __init__(self, folder: Path, board: str, table: str, owner: Any) -> None:
        self._owner = owner
        source = load_board(board)
        (folder / "board.toml").write_text((source.directory / "board.toml").read_text() + table)
        update = load_board(folder / "board.toml").update
        assert update is not None
        assert update.slots is not None
        self.origin = source.flash.origin
        self.flash_bytes = update.slots[1] + update.slot_bytes - self.origin
        self.bundles = []
        for slot in (0, 1):
            model, out = folder / f"model{slot}.tflite", folder / f"slot{slot}"
            model.write_bytes(dense_network(16, 4, seed=slot))
            bundle(model, folder / "board.toml", out, slot=slot, update_key=public_key_of(owner))
            build(out)
            self.bundles.append(out)

    def image(self, slot: int, version: int) -> bytes:
        """A signed image of a slot's bundle."""
        return sign_bundle(self.bundles[slot], self._owner, version=version)

    def new_board(self, folder: Path) -> EmulatedBoard:
        """A board with loader and version 1 in the first slot, as one flash image; the rest of its flash is erased."""
        shutil.copytree(self.bundles[0], folder)
        flash = bytearray(b"\xff" * self.flash_bytes)
        for segment in factory_segments(self.bundles[0], self.image(0, 1)):
            at = segment.address - self.origin
            flash[at : at + len(segment.data)] = segment.data
        return self.start(folder, bytes(flash))

    def start(self, folder: Path, flash: bytes) -> EmulatedBoard:
        """A board of `new_board` whose flash holds this."""
        (folder / "build" / "firmware.elf").write_bytes(elf_of([(self.origin, flash)]))
        return start_emulator(folder, "unicorn")


def answers(device: Device, folder: Path) -> bool:
    """The board computes a bundle's golden vectors."""
    for number in range(3):
        device.load(0, (folder / "vectors" / f"input_{number:03}.bin").read_bytes())
        device.run()
        if device.read_output(0) != (folder / "vectors" / f"output_{number:03}.bin").read_bytes():
            return False
    return True
