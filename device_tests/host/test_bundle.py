# SPDX-License-Identifier: Apache-2.0
"""A bundle is complete, reproducible, builds, and refuses what does not fit; it leaves nothing half-written."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

import arenite
from arenite.errors import DoesNotFitError, OutputError, ToolchainError, UsageError
from arenite.host_model import HostModel
from arenite.reference import LITERT, reference_name, reference_outputs
from arenite_codegen import bundle
from arenite_codegen.build import build
from arenite_codegen.variants import VARIANTS
from support.graphs import random_graph


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(random_graph("CONV_2D", 8).model_bytes)
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_two_runs_write_identical_trees(model: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "deep" / "second"
    bundle(model, "qemu-mps2-an386", first)
    bundle(model, "qemu-mps2-an386", second)
    assert tree(first) == tree(second)


def test_the_manifest_names_every_file_with_its_digest(model: Path, tmp_path: Path) -> None:
    report = bundle(model, "qemu-riscv32", tmp_path / "b")
    files = tree(tmp_path / "b")
    manifest = json.loads(files.pop("manifest.json"))
    files.pop("sbom.spdx.json")
    assert manifest["files"] == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    entry = manifest["models"][0]
    assert entry["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest() == report.model_sha256
    assert (entry["name"], entry["symbol"]) == ("model", "arenite_model")
    assert set(manifest["sources"]) <= set(files)
    assert entry["vectors"] == {"authority": reference_name(), "count": 3, "folder": "vectors"}
    fields = {f.name for f in dataclasses.fields(report)}
    assert {"arena_bytes", "arena_lower_bound_bytes", "weights_bytes", "code_bytes", "macs", "mac_factor"} <= fields
    assert report.mac_factor == 1.0


def test_vectors_come_from_the_package_that_has_the_kernel(tmp_path: Path) -> None:
    """TFLM has no INT8 GELU: LiteRT's reference gives the vectors, and the model's own C gives their bytes."""
    case = random_graph("GELU", 3)
    (tmp_path / "gelu.tflite").write_bytes(case.model_bytes)
    bundle(tmp_path / "gelu.tflite", "host", tmp_path / "b")
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["models"][0]["vectors"] == {"authority": reference_name(LITERT), "count": 3, "folder": "vectors"}
    build(tmp_path / "b")
    assert arenite.verify(tmp_path / "b").identical


def test_the_sbom_lists_the_same_files(model: Path, tmp_path: Path) -> None:
    bundle(model, "host", tmp_path / "b")
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    sbom = json.loads((tmp_path / "b" / "sbom.spdx.json").read_text())
    listed = {f["fileName"].removeprefix("./"): f["checksums"][0]["checksumValue"] for f in sbom["files"]}
    assert listed == manifest["files"]


def test_only_the_kernels_used_are_there(model: Path, tmp_path: Path) -> None:
    bundle(model, "qemu-riscv32", tmp_path / "b")
    names = {p.name for p in (tmp_path / "b" / "kernels").glob("*.c")}
    assert names == {"arenite_conv_2d_s8.c"}
    report = bundle(model, "host", tmp_path / "b")
    chosen = [v for v in VARIANTS["conv_2d_s8"] if v.name == report.operators[0].variant]
    names = {p.name for p in (tmp_path / "b" / "kernels").glob("*.c")}
    assert names == {f"arenite_{name}.c" for variant in chosen for name in variant.files}


def test_a_host_bundle_computes_what_the_reference_computes(model: Path, tmp_path: Path) -> None:
    bundle(model, "host", tmp_path / "b")
    compiled = HostModel(build(tmp_path / "b").elf)
    case = random_graph("CONV_2D", 8)
    expected = reference_outputs(case.model_bytes, [list(v) for v in case.vectors])
    for vector, outputs in zip(case.vectors, expected, strict=True):
        got = compiled.run(list(vector))
        assert [g.tobytes() for g in got] == [o.tobytes() for o in outputs]


def test_a_host_model_refuses_a_wrong_input(model: Path, tmp_path: Path) -> None:
    bundle(model, "host", tmp_path / "b")
    compiled = HostModel(build(tmp_path / "b").elf)
    with pytest.raises(UsageError, match="expected int8"):
        compiled.run([np.zeros(3, np.float32)])


def test_an_arena_one_byte_smaller_does_not_build(model: Path, tmp_path: Path) -> None:
    report = bundle(model, "qemu-mps2-an500", tmp_path / "b")
    build(tmp_path / "b")
    header = tmp_path / "b" / "model" / "arenite_model.h"
    text = header.read_text()
    smaller = f"#define ARENITE_ARENA_BYTES {report.arena_bytes - 1}u\n"
    header.write_text(text.replace("#ifndef ARENITE_ARENA_BYTES\n", smaller + "#ifndef ARENITE_ARENA_BYTES\n"))
    with pytest.raises(ToolchainError, match="arena is smaller"):
        build(tmp_path / "b")


def test_an_arena_limit_is_kept_to_the_byte(model: Path, tmp_path: Path) -> None:
    needed = bundle(model, "host", tmp_path / "b").arena_bytes
    assert bundle(model, "host", tmp_path / "b", arena_bytes=needed).arena_bytes == needed
    with pytest.raises(DoesNotFitError, match="1 too few"):
        bundle(model, "host", tmp_path / "c", arena_bytes=needed - 1)
    assert not (tmp_path / "c").exists()


def test_a_foreign_folder_is_not_replaced(model: Path, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    (place / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="not a bundle"):
        bundle(model, "host", place)
    assert (place / "thesis.txt").read_text() == "years of work"
    bundle(model, "host", place, force=True)
    assert (place / "manifest.json").is_file()


def test_a_bundle_of_an_earlier_format_is_replaced(model: Path, tmp_path: Path) -> None:
    place = tmp_path / "old"
    place.mkdir()
    (place / "manifest.json").write_text('{"format": 1, "model_sha256": "00", "board": "host"}')
    bundle(model, "host", place)
    assert json.loads((place / "manifest.json").read_text())["format"] == 2


def test_the_current_folder_and_the_model_are_never_removed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle(model, "host", tmp_path / "b")
    inside = tmp_path / "b" / "my.tflite"
    inside.write_bytes(model.read_bytes())
    monkeypatch.chdir(tmp_path / "b" / "model")
    before = tree(tmp_path)
    for source, place in ((model, "."), (model, ".."), (model, ""), (model, tmp_path), (inside, tmp_path / "b")):
        with pytest.raises(UsageError):
            bundle(source, "host", place, force=True)
    assert tree(tmp_path) == before


def test_a_link_to_a_bundle_is_followed(model: Path, tmp_path: Path) -> None:
    bundle(model, "host", tmp_path / "b")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    report = bundle(model, "qemu-riscv32", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "b" / "manifest.json").read_text())["board"] == report.board == "qemu-riscv32"


def test_the_old_bundle_comes_back_when_the_new_one_cannot_take_its_place(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle(model, "host", tmp_path / "b")
    before = tree(tmp_path / "b")
    replace = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(39, "Directory not empty")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OutputError, match="Directory not empty"):
        bundle(model, "qemu-riscv32", tmp_path / "b")
    assert tree(tmp_path / "b") == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "model.tflite"]


def test_an_earlier_bundle_survives_a_failure(model: Path, tmp_path: Path) -> None:
    bundle(model, "host", tmp_path / "b")
    before = tree(tmp_path / "b")
    with pytest.raises(DoesNotFitError):
        bundle(model, "host", tmp_path / "b", arena_bytes=1)
    assert tree(tmp_path / "b") == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "model.tflite"]


def test_a_full_disk_is_one_error(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name == "weights.c":
            raise OSError(28, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match="No space left"):
        bundle(model, "host", tmp_path / "b")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.tflite"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_parent_is_one_error(model: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(OutputError, match="permissions"):
        bundle(model, "host", tmp_path / "locked" / "b")
