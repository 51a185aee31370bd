# SPDX-License-Identifier: Apache-2.0
"""Sends a signed image to a board with slots, over the serial link."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from arenite.device import protocol
from arenite.device.client import Device
from arenite.device.updating.image import HEADER_BYTES, Header, Kind, read_header
from arenite.errors import CheckFailedError, LinkError
from arenite.progress import Progress, silent

__all__ = ["SlotState", "UpdateReport", "begin", "finish", "read_state", "send_image", "send_payload"]

_STATE, _BEGIN, _TAKE, _FINISH, _CONFIRM = range(5)
_OF_MODEL = 16  # added to an operation that is about the slots for the model alone
_TAKE_HEADER = 5
_MOST_BYTES = protocol.MAX_PAYLOAD - _TAKE_HEADER
_ERASE_S = 30.0
_OTHER_KIND = 3
_KIND_WORDS = {Kind.FIRMWARE: "firmware", Kind.MODEL: "a model alone"}
_RESULTS = (
    "holds a whole, signed image",
    "holds no image",
    "the image is not signed by the owner of the board's key",
    "the image replaces something else (firmware or model)",
    "the image is for another board",
    "the image is for another firmware build, or for another slot",
    "the image is too large for the slot",
    "the payload is not the one that was signed",
    "the image is not newer than what runs",
    "the flash reports a failure",
    "bytes came that do not follow the last",
    "not all bytes came",
    "what runs is on trial: confirm it first",
)


@dataclass(frozen=True)
class SlotState:
    """What a board says of its slots.

    Attributes:
        slot: That runs; None when it runs from none: firmware without a signature, or the model inside the firmware.
        version: Of what runs; 0 when that is no signed image.
        confirmed: Later starts keep it.
        on_trial: It must be confirmed, or the next start goes back to the other.
        rolled_back: The newer image did not confirm itself.
        statuses: What either slot holds, in words.
        payload_limit_bytes: The largest payload.
    """

    slot: int | None
    version: int
    confirmed: bool
    on_trial: bool
    rolled_back: bool
    statuses: tuple[str, str]
    payload_limit_bytes: int


@dataclass(frozen=True)
class UpdateReport:
    """What came of an update: the image, and the slots before and after it."""

    image: Header
    before: SlotState
    after: SlotState


def read_state(device: Device, kind: Kind = Kind.FIRMWARE) -> SlotState:
    """What a board says of its slots for firmware, or of those for its model alone.

    Raises:
        LinkError: It has none, or does not answer.
    """
    reply = _ask(device, _STATE, kind=kind)
    if len(reply) < 12:
        raise LinkError("the board's reply to `update` is malformed", where=device.name)
    slot, version, flags, first, second, limit = struct.unpack_from("<bIBBBI", reply)
    return SlotState(
        slot=None if slot < 0 else slot,
        version=version,
        confirmed=bool(flags & 1),
        on_trial=bool(flags & 2),
        rolled_back=bool(flags & 4),
        statuses=(_text(first), _text(second)),
        payload_limit_bytes=limit,
    )


def send_image(device: Device, image: bytes, *, confirm: bool = True, progress: Progress | None = None) -> UpdateReport:
    """Replaces the slot that does not run, restarts the board, and confirms what then runs.

    Power may fail at any time: the board starts what ran before, and the update can be done again.

    Args:
        device: An open board.
        image: Header and payload, of `sign_image`.
        confirm: Confirm the new image once it answers. Otherwise its next restart goes back to the old one.
        progress: Told of the bytes sent.

    Raises:
        UsageError: `image` is none.
        CheckFailedError: It is damaged, or the board refuses it, or the board went back to what it ran before.
        LinkError: The board has no slots, or does not answer.
    """
    header = read_header(image)
    before = read_state(device, header.kind)
    with (progress or silent()).step("send the image", header.payload_bytes) as step:
        begin(device, image)
        send_payload(device, image, advance=step.advance)
        finish(device)
    device.reboot(into_update=True)
    state = read_state(device, header.kind)
    if state.version != header.version:
        went_back = "it was tried and did not confirm itself" if state.rolled_back else "it does not start"
        problem = f"the board runs version {state.version} and not {header.version}: {went_back}"
        raise CheckFailedError(problem, where=device.name, cure="Send it again with a higher version")
    if confirm and not state.confirmed:
        _ask(device, _CONFIRM, kind=header.kind)
        state = read_state(device, header.kind)
    return UpdateReport(header, before, state)


def begin(device: Device, image: bytes) -> None:
    """Shows the header to the board, which erases the header of the other slot if it takes the image.

    Raises:
        CheckFailedError: The board refuses.
    """
    _ask(device, _BEGIN, image[:HEADER_BYTES], read_header(image).kind)


def send_payload(
    device: Device, image: bytes, chunk_bytes: int = _MOST_BYTES, advance: Callable[[int], None] = lambda count: None
) -> None:
    """Sends what lies behind the header, front to back; `advance` is told the bytes of each frame.

    Raises:
        CheckFailedError: The board refuses.
    """
    for at in range(HEADER_BYTES, len(image), chunk_bytes):
        part = image[at : at + chunk_bytes]
        _ask(device, _TAKE, struct.pack("<I", at - HEADER_BYTES) + part)
        advance(len(part))


def finish(device: Device) -> None:
    """The board compares what it has written; from then on the image counts.

    Raises:
        CheckFailedError: It is not what was signed, or not all of it.
    """
    _ask(device, _FINISH)


def _ask(device: Device, operation: int, data: bytes = b"", kind: Kind = Kind.FIRMWARE) -> bytes:
    """One operation on the slots for images of a kind; what follows its result.

    Raises:
        CheckFailedError: The board refuses.
    """
    operation += _OF_MODEL if kind is Kind.MODEL else 0
    reply = device.request(protocol.UPDATE, bytes([operation]) + data, timeout_s=_ERASE_S)
    if not reply:
        raise LinkError("the board's reply to `update` is malformed", where=device.name)
    if operation & ~_OF_MODEL == _STATE and reply[0] == _OTHER_KIND:
        raise CheckFailedError(f"the board has no slots for {_KIND_WORDS[kind]}", where=device.name)
    if reply[0] != 0:
        raise CheckFailedError(f"the board refuses the image: {_text(reply[0])}", where=device.name)
    return reply[1:]


def _text(result: int) -> str:
    return _RESULTS[result] if result < len(_RESULTS) else f"status {result}"
