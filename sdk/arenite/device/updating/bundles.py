# SPDX-License-Identifier: Apache-2.0
"""The signed image of a built bundle, and what a factory writes into a new board."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arenite._manifest import read_manifest
from arenite.device.target import Segment, read_segments
from arenite.device.updating.image import HEADER_BYTES, Kind, read_header, sign_image
from arenite.errors import UsageError

__all__ = ["checked_image", "factory_segments", "sign_bundle"]

PAYLOAD_AT = 1024  # UPDATE_PAYLOAD_AT of update.h


def sign_bundle(bundle_dir: Path, private_key: Any, *, version: int) -> bytes:
    """The image of firmware that was bundled and built for a slot, or of a model that was built for one.

    Raises:
        UsageError: The bundle is for no slot, or is not built.
    """
    manifest = read_manifest(bundle_dir)
    board = str(manifest["board"])
    if (bundle_dir / "build" / "model.json").is_file():
        address, build = _model_slot(bundle_dir / "build" / "model.json")
        payload = _joined(read_segments(_built(bundle_dir, "model.elf")), address + PAYLOAD_AT)
        kind = Kind.MODEL
        return sign_image(payload, private_key, kind=kind, version=version, board=board, build=build, address=address)
    address = _slot_address(bundle_dir, manifest)
    payload = _joined(read_segments(_built(bundle_dir, "firmware.elf")), address + PAYLOAD_AT)
    return sign_image(payload, private_key, kind=Kind.FIRMWARE, version=version, board=board, address=address)


def _model_slot(report: Path) -> tuple[int, bytes]:
    """Address of the slot that a model is linked for, and the digest of the firmware build whose kernels it calls."""
    try:
        values = json.loads(report.read_text(encoding="utf-8"))
        return int(values["address"]), bytes.fromhex(values["firmware_digest"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        cure = "Run arenite build DIR --model-for FIRMWARE --slot N again"
        raise UsageError("the report of the model's build is damaged", where=str(report), cure=cure) from error


def checked_image(bundle_dir: Path, image: bytes) -> bytes:
    """An image, after it is found to be the one of this bundle.

    Raises:
        UsageError: The bundle is for no slot or not built, or the image is of another build, board or slot.
        CheckFailedError: The image is damaged.
    """
    manifest, header = read_manifest(bundle_dir), read_header(image)
    address = _slot_address(bundle_dir, manifest)
    payload = _joined(read_segments(_built(bundle_dir, "firmware.elf")), address + PAYLOAD_AT)
    if (header.kind, header.board, header.address) != (Kind.FIRMWARE, manifest["board"], address):
        raise UsageError("the image is for another board or slot than the bundle", where=str(bundle_dir))
    if image[HEADER_BYTES:] != payload:
        cure = "Sign the bundle again with `arenite update sign`"
        raise UsageError("the image holds another build than the bundle", where=str(bundle_dir), cure=cure)
    return image


def factory_segments(bundle_dir: Path, image: bytes) -> list[Segment]:
    """What a factory writes: the loader, and an image in the slot that it is for.

    Raises:
        UsageError: The bundle is for no slot, or is not built.
    """
    address = _slot_address(bundle_dir, read_manifest(bundle_dir))
    slot = [Segment(address, image[:HEADER_BYTES]), Segment(address + PAYLOAD_AT, image[HEADER_BYTES:])]
    return [*read_segments(_built(bundle_dir, "loader.elf")), *slot]


def _slot_address(bundle_dir: Path, manifest: dict[str, Any]) -> int:
    loader = manifest.get("loader")
    if not isinstance(loader, dict) or not isinstance(loader.get("address"), int):
        cure = "Bundle it with --slot and --update-key, or build its model with --model-for and --slot"
        raise UsageError("the bundle is for no slot", where=str(bundle_dir), cure=cure)
    return int(loader["address"])


def _built(bundle_dir: Path, name: str) -> Path:
    elf = bundle_dir / "build" / name
    if not elf.is_file():
        raise UsageError("the bundle is not built", where=str(bundle_dir), cure=f"Run arenite build {bundle_dir}")
    return elf


def _joined(segments: Sequence[Segment], start: int) -> bytes:
    """The bytes from `start` on: linkers let the first segment begin earlier, with the headers of the ELF file."""
    end = max(segment.address + len(segment.data) for segment in segments)
    joined = bytearray(b"\xff" * (end - start))
    for segment in segments:
        data = segment.data[max(0, start - segment.address) :]
        at = max(0, segment.address - start)
        joined[at : at + len(data)] = data
    return bytes(joined)
