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
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from support.dense_network import dense_network
from support.pty_line import PtyLine
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
