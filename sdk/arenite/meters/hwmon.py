# SPDX-License-Identifier: Apache-2.0
"""Power and energy channels of other hwmon drivers: `energyN_input` in microjoules, `powerN_average` and `powerN_input`
in microwatts.

Which part of the machine a channel sees is the driver's matter, and one channel may contain another, so channels are
never added. Only an ACPI power meter is the whole machine.
Format: the kernel's Documentation/hwmon/sysfs-interface.rst.
"""

from __future__ import annotations

from pathlib import Path

from arenite.meters.base import CounterMeter, Meter, PowerMeter, number_in, text_in

__all__ = ["HwmonEnergy", "HwmonPower", "find", "find_whole"]

HWMON = Path("/sys/class/hwmon")
_POLL_S = 0.05
# An ACPI power meter averages over a second by itself.
_WHOLE = {"power_meter": 1.0}
# These have modules of their own.
_ELSEWHERE = ("ina3221", "ina238", "BAT")


class HwmonEnergy(CounterMeter):
    """A counter of microjoules in 64 bits, which does not wrap in practice."""

    def __init__(self, source: str, rail: str, path: Path) -> None:
        super().__init__(source, rail, _POLL_S)
        self._path = path

    def start(self) -> None:
        """Takes the first reading.

        Raises:
            MeterError: The channel cannot be read.
        """
        _check(self, self._path)
        self.read()

    def counters_j(self) -> list[float | None]:
        """The counter."""
        value = number_in(self._path)
        return [None if value is None else value / 1e6]


class HwmonPower(PowerMeter):
    """A sensor of microwatts."""

    def __init__(self, source: str, rail: str, path: Path, interval_s: float) -> None:
        super().__init__(source, rail, interval_s)
        self._path = path

    def start(self) -> None:
        """Takes a first reading.

        Raises:
            MeterError: The channel cannot be read.
        """
        _check(self, self._path)

    def power_w(self) -> float | None:
        """Watts now."""
        value = number_in(self._path)
        return None if value is None or value < 0 else value / 1e6


def _check(meter: Meter, path: Path) -> None:
    if number_in(path) is None:
        raise meter.error(f"{path} gives no figure", "Check its permissions, or run as root.")


def find_whole(root: Path = HWMON) -> list[Meter]:
    """Channels that see the whole machine."""
    return [meter for meter in find(root) if meter.source.split(":")[1].split("/")[0] in _WHOLE]


def find(root: Path = HWMON) -> list[Meter]:
    """`hwmon:DRIVER/CHANNEL` for each channel; CHANNEL is its label, or a name such as `power1`."""
    found: dict[str, Meter] = {}
    for device in sorted(root.glob("hwmon*")):
        name = text_in(device / "name")
        if name and not name.startswith(_ELSEWHERE):
            for meter in _channels(device, name):
                found.setdefault(meter.source, meter)
    return list(found.values())


def _channels(device: Path, name: str) -> list[Meter]:
    found: list[Meter] = []
    for path in sorted(device.glob("energy*_input")):
        source, rail = _names(path, name)
        found.append(HwmonEnergy(source, rail, path))
    averages = {path.name.split("_")[0]: path for path in device.glob("power*_average")}
    inputs = {path.name.split("_")[0]: path for path in device.glob("power*_input")}
    # An average over the sensor's own interval misses nothing between two polls; an instantaneous reading does.
    for _, path in sorted((inputs | averages).items()):
        source, rail = _names(path, name)
        found.append(HwmonPower(source, rail, path, _WHOLE.get(name, _POLL_S)))
    return found


def _names(path: Path, driver: str) -> tuple[str, str]:
    channel = path.name.split("_")[0]
    label = text_in(path.with_name(f"{channel}_label")) or channel
    whole = "whole machine, " if driver in _WHOLE else ""
    return f"hwmon:{driver}/{label}", f"{whole}{driver} {label}"
