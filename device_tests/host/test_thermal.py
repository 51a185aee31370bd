# SPDX-License-Identifier: Apache-2.0
"""Temperatures, frequencies and throttling from the kernel's files, in trees of files of their formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from arenite.thermal import ThermalReport, ThermalWatch
from support.energy_sources import tree

CPU = "devices/system/cpu"
COOL: dict[str, object] = {
    "class/thermal/thermal_zone0/type": "cpu-thermal",
    "class/thermal/thermal_zone0/temp": 48312,
    "class/thermal/cooling_device0/type": "thermal-cpufreq-0",
    "class/thermal/cooling_device0/cur_state": 0,
    "class/thermal/cooling_device0/max_state": 14,
    "class/thermal/cooling_device1/type": "pwm-fan",
    "class/thermal/cooling_device1/cur_state": 0,
    "class/hwmon/hwmon2/name": "coretemp",
    "class/hwmon/hwmon2/temp1_input": 51000,
    "class/hwmon/hwmon2/temp1_label": "Package id 0",
    **{f"{CPU}/cpu{i}/cpufreq/scaling_cur_freq": 2400000 for i in range(2)},
    **{f"{CPU}/cpu{i}/cpufreq/scaling_max_freq": 2400000 for i in range(2)},
    **{f"{CPU}/cpu{i}/cpufreq/scaling_governor": "ondemand" for i in range(2)},
}


def watched(root: Path, changes: dict[str, object]) -> ThermalReport:
    """A run during which files change; the last reading is at its end."""
    with ThermalWatch(root, every_s=60) as watch:
        tree(root, changes)
    return watch.report()


def test_a_cool_run(tmp_path: Path) -> None:
    found = watched(tree(tmp_path, COOL), {"class/thermal/thermal_zone0/temp": 52000})
    assert found.start_c == {"cpu-thermal (thermal_zone0)": 48.312, "coretemp Package id 0 (hwmon2)": 51.0}
    assert found.peak_c == {"cpu-thermal (thermal_zone0)": 52.0, "coretemp Package id 0 (hwmon2)": 51.0}
    assert found.frequency_mhz == {"cpu0": (2400, 2400), "cpu1": (2400, 2400)}
    assert (found.governor, found.throttled, found.watched, found.readings) == ("ondemand", (), True, 2)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            {},
            {"class/thermal/cooling_device0/cur_state": 3},
            "the cooling device thermal-cpufreq-0 slowed the processor down",
        ),
        ({}, {f"{CPU}/cpu1/cpufreq/scaling_max_freq": 1500000}, "the frequency limit of cpu1 was lowered"),
        (
            {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": 7},
            {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": 8},
            "cpu0 counted core throttling",
        ),
        (
            {f"{CPU}/cpu0/thermal_throttle/package_throttle_count": 0},
            {f"{CPU}/cpu0/thermal_throttle/package_throttle_count": 2},
            "cpu0 counted package throttling",
        ),
        (
            {"devices/platform/soc/soc:firmware/get_throttled": "0"},
            {"devices/platform/soc/soc:firmware/get_throttled": "50004"},
            "the firmware says: throttled",
        ),
        (
            {"devices/platform/soc/soc:firmware/get_throttled": "50000"},
            {"devices/platform/soc/soc:firmware/get_throttled": "50001"},
            "the firmware says: under-voltage",
        ),
    ],
)
def test_what_slows_the_processor_down(
    tmp_path: Path, before: dict[str, object], after: dict[str, object], told: str
) -> None:
    assert watched(tree(tmp_path, COOL | before), after).throttled == (told,)


def test_what_happened_before_the_run_is_not_its_own(tmp_path: Path) -> None:
    before = {
        f"{CPU}/cpu0/thermal_throttle/core_throttle_count": 99,
        f"{CPU}/cpu0/cpufreq/scaling_max_freq": 800000,
        "devices/platform/soc/soc:firmware/get_throttled": "50000",
        "class/thermal/cooling_device1/cur_state": 3,  # a fan
    }
    assert watched(tree(tmp_path, COOL | before), {}).throttled == ()


def test_throttling_that_passes_during_the_run(tmp_path: Path) -> None:
    with ThermalWatch(tree(tmp_path, COOL), every_s=60) as watch:
        tree(tmp_path, {"class/thermal/cooling_device0/cur_state": 1, "class/thermal/thermal_zone0/temp": 85000})
        watch.read()
        tree(tmp_path, COOL)
    assert len(watch.report().throttled) == 1
    assert watch.report().peak_c["cpu-thermal (thermal_zone0)"] == 85


def test_it_reads_by_itself(tmp_path: Path) -> None:
    import time

    with ThermalWatch(tree(tmp_path, COOL), every_s=0.001) as watch:
        end_s = time.monotonic() + 60
        while watch.report().readings < 5 and time.monotonic() < end_s:
            time.sleep(0.001)
    assert watch.report().readings >= 5


def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
    found = watched(tmp_path, {})
    assert found == ThermalReport({}, {}, {}, None, (), False, 2)


def test_sensors_that_are_broken(tmp_path: Path) -> None:
    wrong: dict[str, object] = {
        "class/thermal/thermal_zone0/temp": -274000,
        "class/hwmon/hwmon2/temp1_input": "",
        f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "<unknown>",
        "devices/platform/soc/soc:firmware/get_throttled": "none",
    }
    found = watched(tree(tmp_path, COOL | wrong), {})
    assert (found.start_c, found.peak_c, set(found.frequency_mhz)) == ({}, {}, {"cpu1"})


def test_governors_that_differ(tmp_path: Path) -> None:
    found = watched(tree(tmp_path, COOL | {f"{CPU}/cpu1/cpufreq/scaling_governor": "performance"}), {})
    assert found.governor == "ondemand, performance"
