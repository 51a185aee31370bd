# SPDX-License-Identifier: Apache-2.0
"""Boards with two slots for firmware as a factory makes them: loader, and a signed image in the first slot."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from arenite.device import Device, open_device
from arenite.device.emulators import EmulatedBoard, start_emulator
from arenite.device.target import Segment
from arenite.device.updating import Kind, factory_segments, public_key_of, read_state, session, sign_bundle
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from support.dense_network import dense_network
from support.elf_file import elf_of

__all__ = ["FirmwareFactory", "FlashedBoards", "answers", "update_table"]


def update_table(slots: tuple[int, int], slot_bytes: int, sector_bytes: int, write_bytes: int, driver: str) -> str:
    """A board file's `[update]`."""
    return (
        f"\n[update]\nslots = {list(slots)}\nslot_bytes = {slot_bytes}\nsector_bytes = {sector_bytes}\n"
        f'write_bytes = {write_bytes}\ndriver = "{driver}"\n'
    )


class FlashedBoards:
    """Emulated boards that start from one image of their flash.

    Attributes:
        origin: Where the flash starts.
        flash_bytes: Its size, as far as slots reach.
    """

    origin: int
    flash_bytes: int

    def flashed(self, folder: Path, made: Path, segments: Iterable[Segment]) -> EmulatedBoard:
        """A board with a copy of a built bundle, whose flash holds the segments and is erased else."""
        shutil.copytree(made, folder)
        flash = bytearray(b"\xff" * self.flash_bytes)
        for segment in segments:
            at = segment.address - self.origin
            flash[at : at + len(segment.data)] = segment.data
        return self.start(folder, bytes(flash))

    def start(self, folder: Path, flash: bytes) -> EmulatedBoard:
        """A board of `flashed` whose flash holds this."""
        (folder / "build" / "firmware.elf").write_bytes(elf_of([(self.origin, flash)]))
        return start_emulator(folder, "unicorn")

    def flash_at(self, board: EmulatedBoard, image: bytes, stage: str, kind: Kind) -> bytes:
        """What the flash holds when power fails with an update `half sent`, `sent` or `on trial`."""
        device = open_device(board.stream, timeout_s=30)
        session.begin(device, image)
        session.send_payload(device, image if stage != "half sent" else image[: len(image) // 2], 1000)
        if stage != "half sent":
            session.finish(device)
        if stage == "on trial":
            device.reboot(into_update=True)
            assert read_state(device, kind).on_trial
        return bytes(board._engine.mem_read(self.origin, self.flash_bytes))  # type: ignore[attr-defined]


class FirmwareFactory(FlashedBoards):
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
        return self.flashed(folder, self.bundles[0], factory_segments(self.bundles[0], self.image(0, 1)))


def answers(device: Device, folder: Path) -> bool:
    """The board computes a bundle's golden vectors."""
    for number in range(3):
        device.load(0, (folder / "vectors" / f"input_{number:03}.bin").read_bytes())
        device.run()
        if device.read_output(0) != (folder / "vectors" / f"output_{number:03}.bin").read_bytes():
            return False
    return True
