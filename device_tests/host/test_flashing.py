# SPDX-License-Identifier: Apache-2.0
"""`arenite flash`: the real esptool and stm32loader, on a pty, against emulations of the loaders in ROM.

The emulations are written from the protocols' descriptions. Each fault has its own message, and what the message says
of the flash is compared with what the flash holds.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from arenite.device.flashing import FlashReport, FlashState, flash
from arenite.device.flashing.intel_hex import intel_hex
from arenite.device.flashing.model import Piece
from arenite.device.flashing.uf2 import uf2_of
from arenite.errors import FlashError, UsageError
from support.esp_rom import CHIPS as ESP_CHIPS
from support.esp_rom import EspRom
from support.flash_bundle import make_flash_bundle
from support.pty_line import PtyLine
from support.stm32_rom import CHIPS as STM32_CHIPS
from support.stm32_rom import Stm32Rom

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a pty is needed")

ESP = ("esp32", "esp32c3", "esp32s3")
STM32 = ("stm32f405", "stm32g071")
SHIM = Path(__file__).parent.parent / "support" / "pty_modem"
OLD = b"\xa5"

Rom = EspRom | Stm32Rom


def need(board: str) -> None:
    tool = "stm32loader" if board.startswith("stm32") else "esptool"
    if importlib.util.find_spec(tool) is None and shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed: pip install 'arenite[flash]'")


@pytest.fixture(autouse=True)
def lines_of_a_pty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs under test leave out what a pty has not."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SHIM), os.environ.get("PYTHONPATH", "")]))


def rom_of(board: str, **options: Any) -> Rom:
    """A chip with old firmware in its flash."""
    need(board)
    size = options.pop("flash_bytes", {"stm32f405": 1 << 20, "stm32g071": 128 << 10}.get(board, 4 << 20))
    kind, chips = (Stm32Rom, STM32_CHIPS) if board in STM32 else (EspRom, ESP_CHIPS)
    return kind(chips[board], flash_bytes=size, flash=bytearray(OLD * size), **options)  # type: ignore[operator,index]


def base_of(board: str) -> int:
    """Address of the first byte of the firmware in the flash, and of the flash as the loader counts."""
    return {"esp32": 0x10000, "esp32s3": 0x10000, "esp32c3": 0}.get(board, 0)


def run(bundle: Path, line: PtyLine, **options: Any) -> FlashReport:
    return flash(bundle, line.port, reset=False, stub=False, check=False, **options)


def refused(bundle: Path, line: PtyLine, **options: Any) -> FlashError:
    with pytest.raises(FlashError) as caught:
        run(bundle, line, **options)
    return caught.value


def check_state(error: FlashError, rom: Rom, image: bytes, start: int) -> None:
    """The flash holds what the error says of it."""
    state = error.state
    assert isinstance(state, FlashState)
    origin = rom.base if isinstance(rom, Stm32Rom) else 0
    expected = bytearray((b"\xff" if state.erased else OLD) * len(rom.flash))
    for low, high in state.new:
        expected[low - origin : high - origin] = image[low - origin - start : high - origin - start]
    for low, high in state.unsure:
        expected[low - origin : high - origin] = rom.flash[low - origin : high - origin]
    assert bytes(rom.flash) == bytes(expected)


@pytest.mark.parametrize("board", ESP + STM32)
def test_a_board_is_flashed_and_read_back(tmp_path: Path, board: str) -> None:
    rom = rom_of(board)
    image, start = make_flash_bundle(tmp_path / "b", board), base_of(board)
    with PtyLine(rom) as line:
        report = run(tmp_path / "b", line)
        assert report.read_back is True
        assert rom.flash[start : start + len(image)] == image
        assert (report.written_bytes, report.present_bytes) == (len(image), 0)
        assert report.flash_bytes == len(rom.flash)
        assert report.unique_id is not None
        if isinstance(rom, Stm32Rom):
            assert rom.started == rom.base
            assert report.started
        else:
            # Beyond the last sector of 4 KiB that the image touches nothing has changed.
            end = -(-(start + len(image)) // 4096) * 4096
            assert rom.flash[end:] == OLD * (len(rom.flash) - end)
            assert not report.started


@pytest.mark.parametrize("board", ["esp32c3", "stm32f405"])
def test_a_dry_run_changes_nothing(tmp_path: Path, board: str) -> None:
    rom = rom_of(board)
    image = make_flash_bundle(tmp_path / "b", board)
    with PtyLine(rom) as line:
        report = run(tmp_path / "b", line, dry_run=True)
    assert report.dry_run
    assert report.written_bytes == len(image)
    assert bytes(rom.flash) == OLD * len(rom.flash)


@pytest.mark.parametrize(("board", "bundled"), [("esp32", "esp32c3"), ("esp32s3", "esp32"), ("stm32f405", "stm32g071")])
def test_another_chip_is_refused(tmp_path: Path, board: str, bundled: str) -> None:
    rom = rom_of(board)
    image = make_flash_bundle(tmp_path / "b", bundled)
    with PtyLine(rom) as line:
        error = refused(tmp_path / "b", line)
    assert (error.stage, error.exit_code) == ("identity", 1)
    assert f"the bundle is for {bundled}" in error.what
    assert str(error).count("the flash is as it was") == 1
    check_state(error, rom, image, 0)


@pytest.mark.parametrize(("board", "flash_bytes"), [("esp32c3", 2 << 20), ("stm32f405", 512 << 10)])
def test_a_smaller_flash_is_refused(tmp_path: Path, board: str, flash_bytes: int) -> None:
    rom = rom_of(board, flash_bytes=flash_bytes)
    image = make_flash_bundle(tmp_path / "b", board)
    with PtyLine(rom) as line:
        error = refused(tmp_path / "b", line)
    assert (error.stage, error.exit_code) == ("size", 1)
    assert f"the chip has {flash_bytes:,} bytes of flash" in error.what
    check_state(error, rom, image, 0)


@pytest.mark.parametrize(
    ("board", "option", "message"),
    [
        ("esp32c3", "secure_download", "secure download mode is on"),
        ("stm32f405", "read_protected", "read-out protection is on"),
        ("stm32g071", "read_protected", "read-out protection is on"),
    ],
)
def test_a_protected_chip_is_refused(tmp_path: Path, board: str, option: str, message: str) -> None:
    rom = rom_of(board, **{option: True})
    image = make_flash_bundle(tmp_path / "b", board)
    with PtyLine(rom) as line:
        error = refused(tmp_path / "b", line)
    assert (error.stage, error.exit_code) == ("protection", 1)
    assert message in error.what
    check_state(error, rom, image, 0)


class Dropping:
    """A line that swallows one byte in every `every`, after `after` bytes."""

    def __init__(self, after: int, every: int) -> None:
        self.after, self.every, self.seen = after, every, 0

    def __call__(self, data: bytes) -> bytes:
        kept = bytearray()
        for byte in data:
            self.seen += 1
            if self.seen < self.after or (self.seen - self.after) % self.every:
                kept.append(byte)
        return bytes(kept)


@pytest.mark.parametrize(("board", "after"), [("esp32c3", 80_000), ("stm32f405", 9_000)])
def test_dropped_bytes_end_in_what_the_flash_holds(tmp_path: Path, board: str, after: int) -> None:
    rom = rom_of(board)
    image = make_flash_bundle(tmp_path / "b", board)
    with PtyLine(rom, filter_in=Dropping(after, 700)) as line:
        error = refused(tmp_path / "b", line)
    assert (error.stage, error.exit_code) == ("write", 2)
    assert "bytes were lost on the line" in error.what
    assert isinstance(error.state, FlashState)
    assert error.state.unsure
    check_state(error, rom, image, base_of(board))


@pytest.mark.parametrize("board", ["esp32c3", "stm32f405"])
def test_a_silent_line_is_no_loader(tmp_path: Path, board: str) -> None:
    rom = rom_of(board)
    image = make_flash_bundle(tmp_path / "b", board)
    with PtyLine(rom, filter_in=lambda data: b"") as line:
        error = refused(tmp_path / "b", line)
    assert (error.stage, error.exit_code) == ("sync", 2)
    assert "its loader is not running" in error.what
    check_state(error, rom, image, 0)


@contextmanager
def other_program(port: str, code: str) -> Iterator[None]:
    """Another program has the port open."""
    script = f"import os, sys; fd = os.open({port!r}, os.O_RDWR | os.O_NOCTTY); print('on', flush=True); {code}"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who has a port open")
def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    rom = rom_of("esp32c3")
    image = make_flash_bundle(tmp_path / "b", "esp32c3")
    with PtyLine(rom) as line, other_program(line.port, "sys.stdin.read()"):
        error = refused(tmp_path / "b", line)
    assert (error.stage, error.exit_code) == ("port", 2)
    assert "the port is open in another program: python" in error.what
    check_state(error, rom, image, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who has a port open")
@pytest.mark.parametrize(("board", "after"), [("esp32c3", 70_000), ("stm32f405", 6_000)])
def test_a_port_that_is_stolen_while_it_writes_is_told(tmp_path: Path, board: str, after: int) -> None:
    image = make_flash_bundle(tmp_path / "b", board)
    thief: list[Any] = []

    def steal() -> None:
        if not thief:
            context = other_program(line.port, "[os.read(fd, 4096) for _ in iter(int, 1)]")
            thief.append(context)
            context.__enter__()

    rom = rom_of(board)
    if isinstance(rom, EspRom):
        rom.on_data = lambda written: steal() if written >= after else None
    else:
        rom.on_write = lambda address: steal() if address - rom.base >= after else None
    with PtyLine(rom) as line:
        try:
            error = refused(tmp_path / "b", line)
        finally:
            thief[0].__exit__(None, None, None)
    assert (error.stage, error.exit_code) == ("port", 2)
    assert "another program reads from the port: python" in error.what
    check_state(error, rom, image, base_of(board))


def test_what_broke_off_goes_on_where_it_stopped(tmp_path: Path) -> None:
    rom = rom_of("esp32c3")
    image = make_flash_bundle(tmp_path / "b", "esp32c3")
    with PtyLine(rom, filter_in=Dropping(80_000, 700)) as line:
        refused(tmp_path / "b", line)
    with PtyLine(rom) as line:
        report = run(tmp_path / "b", line)
        assert report.present_bytes == 65_536
        assert report.written_bytes == len(image) - 65_536
        assert rom.flash[: len(image)] == image
        again = run(tmp_path / "b", line)
    assert (again.written_bytes, again.present_bytes) == (0, len(image))


@pytest.mark.parametrize("board", ["esp32c3", "stm32f405"])
def test_a_worn_flash_is_told_from_a_line_that_is_not_steady(tmp_path: Path, board: str) -> None:
    make_flash_bundle(tmp_path / "b", board)
    rom = rom_of(board, stuck={5_000: 0x7F})
    with PtyLine(rom) as line:
        worn = refused(tmp_path / "b", line)
    assert (worn.stage, worn.exit_code) == ("verify", 1)
    assert "does not keep what is written" in worn.what
    rom = rom_of(board, noise={5_000})
    with PtyLine(rom) as line:
        unsteady = refused(tmp_path / "b", line)
    assert unsteady.stage == "verify"
    assert "is read otherwise each time" in unsteady.what


def test_images_of_an_esp_idf_project_are_taken_from_its_list(tmp_path: Path) -> None:
    rom = rom_of("esp32c3")
    make_flash_bundle(tmp_path / "b", "esp32c3")
    build = tmp_path / "b" / "build"
    (build / "boot.bin").write_bytes(b"boot" * 100)
    (build / "app.bin").write_bytes(b"app!" * 20_000)
    (build / "flasher_args.json").write_text(json.dumps({"flash_files": {"0x0": "boot.bin", "0x10000": "app.bin"}}))
    with PtyLine(rom) as line:
        run(tmp_path / "b", line)
    assert rom.flash[:400] == b"boot" * 100
    assert rom.flash[0x10000 : 0x10000 + 80_000] == b"app!" * 20_000


def test_a_uf2_drive_of_the_right_board_gets_the_file(tmp_path: Path) -> None:
    image = make_flash_bundle(tmp_path / "b", "rp2040")
    drive = tmp_path / "drive"
    drive.mkdir()
    (drive / "INFO_UF2.TXT").write_text("UF2 Bootloader v3.0\r\nModel: Raspberry Pi RP2\r\nBoard-ID: RPI-RP2\r\n")
    report = flash(tmp_path / "b", str(drive))
    assert report.read_back is None
    assert report.chip == "Raspberry Pi RP2"
    blocks = (drive / "ARENITE.UF2").read_bytes()
    assert blocks == uf2_of([Piece(0x10000000, image)], 0xE48BFF56)
    (drive / "INFO_UF2.TXT").write_text("Model: Raspberry Pi RP2350\r\nBoard-ID: RP2350\r\n")
    (drive / "ARENITE.UF2").unlink()
    with pytest.raises(FlashError, match=r"the chip is Raspberry Pi RP2350 .* the flash is as it was"):
        flash(tmp_path / "b", str(drive))
    assert not (drive / "ARENITE.UF2").exists()


def test_uf2_blocks_are_those_of_esptool(tmp_path: Path) -> None:
    """Its writer is another one's; it makes blocks for its own families only."""
    need("esp32")
    image = bytes(range(256)) * 10
    (tmp_path / "image.bin").write_bytes(image)
    tool = [shutil.which("esptool")] if shutil.which("esptool") else [sys.executable, "-m", "esptool"]
    arguments = ["--chip", "esp32s3", "merge-bin", "--format", "uf2", "--chunk-size", "256", "--md5-disable"]
    subprocess.run([*tool, *arguments, "-o", str(tmp_path / "o.uf2"), "0x0", str(tmp_path / "image.bin")], check=True)
    theirs = (tmp_path / "o.uf2").read_bytes()
    assert theirs == uf2_of([Piece(0, image)], 0xC47E5767)


def test_a_board_s_own_command_is_run_with_its_files(tmp_path: Path) -> None:
    script = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(pathlib.Path(sys.argv[2]).read_bytes())"
    command = [sys.executable, "-c", script, str(tmp_path / "copy")]
    make_flash_bundle(tmp_path / "h", "other", {"method": "command", "command": [*command, "{hex}"]})
    flash(tmp_path / "h", "P", check=False)
    assert (tmp_path / "copy").read_text().endswith("\n:00000001FF\n")
    image = make_flash_bundle(tmp_path / "b", "other", {"method": "command", "command": [*command, "{bin}"]})
    report = flash(tmp_path / "b", "P", check=False)
    assert (tmp_path / "copy").read_bytes() == image
    assert report.read_back is None
    failing = {"method": "command", "command": [sys.executable, "-c", "raise SystemExit('target is not halted')"]}
    make_flash_bundle(tmp_path / "c", "other", failing)
    with pytest.raises(FlashError, match="target is not halted"):
        flash(tmp_path / "c", "P", check=False)


def test_intel_hex_is_what_the_library_of_pyocd_reads() -> None:
    """Pieces that start anywhere, cross a multiple of 64 KB, and lie above it."""
    intelhex = pytest.importorskip("intelhex", reason="intelhex is not installed")
    pieces = [Piece(0x5FFFFFF3, bytes(range(200))), Piece(0x60010000, b"\x01\x02\x03"), Piece(0x90000000, bytes(40))]
    read = intelhex.IntelHex(io.StringIO(intel_hex(pieces)))
    assert read.segments() == [(piece.address, piece.end) for piece in pieces]
    assert [read.tobinstr(start=piece.address, size=len(piece.data)) for piece in pieces] == [p.data for p in pieces]


def test_firmware_outside_the_flash_and_boards_without_a_way_are_usage_errors(tmp_path: Path) -> None:
    make_flash_bundle(tmp_path / "b", "stm32g071", code=bytes(130 << 10))
    with pytest.raises(UsageError, match="which is not in the board's flash"):
        flash(tmp_path / "b", "P")
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    del manifest["flash"]
    (tmp_path / "b" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match="does not say how the board is flashed"):
        flash(tmp_path / "b", "P")


def test_the_command_prints_a_report_and_an_error_without_traceback(
    tmp_path: Path, arenite_command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    rom = rom_of("esp32c3")
    make_flash_bundle(tmp_path / "b", "esp32c3")
    missing = arenite_command("flash", tmp_path / "b", "--port", tmp_path / "none")
    assert missing.returncode == 2
    assert "there is no such port; the flash is as it was" in missing.stderr
    with PtyLine(rom, hold=False) as line:
        done = arenite_command("flash", tmp_path / "b", "--port", line.port, "--no-reset", "--no-stub", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["read_back"] is True
