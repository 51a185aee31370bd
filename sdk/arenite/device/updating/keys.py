# SPDX-License-Identifier: Apache-2.0
"""Ed25519 keys in PEM files, as OpenSSL writes them too."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from arenite.errors import MissingToolError, OutputError, UsageError

__all__ = ["is_signed", "make_key", "public_key_of", "read_private_key", "read_public_key"]


def make_key(path: Path) -> bytes:
    """Makes a key pair and writes its private half, readable by its owner alone; returns the public half (32 bytes).

    Raises:
        OutputError: The file exists, or cannot be written.
    """
    _, serialization, ed25519 = _cryptography()
    private = ed25519.Ed25519PrivateKey.generate()
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        cure = "Take another name; who loses a key can update no board that has it"
        raise OutputError("there is a file of that name already", where=str(path), cure=cure) from error
    except OSError as error:
        raise OutputError(f"the key cannot be written ({error.strerror})", where=str(path)) from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
    return public_key_of(private)


def read_private_key(path: Path) -> Any:
    """The private key of a PEM file.

    Raises:
        UsageError: The file is none, or holds another kind of key.
    """
    _, serialization, ed25519 = _cryptography()
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        problem = f"the private key cannot be read ({error})"
        raise UsageError(problem, where=str(path), cure="Make one with `arenite update keygen`") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise UsageError("this is not an Ed25519 key", where=str(path), cure="Make one with `arenite update keygen`")
    return key


def read_public_key(path: Path) -> bytes:
    """The public key (32 bytes) of a PEM file with either half.

    Raises:
        UsageError: The file is none, or holds another kind of key.
    """
    _, serialization, ed25519 = _cryptography()
    try:
        text = path.read_bytes()
        if b"PRIVATE KEY" in text:
            return public_key_of(read_private_key(path))
        key = serialization.load_pem_public_key(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"the public key cannot be read ({error})", where=str(path)) from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise UsageError("this is not an Ed25519 key", where=str(path))
    return bytes(key.public_bytes_raw())


def public_key_of(private_key: Any) -> bytes:
    """The 32 bytes that a board must know."""
    return bytes(private_key.public_key().public_bytes_raw())


def is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether a signature holds."""
    exceptions, _, ed25519 = _cryptography()
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except exceptions.InvalidSignature:
        return False
    return True


def _cryptography() -> tuple[Any, Any, Any]:
    try:
        return (
            importlib.import_module("cryptography.exceptions"),
            importlib.import_module("cryptography.hazmat.primitives.serialization"),
            importlib.import_module("cryptography.hazmat.primitives.asymmetric.ed25519"),
        )
    except ImportError as error:
        cure = "Run pip install 'arenite[flash]'"
        raise MissingToolError("signing needs the package cryptography", cure=cure) from error
