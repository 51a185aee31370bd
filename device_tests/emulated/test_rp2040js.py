# SPDX-License-Identifier: Apache-2.0
"""A Raspberry Pi Pico's image with its boot code, clocks, serial port, timer and marker pin, in the emulator rp2040js.

    npm install --prefix build/npm rp2040js && pytest device_tests/emulated/test_rp2040js.py
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from arenite.device import open_device, verify
from arenite.device.target import read_segments
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from support.fake_bundle import make_fake_bundle

RUNNER = Path(__file__).parents[1] / "support" / "rp2040js_runner.cjs"
# Where CI installs it; NODE_PATH may name another folder.
MODULES = Path(__file__).parents[2] / "build" / "npm" / "node_modules"
NODE = {**os.environ, "NODE_PATH": os.pathsep.join(filter(None, [os.environ.get("NODE_PATH"), str(MODULES)]))}


@pytest.fixture(scope="module")
def pico(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built bundle that polls: the emulator enters the handler of an interrupt that is masked, the chip does not."""
    if shutil.which("node") is None or shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("needs node and arm-none-eabi-gcc")
    if subprocess.run(["node", "-e", "require('rp2040js')"], capture_output=True, env=NODE).returncode:
        pytest.skip("rp2040js is not installed: npm install --prefix build/npm rp2040js")
    folder = tmp_path_factory.mktemp("pico")
    text = (load_board("rpi-pico").directory / "board.toml").read_text("utf-8")
    (folder / "board.toml").write_text(text.replace("irq = 20\n", ""))
    bundle = make_fake_bundle(folder / "bundle", folder / "board.toml")
    build(bundle, "gcc")
    (bundle / "flash.bin").write_bytes(_flash_image(bundle))
    return bundle


def _flash_image(bundle: Path) -> bytes:
    """What `arenite flash` would write, from the start of the flash on."""
    found = bytearray()
    for segment in read_segments(bundle / "build" / "firmware.elf"):
        at = segment.address - load_board("rpi-pico").flash.origin
        found[at : at + len(segment.data)] = segment.data
    return bytes(found)


@contextmanager
def emulated(bundle: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """The port's URL, and what the emulator says once the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said: dict[str, int] = {}
    command = ["node", RUNNER, bundle / "flash.bin", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=NODE) as run:
        try:
            assert run.stdout is not None
            assert run.stdout.readline() == "listening\n"
            yield f"socket://127.0.0.1:{port}", said
            said.update(json.loads(run.communicate(timeout=30)[0]))
        finally:
            run.kill()


def test_a_pico_gives_every_byte_and_marks_its_inferences(pico: Path) -> None:
    with emulated(pico) as (url, said):
        report = verify(pico, url)
        assert report.identical
        assert report.vectors == 3
    board = load_board("rpi-pico")
    assert said["system_hz"] == said["peripheral_hz"] == board.clock_hz == 125_000_000
    assert said["rises"] >= 3, "the marker pin is high while an inference runs"


def test_a_pico_counts_microseconds(pico: Path) -> None:
    with emulated(pico) as (url, _):
        device = open_device(url, timeout_s=30)
        try:
            assert (device.identity.board, device.identity.counter_hz) == ("rpi-pico", 1_000_000)
        finally:
            device.close()
