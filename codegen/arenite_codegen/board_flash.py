# SPDX-License-Identifier: Apache-2.0
"""How firmware gets into a board: the tables `[flash]` and `[update]` of a `board.toml`."""

from __future__ import annotations

from dataclasses import dataclass

from arenite_codegen.board_table import Table

__all__ = ["DRIVERS", "Flashing", "PAYLOAD_AT", "UpdateSlots", "read_flashing", "read_update_slots"]

_METHODS = ("esptool", "stm32loader", "uf2", "command")
PAYLOAD_AT = 1024
"""From a slot's start to its payload: UPDATE_PAYLOAD_AT of update.h."""
DRIVERS = {
    "memory": ("flash_memory.c",),
    "nrf": ("flash_nrf.c",),
    "stm32-f4-f7": ("flash_stm32_f4_f7.c", "flash_stm32.h"),
    "stm32-pages": ("flash_stm32_pages.c", "flash_stm32.h"),
}
"""Flash drivers: the source of each, and what it includes."""
_FAMILIES = ("F0", "F1", "F3", "F4", "F7", "G0", "H7", "L0", "L4", "WL")


@dataclass(frozen=True)
class Flashing:
    """How a board is flashed.

    Attributes:
        method: `esptool`, `stm32loader`, `uf2` or `command`.
        chip: What the chip says of itself: esptool's name of it (`esp32c3`), the product id of an STM32 (`0x413`), the
            board id in a UF2 drive's INFO_UF2.TXT. Empty with `command`.
        family: An STM32's family, by which the size of its flash is found (`F4`); the family id of UF2 (`0xe48bff56`).
        size_bytes: The least flash that the board's chip has.
        offset: esptool: where in the chip's flash the board's first flash region starts.
        command: Program and arguments; `{elf}`, `{bin}`, `{hex}` and `{port}` stand for files and port.
    """

    method: str
    chip: str = ""
    family: str = ""
    size_bytes: int = 0
    offset: int = 0
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class UpdateSlots:
    """Where images of updates lie: in two slots each, erased by sectors, written in units of `write_bytes`.

    Attributes:
        slots: Addresses of those for firmware, each of `slot_bytes`; None where there are none.
        model_slots: Addresses of those for a model alone, each of `model_slot_bytes`; None where there are none.
        driver: Which `flash_*.c` writes the flash.
    """

    slots: tuple[int, int] | None
    slot_bytes: int
    model_slots: tuple[int, int] | None
    model_slot_bytes: int
    sector_bytes: int
    write_bytes: int
    driver: str


def read_flashing(table: Table) -> Flashing:
    """Reads `[flash]`; `table.end` is left to the caller.

    Raises:
        UsageError: A field is missing, unknown or out of range.
    """
    method = table.choice("method", _METHODS)
    if method == "command":
        command = table.strings("command")
        if not command:
            raise table.fail("command", "must be a program and its arguments")
        return Flashing(method, command=command)
    chip = table.word("chip")
    size_bytes = table.number("size_bytes", 1024, 1 << 30)
    if method == "esptool":
        return Flashing(method, chip, size_bytes=size_bytes, offset=table.number("offset", 0, 1 << 30, 0))
    if method == "stm32loader":
        _hexadecimal(table, "chip", chip)
        return Flashing(method, chip.lower(), table.choice("family", _FAMILIES), size_bytes)
    family = table.word("family")
    _hexadecimal(table, "family", family)
    return Flashing(method, chip, family.lower(), size_bytes)


def read_update_slots(table: Table) -> UpdateSlots:
    """Reads `[update]`; `table.end` is left to the caller.

    Raises:
        UsageError: A field is missing, unknown or out of range.
    """
    sector_bytes = table.number("sector_bytes", 128, 1 << 20)
    slots, slot_bytes = _slots(table, "slots", "slot_bytes", sector_bytes)
    model_slots, model_slot_bytes = _slots(table, "model_slots", "model_slot_bytes", sector_bytes)
    if slots is None and model_slots is None:
        raise table.fail("slots", "or `model_slots` must be there")
    found = UpdateSlots(
        slots=slots,
        slot_bytes=slot_bytes,
        model_slots=model_slots,
        model_slot_bytes=model_slot_bytes,
        sector_bytes=sector_bytes,
        write_bytes=table.number("write_bytes", 4, 32),
        driver=table.choice("driver", tuple(DRIVERS)),
    )
    if found.write_bytes & (found.write_bytes - 1):
        raise table.fail("write_bytes", f"must be a power of two, not {found.write_bytes}")
    return found


def _slots(table: Table, key: str, size_key: str, sector_bytes: int) -> tuple[tuple[int, int] | None, int]:
    """Addresses and size of two slots, None and 0 where the table has none."""
    if key not in table.keys:
        return None, 0
    slots = table.take(key, list)
    if len(slots) != 2 or not all(type(at) is int and 0 <= at <= 0xFFFFFFFF for at in slots):
        raise table.fail(key, f"must be the addresses of two slots, not {slots!r}")
    size_bytes = table.number(size_key, 4096, 1 << 28)
    if any(number % max(sector_bytes, PAYLOAD_AT) for number in (*slots, size_bytes)):
        raise table.fail(key, f"and `{size_key}` must be multiples of a sector and of {PAYLOAD_AT}")
    return (slots[0], slots[1]), size_bytes


def _hexadecimal(table: Table, key: str, text: str) -> None:
    try:
        if not 0 <= int(text, 16) <= 0xFFFFFFFF:
            raise ValueError
    except ValueError:
        raise table.fail(key, f"must be a hexadecimal number such as '0x413', not {text!r}") from None
