# SPDX-License-Identifier: Apache-2.0
"""Energy: RAPL trees as Linux shows them, wraps, lost samples, and models that say so."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from arenite.energy import Energy, EnergyModel, RaplMeter, counter_step_uj, rapl_domains
from arenite.errors import UsageError

RANGE_UJ = 262_143_328_850


def domain(root: Path, folder: str, name: str, energy_uj: int, range_uj: int | None = RANGE_UJ) -> Path:
    path = root / folder
    path.mkdir(parents=True)
    (path / "name").write_text(name + "\n")
    (path / "energy_uj").write_text(f"{energy_uj}\n")
    if range_uj is not None:
        (path / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return path


def measured(root: Path, count: int, *readings: dict[Path, int]) -> Energy:
    meter = RaplMeter(root, min_window_s=0)
    with meter:
        for reading in readings[:-1]:
            set_counters(reading)
            meter.sample()
        set_counters(readings[-1])
    return meter.per_inference(count)


def set_counters(values: dict[Path, int]) -> None:
    for path, value in values.items():
        (path / "energy_uj").write_text(f"{value}\n")


def test_one_package(tmp_path: Path) -> None:
    package = domain(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    energy = measured(tmp_path, 10, {package: 3_000_000})
    assert energy.energy_mj == pytest.approx(200)
    assert (energy.tag, energy.lower_bound, energy.idle_subtracted) == ("measured", False, False)
    assert "package-0" in energy.source


def test_sub_domains_are_not_added(tmp_path: Path) -> None:
    packages = [domain(tmp_path, f"intel-rapl:{i}", f"package-{i}", 0) for i in range(2)]
    domain(tmp_path, "intel-rapl:0:0", "core", 0)
    domain(tmp_path, "intel-rapl:2", "psys", 0)
    assert [d.name for d in rapl_domains(tmp_path)] == ["package-0", "package-1"]
    energy = measured(tmp_path, 1, {packages[0]: 1000, packages[1]: 500})
    assert energy.energy_mj == pytest.approx(1.5)


def test_wrap_is_added(tmp_path: Path) -> None:
    # 0.0726 kWh, then the wrap, then 0.000197 kWh: 262,143.33 J - 261,360 J + 709.2 J
    before, after = 261_360_000_000, 709_200_000
    package = domain(tmp_path, "intel-rapl:0", "package-0", before)
    energy = measured(tmp_path, 1, {package: after})
    assert energy.energy_mj == pytest.approx(1_492_528.85)
    assert not energy.lower_bound


def test_wrap_of_unknown_range_is_a_lower_bound(tmp_path: Path) -> None:
    package = domain(tmp_path, "intel-rapl:0", "package-0", 9_000_000, range_uj=None)
    energy = measured(tmp_path, 1, {package: 10_000_000}, {package: 5}, {package: 2_000_005})
    assert energy.energy_mj == pytest.approx(3000)
    assert energy.lower_bound
    assert str(energy).startswith("at least 3")


def test_counter_that_stops_being_readable_is_a_lower_bound(tmp_path: Path) -> None:
    package = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    meter = RaplMeter(tmp_path, min_window_s=0)
    with meter:
        set_counters({package: 1000})
        meter.sample()
        (package / "energy_uj").unlink()
    assert meter.per_inference(1).lower_bound


def test_unreadable_counter_is_unknown_and_says_why(tmp_path: Path) -> None:
    package = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    (package / "energy_uj").unlink()
    with RaplMeter(tmp_path) as meter:
        pass
    energy = meter.per_inference(1)
    assert (energy.energy_mj, energy.tag) == (None, "unknown")
    assert "root only" in energy.source


def test_no_counter_is_unknown(tmp_path: Path) -> None:
    with RaplMeter(tmp_path) as meter:
        pass
    assert str(meter.per_inference(5)).startswith("unknown: no meter")


def test_window_of_a_few_ticks_is_unknown(tmp_path: Path) -> None:
    """One tick of the counter in a few milliseconds is no measurement; the same in a tenth of a second is."""
    package = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    for pause_s, tag in ((0.0, "unknown"), (0.12, "measured")):
        with RaplMeter(tmp_path) as meter:
            time.sleep(pause_s)
            set_counters({package: 5000 if pause_s else 1000})
        energy = meter.per_inference(1)
        assert energy.tag == tag
        assert ("too short" in energy.source) == (tag == "unknown")


def test_counter_that_did_not_move_is_unknown(tmp_path: Path) -> None:
    package = domain(tmp_path, "intel-rapl:0", "package-0", 77)
    assert measured(tmp_path, 5, {package: 77}).tag == "unknown"


@pytest.mark.parametrize(
    ("before", "after", "wrap", "step"),
    [(0, 5, 10, 5), (8, 3, 10, 5), (5, 5, 10, 0), (8, 3, None, None), (3, 8, None, 5)],
)
def test_counter_step(before: int, after: int, wrap: int | None, step: int | None) -> None:
    assert counter_step_uj(before, after, wrap) == step


def test_model_is_tagged_with_its_source() -> None:
    energy = EnergyModel(4.6e-12, 1e-9, "measured on board X at 480 MHz").energy(300_000_000, 4_000_000)
    assert energy.energy_mj == pytest.approx(1.38 + 4.0)
    assert energy.tag == "modelled"
    assert "board X" in str(energy)
    assert "modelled" in str(energy)


@pytest.mark.parametrize(
    "arguments", [(1e-12, 1e-9, " "), (-1e-12, 0, "x"), (float("nan"), 0, "x"), (2.0, 0, "x")]
)
def test_model_without_source_or_sense_is_refused(arguments: tuple[float, float, str]) -> None:
    with pytest.raises(UsageError, match="source"):
        EnergyModel(*arguments)
