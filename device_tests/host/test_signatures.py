# SPDX-License-Identifier: Apache-2.0
"""The firmware's SHA-512 and Ed25519 against hashlib, the package cryptography and the vectors of RFC 8032."""

from __future__ import annotations

import hashlib
import random
import struct
import subprocess
from pathlib import Path

import pytest

from arenite_codegen.board_support import firmware_folder
from support.host_compiler import HostCompiler

SUPPORT = Path(__file__).parent.parent / "support"
ORDER = 2**252 + 27742317777372353535851937790883648493
# RFC 8032, section 7.1: public key, message, signature.
RFC_8032 = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]

Case = tuple[bytes, bytes, bytes]


@pytest.fixture(scope="module")
def runner(compiler: HostCompiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, update = tmp_path_factory.mktemp("signatures"), firmware_folder("update")
    sources = [update / "ed25519.c", update / "sha512.c", SUPPORT / "signature_runner.c"]
    objects = compiler.compile(sources, [update, firmware_folder("app")], folder)
    compiler.link(objects, folder / "runner")
    return folder / "runner"


def verdicts(runner: Path, cases: list[Case]) -> list[bool]:
    """Whether each signature holds; digests are checked on the way."""
    given = b"".join(
        key + signature + struct.pack("<I", len(message)) + message for key, message, signature in cases
    )
    done = subprocess.run([runner], input=given, capture_output=True, check=True)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    assert [line[0] for line in lines] == [hashlib.sha512(message).hexdigest() for _, message, _ in cases]
    return [line[1] == "1" for line in lines]


def test_the_vectors_of_the_standard_hold(runner: Path) -> None:
    cases = [tuple(map(bytes.fromhex, case)) for case in RFC_8032]
    assert verdicts(runner, cases) == [True] * len(cases)  # type: ignore[arg-type]


def test_signatures_of_another_implementation_hold_and_changed_ones_do_not(runner: Path) -> None:
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    rng = random.Random(8032)
    cases: list[Case] = []
    expected: list[bool] = []
    for length in [*range(0, 260, 13), 111, 112, 127, 128, 129, 4096]:
        private = ed25519.Ed25519PrivateKey.from_private_bytes(rng.randbytes(32))
        key, message = private.public_key().public_bytes_raw(), rng.randbytes(length)
        signature = private.sign(message)
        cases.append((key, message, signature))
        expected.append(True)
        for kind in range(3):
            parts = [bytearray(key), bytearray(message), bytearray(signature)]
            if parts[kind]:
                parts[kind][rng.randrange(len(parts[kind]))] ^= 1 << rng.randrange(8)
                cases.append((bytes(parts[0]), bytes(parts[1]), bytes(parts[2])))
                expected.append(_holds(ed25519, *cases[-1]))
    assert verdicts(runner, cases) == expected
    assert not all(expected)


def _holds(ed25519: object, key: bytes, message: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, message)  # type: ignore[attr-defined]
    except InvalidSignature:
        return False
    return True


def test_encodings_that_are_not_the_shortest_are_refused(runner: Path) -> None:
    key, message, signature = (bytes.fromhex(text) for text in RFC_8032[1])
    scalar = int.from_bytes(signature[32:], "little")
    longer = signature[:32] + (scalar + ORDER).to_bytes(32, "little")
    # y = p + 1 is the neutral point, written too long; with x = 0 the sign bit must not be set.
    too_long = ((1 << 255) - 19 + 1).to_bytes(32, "little")
    minus_zero = (1 | 1 << 255).to_bytes(32, "little")
    cases = [(key, message, longer), (too_long, message, signature), (minus_zero, message, signature)]
    assert verdicts(runner, cases) == [False] * 3


def test_hostile_input_is_refused_without_harm(runner: Path) -> None:
    rng = random.Random(1)
    cases = [(rng.randbytes(32), b"m", rng.randbytes(63) + bytes([rng.randrange(16)])) for _ in range(40)]
    cases += [(b"\xff" * 32, b"", b"\xff" * 64), (bytes(32), b"", bytes(64))]
    results = verdicts(runner, cases)
    assert results[:40] == [False] * 40
    assert results[40] is False
