# SPDX-License-Identifier: Apache-2.0
"""A built bundle: what `build/build.json` says of the board, and the firmware's memory image."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arenite.errors import UsageError

__all__ = ["Segment", "Target", "read_segments", "read_target"]

_CURE = "Build the bundle first: arenite build DIR"


@dataclass(frozen=True)
class Target:
    """What an emulator must know.

    Attributes:
        image: The firmware, or on the host the shared library.
        build_id: What the firmware says of itself, 16 hexadecimal digits; empty in reports of older versions.
        architecture: `cortex-m`, `riscv32` or `host`.
        memory: Tables of `name`, `kind`, `origin`, `length`.
        uart: Table of `kind`, `base`, `baud`.
        counter: Table of `kind`, `unit`, `hz`, `base`, `coarse_base`.
        emulators: For each emulator's name its table, as in the board file.
    """

    image: Path
    board: str
    architecture: str
    memory: list[dict[str, Any]]
    uart: dict[str, Any]
    counter: dict[str, Any]
    emulators: dict[str, dict[str, Any]]
    build_id: str = ""


@dataclass(frozen=True)
class Segment:
    """Bytes to lie at an address."""

    address: int
    data: bytes


def read_target(bundle_dir: Path) -> Target:
    """Reads `DIR/build/build.json`.

    Raises:
        UsageError: The bundle was not built, or its build report is damaged.
    """
    path = bundle_dir / "build" / "build.json"
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        target = report["target"]
        image = path.parent / report["image"]
        found = Target(
            image=image,
            board=report["board"],
            architecture=target["architecture"],
            memory=target["memory"],
            uart=target["uart"],
            counter=target["counter"],
            emulators=target["emulators"],
            build_id=str(report.get("build_id", "")),
        )
    except OSError as error:
        raise UsageError("this bundle is not built", where=str(bundle_dir), cure=_CURE) from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError("the build report is damaged", where=str(path), cure=_CURE) from error
    if not image.is_file():
        raise UsageError("the build folder lacks the firmware", where=str(image), cure=_CURE)
    return found


def read_segments(elf: Path) -> list[Segment]:
    """The loadable bytes of a 32-bit little-endian ELF file, by load address.

    Raises:
        UsageError: The file is not such an ELF file.
    """
    data = elf.read_bytes()
    try:
        if data[:6] != b"\x7fELF\x01\x01":
            raise ValueError
        (start,), (size, count) = struct.unpack_from("<I", data, 28), struct.unpack_from("<HH", data, 42)
        headers = [struct.unpack_from("<IIIIII", data, start + i * size) for i in range(count)]
    except (ValueError, struct.error) as error:
        raise UsageError("the firmware is not a 32-bit ELF file", where=str(elf), cure=_CURE) from error
    loaded = [header for header in headers if header[0] == 1 and header[4] > 0]
    return [Segment(physical, data[offset : offset + length]) for _, offset, _, physical, length, _ in loaded]
