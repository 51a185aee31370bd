# SPDX-License-Identifier: Apache-2.0
"""Signed images: a header of 256 bytes and a payload, as `update_image.h` of the firmware reads them.

    0   'ArUp'           32  board name, zeros behind it (32)
    4   format, 1        64  firmware build whose kernels a model needs (32)
    8   kind             96  SHA-512 of the payload (64)
    12  version         160  zeros (32)
    16  payload bytes   192  Ed25519 signature of bytes 0..191 (64)
    20  address of the slot, 0 for any

Integers have 32 bits, least byte first.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from arenite.device.updating.keys import is_signed
from arenite.errors import CheckFailedError, UsageError

__all__ = ["HEADER_BYTES", "Header", "Kind", "read_header", "sign_image"]

HEADER_BYTES, _SIGNED_BYTES = 256, 192
_MAGIC, _FORMAT = b"ArUp", 1
_LAYOUT = struct.Struct("<4sIIIII8x32s32s64s32x")
_NAME_BYTES, _BUILD_BYTES = 32, 32


class Kind(IntEnum):
    """What an image replaces."""

    FIRMWARE = 1
    MODEL = 2


@dataclass(frozen=True)
class Header:
    """What an image says of itself; `address` is 0 when it may lie in any slot."""

    kind: Kind
    version: int
    payload_bytes: int
    address: int
    board: str
    build: bytes
    digest: bytes


def sign_image(
    payload: bytes,
    private_key: Any,
    *,
    kind: Kind,
    version: int,
    board: str,
    build: bytes = bytes(_BUILD_BYTES),
    address: int = 0,
) -> bytes:
    """Header and payload.

    Args:
        payload: What lies in the slot behind the header.
        private_key: Of `read_private_key`.
        kind: What it replaces.
        version: From 1 on; a board takes only a higher one than it runs.
        board: Name of the board.
        build: Of a model: digest of the firmware build that it is linked against (32 bytes).
        address: Of the slot that the payload is linked for; 0 for any.

    Raises:
        UsageError: A value does not fit its field.
    """
    name = board.encode()
    if not 0 < len(name) < _NAME_BYTES:
        raise UsageError(f"the board's name has {len(name)} bytes; an image has room for {_NAME_BYTES - 1}")
    if not 1 <= version <= 0xFFFFFFFF:
        raise UsageError(f"the version is {version}; it must be between 1 and {0xFFFFFFFF}")
    if len(build) != _BUILD_BYTES:
        raise UsageError(f"the digest of the firmware build has {len(build)} bytes, not {_BUILD_BYTES}")
    digest = hashlib.sha512(payload).digest()
    signed = _LAYOUT.pack(_MAGIC, _FORMAT, kind, version, len(payload), address, name, build, digest)
    return signed + bytes(private_key.sign(signed)) + payload


def read_header(image: bytes, public_key: bytes | None = None) -> Header:
    """What an image says of itself, after its parts are found to fit together.

    Args:
        image: Header and payload.
        public_key: Check the signature by it too (32 bytes).

    Raises:
        UsageError: It is no image.
        CheckFailedError: It is cut short, changed, or not signed by that key.
    """
    if len(image) < HEADER_BYTES or image[:4] != _MAGIC:
        raise UsageError("this is no signed image", cure="Make one with `arenite update sign`")
    _, form, kind, version, payload_bytes, address, name, build, digest = _LAYOUT.unpack_from(image)
    if form != _FORMAT or kind not in list(Kind):
        raise UsageError(f"the image has format {form} and kind {kind}, which this version does not know")
    payload = image[HEADER_BYTES:]
    if len(payload) != payload_bytes:
        raise CheckFailedError(f"the image has {len(payload)} bytes behind its header, which says {payload_bytes}")
    if hashlib.sha512(payload).digest() != digest:
        raise CheckFailedError("the image's payload is not the one that was signed")
    if public_key is not None and not is_signed(public_key, image[_SIGNED_BYTES:HEADER_BYTES], image[:_SIGNED_BYTES]):
        raise CheckFailedError("the image is not signed by the owner of this key")
    board = name.rstrip(b"\0").decode("utf-8", "replace")
    return Header(Kind(kind), version, payload_bytes, address, board, build, digest)
