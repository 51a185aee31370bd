# SPDX-License-Identifier: Apache-2.0
"""The firmware application with two models, compiled for this computer with sanitizers, as a stream."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

from arenite_codegen.board_support import firmware_folder
from support.fake_bundle import make_fake_bundle

_HARNESS = Path(__file__).with_name("link_harness.c")
_WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror"]


def build_harness(folder: Path, update: bool = False) -> Path:
    """Compiles the harness with address and undefined-behaviour sanitizers (zig: the latter alone).

    With `update` the application has slots, in a flash that lives as long as it does.
    """
    bundle = make_fake_bundle(folder / "bundle", "host", vectors=0)
    gcc = shutil.which("gcc")
    if gcc is not None:
        command = [gcc, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    else:
        command = [sys.executable, "-m", "ziglang", "cc", "-fsanitize=undefined"]
    program = folder / "link_harness"
    app = ("app/link.c", "app/crc32.c", "app/health.c", "app/trace.c")
    own = (*app, "model/model.c", "runtime/arenite.c")
    sources = [_HARNESS, *(bundle / name for name in own)]
    includes = [f"-I{bundle / name}" for name in ("app", "board", "runtime", "model")]
    hooks = ["-DARENITE_ON_STEP", "-DARENITE_ON_ROW"]
    if update:
        part = firmware_folder("update")
        own_update = ("ed25519.c", "sha512.c", "update.c", "update_image.c", "update_link.c")
        sources += [*(part / name for name in own_update), _HARNESS.with_name("update_board.c")]
        includes.append(f"-I{part}")
        hooks.append("-DARENITE_UPDATE")
    flags = [*_WARNINGS, "-DFAKE_MIRROR", *hooks, "-g", "-O1", *includes, "-o", str(program)]
    subprocess.run([*command, *flags, *map(str, sources)], check=True)
    return program


class LinkHarness:
    """A running application. A sanitizer's finding or a spoilt gap ends it: the next exchange raises."""

    name = "link harness"

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._arrived = bytearray()
        self.banner = self._receive()

    def exchange(self, data: bytes) -> bytes:
        """Gives bytes to the application and returns what it sent."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(struct.pack("<I", len(data)) + data)
            self._process.stdin.flush()
        except OSError as error:
            raise AssertionError(self._autopsy()) from error
        return self._receive()

    def write(self, data: bytes) -> None:
        """Stream interface: sends."""
        self._arrived += self.exchange(data)

    def read(self, timeout_s: float) -> bytes:
        """Stream interface: what has arrived."""
        data = bytes(self._arrived)
        self._arrived.clear()
        return data

    def reopen(self, timeout_s: float) -> None:
        """Stream interface: never away."""

    def close(self) -> None:
        """Ends the application and checks that it ended well."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdin.close()
        code = self._process.wait(30)
        errors = self._process.stderr.read().decode()
        self._process.stdout.close()
        self._process.stderr.close()
        assert code == 0, errors

    def _receive(self) -> bytes:
        assert self._process.stdout is not None
        head = self._process.stdout.read(4)
        if len(head) != 4:
            raise AssertionError(self._autopsy())
        return self._process.stdout.read(struct.unpack("<I", head)[0])

    def _autopsy(self) -> str:
        assert self._process.stderr is not None
        return f"exit code {self._process.wait(30)}: {self._process.stderr.read().decode()}"
