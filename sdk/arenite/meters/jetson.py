# SPDX-License-Identifier: Apache-2.0
"""Jetson boards: INA3221 and INA238 sensors through hwmon, or INA3221 through the older iio driver.

The input rail already contains GPU and CPU, so rails are added only on the boards whose total is a sum. A board whose
rails are not known is not guessed: name one of them. Formats: the kernel's Documentation/hwmon/ina3221.rst and
ina238.rst; names of rails: NVIDIA's Jetson Linux Developer Guide, "Platform Power and Performance".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from arenite.meters.base import PowerMeter, number_in, text_in

__all__ = ["JetsonMeter", "Rail", "find", "rails_of"]

HWMON = Path("/sys/class/hwmon")
IIO = Path("/sys/bus/i2c/drivers/ina3221x")
# The sensors average over some milliseconds and are read over I2C.
_POLL_S = 0.05
# A channel that is not connected, and the INA3221's sum of shunt voltages.
_NO_RAILS = {"NC", "SUM OF SHUNT VOLTAGES"}
_CHIPS = {"ina3221", "ina3221x", "ina238"}
# A rail through which everything flows, as each board calls it.
_INPUTS = ("VDD_IN", "POM_5V_IN", "VIN")
# Boards without such a rail: these rails have nothing in common, and the others lie inside one of them.
_SUMS = (
    ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"),  # AGX Orin
    ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"),  # AGX Xavier
)


@dataclass(frozen=True)
class Rail:
    """One rail: its name as the board gives it, and how to read its watts (None: no figure)."""

    name: str
    power_w: Callable[[], float | None]


class JetsonMeter(PowerMeter):
    """The sum of rails; when one gives no figure there is no sum."""

    def __init__(self, source: str, rails: tuple[Rail, ...]) -> None:
        super().__init__(source, " + ".join(rail.name for rail in rails), _POLL_S)
        self._rails = rails

    def start(self) -> None:
        """Checks that every rail gives a figure.

        Raises:
            MeterError: One does not.
        """
        for rail in self._rails:
            if rail.power_w() is None:
                cure = "Run as root, or name another rail, such as jetson:VDD_IN."
                raise self.error(f"the rail {rail.name} gives no figure", cure)

    def power_w(self) -> float | None:
        """Watts now."""
        total = 0.0
        for rail in self._rails:
            power_w = rail.power_w()
            if power_w is None:
                return None
            total += power_w
        return total


def rails_of(hwmon: Path = HWMON, iio: Path = IIO) -> dict[str, Rail]:
    """Every rail of this board, by name in capitals."""
    found: dict[str, Rail] = {}
    for chip in sorted(hwmon.glob("hwmon*")):
        if text_in(chip / "name") in _CHIPS:
            found |= {rail.name.upper(): rail for rail in _hwmon_rails(chip)}
    for pattern in ("*/iio:device*", "*/iio_device"):
        for device in sorted(iio.glob(pattern)):
            found |= {rail.name.upper(): rail for rail in _iio_rails(device)}
    return found


def _hwmon_rails(chip: Path) -> list[Rail]:
    """An INA238 has a power register, in microwatts; an INA3221 has millivolts and milliamperes only."""
    rails = []
    for name, channel in _labels(chip):
        power, voltage, current = (chip / f"{kind}{channel}_input" for kind in ("power", "in", "curr"))
        if power.exists():
            rails.append(Rail(name, _scaled(power, 1e-6)))
        elif current.exists():
            rails.append(Rail(name, _product(voltage, current)))
    return rails


def _labels(chip: Path) -> list[tuple[str, str]]:
    """Name and channel of each rail. An INA238 has one channel, which the chip's own label names."""
    found = [(text_in(path), path.name[len("in") : -len("_label")]) for path in sorted(chip.glob("in*_label"))]
    found = found or [(text_in(chip / "label"), "1")]
    return [(name, channel) for name, channel in found if name and name.upper() not in _NO_RAILS]


def _iio_rails(device: Path) -> list[Rail]:
    rails = []
    for label in sorted(device.glob("rail_name_*")):
        name, channel = text_in(label), label.name.rsplit("_", 1)[1]
        if name and name.upper() != "NC":
            rails.append(Rail(name, _scaled(device / f"in_power{channel}_input", 1e-3)))
    return rails


def _scaled(path: Path, unit_w: float) -> Callable[[], float | None]:
    def read() -> float | None:
        value = number_in(path)
        return None if value is None or value < 0 else value * unit_w

    return read


def _product(voltage: Path, current: Path) -> Callable[[], float | None]:
    def read() -> float | None:
        millivolts, milliamperes = number_in(voltage), number_in(current)
        if millivolts is None or milliamperes is None:
            return None
        # A current that is a few milliamperes below zero is the sensor's offset on an idle rail.
        return max(0.0, millivolts * milliamperes * 1e-6)

    return read


def find(hwmon: Path = HWMON, iio: Path = IIO) -> list[JetsonMeter]:
    """`jetson`, the whole board when its total is known, and `jetson:RAIL` for each rail."""
    rails = rails_of(hwmon, iio)
    total = _total(rails)
    meters = [JetsonMeter("jetson", total)] if total else []
    return meters + [JetsonMeter(f"jetson:{rail.name}", (rail,)) for rail in rails.values()]


def _total(rails: Mapping[str, Rail]) -> tuple[Rail, ...]:
    for name in _INPUTS:
        if name in rails:
            return (rails[name],)
    for names in _SUMS:
        if all(name in rails for name in names):
            return tuple(rails[name] for name in names)
    return ()
