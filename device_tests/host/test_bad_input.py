# SPDX-License-Identifier: Apache-2.0
"""Every bad input through the command line: one clear message, the exit code, nothing half-written."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support import bad_models

Command = Callable[..., "subprocess.CompletedProcess[str]"]
BOARD = "qemu-mps2-an500"


def refused(done: subprocess.CompletedProcess[str], code: int, *patterns: str) -> None:
    """Asserts one line on standard error with these patterns, no traceback, and the exit code."""
    assert done.returncode == code, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("arenite: error: ")
    assert "Traceback" not in done.stderr and "fault in Arenite" not in done.stderr
    for pattern in patterns:
        assert re.search(pattern, lines[0], re.IGNORECASE), f"{pattern!r} is not in {lines[0]!r}"


@pytest.fixture
def bundle_model(arenite_command: Command, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Writes a model file and bundles it into `tmp_path/out`; on failure nothing may lie there."""

    def run(model: bytes, *options: str, board: str = BOARD) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "model.tflite"
        path.write_bytes(model)
        done = arenite_command("bundle", path, "--board", board, "-o", tmp_path / "out", *options)
        if done.returncode != 0:
            assert sorted(p.name for p in tmp_path.iterdir()) == ["model.tflite"]
        return done

    return run


@pytest.mark.parametrize("kept", [0, 1, 4, 8, 40, 0.3, 0.5, 0.8, 0.99])
def test_truncated_model(bundle_model: Command, kept: float) -> None:
    model = bad_models.good_model()
    length = int(kept * len(model)) if isinstance(kept, float) else kept
    refused(bundle_model(model[:length]), 2, r"model\.tflite", "truncated|corrupt|not a TFLite|empty")


def test_not_a_model(bundle_model: Command) -> None:
    refused(bundle_model(b"\x89PNG\r\n\x1a\n" + bytes(500)), 2, r"model\.tflite", "not a TFLite")


def test_corrupt_models_never_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes flipped anywhere: a bundle or a message, and no folder beside a message."""
    from arenite.cli import main

    rng = np.random.default_rng(2)
    model = np.frombuffer(bad_models.good_model(), np.uint8)
    path = tmp_path / "model.tflite"
    for case in range(150):
        damaged = model.copy()
        places = rng.integers(0, len(model), rng.integers(1, 5))
        damaged[places] = rng.integers(0, 256, len(places))
        path.write_bytes(damaged.tobytes())
        out = tmp_path / f"out{case}"
        code = main(["bundle", str(path), "--board", "host", "-o", str(out)])
        error = capsys.readouterr().err
        assert "fault in Arenite" not in error, f"case {case}: {error}"
        assert code in (0, 1, 2)
        assert out.exists() == (code == 0), f"case {case}: {error}"


@pytest.mark.parametrize(
    ("make", "patterns"),
    [
        (bad_models.float_model, ["CONV_2D", "float", "[Cc]onvert"]),
        (bad_models.dynamic_range_model, ["dynamic|float", "convert"]),
        (bad_models.unsupported_model, ["operator 1", "COS"]),
        (bad_models.unknown_extent_model, ["input", "-1"]),
        (bad_models.moved_batch_model, ["operator 0 TRANSPOSE", "batch"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_unsuitable_model(bundle_model: Command, make: Callable[[], bytes], patterns: list[str]) -> None:
    refused(bundle_model(make()), 2, r"model\.tflite", *patterns)


def test_frame_too_large_for_the_board(bundle_model: Command) -> None:
    """Names the region, the excess and what would fit."""
    done = bundle_model(bad_models.large_frame_model())
    refused(done, 1, BOARD, "sram|ram", r"[\d,]{7,} bytes", "MobileNetV2")


def test_weights_too_large_for_the_board(bundle_model: Command) -> None:
    done = bundle_model(bad_models.large_weights_model())
    refused(done, 1, BOARD, "flash", r"[\d,]{7,} bytes")


def test_arena_smaller_than_the_plan(bundle_model: Command) -> None:
    refused(bundle_model(bad_models.good_model(), "--arena-bytes", "16"), 1, "arena", "16", "bytes")


@pytest.mark.parametrize("name", bad_models.HOSTILE_NAMES)
def test_hostile_tensor_names_are_harmless(arenite_command: Command, tmp_path: Path, name: str) -> None:
    """Such a model is valid: it bundles, compiles without a warning and answers right."""
    pytest.importorskip("ziglang")
    path, out = tmp_path / "model.tflite", tmp_path / "deep" / "out"
    path.write_bytes(bad_models.good_model(name, name + "m", name + "o"))
    done = arenite_command("bundle", path, "--board", "host", "-o", out)
    assert done.returncode == 0, done.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"model.tflite", "deep"}
    assert {p.name for p in out.parent.iterdir()} == {"out"}
    for step in (["build", out], ["verify", out, "--on", "emulator", "--json"]):
        done = arenite_command(*step)
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["identical"] is True


def test_missing_model(arenite_command: Command, tmp_path: Path) -> None:
    done = arenite_command("bundle", tmp_path / "no.tflite", "--board", BOARD, "-o", tmp_path / "out")
    refused(done, 2, r"no\.tflite")
    assert not (tmp_path / "out").exists()


def test_model_is_a_folder(arenite_command: Command, tmp_path: Path) -> None:
    refused(arenite_command("inspect", tmp_path), 2, tmp_path.name)


def test_unknown_board(bundle_model: Command) -> None:
    refused(bundle_model(bad_models.good_model(), board="stm32z9"), 2, "stm32z9", BOARD)


def test_output_below_a_file(arenite_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(bad_models.good_model())
    done = arenite_command("bundle", path, "--board", "host", "-o", path / "out")
    refused(done, 2, "out", "not a directory|folder|written")
    assert [p.name for p in tmp_path.iterdir()] == ["model.tflite"]


def test_output_folder_without_permission(arenite_command: Command, tmp_path: Path) -> None:
    """A folder that even the superuser cannot write into."""
    path = tmp_path / "model.tflite"
    path.write_bytes(bad_models.good_model())
    target = Path("/proc/arenite/out") if Path("/proc").is_dir() else Path("/dev/arenite/out")
    refused(arenite_command("bundle", path, "--board", "host", "-o", target), 2, "arenite")


@pytest.mark.parametrize("name", ["thesis.txt", "manifest.json"])
def test_output_folder_in_use(arenite_command: Command, tmp_path: Path, name: str) -> None:
    """A folder of somebody else's files is left alone until --force says otherwise."""
    path, out = tmp_path / "model.tflite", tmp_path / "out"
    path.write_bytes(bad_models.good_model())
    out.mkdir()
    (out / name).write_text('{"name": "a web page of mine"}')
    again = ["bundle", path, "--board", "host", "-o", out]
    refused(arenite_command(*again), 2, "out", "--force")
    assert [p.name for p in out.iterdir()] == [name]
    assert arenite_command(*again, "--force").returncode == 0


def test_bundle_again_replaces_it(bundle_model: Command, tmp_path: Path) -> None:
    assert bundle_model(bad_models.good_model()).returncode == 0
    (tmp_path / "out" / "build").mkdir()
    assert bundle_model(bad_models.good_model()).returncode == 0
    assert not (tmp_path / "out" / "build").exists()


def _limit_file_size() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


def test_disk_full(tmp_path: Path) -> None:
    """Writing stops in the middle, as on a full disk: the folder is not left half-written."""
    path = tmp_path / "model.tflite"
    path.write_bytes(bad_models.good_model())
    done = subprocess.run(
        [sys.executable, "-m", "arenite", "bundle", path, "--board", "host", "-o", tmp_path / "out"],
        preexec_fn=_limit_file_size,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    refused(done, 2, "out|written|space|large")
    assert [p.name for p in tmp_path.iterdir()] == ["model.tflite"]


def test_no_compiler(arenite_command: Command, bundle_model: Command, tmp_path: Path) -> None:
    """Names what to install and leaves the bundle as it was."""
    assert bundle_model(bad_models.good_model()).returncode == 0
    before = sorted(p for p in (tmp_path / "out").rglob("*"))
    hide = tmp_path / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'ziglang' else find(name, package)\n"
    )
    path = os.pathsep.join(filter(None, (str(hide), os.environ.get("PYTHONPATH"))))
    done = arenite_command("build", tmp_path / "out", env={"PATH": "", "PYTHONPATH": path})
    refused(done, 2, "compiler", r"pip install '?arenite\[firmware\]")
    assert sorted(p for p in (tmp_path / "out").rglob("*")) == before


@pytest.mark.parametrize("command", ["build", "verify"])
def test_folder_that_is_no_bundle(arenite_command: Command, tmp_path: Path, command: str) -> None:
    refused(arenite_command(command, tmp_path), 2, r"manifest\.json", "arenite bundle")


@pytest.mark.parametrize("command", ["build", "verify"])
def test_corrupt_manifest(
    bundle_model: Command, arenite_command: Command, tmp_path: Path, command: str
) -> None:
    assert bundle_model(bad_models.good_model()).returncode == 0
    manifest = tmp_path / "out" / "manifest.json"
    manifest.write_text(manifest.read_text()[:100])
    refused(arenite_command(command, tmp_path / "out"), 2, r"manifest\.json", "arenite bundle")


def test_verify_before_build(bundle_model: Command, arenite_command: Command, tmp_path: Path) -> None:
    assert bundle_model(bad_models.good_model()).returncode == 0
    refused(arenite_command("verify", tmp_path / "out"), 2, "arenite build")


def test_wrong_arguments(arenite_command: Command) -> None:
    refused(arenite_command("bundle"), 2, "MODEL", "--help")
    refused(arenite_command("levitate"), 2, "levitate")
    refused(arenite_command("bundle", "m", "--board", "host", "-o", "d", "--arena-bytes", "-3"), 2, "-3")


def test_error_as_json(arenite_command: Command, tmp_path: Path) -> None:
    done = arenite_command("inspect", tmp_path / "no.tflite", "--json")
    refused(done, 2, r"no\.tflite")
    error = json.loads(done.stdout)["error"]
    assert set(error) == {"type", "what", "where", "cure"} and error["cure"]


def test_traceback_only_with_debug(arenite_command: Command, tmp_path: Path) -> None:
    done = arenite_command("inspect", tmp_path / "no.tflite", "--debug")
    assert done.returncode == 2 and "Traceback" in done.stderr
