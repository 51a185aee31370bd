# SPDX-License-Identifier: Apache-2.0
"""The suite of a board at the end of a line: identify, run, verify, profile, health.

Without options it runs on every emulated board behind a socket, and on one behind a pseudo-terminal; with `--port` on
the board there, which runs what `--bundle` says, or is flashed with what it is built for `--board`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import arenite
from arenite._manifest import read_manifest
from arenite.device import open_device
from arenite.device.emulators import available_emulators
from arenite.device.target import read_target
from arenite_codegen.boards import list_boards
from support.residual_network import residual_network
from support.served_board import over_pty, over_socket

EMULATED = (
    "qemu-microbit",
    "qemu-mps2-an385",
    "qemu-mps2-an386",
    "qemu-mps2-an500",
    "qemu-mps2-an505",
    "qemu-mps3-an547",
    "qemu-netduinoplus2",
    "qemu-riscv32",
)
PTY = "pty"


@dataclass(frozen=True)
class Line:
    """A board that runs a bundle, and where it answers."""

    bundle: Path
    url: str


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One board with `--port`, every emulated one without."""
    if "line" in metafunc.fixturenames:
        cases = [f"{name}-socket" for name in EMULATED] + [f"qemu-mps2-an386-{PTY}"]
        metafunc.parametrize("line", ["port"] if metafunc.config.getoption("--port") else cases, indirect=True)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small enough for 16 KB of RAM."""
    path = tmp_path_factory.mktemp("network") / "small.tflite"
    path.write_bytes(residual_network(size=12, width=4, blocks=1))
    return path


@pytest.fixture(scope="module")
def line(
    request: pytest.FixtureRequest, network: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Line]:
    folder = tmp_path_factory.mktemp("line") / "bundle"
    if request.param == "port":
        yield _real(request.config, network, folder)
        return
    board, kind = request.param.rsplit("-", 1)
    if board not in list_boards():
        pytest.skip(f"{board} is no board of this version")
    arenite.bundle(network, board, folder)
    arenite.build(folder)
    if not available_emulators(read_target(folder)):
        pytest.skip(f"no emulator for {board} is installed")
    if kind == PTY and not hasattr(os, "openpty"):
        pytest.skip("this system has no pseudo-terminals")
    pytest.importorskip("serial", reason="pyserial is not installed")
    with over_pty(folder) if kind == PTY else over_socket(folder) as url:
        yield Line(folder, url)


def _real(config: pytest.Config, network: Path, folder: Path) -> Line:
    port, bundle = config.getoption("--port"), config.getoption("--bundle")
    if bundle is not None:
        return Line(Path(bundle), port)
    board = config.getoption("--board")
    if board is None:
        raise pytest.UsageError("--port needs --board NAME, or --bundle DIR for what the board runs already")
    arenite.bundle(network, board, folder)
    arenite.build(folder)
    flash = getattr(arenite, "flash", None)
    if flash is None:
        pytest.skip("this version cannot flash: flash the bundle by hand and give --bundle")
    flash(folder, port)
    return Line(folder, port)


def test_it_says_what_it_is(line: Line) -> None:
    manifest = read_manifest(line.bundle)
    with open_device(line.url, timeout_s=20) as device:
        assert device.identity.board == manifest["board"]
        assert device.identity.models == len(manifest["models"])
        assert device.select(0).model_sha256 == manifest["models"][0]["sha256"]
        assert device.about().layers == len(manifest["models"][0]["layers"])


def test_it_runs_and_counts(line: Line) -> None:
    with open_device(line.url, timeout_s=20) as device:
        device.select(0)
        before = device.heartbeat()
        for index, tensor in enumerate(device.identity.inputs):
            device.load(index, bytes(range(1, 251)) * (tensor.bytes // 250) + bytes(tensor.bytes % 250))
        result = device.run()
        assert result.unit == "none" or result.counter > 0
        outputs = [device.read_output(i) for i in range(len(device.identity.outputs))]
        assert [len(data) for data in outputs] == [tensor.bytes for tensor in device.identity.outputs]
        after = device.heartbeat()
        assert after.inferences == before.inferences + 1
        assert after.uptime > before.uptime or result.unit == "none"


def test_every_output_and_every_layer_is_right(line: Line) -> None:
    pytest.importorskip("tflite_micro", reason="the authority is tflite-micro")
    report = arenite.verify(line.bundle, line.url, random=1, seed=11)
    assert report.identical
    assert report.emulator is None
    assert report.random_vectors == len(report.models)
    assert report.layers_checked == sum(len(m["layers"]) for m in read_manifest(line.bundle)["models"])


def test_its_time_is_accounted_layer_by_layer(line: Line) -> None:
    report = arenite.profile(line.bundle, line.url)
    manifest = read_manifest(line.bundle)
    assert [layer.kind for layer in report.layers] == [layer["kind"] for layer in manifest["models"][0]["layers"]]
    assert report.unit in ("ticks", "cycles", "instructions")
    assert all(layer.cost > 0 for layer in report.layers)
    assert 0 < sum(layer.cost for layer in report.layers) <= 1.2 * report.total
    assert abs(sum(layer.share for layer in report.layers) - 1) < 1e-9


def test_it_restarts_when_asked(line: Line) -> None:
    with open_device(line.url, timeout_s=20) as device:
        assert device.reboot(timeout_s=30).board == read_manifest(line.bundle)["board"]
        assert device.reset_cause().cause == "asked"
        assert device.heartbeat().inferences == 0
