# SPDX-License-Identifier: Apache-2.0
"""A model alone is replaced on emulated boards: linked for its slot, sent, on trial, confirmed, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from arenite.cli import main
from arenite.device import Device, open_device
from arenite.device.emulators import EmulatedBoard
from arenite.device.target import read_segments
from arenite.device.updating import Kind, read_header, read_state, send_image, sign_bundle
from arenite.errors import CheckFailedError, DoesNotFitError, UsageError
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from arenite_codegen.model_slot import build_model
from support.dense_network import dense_network
from support.graphs import random_graph
from support.update_factory import FlashedBoards, answers

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")

OWNER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = OWNER.public_key().public_bytes_raw()
SLOT_BYTES = 0x20000
OFFSETS = (0x100000, 0x140000)
FLASH_BYTES = OFFSETS[1] + SLOT_BYTES


class Factory(FlashedBoards):
    """Firmware for a board with one network inside, and bundles of the same network with other weights."""

    def __init__(self, folder: Path, board: str) -> None:
        self.folder, self._board = folder, board
        source = load_board(board)
        self.origin, self.flash_bytes = source.flash.origin, FLASH_BYTES
        slots = [self.origin + offset for offset in OFFSETS]
        table = f'model_slots = {slots}\nmodel_slot_bytes = {SLOT_BYTES}\nsector_bytes = 4096\nwrite_bytes = 8\n'
        text = (source.directory / "board.toml").read_text()
        self.board_file = folder / "board.toml"
        self.board_file.write_text(f'{text}\n[update]\n{table}driver = "memory"\n')
        self.firmware = self.bundle_of(0, model_slots=True, update_key=KEY)
        build(self.firmware)

    def bundle_of(self, seed: int, **options: object) -> Path:
        model, out = self.folder / f"model{seed}.tflite", self.folder / f"bundle{seed}"
        if not out.exists():
            model.write_bytes(dense_network(16, 4, seed=seed))
            bundle(model, self.board_file, out, **options)  # type: ignore[arg-type]
        return out

    def image(self, seed: int, slot: int, version: int) -> bytes:
        made = self.bundle_of(seed)
        build_model(made, self.firmware, slot)
        return sign_bundle(made, OWNER, version=version)

    def new_board(self, folder: Path) -> EmulatedBoard:
        """As a factory leaves it: the firmware, and slots that are erased."""
        return self.flashed(folder, self.firmware, read_segments(self.firmware / "build" / "firmware.elf"))


@pytest.fixture(scope="module", params=["qemu-mps2-an386", "qemu-riscv32"])
def factory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Factory:
    pytest.importorskip("unicorn")
    return Factory(tmp_path_factory.mktemp("factory"), request.param)


@pytest.fixture
def device(factory: Factory, tmp_path: Path) -> Iterator[Device]:
    with closing(factory.new_board(tmp_path / "board")) as board:
        yield open_device(board.stream, timeout_s=30)


def state_of(device: Device) -> tuple[int | None, int, bool, bool]:
    state = read_state(device, Kind.MODEL)
    return state.slot, state.version, state.confirmed, state.rolled_back


def test_a_model_is_replaced_and_the_next_one_goes_to_the_other_slot(factory: Factory, device: Device) -> None:
    assert state_of(device) == (None, 0, False, False)
    assert answers(device, factory.firmware)
    for seed, slot, version in ((1, 0, 1), (2, 1, 2), (1, 0, 5)):
        report = send_image(device, factory.image(seed, slot, version))
        assert (report.after.slot, report.after.version, report.after.confirmed) == (slot, version, True)
        assert answers(device, factory.bundle_of(seed))
        assert not answers(device, factory.firmware)
        device.reboot()
        assert state_of(device) == (slot, version, True, False)
        assert answers(device, factory.bundle_of(seed))


def test_a_model_that_is_not_confirmed_goes_back(factory: Factory, device: Device) -> None:
    """First to the model in the firmware, then to the one in the other slot."""
    assert send_image(device, factory.image(1, 0, 1), confirm=False).after.on_trial
    assert answers(device, factory.bundle_of(1))
    device.reboot()
    assert state_of(device) == (None, 0, False, True)
    assert answers(device, factory.firmware)
    send_image(device, factory.image(1, 0, 2))
    assert send_image(device, factory.image(2, 1, 3), confirm=False).after.on_trial
    device.reboot()
    assert state_of(device) == (0, 2, True, True)
    assert answers(device, factory.bundle_of(1))


@pytest.mark.parametrize("stage", ["half sent", "sent", "on trial"])
def test_power_fails_on_the_board(factory: Factory, tmp_path: Path, stage: str) -> None:
    """RAM and core start anew, the flash stays: what runs is whole, and the update can be done again."""
    image = factory.image(1, 0, 2)
    with closing(factory.new_board(tmp_path / "board")) as board:
        flash = factory.flash_at(board, image, stage, Kind.MODEL)
    with closing(factory.start(tmp_path / "board", flash)) as board:
        device = open_device(board.stream, timeout_s=30)
        state = state_of(device)
        expected = {
            "half sent": (None, 0, False, False),
            "sent": (0, 2, False, False),
            "on trial": (None, 0, False, True),
        }
        assert state == expected[stage]
        assert answers(device, factory.firmware if state[0] is None else factory.bundle_of(1))
        if state[0] is None:
            assert send_image(device, factory.image(1, 0, 3)).after.version == 3


def test_a_model_for_other_kernels_or_another_slot_is_refused(factory: Factory, device: Device, tmp_path: Path) -> None:
    with pytest.raises(CheckFailedError, match="for another firmware build, or for another slot"):
        send_image(device, factory.image(1, 1, 1))
    other = Factory(tmp_path, factory._board)
    (other.firmware / "kernels" / "other.h").write_text("/* changed */\n")
    build(other.firmware)
    with pytest.raises(CheckFailedError, match="for another firmware build, or for another slot"):
        send_image(device, other.image(1, 0, 1))
    assert answers(device, factory.firmware)


def test_the_image_says_what_it_is(factory: Factory) -> None:
    header = read_header(factory.image(1, 1, 7), KEY)
    assert (header.kind, header.version, header.address) == (Kind.MODEL, 7, factory.origin + OFFSETS[1])
    report = build_model(factory.bundle_of(1), factory.firmware, 1)
    assert header.build.hex() == report.firmware_digest
    assert header.payload_bytes >= report.payload_bytes > 64  # 16 x 4 weights at least


def test_the_commands_go_the_same_way(factory: Factory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cryptography.hazmat.primitives import serialization as s

    key, image = tmp_path / "owner.pem", tmp_path / "model.img"
    key.write_bytes(OWNER.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()))
    model, firmware = str(factory.bundle_of(2)), str(factory.firmware)
    assert main(["build", model, "--model-for", firmware, "--slot", "1"]) == 0
    assert f"at {factory.origin + OFFSETS[1]:#x}" in capsys.readouterr().out
    assert main(["update", "sign", model, "--key", str(key), "--version", "3", "-o", str(image)]) == 0
    assert "model, version 3" in capsys.readouterr().out
    assert image.read_bytes() == factory.image(2, 1, 3)
    assert main(["build", model, "--model-for", firmware]) == 2
    assert "--slot must be given with --model-for" in capsys.readouterr().err


def test_a_model_that_the_firmware_cannot_run_is_refused(factory: Factory, tmp_path: Path) -> None:
    def bundle_of(name: str, data: bytes) -> Path:
        (tmp_path / f"{name}.tflite").write_bytes(data)
        bundle(tmp_path / f"{name}.tflite", factory.board_file, tmp_path / name)
        return tmp_path / name

    with pytest.raises(DoesNotFitError, match=r"bytes of arena .*, the firmware has"):
        build_model(bundle_of("large", dense_network(640, 4)), factory.firmware, 0)
    pooled = bundle_of("pool", random_graph("RELU", 1).model_bytes)
    with pytest.raises(DoesNotFitError, match=r"lacks kernels|the firmware has|the firmware is made for"):
        build_model(pooled, factory.firmware, 0)
    with pytest.raises(UsageError, match="cannot be replaced alone"):
        build_model(factory.bundle_of(1), pooled, 0)
    with pytest.raises(UsageError, match="a slot is 0 or 1"):
        build_model(factory.bundle_of(1), factory.firmware, 2)
