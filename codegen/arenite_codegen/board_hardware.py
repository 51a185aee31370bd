# SPDX-License-Identifier: Apache-2.0
"""What real chips need before their serial port works: the `[hardware]` table of a `board.toml`.

A family is one C file in `startup/`, the whole numbers that it takes from the board file, and the headers it includes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arenite_codegen.board_table import Table

__all__ = ["BOOTS", "BOOT_HEADER_BYTES", "FAMILIES", "Family", "Hardware", "read_hardware"]

_STM32_UART = ("uart_enable", "uart_enable_bit", "uart_function")
_QSPI = ("qspi_divider", "qspi_dual", "qspi_size_bits", "qspi_address_bytes")
_RP2_BASES = ("resets", "xosc", "pll_sys", "clocks", "io_bank0", "pads", "tick")


@dataclass(frozen=True)
class Family:
    """Chips that one C file prepares.

    Attributes:
        source: Its name in `startup/`.
        headers: What it includes from there.
        settings: Names of the whole numbers that it needs.
        optional: Names of those that it needs only on some boards.
        pins: It knows a QSPI flash, whose pins are `qspi_pins`.
        mapped_flash_bytes: Most flash outside the chip that its C maps, 0 if it maps none.
    """

    source: str
    headers: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    pins: bool = False
    mapped_flash_bytes: int = 0


_STM32 = ("stm32.h", "stm32_qspi.h", "cortex_m7_caches.h")
FAMILIES: Mapping[str, Family] = {
    "none": Family("hardware_none.c"),
    "stm32-f4-f7": Family(
        "hardware_stm32_f4_f7.c",
        _STM32,
        (
            *("hse_hz", "hse_bypass", "pll_m", "pll_n", "pll_p", "over_drive", "flash_access"),
            *("apb1_divider", "apb2_divider"),
            *_STM32_UART,
        ),
        ("caches", "marker_pin", *_QSPI),
        pins=True,
        mapped_flash_bytes=256 << 20,
    ),
    "stm32-h7": Family(
        "hardware_stm32_h7.c",
        _STM32,
        (
            *("hse_hz", "hse_bypass", "pll_m", "pll_n", "pll_p", "pll_input_range", "flash_access", "supply"),
            *_STM32_UART,
        ),
        ("marker_pin", *_QSPI),
        pins=True,
        mapped_flash_bytes=256 << 20,
    ),
    "stm32-u5": Family(
        "hardware_stm32_u5.c", ("stm32.h",), ("pll_m", "pll_n", "pll_r", "flash_access", *_STM32_UART), ("marker_pin",)
    ),
    "stm32-u3": Family("hardware_stm32_u3.c", ("stm32.h",), _STM32_UART, ("marker_pin",)),
    "nrf52": Family("hardware_nrf52.c"),
    "rp2": Family(
        "hardware_rp2.c",
        (),
        (
            *(f"{name}_base" for name in _RP2_BASES),
            *("xosc_hz", "pll_feedback", "pll_post_1", "pll_post_2", "tick_cycles"),
            *("reset_pll_sys", "reset_io_bank0", "reset_pads_bank0", "reset_uart", "reset_timer"),
        ),
        ("tick_enable_base",),
        mapped_flash_bytes=16 << 20,
    ),
    "imxrt1062": Family(
        "hardware_imxrt1062.c",
        ("cortex_m7_caches.h",),
        (
            *("uart_gate", "uart_gate_bit", "uart_function", "uart_tx_mux", "uart_rx_mux"),
            *("uart_rx_select", "uart_rx_daisy", "flash_bytes"),
        ),
    ),
}
# What the boot ROM of a chip wants to find in the flash: a file in `startup/`.
BOOTS: Mapping[str, str] = {
    "rp2040": "boot_rp2040.S",
    "rp2350-arm": "boot_rp2350_arm.c",
    "rp2350-riscv": "boot_rp2350_riscv.S",
    "imxrt1062": "boot_imxrt1062.c",
}
# Flash that lies before the code for its sake, where that is more than a few words.
BOOT_HEADER_BYTES: Mapping[str | None, int] = {"imxrt1062": 0x2000}


@dataclass(frozen=True)
class Hardware:
    """How a chip is made ready.

    Attributes:
        chip: Its order code, or as much of it as matters here.
        family: A key of `FAMILIES`.
        interrupts: Entries of its vector table behind the 16 of the core.
        boot: A key of `BOOTS`, or None.
        settings: Whole numbers for the family's C, by name.
        qspi_pins: Number and function of each pin of a QSPI flash.
        emulated_by: An emulator that Arenite's tests run the board's own image in, although no command knows it.
    """

    chip: str = ""
    family: str = "none"
    interrupts: int = 0
    boot: str | None = None
    settings: Mapping[str, int] | None = None
    qspi_pins: tuple[tuple[int, int], ...] = ()
    emulated_by: str = ""

    @property
    def source(self) -> str:
        """The family's C file."""
        return FAMILIES[self.family].source

    @property
    def defines(self) -> tuple[tuple[str, str], ...]:
        """Constants of `board_config.h`: names and values, as C has them."""
        numbers = [(f"BOARD_{name.upper()}", _literal(value)) for name, value in (self.settings or {}).items()]
        if not self.qspi_pins:
            return tuple(numbers)
        pins = ", ".join(f"{{{number}, {function}}}" for number, function in self.qspi_pins)
        return (*numbers, ("BOARD_QSPI_PINS", f"{{ {pins} }}"))


def _literal(value: int) -> str:
    return f"0x{value:08X}u" if value > 0xFFFFFF and value % 1000 else f"{value}u"


def read_hardware(table: Table) -> Hardware:
    """Reads `[hardware]`; `table.end` is left to the caller.

    Raises:
        UsageError: A field is missing, unknown or out of range.
    """
    name = table.choice("family", tuple(FAMILIES), "none")
    family = FAMILIES[name]
    return Hardware(
        chip=table.word("chip"),
        family=name,
        interrupts=table.number("interrupts", 0, 480, 0),
        boot=table.choice("boot", tuple(BOOTS)) if "boot" in table.keys else None,
        settings=_read_settings(table.table("settings", needed=bool(family.settings)), family),
        qspi_pins=_read_pins(table) if family.pins else (),
        emulated_by=table.word("emulated_by") if "emulated_by" in table.keys else "",
    )


def _read_settings(table: Table, family: Family) -> Mapping[str, int]:
    optional = [name for name in family.optional if name in table.keys]
    settings = {name: table.number(name, 0, 0xFFFFFFFF) for name in (*family.settings, *optional)}
    table.end()
    return settings


def _read_pins(table: Table) -> tuple[tuple[int, int], ...]:
    pins = table.take("qspi_pins", list, [])
    for pin in pins:
        if not (isinstance(pin, list) and len(pin) == 2 and all(type(n) is int and 0 <= n < 256 for n in pin)):
            raise table.fail("qspi_pins", f"must be pairs of a pin's number and its function, not {pin!r}")
    return tuple((number, function) for number, function in pins)
