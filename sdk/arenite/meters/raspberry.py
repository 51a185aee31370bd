# SPDX-License-Identifier: Apache-2.0
"""Raspberry Pi 5: the power chip's own converters, as `vcgencmd pmic_read_adc` prints them.

    VDD_CORE_A current(7)=0.57152000A
    VDD_CORE_V volt(15)=0.87355220V

A rail counts when it has both lines. The 5 V input has a voltage but no current, so what USB ports, the header and the
converters' own losses take is not in the sum. A Raspberry Pi 4 and older ones have no such chip.
"""

from __future__ import annotations

import re
import shutil
import subprocess

from arenite.meters.base import PowerMeter

__all__ = ["PmicMeter", "find", "rail_powers_w"]

# Each reading starts a process, which costs some milliseconds of one core.
_POLL_S = 0.2
_TIMEOUT_S = 2.0
_LINE = re.compile(r"^\s*(\S+)_([AV])\s+(current|volt)\(\d+\)=(\d+\.?\d*)([AV])\s*$")
_RAIL = "rails of the power chip, without USB, header and conversion losses"


def rail_powers_w(text: str) -> dict[str, float]:
    """Watts of each rail that has a current and a voltage; lines that are not as above are left out."""
    found: dict[str, dict[str, float]] = {"A": {}, "V": {}}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and match[2] == match[5] == {"current": "A", "volt": "V"}[match[3]]:
            found[match[2]][match[1]] = float(match[4])
    return {rail: amps * found["V"][rail] for rail, amps in found["A"].items() if rail in found["V"]}


class PmicMeter(PowerMeter):
    """The sum of the rails. A reading that lacks one of the first reading's rails is no figure."""

    def __init__(self, command: str) -> None:
        super().__init__("rpi5", _RAIL, _POLL_S)
        self._command = command
        self._rails: set[str] = set()

    def start(self) -> None:
        """Takes a first reading.

        Raises:
            MeterError: The program fails, or prints no rails.
        """
        output = self._run()
        self._rails = set(rail_powers_w(output))
        if not self._rails:
            said = (output.strip().splitlines() or ["nothing"])[-1]
            cure = "Only a Raspberry Pi 5 has this sensor; add yourself to the group: usermod -aG video $USER"
            raise self.error(f"vcgencmd pmic_read_adc prints no rails but {said!r}", cure)

    def power_w(self) -> float | None:
        """Watts now."""
        powers_w = rail_powers_w(self._run())
        return sum(powers_w.values()) if self._rails and set(powers_w) >= self._rails else None

    def _run(self) -> str:
        words = [self._command, "pmic_read_adc"]
        try:
            ran = subprocess.run(
                words, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return ran.stdout if ran.returncode == 0 else ran.stdout + ran.stderr


def find(command: str = "vcgencmd") -> list[PmicMeter]:
    """`rpi5` where the program is installed; whether the chip is there shows when it is started."""
    path = shutil.which(command)
    return [] if path is None else [PmicMeter(path)]
