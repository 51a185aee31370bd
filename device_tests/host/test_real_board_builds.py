# SPDX-License-Identifier: Apache-2.0
"""Images of real boards: what the core, or the boot ROM before it, reads first. They are built here and run nowhere."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from arenite_codegen import bundle
from arenite_codegen.board_flash import PAYLOAD_AT
from arenite_codegen.boards import list_boards, load_board
from arenite_codegen.build import build
from arenite_codegen.elf import ElfFile, read_elf
from arenite_codegen.toolchain import find_toolchain
from support.dense_network import dense_network
from support.fake_bundle import make_fake_bundle

BOARDS = [name for name in list_boards() if load_board(name).proven not in ("emulated", "exported")]
# One of each core and boot image.
WITH_ZIG = ["nucleo-h743zi2", "rpi-pico", "rpi-pico2-riscv"]
CASES = [*((name, "gcc") for name in BOARDS), *((name, "zig") for name in WITH_ZIG)]
# Bytes in front of the vector table.
HEADERS = {"rp2040": 0x100, "imxrt1062": 0x2000}


@pytest.mark.parametrize(("name", "toolchain"), CASES)
def test_the_image_starts_as_the_chip_wants(name: str, toolchain: str, tmp_path: Path) -> None:
    board = load_board(name)
    try:
        find_toolchain(board, toolchain)
    except Exception as error:  # what is missing is in the message
        pytest.skip(str(error))
    report = build(make_fake_bundle(tmp_path, name), toolchain)
    assert report.stack_is_bound
    image = read_elf(report.elf)
    text = next(section for section in image.sections if section.name == ".text")
    assert text.address == board.flash.origin
    if board.architecture == "cortex-m":
        start = HEADERS.get(board.hardware.boot or "", 0)
        count = 16 + board.hardware.interrupts
        words = struct.unpack_from(f"<{count}I", text.data, start)
        assert words[0] == _symbol(image, "__stack_end")
        assert words[1] == _symbol(image, "Reset_Handler") | 1
        assert set(words[2:]) == {_symbol(image, "Fault_Handler") | 1}
        alignment = 1 << (4 * count - 1).bit_length()
        assert (board.flash.origin + start) % max(128, alignment) == 0, "VTOR has no lower bits"
    _CHECKS.get(board.hardware.boot or "", lambda data, image: None)(text.data, image)


@pytest.mark.parametrize("name", [name for name in BOARDS if load_board(name).update is not None])
def test_a_board_with_slots_gets_loader_and_firmware_where_they_belong(name: str, tmp_path: Path) -> None:
    update, flash = load_board(name).update, load_board(name).flash
    assert update is not None
    assert update.slots is not None
    (tmp_path / "model.tflite").write_bytes(dense_network(16, 4))
    for slot, start in enumerate(update.slots):
        folder = tmp_path / f"slot{slot}"
        models = update.model_slots is not None
        bundle(tmp_path / "model.tflite", name, folder, slot=slot, model_slots=models, update_key=bytes(32))
        vectors = {"firmware.elf": start + PAYLOAD_AT, "loader.elf": flash.origin}
        assert build(folder).stack_is_bound
        for file, address in vectors.items():
            text = next(section for section in read_elf(folder / "build" / file).sections if section.name == ".text")
            assert text.address == address
        loader = read_elf(folder / "build" / "loader.elf")
        assert max(s.address + s.size for s in loader.sections if s.name in (".text", ".rodata")) <= update.slots[0]


def _symbol(image: ElfFile, name: str) -> int:
    return next(symbol.value & ~1 for symbol in image.symbols if symbol.name == name)


def crc32_mpeg2(data: bytes) -> int:
    """The check of RP2040's boot ROM: polynomial 04C11DB7h, highest bit first, from all ones."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc >> 31 else 0)) & 0xFFFFFFFF
    return crc


def test_the_crc_is_the_catalogue_s() -> None:
    assert crc32_mpeg2(b"123456789") == 0x0376E6E7


def _check_rp2040(data: bytes, image: ElfFile) -> None:
    assert struct.unpack_from("<I", data, 252)[0] == crc32_mpeg2(data[:252])


def _block(data: bytes) -> list[int]:
    at = data.index(struct.pack("<I", 0xFFFFDED3))
    assert at + 32 <= 4096, "the boot ROM looks no further"
    words = []
    while not words or words[-1] != 0xAB123579:
        words.append(struct.unpack_from("<I", data, at + 4 * len(words))[0])
    return words


def _check_rp2350_arm(data: bytes, image: ElfFile) -> None:
    assert _block(data) == [0xFFFFDED3, 0x10210142, 0x000001FF, 0, 0xAB123579]


def _check_rp2350_riscv(data: bytes, image: ElfFile) -> None:
    entry, stack = _symbol(image, "Reset_Handler"), _symbol(image, "__stack_end")
    assert _block(data) == [0xFFFFDED3, 0x11010142, 0x00000344, entry, stack, 0x000004FF, 0, 0xAB123579]


def _check_imxrt1062(data: bytes, image: ElfFile) -> None:
    assert data[:4] == b"FCFB"
    header, entry, _, dcd, boot_data, itself, signature, _ = struct.unpack_from("<8I", data, 0x1000)
    assert (header, dcd, signature) == (0x402000D1, 0, 0)
    assert (itself, boot_data) == (0x60001000, 0x60001020)
    assert entry == _symbol(image, "arenite_vectors") == 0x60002000
    assert struct.unpack_from("<3I", data, 0x1020) == (0x60000000, 8 << 20, 0)


_CHECKS = {
    "rp2040": _check_rp2040,
    "rp2350-arm": _check_rp2350_arm,
    "rp2350-riscv": _check_rp2350_riscv,
    "imxrt1062": _check_imxrt1062,
}
