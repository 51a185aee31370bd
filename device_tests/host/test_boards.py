# SPDX-License-Identifier: Apache-2.0
"""Board files: the ones that come along, wrong ones by field, and the support that is written from them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from arenite.errors import MissingToolError, OutputError, UsageError
from arenite_codegen import toolchain as toolchain_module
from arenite_codegen.board_model import Features
from arenite_codegen.boards import copy_support, list_boards, load_board
from arenite_codegen.toolchain import find_toolchain

INVALID = sorted((Path(__file__).parent / "invalid_boards").glob("invalid_*.toml"))
EMULATED = [
    "emulated-m4-external-flash",
    "emulated-m7-psram",
    "emulated-m7-regions",
    "qemu-microbit",
    "qemu-mps2-an385",
    "qemu-mps2-an386",
    "qemu-mps2-an500",
    "qemu-mps2-an505",
    "qemu-netduinoplus2",
    "qemu-mps3-an547",
    "qemu-riscv32",
]


def test_the_boards_are_these() -> None:
    """The others are in `test_real_boards.py`."""
    assert [name for name in list_boards() if load_board(name).proven == "emulated"] == sorted(["host", *EMULATED])


@pytest.mark.parametrize(
    ("name", "cpu", "fpu", "ram_kib", "flash_kib"),
    [
        ("qemu-microbit", "cortex-m0", "none", 16, 256),
        ("qemu-mps2-an385", "cortex-m3", "none", 96, 1024),
        ("qemu-mps2-an386", "cortex-m4", "single", 640, 4096),
        ("qemu-mps2-an500", "cortex-m7", "double", 512, 4096),
        ("qemu-mps2-an505", "cortex-m33", "single", 256, 4096),
        ("qemu-netduinoplus2", "cortex-m4", "single", 128, 1024),
        ("qemu-riscv32", "rv32imc", "none", 400, 4096),
    ],
)
def test_a_board_says_what_its_file_says(name: str, cpu: str, fpu: str, ram_kib: int, flash_kib: int) -> None:
    board = load_board(name)
    assert (board.name, board.cpu, board.features.fpu, board.ram_bytes) == (name, cpu, fpu, ram_kib << 10)
    assert board.flash_bytes == flash_kib << 10
    assert [emulator.name for emulator in board.emulators] == ["qemu", "unicorn"]


def test_the_board_with_helium_runs_in_qemu_only() -> None:
    board = load_board("qemu-mps3-an547")
    assert (board.cpu, board.features) == ("cortex-m55", Features("double", dsp=True, mve=True))
    assert [(r.name, r.length) for r in board.flashes] == [("itcm", 512 << 10), ("ddr", 16 << 20)]
    assert [emulator.name for emulator in board.emulators] == ["qemu"]


def test_memories_keep_the_order_of_the_file_and_their_speed() -> None:
    board = load_board("emulated-m7-regions")
    assert [(r.name, r.length, r.word_cycles) for r in board.rams] == [
        ("dtcm", 64 << 10, 1),
        ("sram", 192 << 10, 2),
        ("psram", 8 << 20, 12),
    ]
    assert [(r.name, r.length) for r in board.flashes] == [("flash", 2 << 20), ("external-flash", 8 << 20)]
    assert (board.ram.name, board.flash.name) == ("dtcm", "flash")
    assert (board.ram_bytes, board.flash_bytes) == ((64 + 192 + 8192) << 10, 10 << 20)


@pytest.mark.parametrize("name", EMULATED)
def test_an_instruction_lasts_more_than_two_ticks(name: str) -> None:
    """Only then are instruction counts exact."""
    board = load_board(name)
    for emulator in board.emulators:
        assert (1 << emulator.instruction_ns_log2) * board.counter.hz > 2 * 10**9


def test_a_board_is_found_by_name_folder_or_file(tmp_path: Path) -> None:
    board = load_board("qemu-riscv32")
    copy = tmp_path / "mine"
    shutil.copytree(board.directory, copy)
    assert load_board(copy) == load_board(copy / "board.toml") == board


def test_an_unknown_board_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no board 'esp99'. The boards are arduino-nano-33-ble-sense, ") as caught:
        load_board("esp99")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_a_wrong_board_file_is_refused_by_field(path: Path) -> None:
    lines = path.read_bytes().decode("latin-1").splitlines()
    expected = next(line for line in lines if line.startswith("# expect: ")).removeprefix("# expect: ")
    with pytest.raises(UsageError) as caught:
        load_board(path)
    assert expected in caught.value.what
    assert caught.value.where == str(path)


@pytest.mark.parametrize("name", ["host", *EMULATED])
def test_support_is_complete_and_the_same_twice(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    sources = [copy_support(board, tmp_path / run) for run in ("a", "b")]
    assert sources[0] == sources[1]
    assert all((tmp_path / "a" / source).is_file() for source in sources[0])
    assert _tree(tmp_path / "a") == _tree(tmp_path / "b")
    assert load_board(tmp_path / "a" / "board") == board
    texts = [text for path, text in _tree(tmp_path / "a").items() if path.suffix in (".c", ".h", ".S", ".ld")]
    assert all(b"SPDX-License-Identifier: Apache-2.0" in text and b"{%" not in text for text in texts)


def test_support_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "bundle").write_text("a file where the folder should be")
    with pytest.raises(OutputError, match="the board support cannot be written"):
        copy_support(load_board("host"), tmp_path / "bundle")


def _tree(root: Path) -> dict[Path, bytes]:
    return {path.relative_to(root): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


# Toolchains


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain_module.shutil, "which", lambda name: None)
    monkeypatch.setattr(toolchain_module.importlib.util, "find_spec", lambda name: None)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    ("board", "choice", "message"),
    [
        ("qemu-mps2-an500", None, r"Run pip install 'arenite\[firmware\]', or put arm-none-eabi-gcc on PATH"),
        ("qemu-riscv32", "gcc", "Install riscv64-unknown-elf-gcc and put it on PATH"),
        ("qemu-riscv32", "zig", r"Run pip install 'arenite\[firmware\]'"),
        ("host", None, r"Run pip install 'arenite\[firmware\]', or put gcc on PATH"),
        ("host", "clang", "Install clang"),
    ],
)
def test_a_missing_compiler_names_its_cure(board: str, choice: str | None, message: str) -> None:
    with pytest.raises(MissingToolError, match=message) as caught:
        find_toolchain(load_board(board), choice)
    assert caught.value.exit_code == 2


def test_a_toolchain_that_does_not_exist_or_fit_is_named() -> None:
    with pytest.raises(UsageError, match=r"no toolchain 'iar'\. Choose one of gcc, zig, clang"):
        find_toolchain(load_board("host"), "iar")
    with pytest.raises(UsageError, match=r"'clang' does not build for qemu-riscv32\. Choose gcc or zig"):
        find_toolchain(load_board("qemu-riscv32"), "clang")


def test_gcc_is_preferred_and_zig_is_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setattr(toolchain_module.shutil, "which", lambda name: None)
    assert find_toolchain(load_board("qemu-mps2-an386")).name == "zig"
    monkeypatch.setattr(toolchain_module.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(toolchain_module, "_version", lambda name, command: name)
    assert find_toolchain(load_board("qemu-mps2-an386")).name == "gcc"
