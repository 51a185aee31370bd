# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs in the caller's memory, and inputs that a run leaves alone."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arenite.errors import UsageError
from arenite.host_model import HostModel
from arenite.reference import reference_outputs
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.builder import ModelBuilder
from support.graph_case import GraphCase
from support.graphs import random_graph
from support.residual_network import residual_network

KINDS = ["CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "CONCATENATION", "RESHAPE", "TRANSPOSE", "MEAN", "SOFTMAX"]
GARBAGE = 0x5B


def compiled(content: bytes, folder: Path, **options: Any) -> HostModel:
    folder.mkdir(exist_ok=True)
    (folder / "model.tflite").write_bytes(content)
    bundle(folder / "model.tflite", "host", folder / "b", vectors=0, **options)
    return HostModel(build(folder / "b").elf)


def regions_of(folder: Path) -> dict[str, int]:
    """For each input and output in the caller's memory the position that the header names."""
    words = [line.split() for line in (folder / "b" / "model" / "arenite_model.h").read_text().splitlines()]
    return {w[1]: int(w[2].rstrip("u")) for w in words if len(w) == 3 and w[1].endswith("_REGION")}


def check(case: GraphCase, model: HostModel) -> None:
    """The outputs are the reference's, the inputs are unchanged, whatever was in memory before."""
    expected = reference_outputs(case.model_bytes, [list(v) for v in case.vectors])
    for vector, outputs in zip(case.vectors, expected, strict=True):
        for region in model.regions:
            region[:] = GARBAGE
        got = model.run(list(vector))
        assert [g.tobytes() for g in got] == [o.tobytes() for o in outputs]
        for io, values in zip(model._model.inputs[: model._model.input_count], vector, strict=True):
            assert model.view(io).tobytes() == values.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_any_graph_runs_on_memory_of_the_caller(kind: str, tmp_path: Path) -> None:
    for seed in (3, 4):
        case = random_graph(kind, seed)
        model = compiled(case.model_bytes, tmp_path / str(seed), caller_inputs=True, caller_outputs=True)
        assert len(model.regions) == 1 + len(case.inputs) + 1
        assert set(regions_of(tmp_path / str(seed))) == {
            *(f"ARENITE_MODEL_INPUT_{i}_REGION" for i in range(len(case.inputs))),
            "ARENITE_MODEL_OUTPUT_0_REGION",
        }
        check(case, model)


@pytest.mark.parametrize("kind", KINDS)
def test_any_graph_keeps_its_inputs(kind: str, tmp_path: Path) -> None:
    for seed in (3, 4):
        case = random_graph(kind, seed)
        check(case, compiled(case.model_bytes, tmp_path / str(seed), keep_input=True))


def test_the_pointer_may_change_between_runs(tmp_path: Path) -> None:
    content = residual_network(size=32, width=8)
    model = compiled(content, tmp_path, caller_inputs=[0], caller_outputs=[0])
    names = regions_of(tmp_path)
    into, out_of = names["ARENITE_MODEL_INPUT_0_REGION"], names["ARENITE_MODEL_OUTPUT_0_REGION"]
    chance = np.random.default_rng(1)
    frames = [chance.integers(-128, 128, (1, 32, 32, 3), np.int8) for _ in range(3)]
    expected = reference_outputs(content, [[frame] for frame in frames])
    results = [np.zeros(12, np.int8) for _ in frames]
    for frame, result in zip(frames, results, strict=True):
        before = frame.tobytes()
        model.memory[into], model.memory[out_of] = frame.ctypes.data, result.ctypes.data
        model._run(ctypes.addressof(model._model), model.memory)
        assert frame.tobytes() == before
    assert [r[:10].tobytes() for r in results] == [e[0].tobytes() for e in expected]
    assert all(r[10:].tobytes() == bytes(2) for r in results)


def test_the_arena_is_what_is_not_the_callers(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(residual_network(size=64, width=16))

    def made(**options: Any) -> tuple[int, list[dict[str, Any]]]:
        report = bundle(tmp_path / "model.tflite", "qemu-mps2-an386", tmp_path / "b", vectors=0, **options)
        regions = json.loads((tmp_path / "b" / "manifest.json").read_text())["regions"]
        assert report.arena_bytes == sum(r["bytes"] for r in regions if r["holds"] == "arena")
        assert report.arena_bytes < 1.05 * report.arena_lower_bound_bytes
        return report.arena_bytes, regions

    plain, given, kept = made()[0], made(caller_inputs=True), made(keep_input=True)[0]
    frame = 64 * 64 * 3
    assert [(r["holds"], r["bytes"]) for r in given[1]][1] == ("input 0", frame)
    # Depth first this network is at its widest after the frame is gone: kept, the frame comes on top.
    assert given[0] <= 1.01 * plain < kept <= given[0] + frame
    both = made(caller_inputs=True, keep_input=True)
    assert both == given


def test_one_of_two_inputs(tmp_path: Path) -> None:
    builder = ModelBuilder()
    a, b, c = (builder.tensor(n, (1, 4), "int8", scales=[0.5], zero_points=[0]) for n in "abc")
    builder.operator("ADD", [a, b], [c], version=2, options="AddOptions")
    model = compiled(builder.finish([a, b], [c]), tmp_path, caller_inputs=[1])
    assert list(regions_of(tmp_path)) == ["ARENITE_MODEL_INPUT_1_REGION"]
    first, second = np.array([1, 2, 3, 4], np.int8), np.array([10, 20, 30, 40], np.int8)
    assert model.run([first, second])[0].tolist() == [11, 22, 33, 44]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"caller_inputs": [1]}, "the model has no input 1. Positions count from 0; the only one is 0"),
        ({"caller_outputs": [-1]}, "the model has no output -1"),
        ({"caller_inputs": True, "row_fed": True}, "fed row by row lies in no memory. Leave out --row-fed"),
        ({"keep_input": True, "row_fed": True}, "fed row by row is not kept. Leave out --row-fed or --keep-input"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        compiled(random_graph("CONV_2D", 3).model_bytes, tmp_path, **options)
    assert not (tmp_path / "b").exists()


def test_too_many_regions_are_refused(tmp_path: Path) -> None:
    builder = ModelBuilder()
    inputs = [builder.tensor(f"i{i}", (1, 4), "int8", scales=[0.5], zero_points=[0]) for i in range(9)]
    output = builder.tensor("o", (1, 36), "int8", scales=[0.5], zero_points=[0])
    builder.operator("CONCATENATION", inputs, [output], version=2, options="ConcatenationOptions", axis=1)
    with pytest.raises(UsageError, match="9 inputs and outputs are to lie in the caller's memory"):
        compiled(builder.finish(inputs, [output]), tmp_path, caller_inputs=True)


def test_the_command_line_says_the_same(
    arenite_command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(random_graph("CONV_2D", 3).model_bytes)
    command = ("bundle", model, "--board", "host", "-o", tmp_path / "b")
    done = arenite_command(*command, "--caller-input", "0", "--caller-output", "all", "--json")
    assert done.returncode == 0
    assert [r["holds"] for r in json.loads(done.stdout)["regions"]] == ["arena", "input 0", "output 0", "weights"]
    shown = arenite_command(*command, "--caller-input", "all", "--keep-input")
    assert "input 0" in shown.stdout
    assert json.loads((tmp_path / "b" / "manifest.json").read_text())["models"][0]["keep_input"] is True
    wrong = arenite_command(*command, "--caller-input", "first")
    assert (wrong.returncode, "'first' is neither a position" in wrong.stderr) == (2, True)
    missing = arenite_command(*command, "--caller-output", "7")
    assert (missing.returncode, "the model has no output 7" in missing.stderr) == (2, True)
