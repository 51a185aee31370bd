# SPDX-License-Identifier: Apache-2.0
"""Just enough of ELF to measure a firmware: sections, symbols and relocations of little-endian files."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from arenite.errors import ToolchainError

__all__ = ["ALLOC", "EXECUTE", "ElfFile", "NOBITS", "Relocation", "Section", "Symbol", "WRITE", "read_elf"]

WRITE, ALLOC, EXECUTE = 1, 2, 4
NOBITS = 8
_SYMTAB, _RELA, _REL = 2, 4, 9


@dataclass(frozen=True)
class Section:
    """One section. `data` is empty where the file holds none (NOBITS)."""

    index: int
    name: str
    kind: int
    flags: int
    address: int
    size: int
    link: int
    info: int
    data: bytes


@dataclass(frozen=True)
class Symbol:
    """One symbol; `section` is the index of the section that defines it, 0 when undefined."""

    name: str
    value: int
    size: int
    kind: int
    section: int


@dataclass(frozen=True)
class Relocation:
    """One reference out of section `section` at `offset` to symbol number `symbol`."""

    section: int
    offset: int
    symbol: int
    kind: int
    addend: int


@dataclass(frozen=True)
class ElfFile:
    """The parts of an ELF file that measuring needs."""

    bits: int
    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def relocations(self) -> list[Relocation]:
        """All relocations of an object file."""
        tables = [section for section in self.sections if section.kind in (_REL, _RELA)]
        return [relocation for table in tables for relocation in _relocations(self.bits, table)]

    def size_of(self, name: str) -> int:
        """Bytes in all sections of a name."""
        return sum(section.size for section in self.sections if section.name == name)


def read_elf(path: Path) -> ElfFile:
    """Reads an executable, library or object file.

    Raises:
        ToolchainError: The file is not a little-endian ELF file, or is cut.
    """
    data = path.read_bytes()
    if data[:4] != b"\x7fELF" or data[5] != 1:
        raise ToolchainError("the compiler's output is not a little-endian ELF file", where=str(path))
    try:
        bits = 64 if data[4] == 2 else 32
        (machine,) = struct.unpack_from("<H", data, 18)
        sections = _sections(data, bits)
        return ElfFile(bits, machine, sections, _symbols(bits == 64, sections))
    except (struct.error, IndexError, ValueError) as error:
        raise ToolchainError("the compiler's output is a damaged ELF file", where=str(path)) from error


def _sections(data: bytes, bits: int) -> tuple[Section, ...]:
    is_64 = bits == 64
    layout = "<IIQQQQIIQQ" if is_64 else "<IIIIIIIIII"
    (start,) = struct.unpack_from("<Q" if is_64 else "<I", data, 40 if is_64 else 32)
    size, count, names = struct.unpack_from("<HHH", data, 58 if is_64 else 46)
    headers = [struct.unpack_from(layout, data, start + i * size) for i in range(count)]
    strings = data[headers[names][4] : headers[names][4] + headers[names][5]]
    return tuple(_section(data, i, header, strings) for i, header in enumerate(headers))


def _section(data: bytes, index: int, header: tuple[int, ...], strings: bytes) -> Section:
    name, kind, flags, address, offset, size, link, info = header[:8]
    body = b"" if kind == NOBITS else data[offset : offset + size]
    return Section(index, _string(strings, name), kind, flags, address, size, link, info, body)


def _symbols(is_64: bool, sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    for section in sections:
        if section.kind == _SYMTAB:
            strings = sections[section.link].data
            layout = struct.Struct("<IBBHQQ" if is_64 else "<IIIBBH")
            return tuple(_symbol(is_64, entry, strings) for entry in layout.iter_unpack(section.data))
    return ()


def _symbol(is_64: bool, entry: tuple[int, ...], strings: bytes) -> Symbol:
    if is_64:
        name, info, _, section, value, size = entry
    else:
        name, value, size, info, _, section = entry
    return Symbol(_string(strings, name), value, size, info & 15, section)


def _relocations(bits: int, section: Section) -> list[Relocation]:
    layout = {32: {_REL: "<II", _RELA: "<IIi"}, 64: {_REL: "<QQ", _RELA: "<QQq"}}[bits][section.kind]
    shift, mask = (8, 0xFF) if bits == 32 else (32, 0xFFFFFFFF)
    result = []
    for offset, info, *rest in struct.iter_unpack(layout, section.data):
        result.append(Relocation(section.info, offset, info >> shift, info & mask, rest[0] if rest else 0))
    return result


def _string(strings: bytes, at: int) -> str:
    return strings[at : strings.index(b"\0", at)].decode("utf-8", "replace")
