# SPDX-License-Identifier: Apache-2.0
"""Updates of a whole firmware on an emulated Cortex-M4: loader, two slots, golden vectors, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from arenite.device import Device, open_device
from arenite.device.updating import Kind, read_state, send_image, sign_bundle
from arenite.errors import CheckFailedError, UsageError
from arenite_codegen import bundle
from support.dense_network import dense_network
from support.update_factory import FirmwareFactory, answers, update_table

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")

OWNER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = OWNER.public_key().public_bytes_raw()
TABLE = update_table((0x100000, 0x200000), 0x40000, 4096, 8, "memory")


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> FirmwareFactory:
    pytest.importorskip("unicorn")
    return FirmwareFactory(tmp_path_factory.mktemp("factory"), "qemu-mps2-an386", TABLE, OWNER)


@pytest.fixture
def device(factory: FirmwareFactory, tmp_path: Path) -> Iterator[Device]:
    with closing(factory.new_board(tmp_path / "board")) as board:
        yield open_device(board.stream, timeout_s=30)


def test_firmware_is_replaced_and_computes_the_other_model(factory: FirmwareFactory, device: Device) -> None:
    state = read_state(device)
    assert (state.slot, state.version, state.rolled_back) == (0, 1, False)
    assert answers(device, factory.bundles[0])
    assert not answers(device, factory.bundles[1])
    report = send_image(device, factory.image(1, 2))
    assert (report.after.slot, report.after.version, report.after.confirmed) == (1, 2, True)
    assert answers(device, factory.bundles[1])
    device.reboot()
    assert read_state(device).version == 2
    back = send_image(device, factory.image(0, 3))
    assert (back.after.slot, back.after.version) == (0, 3)
    assert answers(device, factory.bundles[0])


def test_firmware_that_is_not_confirmed_goes_back(factory: FirmwareFactory, device: Device) -> None:
    assert send_image(device, factory.image(1, 2), confirm=False).after.on_trial
    device.reboot()
    state = read_state(device)
    assert (state.slot, state.version, state.rolled_back) == (0, 1, True)
    assert answers(device, factory.bundles[0])


@pytest.mark.parametrize("stage", ["half sent", "sent", "on trial"])
def test_power_fails_on_the_board(factory: FirmwareFactory, tmp_path: Path, stage: str) -> None:
    """RAM and core start anew, the flash stays: what runs is whole, and the update can be done again."""
    image = factory.image(1, 2)
    with closing(factory.new_board(tmp_path / "board")) as board:
        flash = factory.flash_at(board, image, stage, Kind.FIRMWARE)
    with closing(factory.start(tmp_path / "board", flash)) as board:
        device = open_device(board.stream, timeout_s=30)
        state = read_state(device)
        expected = {"half sent": (0, 1, False, False), "sent": (1, 2, True, False), "on trial": (0, 1, False, True)}
        assert (state.slot, state.version, state.on_trial, state.rolled_back) == expected[stage]
        assert answers(device, factory.bundles[state.slot or 0])
        if state.slot == 0:
            assert send_image(device, factory.image(1, 3)).after.version == 3


def test_firmware_for_the_slot_that_runs_is_refused(factory: FirmwareFactory, device: Device) -> None:
    with pytest.raises(CheckFailedError, match="for another slot"):
        send_image(device, factory.image(0, 2))
    assert answers(device, factory.bundles[0])


def test_what_cannot_be_bundled_for_a_slot_is_refused(factory: FirmwareFactory, tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(dense_network(16, 4))
    with pytest.raises(UsageError, match="has no slots for updates"):
        bundle(model, "qemu-mps2-an386", tmp_path / "b", slot=0, update_key=KEY)
    with pytest.raises(UsageError, match="needs the public key"):
        bundle(model, factory.bundles[0].parent / "board.toml", tmp_path / "b", slot=0)
    bundle(model, "qemu-mps2-an386", tmp_path / "b")
    with pytest.raises(UsageError, match="the bundle is for no slot"):
        sign_bundle(tmp_path / "b", OWNER, version=1)
