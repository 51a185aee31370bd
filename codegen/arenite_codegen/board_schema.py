# SPDX-License-Identifier: Apache-2.0
"""The schema of `board.toml`: which fields there are and what each may be.

A new kind of processor, serial port or counter is one row in a table here and one C file in `startup/`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from arenite_codegen.board_flash import read_flashing, read_update_slots
from arenite_codegen.board_hardware import Hardware, read_hardware
from arenite_codegen.board_model import (
    Board,
    Counter,
    Emulator,
    Features,
    Marker,
    MemoryRegion,
    Power,
    ResetCause,
    Uart,
    UniqueId,
    Watchdog,
)
from arenite_codegen.board_table import Table

__all__ = [
    "BAUD_HIGH",
    "BAUD_LOW",
    "COUNTERS",
    "COUNTER_UNITS",
    "FPU_BITS",
    "MOST_REGIONS",
    "UARTS",
    "read_board",
]

UARTS = {
    "cmsdk": "uart_cmsdk.c",
    "16550": "uart_16550.c",
    "nrf": "uart_nrf.c",
    "stm32-v1": "uart_stm32_v1.c",
    "stm32-v2": "uart_stm32_v2.c",
    "pl011": "uart_pl011.c",
    "nxp-lpuart": "uart_nxp_lpuart.c",
    "host": "uart_host.c",
}
COUNTERS = {
    "cmsdk": "counter_cmsdk.c",
    "dwt": "counter_dwt.c",
    "mcycle": "counter_mcycle.c",
    "mtime": "counter_mtime.c",
    "rp2": "counter_rp2.c",
    "nrf": "counter_nrf.c",
    "sse": "counter_sse.c",
    "stm32-tim": "counter_stm32_tim.c",
    "none": "counter_none.c",
}
_COUNTERS_WITHOUT_BASE = ("dwt", "mcycle", "none")
COUNTER_UNITS = ("none", "cycles", "instructions", "ticks")
FPU_BITS = {"none": 0x0, "single": 0x4, "double": 0xC}
_CPUS = {
    "cortex-m": ("cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"),
    "riscv32": ("rv32imc", "rv32imac"),
    "esp-idf": ("xtensa-lx6", "xtensa-lx7", "rv32imc", "rv32imac", "rv32imafc"),
    "host": ("native",),
}
BAUD_LOW, BAUD_HIGH = 300, 12_000_000
# A place in the generated C has 4 bits for its region; the other half is for memory of the caller's.
MOST_REGIONS = 8

T = TypeVar("T")


def read_board(table: Table, directory: Path) -> Board:
    architecture = table.choice("architecture", tuple(_CPUS))
    board = Board(
        name=table.word("name"),
        description=table.take("description", str),
        architecture=architecture,
        cpu=table.choice("cpu", _CPUS[architecture]),
        clock_hz=table.number("clock_hz", 1, 10**11),
        stack_bytes=table.number("stack_bytes", 256, 1 << 24),
        features=_part(table.table("features"), _FEATURES[architecture]),
        memory=_read_memory(table, table.tables("memory")),
        uart=_part(table.table("uart"), lambda part: _read_uart(part, architecture)),
        counter=_part(table.table("counter"), _read_counter),
        emulators=_read_emulators(table.table("emulators", needed=False)),
        directory=directory,
        flashing=_optional_part(table, "flash", read_flashing),
        update=_optional_part(table, "update", read_update_slots),
        watchdog=_optional_part(table, "watchdog", lambda part: Watchdog(part.writes("setup"), part.writes("feed"))),
        reset_cause=_optional_part(table, "reset_cause", _read_reset_cause),
        marker=_optional_part(
            table, "marker", lambda part: Marker(part.writes("setup"), part.writes("on"), part.writes("off"))
        ),
        unique_id=_optional_part(table, "unique_id", _read_unique_id),
        power=_optional_part(
            table, "power", lambda part: Power(part.number("active_uw_per_mhz", 1, 100_000), part.take("source", str))
        ),
        hardware=_part(table.table("hardware"), read_hardware) if "hardware" in table.keys else Hardware(),
    )
    table.end()
    return board


def _part(table: Table, read: Callable[[Table], T]) -> T:
    part = read(table)
    table.end()
    return part


def _optional_part(table: Table, key: str, read: Callable[[Table], T]) -> T | None:
    return _part(table.table(key), read) if key in table.keys else None


def _read_reset_cause(table: Table) -> ResetCause:
    register = table.number("register", 0, 0xFFFFFFFF)
    if register % 4:
        raise table.fail("register", f"must be a multiple of 4, not {register:#x}")
    return ResetCause(register, table.number("watchdog_bits", 1, 0xFFFFFFFF), table.writes("clear"))


def _read_unique_id(table: Table) -> UniqueId:
    size = table.number("bytes", 4, 16)
    if size % 4:
        raise table.fail("bytes", f"must be a multiple of 4, not {size}")
    return UniqueId(table.number("base", 0, 0xFFFFFFFF), size)


def _cortex_m_features(table: Table) -> Features:
    return Features(table.choice("fpu", tuple(FPU_BITS)), table.take("dsp", bool), table.take("mve", bool))


def _riscv_features(table: Table) -> Features:
    extensions = table.word("extensions")
    if not extensions.startswith("i"):
        raise table.fail("extensions", f"must start with the base 'i', not {extensions!r}")
    return Features(extensions=extensions)


_FEATURES: dict[str, Callable[[Table], Features]] = {
    "cortex-m": _cortex_m_features,
    "riscv32": _riscv_features,
    "esp-idf": lambda table: Features(),
    "host": lambda table: Features(),
}
_HOSTED = {"host": ("host",), "esp-idf": ("none",)}
_OF_HOSTS = ("host", "none")


def _read_memory(board: Table, tables: list[Table]) -> tuple[MemoryRegion, ...]:
    regions = tuple(_part(table, _read_region) for table in tables)
    for kind in ("flash", "ram"):
        if not any(region.kind == kind for region in regions):
            raise board.fail("memory", f"has no region of kind {kind!r}")
        if sum(region.kind == kind for region in regions) > MOST_REGIONS:
            raise board.fail("memory", f"has more than {MOST_REGIONS} regions of kind {kind!r}")
    if len({region.name for region in regions}) != len(regions):
        raise board.fail("memory", "has two regions of one name")
    ordered = sorted(regions, key=lambda region: region.origin)
    for low, high in pairwise(ordered):
        if low.origin + low.length > high.origin:
            raise board.fail("memory", f"has regions that overlap, {low.name!r} and {high.name!r}")
    return regions


def _read_region(table: Table) -> MemoryRegion:
    region = MemoryRegion(
        name=table.word("name"),
        kind=table.choice("kind", ("flash", "ram")),
        origin=table.number("origin", 0, 0xFFFFFFFF),
        length=table.number("length", 1, 1 << 32),
        word_cycles=table.number("word_cycles", 1, 10_000, 1),
    )
    if region.origin + region.length > 1 << 32:
        raise table.fail("length", "reaches past the 32-bit address space")
    if region.origin % 16:
        raise table.fail("origin", f"must be a multiple of 16, not {region.origin:#x}")
    return region


def _read_uart(table: Table, architecture: str) -> Uart:
    kinds = _HOSTED.get(architecture, tuple(kind for kind in UARTS if kind not in _OF_HOSTS))
    has_irq = "irq" in table.keys
    return Uart(
        kind=table.choice("kind", kinds),
        base=table.address("base", architecture not in _HOSTED),
        baud=table.number("baud", BAUD_LOW, BAUD_HIGH, 115200),
        irq=table.number("irq", 0, 1023) if has_irq else None,
        plic_base=table.address("plic_base", has_irq and architecture == "riscv32"),
        clock_hz=_optional(table, "clock_hz", 10**9),
        tx_pin=_optional(table, "tx_pin", 255),
        rx_pin=_optional(table, "rx_pin", 255),
    )


def _optional(table: Table, key: str, most: int) -> int | None:
    return table.number(key, 0, most) if key in table.keys else None


def _read_counter(table: Table) -> Counter:
    kind = table.choice("kind", tuple(COUNTERS))
    return Counter(
        kind=kind,
        unit=table.choice("unit", COUNTER_UNITS),
        hz=table.number("hz", 0, 0xFFFFFFFF),
        base=table.address("base", kind not in _COUNTERS_WITHOUT_BASE),
        coarse_base=table.address("coarse_base", kind == "cmsdk"),
        clock_hz=_optional(table, "clock_hz", 0xFFFFFFFF),
    )


def _read_emulators(table: Table) -> tuple[Emulator, ...]:
    readers = {"qemu": _read_qemu, "unicorn": _read_unicorn}
    for name in table.keys:
        if name not in readers:
            raise table.fail(name, f"must be one of {', '.join(readers)}")
    return tuple(_part(table.table(name), readers[name]) for name in table.keys)


def _read_qemu(table: Table) -> Emulator:
    return Emulator(
        name="qemu",
        program=table.word("program"),
        arguments=table.strings("arguments"),
        instruction_ns_log2=table.number("instruction_ns_log2", 0, 10),
    )


def _read_unicorn(table: Table) -> Emulator:
    return Emulator(
        name="unicorn",
        cpu=table.choice("cpu", ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "rv32")),
        instruction_ns_log2=table.number("instruction_ns_log2", 0, 10),
    )
