# SPDX-License-Identifier: Apache-2.0
"""The examples run as their READMEs say, on a small model and pictures made here."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from support.colour_model import colour_model

COLOURS = {"red": (250, 10, 10), "green": (10, 250, 10), "blue": (10, 10, 250)}
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "colours.tflite"
    path.write_bytes(colour_model())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "photos"
    made.mkdir()
    for name, colour in COLOURS.items():
        Image.new("RGB", (40, 30), colour).save(made / f"{name}.png")
    return made


@pytest.fixture
def example(repository: Path, tmp_path: Path) -> Run:
    def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        script = repository / "examples" / name / f"{name}.py"
        command = [sys.executable, str(script), *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    return run


def test_every_example_has_a_readme(repository: Path) -> None:
    for script in sorted((repository / "examples").glob("*/*.py")):
        if script.stem == script.parent.name:
            text = (script.parent / "README.md").read_text(encoding="utf-8")
            assert f"python examples/{script.stem}/{script.name}" in text


def test_camera_loop(example: Run, model: Path, folder: Path) -> None:
    (folder / "broken.png").write_bytes(b"no picture")
    given = ("--model", model, "--frames", 12, "--fps", 500, "--budget-ms", 60_000)
    done = example("camera_loop", folder, *given)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"ms +\d+%  (\w+)  \((\w+)\.png\)", done.stdout)
    assert len(shown) == 12
    assert all(label == name for label, name in shown)
    assert "budget 60000 ms for 99 %: kept" in done.stdout
    late = example("camera_loop", folder, *given[:-1], 1e-6)
    assert late.returncode == 1
    assert "NOT kept" in late.stdout


def test_camera_loop_ends_with_ctrl_c(repository: Path, model: Path, folder: Path) -> None:
    script = repository / "examples" / "camera_loop" / "camera_loop.py"
    command = [sys.executable, str(script), str(folder), "--model", str(model), "--frames", "0", "--budget-ms", "60000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        text, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "frames from" in text and "Traceback" not in errors


def test_camera_loop_without_a_model(example: Run, tmp_path: Path, folder: Path) -> None:
    done = example("camera_loop", folder, "--model", tmp_path / "gone.tflite")
    assert done.returncode == 2
    assert "gone.tflite" in done.stderr and "Traceback" not in done.stderr


def test_photo_library(example: Run, model: Path, folder: Path, tmp_path: Path) -> None:
    database = tmp_path / "photos.sqlite"
    given = ("--model", model, "--database", database)
    (folder / "broken.png").write_bytes(b"no picture")
    shutil.copy(folder / "red.png", folder / "red again.png")
    done = example("photo_library", *given, "scan", folder)
    assert (done.returncode, done.stdout) == (0, "3 classified, 1 damaged\n"), done.stderr
    found = example("photo_library", *given, "find", "red").stdout
    assert re.findall(r"red  .*/(red.*)\.png", found) == ["red again", "red"]

    (folder / "blue.png").rename(folder / "sea.png")
    Image.new("RGB", (9, 9), COLOURS["green"]).save(folder / "grass.png")
    again = example("photo_library", *given, "scan", folder)
    assert again.stdout == "1 classified, 1 damaged\n"
    found = example("photo_library", *given, "find", "blue").stdout
    assert "sea.png" in found and "blue.png" not in found

    new = tmp_path / "new.png"
    Image.new("RGB", (5, 5), COLOURS["blue"]).save(new)
    first, second = (example("photo_library", *given, "show", new).stdout.splitlines() for _ in range(2))
    assert (first[0], second[0]) == ("classified now", "known")
    assert first[1:] == second[1:] and first[1].endswith("blue")
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT COUNT(DISTINCT content) FROM label").fetchone() == (5,)
    connection.close()


def test_photo_library_asks_another_model_again(example: Run, model: Path, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tflite"
    other.write_bytes(colour_model(8, ("R", "G", "B")))
    database = tmp_path / "photos.sqlite"
    for path in (model, other):
        done = example("photo_library", "--model", path, "--database", database, "scan", folder)
        assert done.stdout == "3 classified, 0 damaged\n"
    found = example("photo_library", "--model", other, "--database", database, "find", "")
    assert sorted(re.findall(r"%  (\w+)  ", found.stdout)) == ["B", "G", "R"]


def test_photo_library_says_no(example: Run, model: Path, folder: Path, tmp_path: Path) -> None:
    database = tmp_path / "photos.sqlite"
    assert example("photo_library", "--model", model, "--database", database, "find", "re%d").returncode == 1
    missing = example("photo_library", "--model", model, "--database", database, "show", tmp_path / "gone.png")
    assert missing.returncode == 2 and "gone.png" in missing.stderr
    database.write_bytes(b"no database" * 100)
    broken = example("photo_library", "--model", model, "--database", database, "scan", folder)
    assert broken.returncode == 2 and "photos.sqlite" in broken.stderr and "Traceback" not in broken.stderr


@pytest.fixture
def battery_estimate(
    repository: Path, no_meter: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs that example in this process, which finds no meter: its exit code, and what it prints."""
    script = repository / "examples" / "battery_estimate" / "battery_estimate.py"

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
        assert isinstance(ended.value.code, int)
        return ended.value.code, capsys.readouterr().out

    return run


def test_battery_estimate_from_declared_costs(
    battery_estimate: Callable[..., tuple[int, str]], model: Path, tmp_path: Path
) -> None:
    costs = tmp_path / "costs.toml"
    costs.write_text('j_per_mac = 1e-3\nj_per_byte = 0.0\nidle_w = 0.1\nsource = "made up for a test"\n')
    given = ("--model", model, "--duration", 0.2, "--battery-wh", 10, "--every", 2)
    code, text = battery_estimate(*given, "--costs", costs)
    # 3 × 48 MACs of 1 mJ every 2 s are 0.072 W; with 0.1 W of idle power 10 Wh last 58.1 hours.
    assert code == 0
    assert "battery    58.1 hours with one inference every 2 s (modelled)" in text
    assert "made up for a test" in text


def test_battery_estimate_guesses_nothing(
    battery_estimate: Callable[..., tuple[int, str]], example: Run, model: Path
) -> None:
    code, text = battery_estimate("--model", model, "--duration", 0.2)
    assert code == 1 and "unknown" in text and "measured" not in text
    done = example("battery_estimate", "--model", model, "--duration", 0.2)
    assert done.returncode == 1 or "measured" in done.stdout
    assert "unknown" in done.stdout or "measured" in done.stdout
    assert example("battery_estimate", "--model", model, "--every", 0).returncode == 2


def test_two_cameras(example: Run, model: Path, folder: Path) -> None:
    left, right = folder / "red.png", folder / "blue.png"
    given = ("--model", model, "--sets", 5, "--fps", 100, "--deadline-ms", 60_000, "--timeout-ms", 60_000)
    done = example("two_cameras", left, right, *given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("red | blue") == 5
    assert "5 pairs in" in done.stdout and "0 after the deadline; late: 0, 0" in done.stdout
    report = json.loads(example("two_cameras", left, right, *given, "--json").stdout)
    assert (report["sets"], report["reused"], report["met"]) == (5, [0, 0], True)
    assert example("two_cameras", left, *given).returncode == 2
    assert example("two_cameras", left, right, *given, "--deadline-ms", 1e-6).returncode == 1
