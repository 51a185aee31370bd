# SPDX-License-Identifier: Apache-2.0
"""A built bundle as far as flashing looks at one: a manifest and an ELF file with two segments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.elf_file import elf_of

__all__ = ["CODE", "FLASH_TABLES", "make_flash_bundle"]

FLASH_TABLES: dict[str, dict[str, Any]] = {
    "esp32": {"method": "esptool", "chip": "esp32", "size_bytes": 4 << 20, "offset": 0x10000},
    "esp32c3": {"method": "esptool", "chip": "esp32c3", "size_bytes": 4 << 20},
    "esp32s3": {"method": "esptool", "chip": "esp32s3", "size_bytes": 4 << 20, "offset": 0x10000},
    "stm32f405": {"method": "stm32loader", "chip": "0x413", "family": "F4", "size_bytes": 1 << 20},
    "stm32g071": {"method": "stm32loader", "chip": "0x460", "family": "G0", "size_bytes": 128 << 10},
    "rp2040": {"method": "uf2", "chip": "RPI-RP2", "family": "0xe48bff56", "size_bytes": 2 << 20},
}
_ORIGINS = {"esptool": 0x42000000, "stm32loader": 0x08000000, "uf2": 0x10000000, "command": 0x08000000}
CODE = bytes((i * 7 + (i >> 8)) & 0xFF for i in range(90_001))
_STM32_BYTES = 12_001  # every 256 of them are four exchanges
_DATA = b"initialised"


def make_flash_bundle(
    folder: Path, board: str, table: dict[str, Any] | None = None, code: bytes | None = None
) -> bytes:
    """Writes the bundle; returns the firmware as it must lie in the flash, from the first byte of the region."""
    empty: dict[str, Any] = {"family": "", "chip": "", "size_bytes": 0, "offset": 0, "command": []}
    table = empty | (table or FLASH_TABLES[board])
    origin = _ORIGINS[table["method"]]
    if code is None:
        code = CODE[:_STM32_BYTES] if table["method"] == "stm32loader" else CODE
    (folder / "build").mkdir(parents=True)
    manifest = {
        "format": 2,
        "board": board,
        "weights_bytes": 0,
        "sources": [],
        "include_dirs": [],
        "models": [{"name": "m", "symbol": "m", "sha256": "0" * 64, "vectors": {"count": 1, "folder": "vectors"}}],
        "flash": table | {"origin": origin, "spans": [[origin, origin + (table["size_bytes"] or 1 << 20)]]},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    gap = -len(code) % 16
    data_at = origin + len(code) + gap
    (folder / "build" / "firmware.elf").write_bytes(elf_of([(origin, code), (data_at, _DATA)]))
    return code + b"\xff" * gap + _DATA
