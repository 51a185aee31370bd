# SPDX-License-Identifier: Apache-2.0
"""The wheel without extras: it installs into a clean environment, imports, and says what it lacks; on AArch64 too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support import bad_models

pytestmark = pytest.mark.slow

HEAVY = ("ai_edge_litert", "jinja2", "onnx", "onnxruntime", "tensorflow", "unicorn", "ziglang")
PROGRAM = """
import importlib.util, json, sys
import arenite
light = sorted(sys.modules)
missing = [n for n in json.loads(sys.argv[2]) if importlib.util.find_spec(n) is None]
names = [n for n in arenite.__all__ if not hasattr(arenite, n)]
errors = {}
for name, call in {
    "open": lambda: arenite.open(sys.argv[1]),
    "aot": lambda: arenite.open(sys.argv[1], engine="aot"),
    "bundle": lambda: arenite.bundle(sys.argv[1], "host", "out"),
}.items():
    try:
        call()
    except arenite.AreniteError as error:
        errors[name] = [type(error).__name__, str(error)]
print(json.dumps({
    "file": arenite.__file__, "missing": missing, "names": names, "errors": errors,
    "operators": dict(arenite.inspect(sys.argv[1]).operators),
    "frame": arenite.Frame(bytes(12), 2, 2, "RGB").image().size,
    "numpy at import": "numpy" in light,
}))
"""


def pip(python: Path | str, *arguments: str | Path) -> None:
    """Runs pip, or skips with its last words when it cannot fetch what the wheel needs."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines()
    if done.returncode != 0 and any("No matching distribution" in line or "ConnectionError" in line for line in said):
        pytest.skip(f"pip cannot fetch what it needs: {said[-1]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", folder, repository)
    return next(folder.glob("arenite-*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a clean environment with the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    interpreter = folder / "bin" / "python"
    pip(interpreter, "install", wheel)
    return interpreter


@pytest.fixture(scope="module")
def aarch64_python(repository: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of an AArch64 Python under user-mode emulation that finds the wheel and what it requires."""
    emulator, root = shutil.which("qemu-aarch64"), repository / "build" / "aarch64"
    interpreter = root / "usr" / "bin" / "python3"
    if emulator is None or not interpreter.exists():
        pytest.skip("needs qemu-user, and a Python that device_tests/support/aarch64_python.sh fetches")
    version = next((root / "usr" / "lib").glob("python3.[0-9]*")).name.removeprefix("python")
    folder = tmp_path_factory.mktemp("aarch64")
    platforms = [f"--platform=manylinux{name}_aarch64" for name in ("2014", "_2_27", "_2_28")]
    options = ["--target", folder, *platforms, "--python-version", version, "--only-binary=:all:"]
    pip(sys.executable, "install", *options, wheel)
    return [emulator, "-L", str(root), "-E", f"PYTHONPATH={folder}", str(interpreter.resolve()), "-S"]


def test_wheel_is_for_every_machine(wheel: Path) -> None:
    """Pure: the same file on x86-64 and aarch64. Templates and C sources are in it."""
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".so", ".pyd", ".dylib", ".o"))]
    for part in ("arenite/py.typed", "arenite_codegen/templates/model.c.j2", "arenite_firmware/runtime/arenite.c"):
        assert part in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def check(python: list[str], place: Path, folder: Path) -> None:
    """What the wheel does and does not without extras, by that interpreter; `place` holds what is imported."""
    model = folder / "model.tflite"
    model.write_bytes(bad_models.good_model())
    done = subprocess.run(
        [*python, "-c", PROGRAM, str(model), json.dumps(HEAVY)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "ARENITE_CACHE": str(folder / "cache")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["file"].startswith(str(place)) and said["missing"] == list(HEAVY)
    assert said["names"] == [] and not said["numpy at import"]
    assert said["operators"] == {"CONV_2D": 1, "SOFTMAX": 1} and said["frame"] == [2, 2]
    assert {kind for kind, _ in said["errors"].values()} == {"MissingToolError"}
    cures = {"open": "arenite[litert]", "aot": "arenite[firmware]", "bundle": "arenite[firmware]"}
    assert all(cures[name] in text for name, (_, text) in said["errors"].items())


def test_it_works_without_extras(python: Path, tmp_path: Path) -> None:
    check([str(python), "-I"], python.parent.parent, tmp_path)


def test_it_works_on_aarch64(aarch64_python: list[str], tmp_path: Path) -> None:
    """LiteRT's own wheel for AArch64 is not tried: version 2.3 crashes under QEMU's user-mode emulation."""
    place = next(word.partition("=")[2] for word in aarch64_python if word.startswith("PYTHONPATH="))
    check(aarch64_python, Path(place), tmp_path)


def test_its_command_runs(python: Path) -> None:
    command = python.parent / "arenite"
    done = subprocess.run([str(command), "doctor", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and json.loads(done.stdout)["jobs"]["session"] is False
