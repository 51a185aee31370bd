# SPDX-License-Identifier: Apache-2.0
"""Where an inference spends its time, with and without a board."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import arenite
from arenite.errors import UsageError
from arenite.profile_page import profile_page
from arenite_codegen.boards import load_board
from arenite_codegen.cycle_model import CYCLES_PER_INSTRUCTION, published_for
from support.energy_sources import Instrument, ppk2_answer, ppk2_words
from support.residual_network import residual_network

pytest.importorskip("unicorn", reason="the boards are emulated: pip install 'arenite[firmware]'")
pytest.importorskip("tflite_micro", reason="the authority is tflite-micro")

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("network") / "residual.tflite"
    path.write_bytes(residual_network(size=16, width=8, blocks=1))
    return path


@pytest.fixture(scope="module")
def bundle(network: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle") / "b"
    arenite.bundle(network, "qemu-mps2-an386", folder)
    arenite.build(folder)
    return folder


def test_layers_add_up_to_the_inference(bundle: Path) -> None:
    report = arenite.profile(bundle)
    verified = arenite.verify(bundle)
    assert report.unit == "instructions"
    assert report.total == verified.instructions
    assert sum(layer.cost for layer in report.layers) + report.executor == report.total
    assert 0 < report.executor < 0.05 * report.total
    assert report.macs == json.loads((bundle / "manifest.json").read_text())["models"][0]["macs"]
    # 16x16x3 by 3x3x3 to 8x8x8, then 8 to 48 channels, 3x3 on 48, and back to 8.
    assert [layer.macs for layer in report.layers[:4]] == [64 * 27 * 8, 64 * 8 * 48, 64 * 9 * 48, 64 * 48 * 8]
    for layer in report.layers:
        assert layer.per_mac is None or layer.per_mac == layer.cost / layer.macs
        assert layer.touches["sram"] > 0
    first = report.layers[0]
    # Of an input of 16 rows each step is handed three, the last one two: one lies in the pad. Each writes 64 bytes.
    assert first.touches["sram"] == (7 * 3 + 2) * 48 + 8 * 64


def test_the_page_has_a_bar_for_each_layer(bundle: Path, tmp_path: Path, arenite_command: Command) -> None:
    page = tmp_path / "profile.html"
    result = arenite_command("profile", bundle, "--json", "--html", page)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    text = page.read_text(encoding="utf-8")
    for layer in report["layers"]:
        assert f"{layer['cost']:,}, {layer['share']:.1%}" in text
    assert text == profile_page(arenite.profile(bundle))


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_a_meter_gives_the_energy_of_an_inference(bundle: Path) -> None:
    """A PPK2 on a pty: 10 mA while the idle power is measured, 20 mA from then on."""
    pytest.importorskip("serial", reason="pyserial is not installed")
    volts, changes_s = 3.3, 1.27

    def stream(start_s: float, end_s: float) -> bytes:
        first, last = round(start_s * 1e5), round(end_s * 1e5)
        amperes = np.where(np.arange(first, last) < changes_s * 1e5, 0.010, 0.020)
        return ppk2_words(amperes, volts, first) if last > first else b""

    with Instrument(ppk2_answer, b"\x06", stream) as instrument:
        report = arenite.profile(bundle, meter=f"ppk2:{instrument.port}?mv=3300&mode=source", meter_s=1.0)
    energy = report.energy
    assert energy is not None
    assert (energy.tag, energy.idle_subtracted) == ("measured", True)
    assert energy.average_w == pytest.approx(0.020 * volts, rel=0.05)
    assert energy.energy_mj is not None
    assert energy.gross_mj is not None
    assert energy.energy_mj == pytest.approx(energy.gross_mj / 2, rel=0.15)
    assert energy.inferences > 1


def test_a_meter_that_is_not_there_is_named(bundle: Path) -> None:
    with pytest.raises(UsageError, match="there is no meter 'nonesuch' here"):
        arenite.profile(bundle, meter="nonesuch")


def test_a_board_without_a_counter_and_a_wrong_model_are_named(bundle: Path, network: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the bundle has no model 1: it has 1"):
        arenite.profile(bundle, model=1)
    hosted = tmp_path / "host"
    arenite.bundle(network, "host", hosted, row_fed=True, vectors=0)
    with pytest.raises(UsageError, match="a row-fed model cannot be metered"):
        arenite.profile(hosted, meter="rapl")


@pytest.mark.parametrize(
    ("board", "clock_hz", "emulated_on"),
    [("qemu-mps2-an386", 120_000_000, "qemu-mps2-an386"), ("nucleo-f446re", None, "qemu-mps2-an386")],
)
def test_an_estimate_is_instructions_times_the_model(
    bundle: Path, network: Path, board: str, clock_hz: int | None, emulated_on: str
) -> None:
    found = arenite.estimate(network, board, clock_hz=clock_hz, uw_per_mhz=100.0)
    core = CYCLES_PER_INSTRUCTION["cortex-m4"]
    hz = clock_hz or load_board(board).clock_hz
    assert found.emulated_on == emulated_on
    assert found.instructions == arenite.verify(bundle).instructions
    assert found.latency_ms == pytest.approx(1e3 * found.instructions * core.usual / hz)
    band = (core.low / core.usual, core.high / core.usual)
    assert found.latency_band_ms == pytest.approx(tuple(found.latency_ms * factor for factor in band))
    # 100 uW for each MHz of the clock is its MHz times 0.1 mW.
    assert found.energy_mj == pytest.approx(found.latency_ms / 1e3 * (hz / 1e6) * 0.1)
    assert (found.tag, found.published) == ("modelled", None)


def test_published_figures_are_found_by_network_and_core() -> None:
    found = published_for("cortex-m7", 300_774_272, (1, 224, 224, 3))
    assert found is not None
    assert (found.latency_ms, found.clock_mhz) == (1118.0, 400)
    assert published_for("cortex-m4", 300_774_272, (1, 224, 224, 3)) is None
    tiny = published_for("cortex-m4", 12_501_632, (1, 32, 32, 3))
    assert tiny is not None
    assert (tiny.network, tiny.latency_ms, tiny.clock_mhz) == ("MLPerf Tiny IC", 165.0, 120)


def test_the_command_prints_the_band_and_says_that_it_is_modelled(network: Path, arenite_command: Command) -> None:
    result = arenite_command("estimate", network, "--board", "qemu-mps2-an386", "--clock-mhz", "120")
    assert result.returncode == 0, result.stderr
    assert "cycles an instruction (1.05 to 1.6)" in result.stdout
    assert "modelled" in result.stdout
    wrong = arenite_command("estimate", network, "--board", "qemu-mps2-an386", "--clock-mhz", "0")
    assert wrong.returncode == 2
    assert "'0' is no number from 0.001 to 100000" in wrong.stderr


@pytest.mark.reference
def test_modelled_instructions_are_near_those_counted(shared_data: Path, tmp_path: Path) -> None:
    """What a bundle says before anything runs, against the emulator's count of every layer."""
    folder = tmp_path / "b"
    report = arenite.bundle(shared_data / "mlperf_tiny/kws_ref_model.tflite", "qemu-mps2-an386", folder, vectors=1)
    arenite.build(folder)
    modelled = {operator.index: operator.modelled_instructions for operator in report.operators}
    counted = {layer.operators[0]: layer for layer in arenite.profile(folder).layers}
    large = [index for index, layer in counted.items() if layer.macs and layer.share > 0.03]
    assert len(large) == 9
    for index in large:
        assert modelled[index] == pytest.approx(counted[index].cost, rel=0.3), f"operator {index}"
    assert sum(modelled[i] or 0 for i in large) == pytest.approx(sum(counted[i].cost for i in large), rel=0.1)
    table = (folder / "operators.txt").read_text().splitlines()
    per_mac = report.operators[2].modelled_instructions_per_mac
    assert per_mac is not None
    assert table[3].split()[:6] == ["2", "CONV_2D", "conv_2d_s8", "dsp", "512,000", f"{per_mac:.2f}"]
    assert "not mve: qemu-mps2-an386 has no mve" in table[3]
