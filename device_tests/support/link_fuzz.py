# SPDX-License-Identifier: Apache-2.0
"""Hostile bytes for both ends of the serial link.

    python device_tests/support/link_fuzz.py --frames 1000000

The device is there twice: the firmware on an emulated Cortex-M4, with every byte of its RAM watched, and its C on this
computer under sanitizers, with the gaps of its arena watched. Whatever arrives, it must not write outside its buffers,
must not hang, and must understand the next whole frame. The host's parser hears the same kind of bytes and must find
the next frame too. The seed of a failure is printed: `--seed` runs it again, `--end` at that end alone.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from arenite.device import messages, protocol
from arenite.device.protocol import Frame, FrameReader, encode_frame
from arenite.errors import LinkError
from support.emulated_link import EmulatedLink, build_watched_firmware
from support.link_harness import LinkHarness, build_harness

__all__ = ["DeviceFuzz", "fuzz_device", "fuzz_host"]


class Exchanging(Protocol):
    """Takes bytes and gives back what is answered."""

    def exchange(self, data: bytes) -> bytes:
        """All of the answer."""


class DeviceFuzz(NamedTuple):
    """What a device made of hostile frames.

    Attributes:
        answered: Frames that it sent in answer to hostile ones, or while it ran.
        probes: Right requests between them, each answered.
    """

    answered: int
    probes: int


BATCH = 500  # frames between two looks at the board
_PROBES = range(100, 200)  # their sequence numbers; hostile frames have others
_COMMANDS = sorted(protocol.NAMES)
_READERS = (
    messages.read_about,
    messages.read_heartbeat,
    messages.read_reset_cause,
    messages.read_layers,
    messages.read_row_piece,
    protocol.read_damage,
    protocol.read_identification,
    protocol.read_tensor_info,
)


def _payload(chance: random.Random, command: int) -> bytes:
    """Often of the right form, with numbers at the edges of what is allowed."""
    edge = chance.choice((0, 1, 2, 36, 37, 38, 1027, 2999, 3000, 3001, 0x7FFFFFFF, 0xFFFFFFFF, chance.getrandbits(32)))
    short = chance.choice((0, 1, 2, 3, 255))
    forms = {
        protocol.DESCRIBE: lambda: bytes([short % 256, chance.choice((0, 1, 2, 255))]),
        protocol.LOAD: lambda: struct.pack("<BI", short, edge) + chance.randbytes(chance.choice((0, 1, 37, 946, 1027))),
        protocol.RUN: lambda: chance.choice((b"", struct.pack("<I", chance.choice((0, 1, 2, 3))))),
        protocol.READ: lambda: struct.pack("<BIH", short, edge, chance.choice((0, 1, 37, 1031, 1032, 65535))),
        protocol.SELECT: lambda: bytes([short]),
        protocol.TRACE: lambda: struct.pack("<BHII", chance.randrange(20), short, edge, edge),
        protocol.LAYERS: lambda: struct.pack("<H", edge & 0xFFFF),
        protocol.PARAMETER: lambda: bytes([short]) + chance.choice((b"", struct.pack("<I", edge))),
    }
    if chance.random() < 0.7:
        return forms[command]() if command in forms else b""
    return chance.randbytes(chance.choice((0, 1, 5, 8, 200, protocol.MAX_PAYLOAD)))


def hostile_line(chance: random.Random) -> bytes:
    """One frame, or what a bad line makes of one."""
    command = chance.choice(_COMMANDS) if chance.random() < 0.9 else chance.randrange(256)
    line = bytearray(encode_frame(Frame(command, chance.choice((1, 2, 3)), _payload(chance, command))))
    kind = chance.random()
    if kind < 0.4:
        return bytes(line)
    if kind < 0.7:
        for _ in range(chance.choice((1, 1, 2, 8))):
            line[chance.randrange(len(line))] = chance.randrange(256)
    elif kind < 0.8:
        del line[chance.randrange(len(line)) :]
    elif kind < 0.9:
        at = chance.randrange(len(line))
        line[at:at] = chance.randbytes(chance.choice((1, 3, 2000)))
    else:
        return chance.randbytes(chance.choice((1, 10, 300)))
    return bytes(line)


def fuzz_device(board: Exchanging, frames: int, seed: int) -> DeviceFuzz:
    """Gives the device so many hostile frames; every fourth is followed by a right one, which must be answered.

    Raises:
        AssertionError: A sanitizer or a watched byte spoke, or the device lost its place in the stream.
    """
    answered, probed = 0, 0
    for number, batch in enumerate(_batches(frames)):
        chance = random.Random(seed * 1_000_003 + number)
        line = bytearray()
        probes: list[int] = []
        for index in range(batch):
            line += hostile_line(chance)
            if chance.random() < 0.25 or index == batch - 1:
                probes.append(_PROBES[len(probes) % len(_PROBES)])
                # What was cut may be a request to restart that lacks but its last zero, and a board that starts drops
                # the byte that came meanwhile: so that it is none of the right frame, a zero stands before it.
                line += b"\0" + encode_frame(Frame(protocol.IDENTIFY, probes[-1], b""))
        replies = list(FrameReader().feed(board.exchange(bytes(line))))
        found = [reply.sequence for reply in replies if _is_answer_to_probe(reply)]
        assert found == probes, f"out of step in batch {number} of seed {seed}"
        answered += len(replies) - len(probes)
        probed += len(probes)
    return DeviceFuzz(answered, probed)


def _is_answer_to_probe(reply: Frame) -> bool:
    is_identity = reply.command == protocol.IDENTIFY | protocol.REPLY and reply.payload[:1] == b"\0"
    return is_identity and reply.sequence in _PROBES


def fuzz_host(frames: int, seed: int) -> int:
    """Gives the host's parser so many hostile frames, in pieces; returns how many it understood.

    Raises:
        AssertionError: It lost its place in the stream, or kept more than a frame.
    """
    understood = 0
    reader = FrameReader()
    for number, batch in enumerate(_batches(frames)):
        chance = random.Random(seed * 1_000_003 + number)
        for _ in range(batch):
            for frame in reader.feed(hostile_line(chance)):
                understood += 1
                _read_as_everything(frame.payload)
        last = Frame(protocol.IDENTIFY | protocol.REPLY, 200, chance.randbytes(50))
        assert list(reader.feed(encode_frame(last)))[-1] == last, f"out of step after batch {number} of seed {seed}"
        assert len(reader._pending) < 2000
    return understood


def _read_as_everything(payload: bytes) -> None:
    for read in _READERS:
        try:
            read(payload, "fuzz")
        except LinkError:
            continue


def _batches(frames: int) -> list[int]:
    return [BATCH] * (frames // BATCH) + ([frames % BATCH] if frames % BATCH else [])


def _fuzz_emulated(frames: int, seed: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        bundle = build_watched_firmware(Path(folder))
        return _told(fuzz_device(EmulatedLink(bundle, Path(folder)), frames, seed))


def _fuzz_sanitised(frames: int, seed: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        harness = LinkHarness(build_harness(Path(folder)))
        result = fuzz_device(harness, frames, seed)
        harness.close()
        return _told(result)


def _told(result: DeviceFuzz) -> str:
    return f"{result.answered:,} answers, {result.probes:,} right frames between them all answered"


def main() -> int:
    """Runs both ends."""
    ends: dict[str, Callable[[int, int], str]] = {
        "emulated": _fuzz_emulated,
        "sanitised": _fuzz_sanitised,
        "host": lambda frames, seed: f"{fuzz_host(frames, seed):,} understood",
    }
    parser = argparse.ArgumentParser(description="Hostile frames at both ends of the serial link.")
    parser.add_argument("--frames", type=int, default=1_000_000, help="at each end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--end", choices=ends, help="this one alone")
    arguments = parser.parse_args()
    for name in [arguments.end] if arguments.end else ends:
        start = time.monotonic()
        told = ends[name](arguments.frames, arguments.seed)
        seconds = time.monotonic() - start
        print(f"{name}: {arguments.frames:,} frames, {told}, {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
