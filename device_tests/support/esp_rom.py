# SPDX-License-Identifier: Apache-2.0
"""The serial loader in the ROM of ESP32 chips, from Espressif's description of its protocol, over a flash of bytes.

Packets are framed by SLIP. A request is 0, command, length (2), checksum (4), data; a reply is 1, command, length (2),
value (4), data, and a status of four bytes: failed, reason, and two that mean nothing.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["CHIPS", "EspRom"]

_END, _ESCAPE, _ESCAPED_END, _ESCAPED_ESCAPE = 0xC0, 0xDB, 0xDC, 0xDD
_CHECKSUM_SEED = 0xEF
_MAGIC_REGISTER = 0x40001000
_SPI_RUN, _READ_ID = 1 << 18, 0x9F
_SECTOR = 4096
_INVALID, _FAILED_CHECKSUM = 0x05, 0x07
_SECURE_DOWNLOAD = 1 << 2
_ALLOWED_IN_SECURE_DOWNLOAD = {0x02, 0x03, 0x04, 0x08, 0x0B, 0x0D, 0x0F, 0x14}


@dataclass(frozen=True)
class EspChip:
    """Registers by which a loader tells a chip and finds its flash controller.

    Attributes:
        magic: At the magic register.
        chip_id: In the security information; None where the chip has no such command.
        spi: Base of the flash controller; offsets of the command (`usr2`) and data (`w0`) registers.
    """

    name: str
    magic: int
    chip_id: int | None
    spi: int
    usr2: int
    w0: int


CHIPS = {
    "esp32": EspChip("ESP32", 0x00F01D83, None, 0x3FF42000, 0x24, 0x80),
    "esp32c3": EspChip("ESP32-C3", 0x1B31506F, 5, 0x60002000, 0x20, 0x58),
    "esp32s3": EspChip("ESP32-S3", 0x9, 9, 0x60002000, 0x20, 0x58),
}


@dataclass
class EspRom:
    """A chip in download mode.

    Attributes:
        flash: Its content.
        flash_bytes: What its flash says of its own size, a power of two.
        secure_download: Nothing may be read any more.
        stuck: Bits of a byte that can be 1, by address.
        noise: Addresses that are read otherwise each time.
        on_data: Called before each block of data with the bytes written so far.
    """

    chip: EspChip
    flash_bytes: int = 4 << 20
    secure_download: bool = False
    stuck: dict[int, int] = field(default_factory=dict)
    noise: set[int] = field(default_factory=set)
    on_data: Callable[[int], None] = lambda written: None
    flash: bytearray = field(default_factory=bytearray)
    erases: int = 0
    written: int = 0
    _packet: bytearray | None = None
    _escaped: bool = False
    _registers: dict[int, int] = field(default_factory=dict)
    _write_at: int = 0
    _inflate: object = None

    def __post_init__(self) -> None:
        if not self.flash:
            self.flash = bytearray(b"\xff" * self.flash_bytes)
        self._registers[_MAGIC_REGISTER] = self.chip.magic

    def receive(self, data: bytes) -> bytes:
        """Takes bytes from the line; returns the replies to the packets that they end."""
        out = b""
        for byte in data:
            if byte == _END:
                packet, self._packet = self._packet, bytearray()
                if packet:
                    self._packet = None
                    out += self._answer(bytes(packet))
            elif self._packet is not None:
                self._take(byte)
        return out

    def _take(self, byte: int) -> None:
        assert self._packet is not None
        if self._escaped:
            self._escaped = False
            byte = {_ESCAPED_END: _END, _ESCAPED_ESCAPE: _ESCAPE}.get(byte, byte)
        elif byte == _ESCAPE:
            self._escaped = True
            return
        self._packet.append(byte)

    def _answer(self, packet: bytes) -> bytes:
        if len(packet) < 8 or packet[0] != 0:
            return b""
        _, command, length, checksum = struct.unpack_from("<BBHI", packet)
        data = packet[8:]
        if len(data) != length:
            return _reply(command, 0, b"", _INVALID)
        if command == 0x08:
            return _reply(command, 0x20120707, b"") * 8
        if self.secure_download and command not in _ALLOWED_IN_SECURE_DOWNLOAD:
            return _reply(command, 0, b"", _INVALID)
        handler = _HANDLERS.get(command)
        if handler is None or (command == 0x14 and self.chip.chip_id is None):
            return _reply(command, 0, b"", _INVALID)
        return handler(self, command, data, checksum)

    def _write_register(self, command: int, data: bytes, _: int) -> bytes:
        address, value, mask = struct.unpack_from("<III", data)
        self._registers[address] = self._registers.get(address, 0) & ~mask | value & mask
        if address == self.chip.spi and value & _SPI_RUN:
            self._registers[address] = 0
            opcode = self._registers.get(self.chip.spi + self.chip.usr2, 0) & 0xFF
            self._registers[self.chip.spi + self.chip.w0] = self._flash_id() if opcode == _READ_ID else 0
        return _reply(command, 0, b"")

    def _flash_id(self) -> int:
        """Maker, type, and the power of two of the size."""
        return 0x20 | 0x40 << 8 | (self.flash_bytes.bit_length() - 1) << 16

    def _read_register(self, command: int, data: bytes, _: int) -> bytes:
        return _reply(command, self._registers.get(int.from_bytes(data[:4], "little"), 0), b"")

    def _security(self, command: int, data: bytes, _: int) -> bytes:
        flags = _SECURE_DOWNLOAD if self.secure_download else 0
        return _reply(command, 0, struct.pack("<IB7xII", flags, 0, self.chip.chip_id or 0, 0))

    def _nothing(self, command: int, data: bytes, _: int) -> bytes:
        return _reply(command, 0, b"")

    def _begin(self, command: int, data: bytes, _: int) -> bytes:
        size, blocks, block_bytes, offset = struct.unpack_from("<IIII", data)
        end = offset + (size if command == 0x02 else blocks * block_bytes)
        if offset > len(self.flash) or offset + size > len(self.flash):
            return _reply(command, 0, b"", 0x06)
        for sector in range(offset // _SECTOR, -(-min(end, len(self.flash)) // _SECTOR)):
            self.flash[sector * _SECTOR : (sector + 1) * _SECTOR] = b"\xff" * _SECTOR
        self.erases += 1
        self._write_at = offset
        self._inflate = zlib.decompressobj() if command == 0x10 else None
        return _reply(command, 0, b"")

    def _data(self, command: int, data: bytes, checksum: int) -> bytes:
        (size,) = struct.unpack_from("<I", data)
        block = data[16 : 16 + size]
        seed = _CHECKSUM_SEED
        for byte in block:
            seed ^= byte
        if seed != checksum or len(block) != size:
            return _reply(command, 0, b"", _FAILED_CHECKSUM)
        self.on_data(self.written)
        plain = self._inflate.decompress(block) if self._inflate is not None else block  # type: ignore[attr-defined]
        self.flash[self._write_at : self._write_at + len(plain)] = plain
        for address, mask in self.stuck.items():
            self.flash[address] &= mask
        self._write_at += len(plain)
        self.written += len(plain)
        return _reply(command, 0, b"")

    def _seen(self, address: int, size: int) -> bytes:
        """What reading gives."""
        for noisy in self.noise:
            if address <= noisy < address + size:
                self.flash[noisy] = (self.flash[noisy] + 1) & 0xFF
        return bytes(self.flash[address : address + size])

    def _md5(self, command: int, data: bytes, _: int) -> bytes:
        address, size = struct.unpack_from("<II", data)
        return _reply(command, 0, hashlib.md5(self._seen(address, size)).hexdigest().encode())

    def _read(self, command: int, data: bytes, _: int) -> bytes:
        address, size = struct.unpack_from("<II", data)
        return _reply(command, 0, self._seen(address, size).ljust(64, b"\0"))


def _reply(command: int, value: int, data: bytes, failure: int | None = None) -> bytes:
    body = data + (bytes(4) if failure is None else bytes([1, failure, 0, 0]))
    packet = struct.pack("<BBHI", 1, command, len(body), value) + body
    stuffed = packet.replace(b"\xdb", b"\xdb\xdd").replace(b"\xc0", b"\xdb\xdc")
    return b"\xc0" + stuffed + b"\xc0"


_HANDLERS: dict[int, Callable[[EspRom, int, bytes, int], bytes]] = {
    0x02: EspRom._begin,
    0x03: EspRom._data,
    0x04: EspRom._nothing,
    0x09: EspRom._write_register,
    0x0A: EspRom._read_register,
    0x0B: EspRom._nothing,
    0x0D: EspRom._nothing,
    0x0E: EspRom._read,
    0x0F: EspRom._nothing,
    0x10: EspRom._begin,
    0x11: EspRom._data,
    0x12: EspRom._nothing,
    0x13: EspRom._md5,
    0x14: EspRom._security,
}
