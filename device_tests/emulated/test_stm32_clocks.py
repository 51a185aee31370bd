# SPDX-License-Identifier: Apache-2.0
"""What the STM32 boards' own C does to clocks, pins and serial port, in Unicorn with registers that only remember.

No oscillator is emulated: a register's ready bits follow its request bits. Then the registers are read as the reference
manuals say (RM0390, RM0410, RM0433, RM0456), and the clock that comes out is the one that the board file states.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arenite.device.target import read_segments
from arenite_codegen.board_model import Board
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from arenite_codegen.elf import read_elf
from support.fake_bundle import make_fake_bundle

Read = Callable[[int], int]
BOARDS = ["nucleo-f446re", "nucleo-f767zi", "stm32f746g-disco", "nucleo-h743zi2", "stm32h747i-disco", "nucleo-u575zi-q"]
RCC = {"stm32-f4-f7": 0x40023800, "stm32-h7": 0x58024400, "stm32-u5": 0x46020C00}
GPIO = {"stm32-f4-f7": 0x40020000, "stm32-h7": 0x58020000, "stm32-u5": 0x42020000}
# Register: pairs of a request (or None, always there) and what says that it is granted; then copies of fields.
FOLLOWS: dict[str, dict[int, list[tuple[int | None, int]]]] = {
    "stm32-f4-f7": {0x40023800: [(16, 17), (24, 25)], 0x40023808: [(0, 2), (1, 3)]},
    "stm32-h7": {
        0x58024400: [(16, 17), (24, 25)],
        0x58024410: [(0, 3), (1, 4), (2, 5)],
        0x58024804: [(None, 13)],
        0x58024818: [(None, 13)],
    },
    "stm32-u5": {0x46020C00: [(24, 25)], 0x46020C1C: [(0, 2), (1, 3)], 0x4602080C: [(None, 15), (18, 14)]},
}


def _start(board: Board, bundle: Path) -> Read:
    """Runs the image up to where its serial port is ready; gives its registers."""
    unicorn = pytest.importorskip("unicorn")
    from unicorn import arm_const

    engine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    engine.ctl_set_cpu_model(getattr(arm_const, f"UC_CPU_ARM_{board.cpu.upper().replace('-', '_')}"))
    for region in board.memory:
        if region.origin < 0x90000000:
            engine.mem_map(region.origin, -(-region.length // 4096) * 4096)
    for base, length in ((0x40000000, 0x20000000), (0xA0000000, 0x4000), (0xE0000000, 0x100000)):
        engine.mem_map(base, length)
    elf = bundle / "build" / "firmware.elf"
    for segment in read_segments(elf):
        engine.mem_write(segment.address, segment.data)

    def word(address: int) -> int:
        return int.from_bytes(engine.mem_read(address, 4), "little")

    def follow(uc: Any, access: int, address: int, size: int, value: int, data: Any) -> None:
        now = word(address)
        pairs = FOLLOWS[board.hardware.family].get(address, [])
        if address == 0x40007004:  # PWR_CSR of F4 and F7: over-drive, as PWR_CR asks
            pairs, now = [(16, 16), (17, 17)], word(0x40007000) & 3 << 16
        for asked, granted in pairs:
            on = asked is None or now >> asked & 1
            now = now & ~(1 << granted) | int(bool(on)) << granted
        if pairs:
            engine.mem_write(address, now.to_bytes(4, "little"))

    engine.hook_add(unicorn.UC_HOOK_MEM_READ, follow, begin=0x40000000, end=0x60000000)
    symbols = {symbol.name: symbol.value for symbol in read_elf(elf).symbols}
    engine.reg_write(arm_const.UC_ARM_REG_SP, symbols["__stack_end"])
    engine.emu_start(symbols["Reset_Handler"] | 1, symbols["counter_init"] & ~1, count=20_000_000)
    assert engine.reg_read(arm_const.UC_ARM_REG_PC) == symbols["counter_init"] & ~1, "it waits for something for ever"
    return word


@pytest.fixture(scope="module", params=BOARDS)
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Board, Read]:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    board = load_board(request.param)
    bundle = make_fake_bundle(tmp_path_factory.mktemp(request.param), request.param)
    build(bundle, "gcc")
    return board, _start(board, bundle)


def _field(value: int, low: int, bits: int) -> int:
    return value >> low & (1 << bits) - 1


def _f4_f7(board: Board, read: Read) -> tuple[int, int]:
    """Clock of the core and of the serial port, in Hz."""
    rcc = RCC[board.hardware.family]
    pll, cfgr = read(rcc + 4), read(rcc + 8)
    assert _field(cfgr, 2, 2) == 2 and _field(pll, 22, 1) == 1, "from the PLL, and that from the external oscillator"
    source = (board.hardware.settings or {})["hse_hz"]
    reference = source / _field(pll, 0, 6)
    vco = reference * _field(pll, 6, 9)
    assert 0.95e6 <= reference <= 2.1e6
    assert 100e6 <= vco <= 432e6
    core = vco / (2 * _field(pll, 16, 2) + 2)
    assert _field(read(0x40007000), 14, 2) == 3, "scale 1"
    low_half = {0: 1, 4: 2, 5: 4, 6: 8, 7: 16}
    buses = core / low_half[_field(cfgr, 10, 3)], core / low_half[_field(cfgr, 13, 3)]
    assert buses[0] <= 54e6 and buses[1] <= 108e6
    return int(core), int(buses[(board.uart.base or 0) >= 0x40010000])


def _h7(board: Board, read: Read) -> tuple[int, int]:
    rcc = RCC[board.hardware.family]
    assert _field(read(rcc + 0x10), 3, 3) == 3 and _field(read(rcc + 0x28), 0, 2) == 2
    reference = (board.hardware.settings or {})["hse_hz"] / _field(read(rcc + 0x28), 4, 6)
    low, high = ((1e6, 2e6), (2e6, 4e6), (4e6, 8e6), (8e6, 16e6))[_field(read(rcc + 0x2C), 2, 2)]
    assert low <= reference <= high
    vco = reference * (_field(read(rcc + 0x30), 0, 9) + 1)
    assert 192e6 <= vco <= 836e6
    core = vco / (_field(read(rcc + 0x30), 9, 7) + 1)
    d1, d2 = read(rcc + 0x18), read(rcc + 0x1C)
    assert (_field(d1, 8, 4), _field(d1, 0, 4)) == (0, 8), "core whole, bus half"
    assert _field(d2, 4, 3) == _field(d2, 8, 3) == 4
    supply = _field(read(0x5802480C), 0, 3)
    assert supply == {"nucleo-h743zi2": 0b010, "stm32h747i-disco": 0b100}[board.name], "LDO there, SMPS here"
    assert _field(read(0x58024818), 14, 2) == 3, "scale 1"
    return int(core), int(core / 4)


def _u5(board: Board, read: Read) -> tuple[int, int]:
    rcc = RCC[board.hardware.family]
    pll, dividers = read(rcc + 0x28), read(rcc + 0x34)
    assert _field(read(rcc + 0x1C), 2, 2) == 3 and _field(pll, 0, 2) == 1 and _field(pll, 18, 1) == 1
    reference = 4e6 / (_field(pll, 8, 4) + 1)  # MSIS after reset
    vco = reference * (_field(dividers, 0, 9) + 1)
    assert 128e6 <= vco <= 544e6
    assert _field(read(0x4602080C), 16, 3) == 0b111, "range 1 with its booster"
    core = vco / (_field(dividers, 24, 7) + 1)
    return int(core), int(core)


_CLOCKS = {"stm32-f4-f7": _f4_f7, "stm32-h7": _h7, "stm32-u5": _u5}


def test_the_clocks_that_come_out_are_those_of_the_board_file(started: tuple[Board, Read]) -> None:
    board, read = started
    core, uart = _CLOCKS[board.hardware.family](board, read)
    assert core == board.clock_hz
    assert uart == (board.uart.clock_hz or board.clock_hz)
    divider = read((board.uart.base or 0) + (0x08 if board.uart.kind == "stm32-v1" else 0x0C))
    assert abs(uart / divider / board.uart.baud - 1) < 0.01


def test_pins_have_their_functions_and_their_clocks(started: tuple[Board, Read]) -> None:
    board, read = started
    family = board.hardware.family
    enabled = read(RCC[family] + {"stm32-f4-f7": 0x30, "stm32-h7": 0xE0, "stm32-u5": 0x8C}[family])
    settings = board.hardware.settings or {}
    pins = [(pin, settings["uart_function"]) for pin in (board.uart.tx_pin, board.uart.rx_pin) if pin is not None]
    for number, function in (*pins, *board.hardware.qspi_pins):
        port, pin = GPIO[family] + 0x400 * (number // 16), number % 16
        assert enabled >> number // 16 & 1
        assert _field(read(port), 2 * pin, 2) == 2
        assert _field(read(port + 0x20 + 4 * (pin // 8)), 4 * (pin % 8), 4) == function
    marker = settings["marker_pin"]
    assert _field(read(GPIO[family] + 0x400 * (marker // 16)), 2 * (marker % 16), 2) == 1
    uart_gate = read(RCC[family] + settings["uart_enable"])
    assert uart_gate >> settings["uart_enable_bit"] & 1
