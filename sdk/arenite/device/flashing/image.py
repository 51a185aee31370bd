# SPDX-License-Identifier: Apache-2.0
"""The bytes to flash: of a built bundle's ELF file, or of what ESP-IDF lists in `flasher_args.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arenite._manifest import read_manifest
from arenite.device.flashing.model import Piece
from arenite.device.target import read_segments
from arenite.device.updating.bundles import checked_image, factory_segments
from arenite.errors import UsageError

__all__ = ["FlashTarget", "pieces_of", "read_flash_target"]

PIECE_BYTES = 64 << 10
_ERASED = b"\xff"


@dataclass(frozen=True)
class FlashTarget:
    """What a bundle says of how its board is flashed: the board file's `[flash]`, see docs/boards.md.

    Attributes:
        origin: Address of the board's first flash region.
        spans: Start and end of each flash region.
    """

    board: str
    method: str
    chip: str
    family: str
    size_bytes: int
    offset: int
    command: tuple[str, ...]
    origin: int
    spans: tuple[tuple[int, int], ...]


def read_flash_target(bundle_dir: Path) -> FlashTarget:
    """How a bundle's board is flashed.

    Raises:
        UsageError: The folder is no bundle, or its board file does not say how it is flashed.
    """
    manifest = read_manifest(bundle_dir)
    board, found = str(manifest.get("board")), manifest.get("flash")
    if not isinstance(found, Mapping):
        cure = "Add a [flash] table to the board file and bundle again, or use the board's own tool"
        raise UsageError("the board file does not say how the board is flashed", where=board, cure=cure)
    try:
        return FlashTarget(
            board=board,
            method=str(found["method"]),
            chip=str(found["chip"]),
            family=str(found["family"]),
            size_bytes=int(found["size_bytes"]),
            offset=int(found["offset"]),
            command=tuple(str(word) for word in found["command"]),
            origin=int(found["origin"]),
            spans=tuple((int(start), int(end)) for start, end in found["spans"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError("the manifest's `flash` is damaged", where=str(bundle_dir), cure="Bundle it again") from error


def pieces_of(bundle_dir: Path, target: FlashTarget, image: bytes | None = None) -> list[Piece]:
    """The firmware in pieces of at most 64 KiB, none of which crosses a border of 64 KiB, by ascending address.

    Args:
        bundle_dir: A built bundle.
        target: How its board is flashed.
        image: Of firmware for a slot its signed image, before which goes the loader.

    Raises:
        UsageError: The bundle is not built, or what was built is damaged or outside the board's flash; it is for a slot
            and there is no image of it, or there is one and it is for none.
    """
    listing = bundle_dir / "build" / "flasher_args.json"
    if target.method == "esptool" and listing.is_file():
        return _cut(_listed(listing))
    segments, elf = _segments(bundle_dir, image), bundle_dir / "build"
    for piece in segments:
        if not any(start <= piece.address and piece.end <= end for start, end in target.spans):
            problem = f"the firmware has bytes at {piece.address:#x}..{piece.end:#x}, which is not in the board's flash"
            raise UsageError(problem, where=str(elf), cure="Build the bundle again for this board")
    shift = target.offset - target.origin if target.method == "esptool" else 0
    return _cut([Piece(piece.address + shift, piece.data) for piece in segments])


def _segments(bundle_dir: Path, image: bytes | None) -> list[Piece]:
    """What the linker placed; of firmware for a slot the loader and the image."""
    is_slotted = bool(read_manifest(bundle_dir).get("loader"))
    if is_slotted and image is None:
        cure = "Sign it with `arenite update sign` and give --image"
        raise UsageError("the bundle is for a slot, which needs a signed image", where=str(bundle_dir), cure=cure)
    if image is not None:
        found = factory_segments(bundle_dir, checked_image(bundle_dir, image))
    else:
        elf = bundle_dir / "build" / "firmware.elf"
        if not elf.is_file():
            cure = f"Run arenite build {bundle_dir}"
            raise UsageError("the bundle is not built", where=str(bundle_dir), cure=cure)
        found = read_segments(elf)
    return [Piece(segment.address, segment.data) for segment in found]


def _listed(listing: Path) -> list[Piece]:
    try:
        files: dict[str, Any] = json.loads(listing.read_text(encoding="utf-8"))["flash_files"]
        return [Piece(int(at, 0), (listing.parent / name).read_bytes()) for at, name in files.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"the list of images cannot be read ({error})"
        raise UsageError(problem, where=str(listing), cure="Build the project again") from error


def _cut(parts: Sequence[Piece]) -> list[Piece]:
    """Joins what touches or is close, then cuts at the borders."""
    joined: list[Piece] = []
    for part in sorted(parts, key=lambda part: part.address):
        gap = part.address - joined[-1].end if joined else -1
        if 0 <= gap < 4096:
            last = joined.pop()
            part = Piece(last.address, last.data + _ERASED * gap + part.data)
        elif joined and gap < 0:
            raise UsageError(f"two parts of the firmware overlap at {part.address:#x}", cure="Build it again")
        joined.append(part)
    pieces = []
    for part in joined:
        at = part.address
        while at < part.end:
            border = min(part.end, (at // PIECE_BYTES + 1) * PIECE_BYTES)
            pieces.append(Piece(at, part.data[at - part.address : border - part.address]))
            at = border
    return pieces
