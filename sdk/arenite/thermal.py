# SPDX-License-Identifier: Apache-2.0
"""Is the machine too hot to keep its pace? Temperatures, frequencies and what slows the processor down, during a run.

Read from the kernel's files, all of them optional:

    class/thermal/thermal_zone*/{type,temp}                    millidegrees Celsius
    class/thermal/cooling_device*/{type,cur_state}             a processor's above 0: it is slowed down
    class/hwmon/hwmon*/{name,tempN_input,tempN_label}          millidegrees Celsius
    devices/system/cpu/cpu*/cpufreq/scaling_{cur_freq,max_freq,governor}    kHz
    devices/system/cpu/cpu*/thermal_throttle/{core,package}_throttle_count  Intel: events since the start
    devices/platform/soc/soc:firmware/get_throttled            Raspberry Pi: bits, in hexadecimal

Formats: the kernel's Documentation: ABI/testing/sysfs-class-thermal, ABI/testing/sysfs-devices-system-cpu,
admin-guide/pm/cpufreq.rst, hwmon/sysfs-interface.rst; Raspberry Pi documentation, `vcgencmd get_throttled`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from arenite.meters.base import number_in, text_in

__all__ = ["Pace", "SANE_C", "SYSFS", "ThermalReport", "ThermalWatch", "pace_of"]

SYSFS = Path("/sys")
_EVERY_S = 0.5
# Sensors that say so are broken or absent.
SANE_C = (-50.0, 200.0)
_PI_BITS = {0: "under-voltage", 1: "frequency capped", 2: "throttled", 3: "soft temperature limit"}
# So many inferences at either end make a median that one slow one does not move.
_LEAST_ENDS = 10
# A tenth slower is more than the noise of a median.
_SLOWER = 1.1


@dataclass(frozen=True)
class ThermalReport:
    """What the sensors said during a run.

    Attributes:
        start_c: Temperature in degrees Celsius of each sensor at the start.
        peak_c: Highest of each.
        frequency_mhz: Lowest and highest frequency of each processor core that was seen.
        governor: Of the processor cores; several are joined by commas; None when there is none.
        throttled: What slowed the processor down during the run, each once; empty when nothing was seen.
        watched: Whether anything that would show throttling can be read here; if not, `throttled` says nothing.
        readings: How often the sensors were read.
    """

    start_c: dict[str, float]
    peak_c: dict[str, float]
    frequency_mhz: dict[str, tuple[float, float]]
    governor: str | None
    throttled: tuple[str, ...]
    watched: bool
    readings: int


@dataclass(frozen=True)
class Pace:
    """Sustained against burst.

    Attributes:
        burst_ms: Median at the start of the run.
        sustained_ms: Median at its end.
        slowdown: The second over the first.
        slower: The end was at least a tenth slower.
    """

    burst_ms: float
    sustained_ms: float
    slowdown: float
    slower: bool


def pace_of(first_ms: Sequence[float], last_ms: Sequence[float]) -> Pace | None:
    """The pace at a run's end against its start; None when either has fewer than ten times.

    Args:
        first_ms: Times at the start, once warm.
        last_ms: Times at the end.
    """
    if min(len(first_ms), len(last_ms)) < _LEAST_ENDS or not (burst_ms := median(first_ms)):
        return None
    sustained_ms = median(last_ms)
    slowdown = sustained_ms / burst_ms
    return Pace(burst_ms, sustained_ms, slowdown, slowdown >= _SLOWER)


@dataclass
class _Seen:
    """Everything since the start of the run."""

    start_c: dict[str, float] = field(default_factory=dict)
    peak_c: dict[str, float] = field(default_factory=dict)
    frequency_mhz: dict[str, tuple[float, float]] = field(default_factory=dict)
    limits_khz: dict[Path, int] = field(default_factory=dict)
    counts: dict[Path, int] = field(default_factory=dict)
    throttled: dict[str, None] = field(default_factory=dict)
    watched: bool = False
    readings: int = 0


class ThermalWatch:
    """Reads the sensors by a thread of its own while the block runs.

        with ThermalWatch() as watch:
            ...
        print(watch.report().throttled)

    Args:
        root: Where the kernel's files are.
        every_s: Time between two readings.
    """

    def __init__(self, root: Path = SYSFS, every_s: float = _EVERY_S) -> None:
        self._root, self._every_s = root, every_s
        self._seen = _Seen()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> ThermalWatch:
        self._seen, self._over = _Seen(), threading.Event()
        self.read()
        self._thread = threading.Thread(target=self._poll, name="arenite-thermal", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self.read()

    def _poll(self) -> None:
        while not self._over.wait(self._every_s):
            self.read()

    def read(self) -> None:
        """Read every sensor once."""
        self._read_temperatures()
        self._read_frequencies()
        self._read_counts()
        self._read_cooling()
        self._read_raspberry()
        self._seen.readings += 1

    def report(self) -> ThermalReport:
        """What was seen so far."""
        seen = self._seen
        governors = {text_in(path) for path in self._cpus("cpufreq/scaling_governor")} - {None}
        return ThermalReport(
            start_c=dict(seen.start_c),
            peak_c=dict(seen.peak_c),
            frequency_mhz=dict(seen.frequency_mhz),
            governor=", ".join(sorted(map(str, governors))) or None,
            throttled=tuple(seen.throttled),
            watched=seen.watched,
            readings=seen.readings,
        )

    def _cpus(self, file: str) -> list[Path]:
        return sorted((self._root / "devices/system/cpu").glob(f"cpu[0-9]*/{file}"))

    def _read_temperatures(self) -> None:
        for zone in sorted((self._root / "class/thermal").glob("thermal_zone*")):
            self._temperature(f"{text_in(zone / 'type') or 'zone'} ({zone.name})", zone / "temp")
        for path in sorted((self._root / "class/hwmon").glob("hwmon*/temp*_input")):
            channel = path.name.removesuffix("_input")
            label = text_in(path.with_name(f"{channel}_label")) or channel
            self._temperature(f"{text_in(path.parent / 'name') or 'hwmon'} {label} ({path.parent.name})", path)

    def _temperature(self, name: str, path: Path) -> None:
        value = number_in(path)
        if value is None or not SANE_C[0] < value / 1e3 < SANE_C[1]:
            return
        degrees = value / 1e3
        self._seen.start_c.setdefault(name, degrees)
        self._seen.peak_c[name] = max(degrees, self._seen.peak_c.get(name, degrees))

    def _read_frequencies(self) -> None:
        for path in self._cpus("cpufreq/scaling_cur_freq"):
            value = number_in(path)
            if value:
                name, mhz = path.parent.parent.name, value / 1e3
                low, high = self._seen.frequency_mhz.get(name, (mhz, mhz))
                self._seen.frequency_mhz[name] = (min(low, mhz), max(high, mhz))
        for path in self._cpus("cpufreq/scaling_max_freq"):
            limit = number_in(path)
            if limit is not None:
                # A cooling driver lowers the limit; one that stood there before the run is somebody's choice.
                if limit < self._seen.limits_khz.setdefault(path, limit):
                    self._throttled(f"the frequency limit of {path.parent.parent.name} was lowered")
                self._seen.watched = True

    def _read_counts(self) -> None:
        for path in self._cpus("thermal_throttle/*_throttle_count"):
            count = number_in(path)
            if count is not None:
                self._seen.watched = True
                if count > self._seen.counts.setdefault(path, count):
                    kind = path.name.removesuffix("_throttle_count")
                    self._throttled(f"{path.parent.parent.name} counted {kind} throttling")

    def _read_cooling(self) -> None:
        for device in sorted((self._root / "class/thermal").glob("cooling_device*")):
            kind = text_in(device / "type") or ""
            state = number_in(device / "cur_state")
            if state is not None and ("cpu" in kind.lower() or kind == "Processor"):
                self._seen.watched = True
                if state > 0:
                    self._throttled(f"the cooling device {kind} slowed the processor down")

    def _read_raspberry(self) -> None:
        text = text_in(self._root / "devices/platform/soc/soc:firmware/get_throttled")
        try:
            bits = int(text or "", 16)
        except ValueError:
            return
        self._seen.watched = True
        for bit, name in _PI_BITS.items():
            if bits >> bit & 1:
                self._throttled(f"the firmware says: {name}")

    def _throttled(self, what: str) -> None:
        self._seen.throttled[what] = None
