# SPDX-License-Identifier: Apache-2.0
"""Flash drivers of real chips: whole updates on emulated boards whose flash is behind the chip's own controller."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from arenite.device import open_device
from arenite.device.emulators import EmulatedBoard
from arenite.device.updating import read_state, send_image
from arenite_codegen.boards import list_boards, load_board
from support.flash_controllers import FlashController, Nvmc, Stm32F4, Stm32L4
from support.update_factory import FirmwareFactory, answers, update_table

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")

OWNER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
Make = Callable[[EmulatedBoard, tuple[int, int]], FlashController]
# The board that the core and the serial port are of, and its slots; the sectors of the slots that an update erases.
CASES: dict[str, tuple[str, str, Make, list[int]]] = {
    "nrf": (
        "qemu-mps2-an386",
        update_table((0x10000, 0x60000), 0x50000, 4096, 4, "nrf"),
        Nvmc,
        [0x60000, 0x60000 + 0x4F000, *range(0x61000, 0x65000, 4096)],
    ),
    "stm32-f4-f7": (
        "qemu-netduinoplus2",
        update_table((0x08020000, 0x08080000), 0x60000, 0x20000, 4, "stm32-f4-f7"),
        Stm32F4,
        [0x08080000, 0x080C0000],
    ),
    "stm32-pages": (
        "qemu-netduinoplus2",
        update_table((0x08008000, 0x08020000), 0x18000, 2048, 8, "stm32-pages"),
        Stm32L4,
        [0x08020000, 0x08020000 + 0x17800, *range(0x08020800, 0x08026000, 2048)],
    ),
}


@pytest.mark.parametrize("driver", CASES)
def test_firmware_is_updated_through_the_chip_s_flash_controller(driver: str, tmp_path: Path) -> None:
    pytest.importorskip("unicorn")
    board_name, table, make, sectors = CASES[driver]
    factory = FirmwareFactory(tmp_path, board_name, table, OWNER)
    image = factory.image(1, 2)
    with closing(factory.new_board(tmp_path / "board")) as board:
        controller = make(board, (factory.origin, factory.flash_bytes))
        device = open_device(board.stream, timeout_s=30)
        assert send_image(device, image, confirm=False).after.on_trial
        assert answers(device, factory.bundles[1])
        payload = len(image) - 256
        last = sectors[0] + 1024 + payload
        assert controller.erased == [at for at in sectors if at < last or at == sectors[1]]
        unit = controller.UNIT_BYTES
        assert 4 * controller.words == 256 + -(-payload // unit) * unit + unit  # header, payload, the mark `tried`
        device.reboot()
        assert read_state(device).rolled_back
        assert answers(device, factory.bundles[0])
        report = send_image(device, factory.image(1, 3))
        assert (report.after.slot, report.after.version, report.after.confirmed) == (1, 3, True)
        assert answers(device, factory.bundles[1])
        assert controller.faults == []


def test_slots_of_boards_are_whole_sectors_behind_the_loader() -> None:
    """Sizes of sectors from the chips' manuals: RM0410 table 3, nRF52840 Product Specification."""
    large_sectors = {"nucleo-f767zi": (0x08040000, 0x40000), "nrf52840dk": (0, 4096)}
    found = {name: load_board(name) for name in list_boards() if load_board(name).update is not None}
    assert set(found) == set(large_sectors)
    for name, board in found.items():
        first, sector_bytes = large_sectors[name]
        assert board.update is not None
        assert board.update.sector_bytes == sector_bytes
        spans = [(at, at + board.update.slot_bytes) for at in board.update.slots or ()]
        spans += [(at, at + board.update.model_slot_bytes) for at in board.update.model_slots or ()]
        at = board.flash.origin + 0x10000  # the loader's at least
        for start, end in sorted(spans):
            assert start >= max(at, first)
            assert (start - first) % sector_bytes == 0
            at = end
        assert at <= board.flash.origin + board.flash.length
