# SPDX-License-Identifier: Apache-2.0
"""Validation builds see a byte written too far and name the operator that wrote it; other builds hold nothing of it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from arenite.device import open_device, verify
from arenite.device.host_runner import HostBoard
from arenite.device.target import read_target
from arenite.errors import MemoryDamageError
from arenite_codegen import bundle
from arenite_codegen.build import build
from arenite_codegen.elf import read_elf
from arenite_codegen.network import Role
from arenite_codegen.plan import make_plan
from arenite_codegen.schedule import make_schedule
from support.damage import damage_kernel
from support.graph_batch import prebuild
from support.graphs import KINDS, random_graph
from support.host_compiler import HostCompiler
from support.plan_checker import replay
from support.random_graphs_cli import check_graphs
from support.random_networks import random_network

BOARDS = ("qemu-mps2-an386", "qemu-riscv32")


@pytest.fixture(scope="module")
def guarded_prebuilt(compiler: HostCompiler) -> list[Path]:
    """Kernels and executor of validation builds."""
    return prebuild(compiler, guards=True)


def model_of(folder: Path, kind: str, seed: int) -> Path:
    path = folder / f"{kind.lower()}.tflite"
    path.write_bytes(random_graph(kind, seed).model_bytes)
    return path


def test_every_kind_of_graph_keeps_its_guards(compiler: HostCompiler, guarded_prebuilt: list[Path]) -> None:
    """Under sanitisers too, which see a guard that lies outside the arena."""
    wanted = [(kind, seed) for seed in range(4) for kind in KINDS]
    result = list(check_graphs(wanted, compiler, guarded_prebuilt, batch=32, guards=True))[-1]
    assert result.failures == []
    # A transposition across the batch is refused by name.
    assert set(result.refused) <= {"TRANSPOSE"} and set(result.compared) == set(KINDS)
    assert sum((result.compared + result.refused).values()) == len(wanted)


@pytest.mark.parametrize("block", range(6))
def test_no_row_or_scratch_lies_over_a_guard(block: int) -> None:
    """Networks of many layers, batches among them, replayed byte by byte."""
    for seed in range(block * 50, block * 50 + 50):
        network = random_network(seed)
        schedule = make_schedule(network)
        plan = make_plan(network, schedule, guards=True)
        assert len(plan.guards) == len(plan.blocks) and not plan.rows
        try:
            replay(network, schedule, plan)
        except AssertionError as error:
            raise AssertionError(f"random_network({seed}): {error}") from error


def test_a_guard_lies_right_behind_every_block() -> None:
    network = random_network(3)
    schedule = make_schedule(network)
    plan = make_plan(network, schedule, guards=True)
    places = {guard.block: guard.place for guard in plan.guards}
    for value in network.values:
        if value.index in plan.values and value.role is not Role.CONSTANT and network.batch == 1:
            at, ring = plan.values[value.index], schedule.ring_rows[value.index]
            assert places[value.name] == (at.region, at.offset + ring * value.row_bytes)
    assert all(guard.place.offset + 4 <= plan.arena_bytes for guard in plan.guards)


@pytest.mark.parametrize("fed", [False, True])
def test_golden_vectors_pass_with_guards(tmp_path: Path, fed: bool) -> None:
    models = [model_of(tmp_path, "CONV_2D", 8), model_of(tmp_path, "MAX_POOL_2D", 1)]
    report = bundle(models, "host", tmp_path / "b", guards=True, row_fed=fed)
    assert report.guards
    build(tmp_path / "b")
    assert verify(tmp_path / "b").identical


@pytest.mark.reference
@pytest.mark.parametrize("name", ["kws_ref_model", "vww_96_int8", "pretrainedResnet_quant"])
def test_real_networks_keep_their_guards(shared_data: Path, tmp_path: Path, name: str) -> None:
    bundle(shared_data / "mlperf_tiny" / f"{name}.tflite", "host", tmp_path / "b", guards=True)
    build(tmp_path / "b")
    assert verify(tmp_path / "b").identical


@pytest.mark.parametrize(("kind", "kernel"), [("CONV_2D", "conv_2d_s8"), ("ADD", "add_s8"), ("PAD", "pad_s8")])
@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_that_writes_one_byte_too_far_is_named(tmp_path: Path, kind: str, kernel: str, seed: int) -> None:
    path = model_of(tmp_path, kind, seed)
    bundle(path, "host", tmp_path / "b", guards=True)
    damage_kernel(tmp_path / "b", kernel, past_the_end=-1)
    build(tmp_path / "b")
    assert not verify(tmp_path / "b").identical, "a byte inside the row is no damage, only wrong"
    bundle(path, "host", tmp_path / "b", guards=True)
    damage_kernel(tmp_path / "b", kernel, past_the_end=0)
    build(tmp_path / "b")
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())["models"][0]
    output = manifest["outputs"][0]["name"]
    with pytest.raises(MemoryDamageError, match=rf"operator 0 {kind}.* wrote past the end of {output} ") as caught:
        verify(tmp_path / "b")
    assert caught.value.exit_code == 1
    assert manifest["guards"]["blocks"][caught.value.guard] == output


@pytest.mark.parametrize("seed", range(4))
def test_scratch_has_a_guard_too(tmp_path: Path, seed: int) -> None:
    """Of one item and of a batch."""
    bundle(model_of(tmp_path, "MEAN", seed), "host", tmp_path / "b", guards=True)
    damage_kernel(tmp_path / "b", "reduce_sum_s8", past_the_end=0)
    build(tmp_path / "b")
    with pytest.raises(
        MemoryDamageError, match=r"operator 0 MEAN.* wrote past the end of scratch of layer 0 in step 0"
    ):
        verify(tmp_path / "b")


def test_the_first_damaged_block_is_told_and_a_good_run_after_it_is_good(tmp_path: Path) -> None:
    """A kernel that damages only its third row, and only where the input says so."""
    case = random_graph("CONV_2D", 58)
    bundle(model_of(tmp_path, "CONV_2D", 58), "host", tmp_path / "b", guards=True)
    output = json.loads((tmp_path / "b" / "manifest.json").read_text())["models"][0]["outputs"][0]
    _, height, width, channels = output["shape"]
    behind_all = (height - 3) * width * channels
    damage_kernel(tmp_path / "b", "conv_2d_s8", behind_all, only_if="step == 2 && rows[2][0] == 99")
    build(tmp_path / "b")
    good = np.zeros_like(case.inputs[0])
    bad = np.full_like(case.inputs[0], 99)
    with open_device(HostBoard(read_target(tmp_path / "b")).stream) as device:
        for data in (good, bad, good, bad):
            device.load(0, data.tobytes())
            if data is good:
                device.run()
                continue
            with pytest.raises(MemoryDamageError, match=r"guard \d+ is damaged after step 2, by layer 0") as caught:
                device.run()
            assert (caught.value.layer, caught.value.step) == (0, 2)


@pytest.mark.parametrize("board", BOARDS)
def test_without_guards_not_one_byte_of_them_is_there(
    tmp_path: Path, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine code is that of sources from which the guards were cut out, but for the digest of the sources."""
    monkeypatch.setattr("arenite_codegen.build._build_digest", lambda *_: "0" * 64)
    path = model_of(tmp_path, "CONV_2D", 8)
    report = bundle(path, board, tmp_path / "b", vectors=0)
    assert not report.guards
    generated = [p for folder in ("model", "runtime") for p in (tmp_path / "b" / folder).iterdir()]
    assert not [p.name for p in generated if "guard" in p.name]
    for name in ("arenite_limits.h", "arenite_model.h", "model.c", "weights.c", "arenite_models.c"):
        assert "guard" not in (tmp_path / "b" / "model" / name).read_text().lower()
    built = build(tmp_path / "b")
    as_it_ships = code(built.elf)
    for source in ("runtime/arenite.c", "runtime/arenite.h", "app/app.c"):
        cut_guards(tmp_path / "b" / source)
    assert code(build(tmp_path / "b").elf) == as_it_ships
    bundle(path, board, tmp_path / "b", vectors=0, guards=True)
    assert build(tmp_path / "b").code_bytes > built.code_bytes


def code(elf: Path) -> dict[str, bytes]:
    return {s.name: s.data for s in read_elf(elf).sections if s.name in (".text", ".rodata", ".data")}


def cut_guards(source: Path) -> None:
    """Removes what only a validation build compiles, and every use of the hooks."""
    text = source.read_text()
    assert "ARENITE_GUARDS" in text
    text = re.sub(r"#ifdef ARENITE_GUARDS\n(?:(?!#endif|#else).*\n)*(?:#else\n(?:(?!#endif).*\n)*)?#endif\n", "", text)
    text = re.sub(r" *if \(layer != NULL\) \{\s*BEFORE_STEP\(feed\);\s*\}\n", "", text)
    source.write_text(re.sub(r" *(?:START_ITEM|BEFORE_STEP|AFTER_STEP)\(feed\);\n", "", text))
    assert "GUARD" not in source.read_text().replace("ARENITE_MAX_POINTERS, ARENITE_GUARDS", "")


def test_the_command_makes_and_judges_a_validation_build(
    tmp_path: Path, arenite_command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    path = model_of(tmp_path, "CONV_2D", 8)
    done = arenite_command("bundle", path, "--board", "host", "-o", tmp_path / "b", "--guards")
    assert done.returncode == 0 and "validation build" in done.stdout
    assert arenite_command("build", tmp_path / "b").returncode == 0
    assert arenite_command("verify", tmp_path / "b").returncode == 0
    damage_kernel(tmp_path / "b", "conv_2d_s8", past_the_end=0)
    assert arenite_command("build", tmp_path / "b").returncode == 0
    done = arenite_command("verify", tmp_path / "b", "--json")
    assert done.returncode == 1 and "operator 0 CONV_2D" in done.stderr
    assert json.loads(done.stdout)["error"]["type"] == "MemoryDamageError"
