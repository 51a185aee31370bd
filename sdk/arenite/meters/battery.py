# SPDX-License-Identifier: Apache-2.0
"""The battery of a laptop or phone while it discharges: `power_now` in microwatts, or `current_now` in microamperes
times `voltage_now` in microvolts.

While it charges, nobody knows what the machine draws. The gauge renews its figure every second at best.
Format: the kernel's Documentation/ABI/testing/sysfs-class-power.
"""

from __future__ import annotations

from pathlib import Path

from arenite.meters.base import PowerMeter, number_in, text_in

__all__ = ["BatteryMeter", "find"]

POWER_SUPPLY = Path("/sys/class/power_supply")
_POLL_S = 1.0
# A second battery may rest while the first one discharges; a full or charging one means mains.
_RESTING = {"Not charging", "Unknown", "Full"}


class BatteryMeter(PowerMeter):
    """The sum of the machine's batteries."""

    def __init__(self, root: Path, batteries: tuple[Path, ...]) -> None:
        rail = "whole machine, " + " + ".join(path.name for path in batteries)
        super().__init__("battery", rail, _POLL_S)
        self._root = root
        self._batteries = batteries

    def start(self) -> None:
        """Checks that the machine runs on the battery.

        Raises:
            MeterError: It does not, or the gauge gives no figure.
        """
        if not self._discharging():
            states = ", ".join(text_in(path / "status") or "unknown" for path in self._batteries)
            raise self.error(f"the battery does not discharge ({states})", "Unplug the charger.")
        if self.power_w() is None:
            raise self.error("the gauge gives neither power nor current", "Use another meter.")

    def power_w(self) -> float | None:
        """Watts drawn from the batteries now; None while one charges."""
        if not self._discharging():
            return None
        powers_w = [_power_w(path) for path in self._batteries]
        return None if None in powers_w else sum(power or 0.0 for power in powers_w)

    def _discharging(self) -> bool:
        states = [text_in(path / "status") for path in self._batteries]
        chargers = [path for path in self._root.iterdir() if text_in(path / "type") in {"Mains", "USB"}]
        plugged = any(number_in(path / "online") for path in chargers)
        return not plugged and "Discharging" in states and set(states) <= {"Discharging", *_RESTING}


def _power_w(battery: Path) -> float | None:
    microwatts = number_in(battery / "power_now")
    if microwatts is not None:
        return abs(microwatts) * 1e-6
    microamperes, microvolts = number_in(battery / "current_now"), number_in(battery / "voltage_now")
    if microamperes is None or microvolts is None:
        return None
    # Some drivers give a current that flows out of the battery a minus sign.
    return abs(microamperes) * microvolts * 1e-12


def find(root: Path = POWER_SUPPLY) -> list[BatteryMeter]:
    """`battery` where the machine itself has one; those of mice and headsets are not meant."""
    batteries = tuple(
        path
        for path in sorted(root.glob("*"))
        if text_in(path / "type") == "Battery" and text_in(path / "scope") != "Device"
    )
    return [BatteryMeter(root, batteries)] if batteries else []
