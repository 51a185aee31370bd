# SPDX-License-Identifier: Apache-2.0
"""How firmware gets into a board: the `[flash]` table of a `board.toml`."""

from __future__ import annotations

from dataclasses import dataclass

from arenite_codegen.board_table import Table

__all__ = ["Flashing", "read_flashing"]

_METHODS = ("esptool", "stm32loader", "uf2", "command")
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
        command: Program and arguments; `{elf}`, `{bin}` and `{port}` stand for files and port.
    """

    method: str
    chip: str = ""
    family: str = ""
    size_bytes: int = 0
    offset: int = 0
    command: tuple[str, ...] = ()


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


def _hexadecimal(table: Table, key: str, text: str) -> None:
    try:
        if not 0 <= int(text, 16) <= 0xFFFFFFFF:
            raise ValueError
    except ValueError:
        raise table.fail(key, f"must be a hexadecimal number such as '0x413', not {text!r}") from None
