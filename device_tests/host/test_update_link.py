# SPDX-License-Identifier: Apache-2.0
"""Updates over the serial link: the firmware's own code with sanitizers, signed images, a line that loses bytes."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arenite.device import open_device
from arenite.device.protocol import UPDATE
from arenite.device.updating import (
    Kind,
    make_key,
    read_header,
    read_private_key,
    read_public_key,
    read_state,
    send_image,
    sign_image,
)
from arenite.errors import CheckFailedError, LinkError, OutputError, UsageError
from support.link_harness import LinkHarness, build_harness

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")

OWNER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
STRANGER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_harness(tmp_path_factory.mktemp("update_link"), update=True)


@pytest.fixture
def board(program: Path) -> Iterator[LinkHarness]:
    harness = LinkHarness(program)
    yield harness
    harness.close()


def image_of(version: int, size: int = 5_000, **changes: Any) -> bytes:
    given: dict[str, Any] = {"private_key": OWNER, "kind": Kind.FIRMWARE, "version": version, "board": "host"}
    return sign_image(random.Random(version).randbytes(size), **given | changes)


def test_an_update_is_sent_started_and_confirmed(board: LinkHarness) -> None:
    device = open_device(board)
    first = send_image(device, image_of(1))
    assert first.before.slot is None
    assert (first.after.slot, first.after.version) == (0, 1)
    second = send_image(device, image_of(2))
    assert (second.after.slot, second.after.version, second.after.confirmed) == (1, 2, True)
    assert second.after.statuses == ("holds a whole, signed image",) * 2
    device.reboot()
    assert read_state(device) == send_image(device, image_of(3)).before
    assert read_state(device).slot == 0


def test_what_is_not_confirmed_is_rolled_back(board: LinkHarness) -> None:
    device = open_device(board)
    send_image(device, image_of(1))
    report = send_image(device, image_of(2), confirm=False)
    assert report.after.on_trial
    with pytest.raises(CheckFailedError, match="what runs is on trial"):
        send_image(device, image_of(3))
    device.reboot()
    state = read_state(device)
    assert (state.slot, state.version, state.rolled_back) == (0, 1, True)


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        (image_of(2, private_key=STRANGER), "not signed by the owner"),
        (image_of(2, board="other"), "for another board"),
        (image_of(2, kind=Kind.MODEL), "no slots for a model alone"),
        (image_of(1), "not newer than what runs"),
        (image_of(2, size=16_000), "too large for the slot"),
    ],
)
def test_an_image_that_the_board_refuses_is_named(board: LinkHarness, image: bytes, problem: str) -> None:
    device = open_device(board)
    send_image(device, image_of(1))
    with pytest.raises(CheckFailedError, match=problem):
        send_image(device, image)
    device.reboot()
    assert read_state(device).version == 1


def test_an_image_that_is_cut_short_or_changed_is_not_sent(board: LinkHarness) -> None:
    device = open_device(board)
    with pytest.raises(CheckFailedError, match="has 4999 bytes behind its header, which says 5000"):
        send_image(device, image_of(2)[:-1])
    with pytest.raises(CheckFailedError, match="not the one that was signed"):
        send_image(device, image_of(2)[:-1] + b"\0")
    with pytest.raises(UsageError, match="no signed image"):
        send_image(device, b"firmware")
    assert read_state(device).version == 0


class Forgetful:
    """A line that loses every third reply, so that each operation is asked again now and then."""

    def __init__(self, board: LinkHarness) -> None:
        self.name, self._board, self._writes = "forgetful", board, 0

    def write(self, data: bytes) -> None:
        self._writes += 1
        self._board.write(data)
        if self._writes % 3 == 0:
            self._board.read(0)

    def read(self, timeout_s: float) -> bytes:
        return self._board.read(timeout_s)

    def reopen(self, timeout_s: float) -> None:
        """The line is never away."""

    def close(self) -> None:
        """The board is closed by its owner."""


def test_lost_replies_do_no_harm(board: LinkHarness) -> None:
    device = open_device(Forgetful(board))
    for version in (1, 2, 3):
        assert send_image(device, image_of(version)).after.version == version


def test_malformed_requests_are_refused_and_random_ones_change_nothing_that_counts(board: LinkHarness) -> None:
    device = open_device(board)
    send_image(device, image_of(1))
    for payload in (b"", b"\1", b"\1" + bytes(255), b"\2" + bytes(3), b"\3x", b"\6", b"\x26", b"\xff"):
        with pytest.raises(LinkError, match="refused `update`"):
            device.request(UPDATE, payload)
    rng = random.Random(4)
    for _ in range(300):
        payload = bytes([rng.choice((1, 2, 3))]) + rng.randbytes(rng.choice((0, 4, 256, 1000)))
        try:
            device.request(UPDATE, payload)
        except LinkError:
            continue
    device.reboot()
    assert read_state(device).version == 1


def test_a_board_without_slots_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    harness = LinkHarness(build_harness(tmp_path_factory.mktemp("no_slots")))
    with pytest.raises(LinkError, match="unknown command"):
        read_state(open_device(harness))
    harness.close()


def test_keys_and_images_on_the_command_line(
    tmp_path: Path, arenite_command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    key, payload, image = tmp_path / "key.pem", tmp_path / "firmware.bin", tmp_path / "image.bin"
    payload.write_bytes(b"payload" * 99)
    assert arenite_command("update", "keygen", key, "--json").returncode == 0
    assert key.stat().st_mode & 0o077 == 0
    options = ["--key", key, "--board", "nucleo", "--version", "7", "-o", image]
    signed = arenite_command("update", "sign", payload, *options)
    assert signed.returncode == 0, signed.stderr
    shown = arenite_command("update", "show", image, "--key", key, "--json")
    assert json.loads(shown.stdout)["version"] == 7
    header = read_header(image.read_bytes(), read_public_key(key))
    assert (header.board, header.payload_bytes) == ("nucleo", 693)
    make_key(tmp_path / "other.pem")
    refused = arenite_command("update", "show", image, "--key", tmp_path / "other.pem")
    assert refused.returncode == 1
    assert "not signed by the owner of this key" in refused.stderr
    again = arenite_command("update", "keygen", key)
    assert again.returncode == 2
    assert "there is a file of that name already" in again.stderr


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("hello")
    for read in (read_private_key, read_public_key):
        with pytest.raises(UsageError, match="key cannot be read"):
            read(tmp_path / "key.pem")
    with pytest.raises(OutputError, match="cannot be written"):
        make_key(tmp_path / "nowhere" / "key.pem")
