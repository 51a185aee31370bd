# SPDX-License-Identifier: Apache-2.0
"""What `inspect` and `doctor` find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import arenite
from arenite import diagnosis
from arenite.contract import CONTRACT_METADATA
from arenite.errors import ContractError
from arenite.inspection import activation_type
from arenite.tflite_graph import parse_graph
from support.builder import ModelBuilder


def model(mixed: bool = False, metadata: dict[str, bytes] | None = None) -> bytes:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 4), "int8", scales=[0.5], zero_points=[3])
    w = builder.tensor("w", (2, 4), "int8", scales=[0.1], data=np.ones((2, 4), np.int8))
    y = builder.tensor("y", (1, 2), "int8", scales=[0.25], zero_points=[-1])
    builder.operator("FULLY_CONNECTED", [x, w, -1], [y], options="FullyConnectedOptions")
    last = y
    if mixed:
        last = builder.tensor("f", (1, 2), "float32")
        builder.operator("DEQUANTIZE", [y], [last])
    for name, content in (metadata or {}).items():
        builder.metadata(name, content)
    return builder.finish([x], [last])


def test_int8_model(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model(metadata={"notes": b"hello"}))
    report = arenite.inspect(path)
    assert (report.format, report.quantisation, report.operator_count) == ("tflite", "int8", 1)
    assert report.operators == {"FULLY_CONNECTED": 1}
    assert report.weights_bytes == 8
    assert report.file_bytes == path.stat().st_size
    assert (report.inputs[0].shape, report.inputs[0].scale, report.inputs[0].zero_point) == ((1, 4), 0.5, 3)
    assert report.contract is None
    assert report.metadata == {"notes": 5}


def test_float_operators_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model(mixed=True))
    report = arenite.inspect(path)
    assert report.quantisation == "mixed"
    assert report.float_operators == ("1 DEQUANTIZE",)


def test_damaged_contract_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model(metadata={CONTRACT_METADATA: b'{"format": 1}'}))
    with pytest.raises(ContractError, match=r"model\.tflite.*'name' is missing"):
        arenite.inspect(path)


def test_doctor_names_versions_and_cures() -> None:
    report = arenite.doctor()
    tools = {tool.name: tool for tool in report.tools}
    assert tools["ai-edge-litert"].version
    assert tools["unicorn"].cure == "pip install 'arenite[firmware]'"
    assert tools["qemu-system-arm"].cure == "apt-get install qemu-system-arm"
    assert set(report.jobs) == {tool.job for tool in report.tools}
    assert report.healthy == all(report.jobs.values())


def test_doctor_without_anything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(diagnosis, "installed_version", lambda name: None)
    report = diagnosis.examine()
    assert not report.healthy
    assert not any(report.jobs[job] for job in ("session", "convert", "build"))
    assert all(tool.version is None and tool.cure for tool in report.tools)


def test_doctor_survives_a_broken_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "qemu-system-arm"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    tools = {tool.name: tool for tool in diagnosis.examine().tools}
    assert tools["qemu-system-arm"].version is None


@pytest.mark.parametrize(
    ("activations", "weights", "kind"),
    [
        (("int8", "int8"), "int8", "int8"),
        (("uint8", "uint8"), "uint8", "uint8"),
        (("int16", "int16"), "int8", "int16x8"),
        (("float32", "float32"), "float32", "float32"),
        (("int8", "int16"), "int8", "mixed"),
    ],
)
def test_arithmetic_is_the_activations_type(activations: tuple[str, str], weights: str, kind: str) -> None:
    builder = ModelBuilder()
    tensors = []
    for name, dtype in zip("xy", activations, strict=True):
        tensors.append(builder.tensor(name, (1, 2), dtype, scales=None if dtype == "float32" else [0.5]))
    w = builder.tensor("w", (2, 2), weights, scales=[0.1], data=np.ones((2, 2), weights))
    builder.operator("FULLY_CONNECTED", [tensors[0], w, -1], [tensors[1]], options="FullyConnectedOptions")
    assert activation_type(parse_graph(builder.finish([tensors[0]], [tensors[1]]))) == kind


@pytest.mark.parametrize(
    ("here", "jobs"),
    [
        (set(), {"build": False, "emulate": False}),
        ({"ziglang", "unicorn"}, {"build": True, "emulate": True}),
        ({"arm-none-eabi-gcc", "qemu-system-riscv32"}, {"build": True, "emulate": True}),
        ({"cmake", "unicorn"}, {"build": False, "emulate": True}),
    ],
)
def test_one_compiler_and_one_emulator_are_enough(
    here: set[str], jobs: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "installed_version", lambda name: "1.0" if name in here else None)
    monkeypatch.setattr(diagnosis, "_program_version", lambda name, option: "1.0" if name in here else None)
    report = diagnosis.examine()
    assert {job: report.jobs[job] for job in jobs} == jobs
    assert not any(tool.needed for tool in report.tools if jobs.get(tool.job) and tool.version is None)
