# SPDX-License-Identifier: Apache-2.0
"""The whole way: bundle, build, flash through a loader in ROM, start, golden vectors over the same port.

What runs in the emulator afterwards is the content of the emulated flash, not the ELF file.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from arenite.cli import main
from arenite.device.emulators import start_emulator
from arenite.device.flashing import flash
from arenite.device.updating import Kind, public_key_of, sign_bundle, sign_image
from arenite.errors import UsageError
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from support.dense_network import dense_network
from support.elf_file import elf_of
from support.pty_line import PtyLine
from support.served_board import over_pty
from support.stm32_rom import CHIPS, Stm32Rom

FLASH_BYTES = 4 << 20
TABLE = f"""
[flash]
method = "stm32loader"
chip = "0x413"
family = "F4"
size_bytes = {FLASH_BYTES}
"""


class Application:
    """The emulated board as what is at the end of the line."""

    def __init__(self, folder: Path, flash: bytes) -> None:
        self._board = start_emulator(folder, "unicorn")
        self._board._engine.mem_write(0, flash)  # type: ignore[attr-defined]

    def receive(self, data: bytes) -> bytes:
        self._board.stream.write(data)
        return self._board.stream.read(30)


@pytest.mark.skipif(os.name != "posix", reason="a pty is needed")
def test_flash_start_and_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("unicorn")
    if shutil.which("stm32loader") is None:
        pytest.importorskip("stm32loader", reason="stm32loader is not installed: pip install 'arenite[flash]'")
    shim = Path(__file__).parent.parent / "support" / "pty_modem"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(shim), os.environ.get("PYTHONPATH", "")]))
    source = load_board("qemu-mps2-an386").directory / "board.toml"
    (tmp_path / "board.toml").write_text(source.read_text() + TABLE)
    (tmp_path / "model.tflite").write_bytes(dense_network(16, 4))
    folder = tmp_path / "b"
    bundle(tmp_path / "model.tflite", tmp_path / "board.toml", folder)
    build(folder)
    rom = Stm32Rom(CHIPS["stm32f405"], flash_bytes=FLASH_BYTES, base=0)
    rom.on_go = lambda address: Application(folder, bytes(rom.flash))
    with PtyLine(rom) as line:
        code = main(["flash", str(folder), "--port", line.port, "--json"])
    report = json.loads(capsys.readouterr().out)
    assert code == 0
    assert report["read_back"] is True
    assert report["started"] is True
    assert report["verification"]["identical"] is True
    assert report["verification"]["vectors"] == 3


def in_flash(bundle_dir: Path, folder: Path, flash: bytes) -> Path:
    """The bundle with all of the flash as what is built: an emulator starts with the loader, not with the firmware."""
    shutil.copytree(bundle_dir, folder)
    (folder / "build" / "firmware.elf").write_bytes(elf_of([(0, flash[: SLOTS[1]])]))
    return folder


SLOTS = (0x100000, 0x200000)
SLOT_TABLE = f"""
[update]
slots = {list(SLOTS)}
slot_bytes = 0x40000
sector_bytes = 4096
write_bytes = 8
driver = "memory"
"""


@pytest.mark.skipif(os.name != "posix", reason="a pty is needed")
def test_firmware_for_a_slot_is_flashed_with_its_loader_and_its_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("unicorn")
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    if shutil.which("stm32loader") is None:
        pytest.importorskip("stm32loader", reason="stm32loader is not installed: pip install 'arenite[flash]'")
    shim = Path(__file__).parent.parent / "support" / "pty_modem"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(shim), os.environ.get("PYTHONPATH", "")]))
    owner = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    source = load_board("qemu-mps2-an386").directory / "board.toml"
    (tmp_path / "board.toml").write_text(source.read_text() + TABLE + SLOT_TABLE)
    (tmp_path / "model.tflite").write_bytes(dense_network(16, 4))
    folder, image = tmp_path / "b", tmp_path / "firmware-3.img"
    bundle(tmp_path / "model.tflite", tmp_path / "board.toml", folder, slot=0, update_key=public_key_of(owner))
    build(folder)
    assert main(["verify", str(folder)]) == 2
    assert "where qemu-mps2-an386 starts: it is for a slot" in capsys.readouterr().err
    assert main(["flash", str(folder), "--port", "nowhere"]) == 2
    assert "needs a signed image. Sign it with `arenite update sign` and give --image" in capsys.readouterr().err
    image.write_bytes(sign_bundle(folder, owner, version=3))
    rom = Stm32Rom(CHIPS["stm32f405"], flash_bytes=FLASH_BYTES, base=0)
    rom.on_go = lambda address: Application(in_flash(folder, tmp_path / "board", bytes(rom.flash)), bytes(rom.flash))
    with PtyLine(rom) as line:
        code = main(["flash", str(folder), "--port", line.port, "--image", str(image), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (code, report["read_back"], report["verification"]["identical"]) == (0, True, True)
    assert bytes(rom.flash[SLOTS[0] : SLOTS[0] + 256]) == image.read_bytes()[:256]
    of_board = {"version": 4, "board": "qemu-mps2-an386", "address": SLOTS[0]}
    other = sign_image(image.read_bytes()[256:-1], owner, kind=Kind.FIRMWARE, **of_board)
    with pytest.raises(UsageError, match="another build than the bundle"):
        flash(folder, "nowhere", image=other)
    with pytest.raises(UsageError, match="another board or slot"):
        flash(folder, "nowhere", image=sign_image(b"x", owner, kind=Kind.MODEL, **of_board))


UF2_TABLE = """
[flash]
method = "uf2"
chip = "RPI-RP2"
family = "0xe48bff56"
size_bytes = 0x200000
"""


@pytest.mark.skipif(os.name != "posix", reason="a pty is needed")
def test_a_board_with_a_drive_is_verified_at_its_serial_port(tmp_path: Path) -> None:
    """What is copied to the drive is not what runs here: the firmware is started beside it, as the board would."""
    pytest.importorskip("unicorn")
    source = load_board("qemu-mps2-an386").directory / "board.toml"
    (tmp_path / "board.toml").write_text(source.read_text() + UF2_TABLE)
    (tmp_path / "model.tflite").write_bytes(dense_network(16, 4))
    folder, drive = tmp_path / "b", tmp_path / "drive"
    bundle(tmp_path / "model.tflite", tmp_path / "board.toml", folder)
    build(folder)
    drive.mkdir()
    (drive / "INFO_UF2.TXT").write_text("Model: Raspberry Pi RP2\r\nBoard-ID: RPI-RP2\r\n")
    assert flash(folder, str(drive)).verification is None
    with over_pty(folder) as port:
        report = flash(folder, str(drive), verify_on=port)
    assert report.verification is not None
    assert report.verification.identical
    assert report.verification.vectors == 3
