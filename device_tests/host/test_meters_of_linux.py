# SPDX-License-Identifier: Apache-2.0
"""Meters of the machine itself, from trees of files as Linux shows them: units, wraps, sums, sentinels, refusals."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from arenite import meters
from arenite.errors import MeterError
from arenite.meters import battery, hwmon, jetson, rapl, raspberry
from arenite.meters.base import CounterMeter, Meter, Samples
from arenite.meters.trace import Trace, join
from support.energy_sources import tree

RANGE_UJ = 262_143_328_850
# A Raspberry Pi 5 under load, as its firmware prints it.
PMIC = """\
 3V7_WL_SW_A current(0)=0.00780744A
   3V3_SYS_A current(1)=0.12199130A
  DDR_VDDQ_A current(4)=0.00000000A
  VDD_CORE_A current(7)=0.75012000A
 3V7_WL_SW_V volt(8)=3.69977600V
   3V3_SYS_V volt(9)=3.31003300V
  DDR_VDDQ_V volt(12)=0.60146460V
  VDD_CORE_V volt(15)=0.87355220V
     EXT5V_V volt(24)=5.09066000V
      BATT_V volt(25)=0.00000000V
"""
PMIC_W = 0.00780744 * 3.699776 + 0.1219913 * 3.310033 + 0.75012 * 0.8735522


def domain(root: Path, folder: str, name: str, energy_uj: int, range_uj: int | None = RANGE_UJ) -> None:
    files: dict[str, object] = {f"{folder}/name": name, f"{folder}/energy_uj": energy_uj}
    if range_uj is not None:
        files[f"{folder}/max_energy_range_uj"] = range_uj
    tree(root, files)


def counter_trace(meter: CounterMeter, root: Path, *steps: dict[str, int | None]) -> tuple[float, bool]:
    """Joules over the whole, and whether all of it was seen. None removes a counter."""
    meter.start()
    blocks = [meter.read()]
    for step in steps:
        for folder, value in step.items():
            path = root / folder / "energy_uj"
            path.unlink() if value is None else tree(root, {f"{folder}/energy_uj": value})
        blocks.append(meter.read())
    return total(blocks)


def total(blocks: list[Samples]) -> tuple[float, bool]:
    samples = join(blocks)
    part = Trace("joules", samples).portion(samples.times_s[0], samples.times_s[-1])
    return part.joules, part.seen_s == pytest.approx(samples.times_s[-1] - samples.times_s[0])


def watts(meter: Meter) -> float:
    """One reading, NaN when it is no figure."""
    (value,) = meter.read().values
    return float(value)


def test_rapl_adds_what_does_not_contain_each_other(tmp_path: Path) -> None:
    for i in range(2):
        domain(tmp_path, f"intel-rapl:{i}", f"package-{i}", 0)
        domain(tmp_path, f"intel-rapl:{i}:0", "core", 0)
        domain(tmp_path, f"intel-rapl:{i}:1", "dram", 0)
    domain(tmp_path, "intel-rapl:2", "psys", 0)
    domain(tmp_path, "intel-rapl-mmio:0", "package-0", 0)
    inside, platform = rapl.find(tmp_path)
    assert inside.rail == "package-0 + dram + package-1 + dram"
    assert (platform.source, platform.rail) == ("rapl:psys", "psys")
    step = {"intel-rapl:0": 3_000_000, "intel-rapl:0:1": 500_000, "intel-rapl:1": 1_000_000}
    others = {"intel-rapl:0:0": 2_000_000, "intel-rapl:2": 9_000_000, "intel-rapl-mmio:0": 3_000_000}
    assert counter_trace(inside, tmp_path, {**step, **others}) == (pytest.approx(4.5), True)


def test_rapl_wrap_is_added(tmp_path: Path) -> None:
    """0.0726 kWh, the wrap, then 0.000197 kWh: 1,492.53 J by the counter's range of 262,143.32885 J."""
    domain(tmp_path, "intel-rapl:0", "package-0", 261_360_000_000)
    joules, complete = counter_trace(rapl.find(tmp_path)[0], tmp_path, {"intel-rapl:0": 709_200_000})
    assert joules == pytest.approx((262_143_328_850 - 261_360_000_000 + 709_200_000) / 1e6)
    assert complete


def test_rapl_wrap_of_unknown_range_is_a_gap(tmp_path: Path) -> None:
    domain(tmp_path, "intel-rapl:0", "package-0", 9_000_000, range_uj=None)
    steps = ({"intel-rapl:0": 10_000_000}, {"intel-rapl:0": 5}, {"intel-rapl:0": 2_000_005})
    assert counter_trace(rapl.find(tmp_path)[0], tmp_path, *steps) == (pytest.approx(3.0), False)


def test_rapl_counter_that_vanishes_covers_its_absence_when_it_is_back(tmp_path: Path) -> None:
    domain(tmp_path, "intel-rapl:0", "package-0", 0)
    gone = ({"intel-rapl:0": 1_000_000}, {"intel-rapl:0": None})
    assert counter_trace(rapl.find(tmp_path)[0], tmp_path, *gone) == (pytest.approx(1.0), False)
    tree(tmp_path, {"intel-rapl:0/energy_uj": 0})
    back = {"intel-rapl:0": 4_000_000}
    assert counter_trace(rapl.find(tmp_path)[0], tmp_path, *gone, back) == (pytest.approx(4.0), True)


def test_rapl_without_permission_names_the_cure(tmp_path: Path) -> None:
    domain(tmp_path, "intel-rapl:0", "package-0", 0)
    (tmp_path / "intel-rapl:0/energy_uj").unlink()
    with pytest.raises(MeterError, match=r"root only.*chmod a\+r"):
        rapl.find(tmp_path)[0].start()


def test_no_rapl(tmp_path: Path) -> None:
    assert rapl.find(tmp_path / "none") == []
    domain(tmp_path, "intel-rapl:0", "uncore", 0)
    assert rapl.find(tmp_path) == []


def ina3221(root: Path, chip: str, rails: list[tuple[str, int, int]]) -> Path:
    """Name, millivolts and milliamperes of each channel."""
    files: dict[str, object] = {f"{chip}/name": "ina3221", f"{chip}/in7_label": "sum of shunt voltages"}
    for i, (name, millivolts, milliamperes) in enumerate(rails, 1):
        files |= {f"{chip}/in{i}_label": name, f"{chip}/in{i}_input": millivolts, f"{chip}/curr{i}_input": milliamperes}
        files |= {f"{chip}/shunt{i}_resistor": 5000, f"{chip}/in{i}_enable": 1}
    return tree(root, files)


def find_jetson(root: Path) -> dict[str, jetson.JetsonMeter]:
    return {meter.source: meter for meter in jetson.find(root, root / "iio")}


def test_jetson_total_is_one_rail(tmp_path: Path) -> None:
    """Orin Nano: VDD_IN contains the other two."""
    rails = [("VDD_IN", 5000, 1200), ("VDD_CPU_GPU_CV", 5000, 400), ("VDD_SOC", 5000, 300)]
    found = find_jetson(ina3221(tmp_path, "hwmon1", rails))
    assert found["jetson"].rail == "VDD_IN" and watts(found["jetson"]) == pytest.approx(6.0)
    assert watts(found["jetson:VDD_SOC"]) == pytest.approx(1.5)
    assert set(found) == {"jetson", "jetson:VDD_IN", "jetson:VDD_CPU_GPU_CV", "jetson:VDD_SOC"}


def test_jetson_total_of_agx_orin_is_a_sum(tmp_path: Path) -> None:
    """No rail contains all; VDDQ_VDD2_1V8AO lies behind VIN_SYS_5V0 and is not added again."""
    ina3221(tmp_path, "hwmon3", [("VDD_GPU_SOC", 20000, 300), ("VDD_CPU_CV", 20000, 100), ("VIN_SYS_5V0", 5000, 800)])
    found = find_jetson(ina3221(tmp_path, "hwmon4", [("NC", 0, 0), ("VDDQ_VDD2_1V8AO", 5000, 200), ("NC", 0, 0)]))
    assert watts(found["jetson"]) == pytest.approx(6 + 2 + 4)
    assert "jetson:NC" not in found


def test_jetson_with_unknown_rails_has_no_total(tmp_path: Path) -> None:
    found = find_jetson(ina3221(tmp_path, "hwmon1", [("A", 5000, 100), ("B", 5000, 100)]))
    assert set(found) == {"jetson:A", "jetson:B"}


def test_jetson_ina238_gives_microwatts(tmp_path: Path) -> None:
    files = {"name": "ina238", "label": "VIN", "in1_input": 19000, "curr1_input": 1000, "power1_input": 18_900_000}
    found = find_jetson(tree(tmp_path, {f"hwmon0/{name}": value for name, value in files.items()}))
    assert found["jetson"].rail == "VIN" and watts(found["jetson"]) == pytest.approx(18.9)


def test_jetson_older_iio_driver_gives_milliwatts(tmp_path: Path) -> None:
    rails = {"0": ("POM_5V_IN", 2875), "1": ("POM_5V_GPU", 120), "2": ("POM_5V_CPU", 600)}
    files: dict[str, object] = {}
    for i, (name, milliwatts) in rails.items():
        files |= {f"6-0040/iio:device0/rail_name_{i}": name, f"6-0040/iio:device0/in_power{i}_input": milliwatts}
    tree(tmp_path, files)
    found = {meter.source: meter for meter in jetson.find(tmp_path / "none", tmp_path)}
    assert watts(found["jetson"]) == pytest.approx(2.875)
    assert watts(found["jetson:POM_5V_GPU"]) == pytest.approx(0.12)


def test_jetson_sentinel_is_no_power(tmp_path: Path) -> None:
    found = find_jetson(ina3221(tmp_path, "hwmon1", [("VDD_IN", 5000, -256)]))
    assert np.isnan(watts(found["jetson"]))
    with pytest.raises(MeterError, match="VDD_IN gives no figure"):
        found["jetson"].start()


def test_jetson_offset_below_zero_is_zero(tmp_path: Path) -> None:
    assert watts(find_jetson(ina3221(tmp_path, "hwmon1", [("VDD_IN", 5000, -8)]))["jetson"]) == 0


def vcgencmd(folder: Path, text: str, code: int = 0) -> str:
    """The program that prints the power chip's values."""
    output = folder / "output.txt"
    output.write_text(text)
    program = folder / "vcgencmd"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = pmic_read_adc ] || exit 9\ncat '{output}'\nexit {code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_raspberry_adds_rails_with_current_and_voltage(tmp_path: Path) -> None:
    (meter,) = raspberry.find(vcgencmd(tmp_path, PMIC))
    meter.start()
    assert watts(meter) == pytest.approx(PMIC_W, rel=1e-9)
    assert "without USB" in meter.rail
    (tmp_path / "output.txt").write_text(PMIC.replace("(7)=0.75012000A", "(7)=nanA"))
    assert np.isnan(watts(meter)), "without its largest rail the sum is none"


def test_raspberry_unit_that_contradicts_its_name_is_left_out() -> None:
    wrong = "X_A current(0)=1.0V\nX_V volt(1)=2.0V\nY_A volt(2)=1.0A\nY_V volt(3)=1.0V\n"
    assert raspberry.rail_powers_w(wrong + "Z_A current(4)=2.0A\nZ_V volt(5)=3.0V") == {"Z": 6.0}


def test_raspberry_without_the_chip_or_the_right_says_so(tmp_path: Path) -> None:
    old = 'error=1 error_msg="Command not registered"\n'
    for text, code in ((old, 0), ("Can't open device file: /dev/vcio\n", 255), ("", 1)):
        (meter,) = raspberry.find(vcgencmd(tmp_path, text, code))
        with pytest.raises(MeterError, match="usermod"):
            meter.start()
    assert raspberry.find("vcgencmd-that-is-not-here") == []


def test_hwmon_energy_average_and_input(tmp_path: Path) -> None:
    files = {
        "hwmon0/name": "amd_energy",
        "hwmon0/energy1_label": "Ecore000",
        "hwmon0/energy1_input": 5_000_000,
        "hwmon1/name": "amdgpu",
        "hwmon1/power1_average": 33_000_000,
        "hwmon1/power1_input": 99_000_000,
        "hwmon1/power1_label": "PPT",
        "hwmon2/name": "power_meter",
        "hwmon2/power1_average": 250_000_000,
        "hwmon3/name": "BAT0",
        "hwmon3/power1_input": 7_000_000,
    }
    found = {meter.source: meter for meter in hwmon.find(tree(tmp_path, files))}
    assert set(found) == {"hwmon:amd_energy/Ecore000", "hwmon:amdgpu/PPT", "hwmon:power_meter/power1"}
    assert watts(found["hwmon:amdgpu/PPT"]) == pytest.approx(33)
    assert [meter.source for meter in hwmon.find_whole(tmp_path)] == ["hwmon:power_meter/power1"]
    counter = found["hwmon:amd_energy/Ecore000"]
    counter.start()
    before = counter.read()
    tree(tmp_path, {"hwmon0/energy1_input": 7_500_000})
    assert total([before, counter.read()])[0] == pytest.approx(2.5)
    tree(tmp_path, {"hwmon1/power1_average": -256})
    with pytest.raises(MeterError, match="no figure"):
        found["hwmon:amdgpu/PPT"].start()


def supply(root: Path, name: str, **files: object) -> Path:
    return tree(root, {f"{name}/{key}": value for key, value in files.items()})


def test_battery_units(tmp_path: Path) -> None:
    supply(tmp_path, "AC", type="Mains", online=0)
    supply(tmp_path, "BAT0", type="Battery", status="Discharging", power_now=8_500_000)
    supply(tmp_path, "hid-mouse", type="Battery", scope="Device", status="Discharging", power_now=1)
    (meter,) = battery.find(tmp_path)
    meter.start()
    assert meter.rail == "whole machine, BAT0" and watts(meter) == pytest.approx(8.5)
    supply(tmp_path, "BAT1", type="Battery", status="Discharging", current_now=-1_200_000, voltage_now=11_400_000)
    (both,) = battery.find(tmp_path)
    assert watts(both) == pytest.approx(8.5 + 13.68)
    supply(tmp_path, "BAT1", status="Not charging", current_now=0)
    assert watts(both) == pytest.approx(8.5)


def test_battery_that_charges_says_nothing(tmp_path: Path) -> None:
    supply(tmp_path, "BAT0", type="Battery", status="Charging", power_now=30_000_000)
    (meter,) = battery.find(tmp_path)
    with pytest.raises(MeterError, match=r"does not discharge \(Charging\).*Unplug"):
        meter.start()
    supply(tmp_path, "BAT0", status="Discharging")
    meter.start()
    supply(tmp_path, "ucsi", type="USB", online=1)
    assert np.isnan(watts(meter)), "plugged in during the run"


def test_best_is_the_widest_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetson.find, "__defaults__", (tmp_path / "hwmon", tmp_path / "iio"))
    monkeypatch.setattr(hwmon.find, "__defaults__", (tmp_path / "hwmon",))
    monkeypatch.setattr(hwmon.find_whole, "__defaults__", (tmp_path / "hwmon",))
    monkeypatch.setattr(rapl.find, "__defaults__", (tmp_path / "powercap",))
    monkeypatch.setattr(battery.find, "__defaults__", (tmp_path / "supply",))
    with pytest.raises(MeterError, match="no energy sensor"):
        meters.start_best()
    domain(tmp_path / "powercap", "intel-rapl:0", "package-0", 0)
    supply(tmp_path / "supply", "BAT0", type="Battery", status="Discharging", power_now=8_500_000)
    assert meters.start_best().source == "rapl"
    (tmp_path / "powercap/intel-rapl:0/energy_uj").unlink()
    assert meters.start_best().source == "battery"
    supply(tmp_path / "supply", "BAT0", status="Full")
    with pytest.raises(MeterError, match=r"root only.*does not discharge"):
        meters.start_best()
    states = {found.source: (found.usable, found.problem) for found in meters.found_meters()}
    assert states["rapl"][0] is False and "chmod" in states["rapl"][1]
    assert states["battery"][0] is False and "Unplug" in states["battery"][1]
    ina3221(tmp_path / "hwmon", "hwmon0", [("VDD_CARRIER", 5000, 100)])
    with pytest.raises(MeterError, match=r"Name one of jetson:VDD_CARRIER"):
        meters.start_best()
    ina3221(tmp_path / "hwmon", "hwmon0", [("VDD_IN", 5000, 100)])
    assert meters.start_best().source == "jetson"
    assert meters.start_named("jetson:VDD_IN").rail == "VDD_IN"
