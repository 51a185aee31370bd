# SPDX-License-Identifier: Apache-2.0
"""Hostile frames at firmware on an emulated Cortex-M4: a slice of what `support/link_fuzz.py` gives by the million."""

from __future__ import annotations

from pathlib import Path

import pytest

from arenite.device import open_device
from arenite.device.protocol import Frame, encode_frame
from arenite.errors import LinkError
from arenite_codegen.build import build
from support.emulated_link import EmulatedLink, build_watched_firmware
from support.fake_bundle import expected_outputs, random_inputs
from support.link_fuzz import fuzz_device

pytest.importorskip("unicorn", reason="unicorn is not installed")
FRAMES = 5_000
TOO_LONG = b"\0" + b"\x01" * 3000 + b"\0"


class Line:
    """The board as a stream."""

    name = "emulated link"

    def __init__(self, board: EmulatedLink) -> None:
        self._board = board
        self._arrived = bytearray()

    def write(self, data: bytes) -> None:
        self._arrived += self._board.exchange(data)

    def read(self, timeout_s: float) -> bytes:
        data = bytes(self._arrived)
        self._arrived.clear()
        return data

    def reopen(self, timeout_s: float) -> None:
        """Never away."""

    def close(self) -> None:
        """Nothing to free."""


def test_an_emulated_board_survives_hostile_frames(tmp_path: Path) -> None:
    board = EmulatedLink(build_watched_firmware(tmp_path), tmp_path)
    answered, probes = fuzz_device(board, FRAMES, seed=3)
    assert answered > FRAMES // 3  # four in ten are whole
    assert probes > FRAMES // 5
    device = open_device(Line(board))
    device.select(0)
    inputs = random_inputs(6)
    for index, data in enumerate(inputs):
        device.load(index, data)
    device.run()
    assert device.read_output(0) == expected_outputs(inputs)[0]


def hurt(bundle: Path, source: str, right: str, wrong: str) -> None:
    path = bundle / source
    text = path.read_text()
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong))
    build(bundle)


DAMAGES: tuple[tuple[str, str, str, bytes, str], ...] = (
    # A frame that is too long is written on behind the receiver.
    (
        "app/link.c",
        "    link->frame[link->count++] = byte;",
        "    uint8_t *to = link->frame + (link->count < LINK_MAX_FRAME - 1u ? 0 : 60);\n    to[link->count++] = byte;",
        TOO_LONG,
        "of link_state",
    ),
    # A load reaches one byte past its tensor, which lies between two others.
    (
        "app/app.c",
        "offset <= io->bytes && bytes <= io->bytes - offset",
        "offset + bytes <= io->bytes + 1u",
        encode_frame(Frame(3, 1, bytes([1]) + bytes(4) + bytes([0x11]) * 38)),
        "of buffer_0",
    ),
    # A byte of the line sends the firmware into a loop.
    (
        "app/link.c",
        "    if (byte != 0) {",
        "    while (byte == 0x77) {\n    }\n    if (byte != 0) {",
        b"\0\x77\0",
        "hangs",
    ),
)


@pytest.mark.parametrize(("source", "right", "wrong", "line", "told"), DAMAGES, ids=["frame", "tensor", "loop"])
def test_what_the_fuzzer_is_there_to_find_is_found(
    tmp_path: Path, source: str, right: str, wrong: str, line: bytes, told: str
) -> None:
    bundle = build_watched_firmware(tmp_path)
    hurt(bundle, source, right, wrong)
    board = EmulatedLink(bundle, tmp_path)
    with pytest.raises(AssertionError, match=told):
        board.exchange(line)


def test_a_write_to_flash_ends_the_emulation(tmp_path: Path) -> None:
    bundle = build_watched_firmware(tmp_path)
    wrong = "    if (byte > 0x76) {\n        *(volatile uint32_t *)((uintptr_t)byte << 4) = 0;\n    }\n"
    test = "    if (byte != 0) {"
    hurt(bundle, "app/link.c", test, wrong + test)
    board = EmulatedLink(bundle, tmp_path)
    with pytest.raises(LinkError, match="the firmware faulted"):
        board.exchange(b"\x77")
