# SPDX-License-Identifier: Apache-2.0
"""Several models in one firmware: one arena as large as the largest needs, and every byte still the reference's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

from arenite.device import verify
from arenite.errors import DoesNotFitError, ModelError, ToolchainError, UsageError
from arenite.host_model import HostModel
from arenite.reference import reference_outputs
from arenite.tflite_graph import parse_graph
from arenite_codegen import BundleReport, bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from arenite_codegen.firmware import symbols_of
from arenite_codegen.fit import CODE_BYTES
from arenite_codegen.legalise import legalise
from support.builder import ModelBuilder
from support.graphs import random_graph
from support.reference_models import random_inputs

Array = npt.NDArray[Any]
TURNS = 1000


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    """A convolution and an addition of two inputs."""
    return [write(tmp_path / "wide.tflite", "CONV_2D", 8), write(tmp_path / "Sum 2.tflite", "ADD", 3)]


def write(path: Path, kind: str, seed: int) -> Path:
    path.write_bytes(random_graph(kind, seed).model_bytes)
    return path


def take_turns(
    library: Path, report: BundleReport, models: Sequence[Path], vectors: Sequence[list[list[Array]]]
) -> None:
    """Runs the models alternately in one arena, `TURNS` times each, against the reference."""
    expected = [reference_outputs(m.read_bytes(), v) for m, v in zip(models, vectors, strict=True)]
    compiled = [HostModel(library, model.symbol) for model in report.models]
    largest = max(compiled, key=lambda one: one.arena_bytes)
    assert largest.arena_bytes == report.arena_bytes
    for one in compiled:
        one.regions, one.memory = largest.regions, largest.memory
    for turn in range(TURNS):
        for one, inputs, outputs in zip(compiled, vectors, expected, strict=True):
            which = turn % len(inputs)
            found = one.run(inputs[which])
            assert [f.tobytes() for f in found] == [o.tobytes() for o in outputs[which]], turn


def own_vectors(kind: str, seed: int) -> list[list[Array]]:
    return [list(vector) for vector in random_graph(kind, seed).vectors]


def test_two_models_take_turns_in_one_arena(models: list[Path], tmp_path: Path) -> None:
    report = bundle(models, "host", tmp_path / "b", vectors=0)
    alone = [bundle(model, "host", tmp_path / "alone", vectors=0) for model in models]
    assert report.arena_bytes == max(one.arena_bytes for one in alone) < sum(one.arena_bytes for one in alone)
    assert report.weights_bytes == sum(one.weights_bytes for one in alone)
    assert report.macs == sum(one.macs for one in alone)
    assert [m.symbol for m in report.models] == ["arenite_wide", "arenite_sum_2"]
    take_turns(build(tmp_path / "b").elf, report, models, [own_vectors("CONV_2D", 8), own_vectors("ADD", 3)])


@pytest.mark.parametrize("fed", [(True, False), (False, True), (True, True)])
def test_row_fed_and_framed_models_take_turns(fed: tuple[bool, bool], tmp_path: Path) -> None:
    kinds = [("CONV_2D", 8), ("MAX_POOL_2D", 1)]
    models = [write(tmp_path / f"{kind}.tflite", kind, seed) for kind, seed in kinds]
    report = bundle(models, "host", tmp_path / "b", row_fed=fed)
    assert [model.row_fed for model in report.models] == list(fed)
    take_turns(build(tmp_path / "b").elf, report, models, [own_vectors(*kind) for kind in kinds])
    assert verify(tmp_path / "b").identical


@pytest.mark.reference
@pytest.mark.parametrize("fed", [False, True])
def test_keyword_and_person_detection_share_an_arena(shared_data: Path, tmp_path: Path, fed: bool) -> None:
    names = ("kws_ref_model", "vww_96_int8", "pretrainedResnet_quant")
    models = [shared_data / "mlperf_tiny" / f"{name}.tflite" for name in names]
    report = bundle(models, "host", tmp_path / "b", vectors=0, row_fed=fed)
    arenas = [model.arena_bytes for model in report.models]
    assert report.arena_bytes == max(arenas)
    assert arenas == [bundle(m, "host", tmp_path / "one", vectors=0, row_fed=fed).arena_bytes for m in models]
    vectors = []
    for model in models:
        graph = parse_graph(model.read_bytes())
        vectors.append([[v] for v in random_inputs(graph.tensors[graph.inputs[0]], 5, seed=11)])
    take_turns(build(tmp_path / "b").elf, report, models, vectors)


def test_each_model_is_proven(models: list[Path], tmp_path: Path) -> None:
    bundle(models, "host", tmp_path / "b")
    build(tmp_path / "b")
    report = verify(tmp_path / "b")
    assert report.identical and report.vectors == 6
    assert [(m.symbol, m.vectors, m.identical) for m in report.models] == [
        ("arenite_wide", 3, True),
        ("arenite_sum_2", 3, True),
    ]
    golden = tmp_path / "b" / "vectors" / "arenite_sum_2" / "output_001.bin"
    data = bytearray(golden.read_bytes())
    data[-1] ^= 1
    golden.write_bytes(data)
    report = verify(tmp_path / "b")
    assert [m.identical for m in report.models] == [True, False]
    first = report.first_difference
    assert first is not None
    assert (first.model, first.vector, first.index, first.got) == (1, 1, len(data) - 1, data[-1] ^ 1)


def test_an_arena_one_byte_too_small_for_the_largest_does_not_build(models: list[Path], tmp_path: Path) -> None:
    report = bundle(models, "qemu-mps2-an500", tmp_path / "b")
    header = tmp_path / "b" / "model" / "arenite_models.h"
    text = header.read_text()
    for missing in (0, 1):
        guard = "#ifndef ARENITE_ARENA_BYTES\n"
        header.write_text(text.replace(guard, f"#define ARENITE_ARENA_BYTES {report.arena_bytes - missing}u\n{guard}"))
        if missing == 0:
            build(tmp_path / "b")
        else:
            with pytest.raises(ToolchainError, match="arena is smaller than a model needs"):
                build(tmp_path / "b")


def test_the_fit_counts_all_weights_and_the_largest_arena(models: list[Path], tmp_path: Path) -> None:
    report = bundle(models, "qemu-riscv32", tmp_path / "b", vectors=0)
    flash = CODE_BYTES + report.weights_bytes
    ram = report.arena_bytes + load_board("qemu-riscv32").stack_bytes
    bundle(models, board_file(tmp_path, flash, ram), tmp_path / "b", vectors=0)
    with pytest.raises(DoesNotFitError, match=rf"weights {report.weights_bytes:,} .* 1 too few"):
        bundle(models, board_file(tmp_path, flash - 1, ram), tmp_path / "b", vectors=0)
    with pytest.raises(DoesNotFitError, match=rf"arena {report.arena_bytes:,} .* 1 too few"):
        bundle(models, board_file(tmp_path, flash, ram - 1), tmp_path / "b", vectors=0)
    with pytest.raises(DoesNotFitError, match="1 too few"):
        bundle(models, "host", tmp_path / "b", vectors=0, arena_bytes=report.arena_bytes - 1)


def board_file(folder: Path, flash_bytes: int, ram_bytes: int) -> Path:
    text = (load_board("qemu-riscv32").directory / "board.toml").read_text()
    for region, length in zip(load_board("qemu-riscv32").memory, (flash_bytes, ram_bytes), strict=True):
        before, found = text.split(f'name = "{region.name}"\n')
        old = next(line for line in found.splitlines() if line.startswith("length"))
        text = before + f'name = "{region.name}"\n' + found.replace(old, f"length = {length}", 1)
    path = folder / "board.toml"
    path.write_text(text)
    return path


NAMES = ["run", "models", "limits", "a", "a_data", "a_weights", "A", "ü", "2 fast!", "x" * 90, "int", "conv_2d_s8", "T"]


def test_no_file_name_breaks_the_build(tmp_path: Path) -> None:
    """Names of the firmware's own, names that differ in case or in what C cannot spell: each gets a symbol."""
    models = []
    for number, name in enumerate(NAMES):
        folder = tmp_path / str(number)
        folder.mkdir()
        models.append(write(folder / f"{name}.tflite", "RELU", number))
    report = bundle(models, "host", tmp_path / "b", vectors=1)
    symbols = [model.symbol for model in report.models]
    assert len({symbol.lower() for symbol in symbols}) == len(NAMES)
    assert symbols[3] == "arenite_a" and symbols[0] != "arenite_run" and max(map(len, symbols)) < 63
    build(tmp_path / "b")
    proof = verify(tmp_path / "b")
    assert proof.identical and len(proof.models) == len(NAMES)


def test_the_same_file_or_file_name_twice_works(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    model = write(tmp_path / "m.tflite", "CONV_2D", 8)
    other = write(tmp_path / "other" / "m.tflite", "ADD", 3)
    report = bundle([model, other, model], "host", tmp_path / "b")
    assert [m.symbol for m in report.models] == ["arenite_m", "arenite_m_2", "arenite_m_3"]
    assert report.models[0].sha256 == report.models[2].sha256 != report.models[1].sha256
    build(tmp_path / "b")
    assert verify(tmp_path / "b").identical


def test_symbols_do_not_depend_on_what_comes_later() -> None:
    few = symbols_of([Path("b.tflite"), Path("a.tflite")])
    assert symbols_of([Path("b.tflite"), Path("a.tflite"), Path("b.tflite")])[:2] == few
    assert symbols_of([Path("b.tflite")]) == ["arenite_model"]


def test_every_file_is_accounted_for(models: list[Path], tmp_path: Path) -> None:
    bundle(models, "qemu-mps2-an386", tmp_path / "b")
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    bill = json.loads((tmp_path / "b" / "sbom.spdx.json").read_text())
    listed = {file["fileName"].removeprefix("./") for file in bill["files"]}
    assert listed == set(manifest["files"])
    for symbol in ("arenite_wide", "arenite_sum_2"):
        own = (f"model/{symbol}.c", f"model/{symbol}_weights.c", f"model/{symbol}.h", f"arena/{symbol}.html")
        assert set(own) | {f"arena/{symbol}.txt", f"vectors/{symbol}/input_000.bin"} <= listed
    first = tree(tmp_path / "b")
    bundle(models, "qemu-mps2-an386", tmp_path / "b")
    assert tree(tmp_path / "b") == first


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_cannot_be_asked_is_named(models: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 to 255 models, not 0"):
        bundle([], "host", tmp_path / "b")
    with pytest.raises(UsageError, match="1 answers for 2 models"):
        bundle(models, "host", tmp_path / "b", row_fed=[True])
    with pytest.raises(UsageError, match="would remove the model"):
        bundle(models, "host", tmp_path)


def test_a_variable_that_no_operator_updates_is_refused_by_name() -> None:
    """Nobody knows what it holds."""
    builder = ModelBuilder()
    x, state, y = (builder.tensor(n, (1, 4), "int8", scales=[0.1], zero_points=[0]) for n in ("x", "memory", "y"))
    builder._tensors[state].isVariable = True
    builder.operator("ADD", [x, state], [y], options="AddOptions")
    with pytest.raises(ModelError, match=r"'memory' .* is read but never written"):
        legalise(parse_graph(builder.finish([x], [y])))


def test_a_bundle_of_another_format_is_one_clear_error(models: list[Path], tmp_path: Path) -> None:
    bundle(models, "host", tmp_path / "b", vectors=0)
    path = tmp_path / "b" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
    for read in (build, verify):
        with pytest.raises(UsageError, match=r"format 1, this version of Arenite reads 2. Bundle the model again"):
            read(tmp_path / "b")


def test_the_command_takes_several_models(
    models: list[Path], tmp_path: Path, arenite_command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    where = ("--board", "host", "-o", tmp_path / "b")
    done = arenite_command("bundle", *models, *where, "--row-fed-model", models[0])
    assert done.returncode == 0, done.stderr
    assert "arenite_wide: arena" in done.stdout and "arenite_sum_2: arena" in done.stdout
    assert arenite_command("build", tmp_path / "b").returncode == 0
    proof = arenite_command("verify", tmp_path / "b", "--json")
    assert proof.returncode == 0, proof.stderr
    assert [m["identical"] for m in json.loads(proof.stdout)["models"]] == [True, True]
    assert "arenite_sum_2: identical, 3 vectors" in arenite_command("verify", tmp_path / "b").stdout
    wrong = arenite_command("bundle", *models, *where, "--row-fed-model", "other.tflite")
    assert wrong.returncode == 2 and "other.tflite is none of the models" in wrong.stderr
