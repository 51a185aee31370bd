# SPDX-License-Identifier: Apache-2.0
"""Firmware whose arena and weights lie in several memories, with nothing mapped between them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arenite.device import open_device, verify
from arenite.device.emulators.unicorn_runner import UnicornBoard
from arenite.device.target import read_target
from arenite.errors import DoesNotFitError
from arenite.tflite_graph import read_graph
from arenite_codegen import BundleReport, bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from arenite_codegen.elf import read_elf
from arenite_codegen.fit import ram_of
from arenite_codegen.legalise import legalise
from arenite_codegen.planning import plan_network
from arenite_codegen.schedule import make_schedule
from arenite_codegen.variants import choose_for
from support.plan_checker import replay
from support.residual_network import residual_network

REGIONS, PSRAM = "emulated-m7-regions", "emulated-m7-psram"
MOBILENET = "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq.tflite"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "residual.tflite"
    path.write_bytes(residual_network(size=96, width=24))
    return path


def proven(
    model: Path | list[Path], board: str | Path, folder: Path, on: str = "unicorn", **options: Any
) -> BundleReport:
    """Bundles, builds and verifies; the outputs must be identical."""
    report = bundle(model, board, folder, vectors=2, **options)
    build(folder)
    proof = verify(folder, on=on)
    assert proof.identical
    assert proof.arena_bytes == report.arena_bytes == sum(r.bytes for r in report.regions if r.holds == "arena")
    return report


def changed_board(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """A board file like another one, with some of its text replaced."""
    text = (load_board(name).directory / "board.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new) if old else text
    path = folder / "board.toml"
    path.write_text(text)
    return path


def traffic_by_replay(model: Path, board: str) -> dict[str, int]:
    """Bytes that kernels move in each region, by a replay of every step that knows nothing of the planner."""
    planned = plan_network(legalise(read_graph(model)), memories=ram_of(load_board(board)))
    moved = replay(planned.network, planned.schedule, planned.plan)
    return dict(zip((r.name for r in planned.plan.regions), moved, strict=True))


def arena_traffic(report: BundleReport) -> dict[str, int]:
    return {r.name: r.traffic_bytes for r in report.regions if r.holds == "arena"}


@pytest.mark.parametrize("board", [REGIONS, PSRAM])
def test_a_network_runs_in_several_memories(model: Path, tmp_path: Path, board: str) -> None:
    report = proven(model, board, tmp_path / "b")
    traffic = arena_traffic(report)
    assert len(traffic) == 2
    assert traffic == traffic_by_replay(model, board)
    text = (tmp_path / "b" / "arena.txt").read_text()
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    for region, row in zip(report.regions, manifest["regions"], strict=True):
        assert row == {field: getattr(region, field) for field in row}
        assert region.bytes <= region.capacity_bytes
        assert region.modelled_cycles == -(-region.traffic_bytes // 4) * region.word_cycles
        if region.holds == "arena":
            assert f"region {region.name}: {region.bytes:,} of {region.capacity_bytes:,} bytes" in text


def test_the_application_has_buffers_for_memory_of_the_caller(model: Path, tmp_path: Path) -> None:
    report = proven(model, REGIONS, tmp_path / "b", caller_inputs=True, caller_outputs=True)
    found = {r.holds: (r.name, r.bytes) for r in report.regions if r.holds not in ("arena", "weights")}
    # The frame does not fit beside the arena in the DTCM; the ten logits do.
    assert found == {"input 0": ("sram", 96 * 96 * 3), "output 0": ("dtcm", 10)}


def test_qemu_agrees(model: Path, tmp_path: Path) -> None:
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    proven(model, PSRAM, tmp_path / "b", on="qemu")


def test_a_small_network_lies_in_the_fastest_memory_alone(tmp_path: Path) -> None:
    path = tmp_path / "small.tflite"
    path.write_bytes(residual_network(size=24, width=4))
    report = proven(path, REGIONS, tmp_path / "b")
    assert [r.name for r in report.regions if r.holds == "arena"] == ["dtcm"]
    assert report.arena_bytes == bundle(path, "qemu-mps2-an500", tmp_path / "c", vectors=0).arena_bytes


@pytest.mark.parametrize(("base", "change"), [(REGIONS, ("length = 0x10000", "length = 0x7000")), (PSRAM, ("", ""))])
def test_the_ranking_agrees_with_loads_and_stores(tmp_path: Path, base: str, change: tuple[str, str]) -> None:
    """Traffic counts the rows that kernels are handed; here the emulator counts every access that they make."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed; in clang's code Unicorn's hooks miss most accesses")
    path = tmp_path / "short.tflite"
    path.write_bytes(residual_network(size=64, width=24, blocks=1))
    report = bundle(path, changed_board(tmp_path, base, change), tmp_path / "b", vectors=1)
    build(tmp_path / "b", "gcc")
    accesses = count_accesses(tmp_path / "b")
    fast, slow = (r for r in report.regions if r.holds == "arena")
    assert set(accesses) == {fast.name, slow.name}
    assert accesses[fast.name] / fast.bytes > 2 * accesses[slow.name] / slow.bytes
    for region in (fast, slow):
        assert accesses[region.name] >= region.traffic_bytes


def test_weights_are_spread_over_flash(model: Path, tmp_path: Path) -> None:
    """Those that are read most often lie in the fast flash; all of them are counted, and so is every instruction."""
    small = changed_board(tmp_path, REGIONS, ("length = 0x200000", "length = 0x10000"))
    report = proven(model, small, tmp_path / "b")
    fast, slow = (r for r in report.regions if r.holds == "weights")
    assert (fast.name, slow.name) == ("flash", "external-flash")
    assert fast.traffic_bytes / fast.bytes > slow.traffic_bytes / slow.bytes
    assert fast.capacity_bytes - fast.bytes < 4096
    found = {s.name: s for s in read_elf(tmp_path / "b" / "build" / "firmware.elf").sections}
    sections = [found[".rodata.arenite_weights"], found[".rodata.arenite_weights.external-flash"]]
    assert [s.size for s in sections] == [fast.bytes, slow.bytes]
    assert sections[0].address < 0x08010000
    assert sections[1].address == 0x90000000
    built = json.loads((tmp_path / "b" / "build" / "build.json").read_text())
    assert built["weights_bytes"] == report.weights_bytes == fast.bytes + slow.bytes
    whole = proven(model, REGIONS, tmp_path / "c")
    assert [r.name for r in whole.regions if r.holds == "weights"] == ["flash"]
    assert verify(tmp_path / "b").instructions == verify(tmp_path / "c").instructions
    assert fast.traffic_bytes + slow.traffic_bytes == constant_traffic(model)


def test_two_models_share_memories(model: Path, tmp_path: Path) -> None:
    """The tables of both lie beside the code; weights that then find no room there lie in external flash."""
    other = tmp_path / "other.tflite"
    other.write_bytes(residual_network(size=64, width=24, blocks=1))
    small = changed_board(tmp_path, REGIONS, ("length = 0x200000", "length = 0x10000"))
    report = proven([model, other], small, tmp_path / "b")
    parts = {(r.name, r.holds): r for r in report.regions}
    assert {name for name, holds in parts if holds == "weights"} == {"flash", "external-flash"}
    assert sum(r.bytes for r in report.regions if r.holds == "weights") == report.weights_bytes
    for part in parts.values():
        assert part.bytes <= part.capacity_bytes


def constant_traffic(model: Path) -> int:
    """Each distinct constant, packed for the board's kernels, once a row of every layer that has it."""
    choose = choose_for(load_board(REGIONS))
    network = legalise(read_graph(model))
    steps: Counter[int] = Counter()
    for layer, count in make_schedule(network).steps:
        steps[layer] += count
    packed = [(value, layer) for layer in network.layers for value in choose(layer).pack(layer).values()]
    return sum(-(-a.nbytes // 4) * 4 * steps[layer.index] for a, layer in packed if isinstance(a, np.ndarray))


def test_weights_that_fit_no_flash_are_refused_by_region(model: Path, tmp_path: Path) -> None:
    changes = ("length = 0x200000", "length = 0x9000"), ("length = 0x800000", "length = 0x1000")
    small = changed_board(tmp_path, REGIONS, *changes)
    with pytest.raises(DoesNotFitError, match=r"region external-flash \(flash\) has 4,096 bytes, .* too few"):
        bundle(model, small, tmp_path / "b", vectors=0)
    assert not (tmp_path / "b").exists()


def count_accesses(folder: Path) -> Counter[str]:
    """Bytes that one inference loads and stores in the arena's part of each memory."""
    unicorn = pytest.importorskip("unicorn")
    board = UnicornBoard(read_target(folder))
    buffers = arena_sections(folder / "build" / "firmware.elf")
    found: Counter[str] = Counter()

    def count(engine: object, kind: int, address: int, size: int, value: int, name: str) -> None:
        found[name] += size

    # Before anything runs: code that was translated without a hook keeps running without it.
    for name, (start, stop) in buffers.items():
        hook = unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE
        board._engine.hook_add(hook, count, name, start, stop - 1)
    with open_device(board.stream, timeout_s=60) as device:
        device.load(0, (folder / "vectors" / "input_000.bin").read_bytes())
        found.clear()
        device.run(timeout_s=300)
    return found


def arena_sections(elf: Path) -> dict[str, tuple[int, int]]:
    prefix = ".arena."
    return {
        s.name.removeprefix(prefix): (s.address, s.address + s.size)
        for s in read_elf(elf).sections
        if s.name.startswith(prefix) and s.size
    }


def test_what_does_not_fit_is_named_region_by_region(model: Path, tmp_path: Path) -> None:
    changes = ("length = 0x30000", "length = 0x2000"), ("length = 0x800000", "length = 0x1000")
    small = changed_board(tmp_path, REGIONS, *changes)
    message = r"region dtcm \(ram\) has 65,536 bytes, .* are needed .* too few"
    with pytest.raises(DoesNotFitError, match=message) as caught:
        bundle(model, small, tmp_path / "b", vectors=0)
    assert caught.value.exit_code == 1
    assert "region sram (ram) holds" in caught.value.what


@pytest.mark.reference
@pytest.mark.parametrize(("board", "least_share"), [(REGIONS, 0.95), (PSRAM, 0.28)])
def test_mobilenet_runs_in_several_memories(shared_data: Path, tmp_path: Path, board: str, least_share: float) -> None:
    report = proven(shared_data / MOBILENET, board, tmp_path / "b")
    traffic = arena_traffic(report)
    assert traffic == traffic_by_replay(shared_data / MOBILENET, board)
    fastest = next(iter(traffic))
    assert traffic[fastest] >= least_share * sum(traffic.values())
