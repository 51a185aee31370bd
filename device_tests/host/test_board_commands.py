# SPDX-License-Identifier: Apache-2.0
"""`arenite boards`, `arenite boards add` and `arenite fit`, against what `bundle` itself says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import arenite
from arenite.cli import main
from arenite.errors import DoesNotFitError, UsageError
from arenite_codegen import board_fit, bundle
from arenite_codegen.board_fit import BoardFit
from arenite_codegen.board_hardware import Family
from arenite_codegen.board_model import Board
from arenite_codegen.boards import list_boards, load_board
from support.graphs import random_graph

MINE = """
name = "mine"
description = "a board of a user's"
architecture = "cortex-m"
cpu = "cortex-m4"
clock_hz = 64_000_000
stack_bytes = 1024

[features]
fpu = "single"
dsp = true
mve = false

[[memory]]
name = "flash"
kind = "flash"
origin = 0
length = {flash}

[[memory]]
name = "sram"
kind = "ram"
origin = 0x20000000
length = {ram}

[uart]
kind = "nrf"
base = 0x40002000
tx_pin = 6
rx_pin = 8

[counter]
kind = "dwt"
unit = "cycles"
hz = 64_000_000
"""


@pytest.fixture
def own_boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for the user's boards."""
    folder = tmp_path / "own boards"
    monkeypatch.setenv("ARENITE_BOARDS", str(folder))
    return folder


def write_board(folder: Path, ram: int = 1 << 16, flash: int = 1 << 20) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "my.toml"
    path.write_text(MINE.format(ram=ram, flash=flash))
    return path


@pytest.mark.usefixtures("own_boards")
def test_every_board_is_listed_with_what_its_file_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards", "--json"]) == 0
    listed = {board["name"]: board for board in json.loads(capsys.readouterr().out)["boards"]}
    assert sorted(listed) == list_boards()
    for name, entry in listed.items():
        board = load_board(name)
        assert [(m["name"], m["bytes"]) for m in entry["memories"]] == [(r.name, r.length) for r in board.memory]
        assert (entry["cpu"], entry["clock_hz"], entry["proven"]) == (board.cpu, board.clock_hz, board.proven)
    assert listed["stm32f746g-disco"]["memories"][1]["good_for"] == "weights, those that are read least often"
    assert main(["boards"]) == 0
    assert re.search(r"^teensy41 +cortex-m7, FPU \(double\), DSP +396  flash 7.75 MB: ", capsys.readouterr().out, re.M)


def test_a_board_that_was_added_is_known_by_its_name(own_boards: Path, tmp_path: Path) -> None:
    path = write_board(tmp_path / "source")
    (path.parent / "clock.c").write_text("/* SPDX-License-Identifier: Apache-2.0 */\n")
    added = arenite.add_board(path)
    assert (added.board, added.replaced, added.files) == ("mine", False, ("board.toml",))
    path = path.rename(path.parent / "board.toml")
    added = arenite.add_board(path)
    assert (added.replaced, added.files) == (True, ("board.toml", "clock.c"))
    assert "mine" in list_boards()
    assert load_board("mine") == load_board(path)
    assert load_board("mine").directory == own_boards / "mine"
    assert next(board for board in arenite.boards().boards if board.name == "mine").own


def test_a_wrong_board_is_not_added(own_boards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_board(tmp_path / "source")
    path.write_text(path.read_text().replace("clock_hz = 64_000_000\nstack", "clock_hz = 0\nstack"))
    assert main(["boards", "add", str(path)]) == 2
    assert "field `clock_hz` must be between 1 and" in capsys.readouterr().err
    assert not own_boards.exists()
    path.write_text(MINE.format(ram=1 << 16, flash=1 << 20).replace('"mine"', '"teensy41"'))
    with pytest.raises(UsageError, match="a board named 'teensy41' comes with Arenite"):
        arenite.add_board(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.tflite"
    path.write_bytes(random_graph("CONV_2D", 8).model_bytes)
    return path


def fit_boards(model: Path, boards: list[Board]) -> tuple[BoardFit, ...]:
    """`arenite.fit` on boards that no file describes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(board_fit, "load_board", lambda board: board)
        return board_fit.fit(model, boards).boards  # type: ignore[arg-type]


def test_fit_says_what_bundle_says_of_every_board(model: Path, tmp_path: Path) -> None:
    report = arenite.fit(model)
    assert [board.board for board in report.boards] == [n for n in list_boards() if load_board(n).proven != "emulated"]
    assert report.fits_somewhere
    assert report.macs > 0
    for board in report.boards[::5]:
        made = bundle(model, board.board, tmp_path / board.board)
        assert (board.arena_bytes, board.weights_bytes) == (made.arena_bytes, made.weights_bytes)
        assert board.fits


def test_latencies_are_those_of_the_core_s_kind_and_clock(model: Path) -> None:
    names = ["rpi-pico", "nucleo-f446re", "nrf52840dk", "esp32c3"]
    report = arenite.fit(model, names)
    found = {
        board.board: (board.latency_ms - board.waiting_ms) * load_board(board.board).clock_hz / 1e3 / report.macs
        for board in report.boards
    }
    assert found == pytest.approx({"rpi-pico": 7.1 * 1.3, "nucleo-f446re": 1.75, "nrf52840dk": 1.75, "esp32c3": 5.0})
    assert "modelled" in report.latency_source


def test_slow_memories_are_waited_for_as_the_bundle_counts_their_traffic(model: Path, tmp_path: Path) -> None:
    (found,) = arenite.fit(model, ["stm32f746g-disco"]).boards
    bundle(model, "stm32f746g-disco", tmp_path / "b", vectors=0)
    regions = json.loads((tmp_path / "b" / "manifest.json").read_text())["regions"]
    waiting = sum(-(-row["traffic_bytes"] // 4) * (row["word_cycles"] - 1) for row in regions)
    assert any(row["word_cycles"] > 1 and row["traffic_bytes"] for row in regions)
    assert found.waiting_ms == pytest.approx(1e3 * waiting / 216e6)


def test_energy_is_the_latency_times_what_the_board_file_says(model: Path) -> None:
    """The nRF52840 at 64 MHz draws 295 µW/MHz: 18.88 mW."""
    known, unknown = arenite.fit(model, ["nrf52840dk", "rpi-pico2"]).boards
    assert known.energy_mj == pytest.approx(known.latency_ms / 1e3 * 18.88)
    assert "CoreMark" in known.power_source
    assert (unknown.energy_mj, unknown.power_source) == (None, "")


def test_the_header_of_a_boot_rom_counts_as_code(model: Path) -> None:
    teensy = load_board("teensy41")
    code = replace(teensy.flash, length=33 << 10)
    small = replace(teensy, memory=(code, *teensy.rams))
    (found,) = fit_boards(model, [small])
    (short,) = found.missing
    assert short.missing_bytes == found.weights_bytes + (32 << 10) + 0x2000 - (33 << 10)


def test_what_is_short_is_as_short_as_bundle_says(model: Path, tmp_path: Path) -> None:
    arena = bundle(model, "nrf52840dk", tmp_path / "b").arena_bytes
    for ram, flash in ((1024 + arena - 1, 1 << 20), (1 << 16, 33_000), (1024 + arena, 1 << 20)):
        path = write_board(tmp_path / f"{ram}-{flash}", ram, flash)
        (found,) = arenite.fit(model, [path]).boards
        try:
            bundle(model, path, tmp_path / "b", force=True)
            assert found.fits and not found.missing
        except DoesNotFitError as error:
            assert not found.fits
            (short,) = found.missing
            assert f"region {short.region} ({short.kind}) has" in error.what
            assert f"{short.needed_bytes:,} are needed" in error.what
            assert f"{short.missing_bytes:,} too few" in error.what
    assert found.fits, "the last board has just enough"


def test_the_change_that_is_named_makes_it_fit(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = bundle(model, "nrf52840dk", tmp_path / "b").arena_bytes
    fed = bundle(model, "nrf52840dk", tmp_path / "b", row_fed=True).arena_bytes
    assert fed < whole
    path = write_board(tmp_path / "small", 1024 + fed)
    assert main(["fit", str(model), "--boards", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["boards"][0]
    assert (found["fits"], found["change"]) == (False, "--row-fed")
    bundle(model, path, tmp_path / "b", row_fed=True, force=True)
    smaller = write_board(tmp_path / "smaller", 1024 + 16)
    assert main(["fit", str(model), "--boards", str(smaller)]) == 1
    printed = capsys.readouterr().out
    assert "nothing known" in printed
    assert "fits 0 of 1 boards" in printed


@pytest.mark.parametrize(
    ("family", "ram", "change"),
    [
        ("stm32-f4-f7", 1 << 16, "1 MB of external flash"),
        ("stm32-f4-f7", 0, "1 MB of external flash with --row-fed"),
        ("nrf52", 1 << 16, None),
    ],
)
def test_flash_outside_the_chip_is_named_where_the_board_can_map_it(
    model: Path, tmp_path: Path, family: str, ram: int, change: str | None
) -> None:
    """`ram` 0: as much as the model needs when it is fed by rows."""
    fed = bundle(model, "nrf52840dk", tmp_path / "b", row_fed=True).arena_bytes
    board = load_board(write_board(tmp_path / "flash", ram or 1024 + fed, 32_800))
    with_flash = replace(board, hardware=replace(board.hardware, family=family))
    (found,) = fit_boards(model, [with_flash])
    assert {short.kind for short in found.missing} == ({"flash"} if ram else {"ram", "flash"})
    assert found.change == change


def test_a_file_of_a_board_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from arenite_codegen import board_support

    board = load_board("rpi-pico")
    lost = replace(board, hardware=replace(board.hardware, family="lost"))
    monkeypatch.setattr(board_support, "FAMILIES", {"lost": Family("lost.c")})
    with pytest.raises(arenite.OutputError, match=r"cannot be written \(No such file or directory: lost\.c\)"):
        board_support.copy_support(lost, tmp_path)


@pytest.mark.parametrize("board", ["esp32", "esp32p4"])
def test_firmware_for_an_esp32_is_left_to_esp_idf(model: Path, tmp_path: Path, board: str) -> None:
    bundle(model, board, tmp_path / "b")
    with pytest.raises(UsageError, match=f"firmware for {board} is built by ESP-IDF.*--export esp-idf"):
        arenite.build(tmp_path / "b")
