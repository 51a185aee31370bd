# SPDX-License-Identifier: Apache-2.0
"""Options and fixtures for every suite.

    pytest                                       what this machine can run
    pytest device_tests/hardware --port URL --board NAME      the same suite on a real board, which it flashes first
    pytest device_tests/hardware --port URL --bundle DIR      on a board that runs the firmware of a built bundle

Tests that need the reference models and pictures find them beside the checkout, in ../shared/data.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.graph_batch import prebuild
from support.host_compiler import HostCompiler, find_compiler

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the hardware suite."""
    group = parser.getgroup("arenite")
    group.addoption("--port", default=None, help="serial port or pyserial URL of a board")
    group.addoption("--board", default=None, help="name of the board at --port")
    group.addoption("--bundle", default=None, help="the built bundle that the board at --port runs already")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's top folder."""
    return ROOT


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is compiled for this computer goes to a folder of the tests' own and not to the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARENITE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of reference models and pictures, or a skip."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the reference models (../shared/data) are not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def arenite_command(repository: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a process of its own: `arenite_command("inspect", path, cwd=...)`."""

    def run(
        *arguments: str | Path,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        timeout_s: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "arenite", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def keras_photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `model.keras`, a small classifier, and pictures in `calibration/` and `evaluation/`; or a skip."""
    pytest.importorskip("tensorflow", reason="conversion needs TensorFlow: pip install 'arenite[convert]'")
    from support.keras_networks import photograph_classifier

    return photograph_classifier(tmp_path_factory.mktemp("photographs"))


@pytest.fixture
def no_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process finds no energy meter of the machine."""
    monkeypatch.setattr("arenite.meters.own_meters", list)


@pytest.fixture(scope="session")
def compiler() -> HostCompiler:
    """A compiler for this computer with the sanitisers that it has, or a skip."""
    found = find_compiler(sanitise=True)
    if found is None:
        pytest.skip("no C compiler: pip install 'arenite[firmware]'")
    return found


@pytest.fixture(scope="session")
def prebuilt(compiler: HostCompiler) -> list[Path]:
    """Kernels and executor, compiled once for all batches of graphs."""
    return prebuild(compiler)
