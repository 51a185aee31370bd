# SPDX-License-Identifier: Apache-2.0
"""The machine that a figure belongs to, and what its clock and its temperature do meanwhile."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

__all__ = ["Conditions", "Machine", "Watch", "machine"]

SYSTEM = Path("/sys")
PROC = Path("/proc")
_PACKAGES = ("arenite", "numpy", "pillow")
_LOOK_S = 0.25


@dataclass(frozen=True)
class Machine:
    """The machine that a figure belongs to. What the system does not tell is None.

    Attributes:
        name: Its network name.
        system: Operating system and architecture.
        kernel: Release of the operating system.
        cpu: Name of the processor.
        cores: Logical processors.
        memory_bytes: Main memory.
        governor: What rules the clock of the processors; several are joined by commas.
        min_frequency_mhz: Lowest clock that it may choose.
        max_frequency_mhz: Highest.
        python: Version of the interpreter.
        versions: Packages that take part, beside the engine.
    """

    name: str
    system: str
    kernel: str
    cpu: str
    cores: int
    memory_bytes: int | None
    governor: str | None
    min_frequency_mhz: float | None
    max_frequency_mhz: float | None
    python: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Conditions:
    """Clock and temperature during a measurement, one entry a look; empty where the system has no sensor.

    Attributes:
        times_s: Since the measurement began.
        frequency_mhz: Mean clock of the processors that tell it.
        temperature_c: The hottest thermal zone.
    """

    times_s: tuple[float, ...] = ()
    frequency_mhz: tuple[float, ...] = ()
    temperature_c: tuple[float, ...] = ()


class Watch:
    """Looks at clock and temperature now and then, between two queries."""

    def __init__(self, root: Path | None = None) -> None:
        root = root or SYSTEM
        self._clocks = sorted(root.glob("devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq"))
        self._zones = sorted(root.glob("class/thermal/thermal_zone*/temp"))
        self._start_s = time.perf_counter()
        # Without a sensor there is nothing to look at, ever.
        self._due_s = self._start_s if self._clocks or self._zones else float("inf")
        self._times_s: list[float] = []
        self._clock_mhz: list[float] = []
        self._heat_c: list[float] = []

    def look(self) -> None:
        """Reads the sensors if that is due."""
        now_s = time.perf_counter()
        if now_s < self._due_s:
            return
        self._due_s = now_s + _LOOK_S
        clocks = [value for path in self._clocks if (value := _number(path)) is not None]
        zones = [value for path in self._zones if (value := _number(path)) is not None]
        if bool(clocks) == bool(self._clocks) and bool(zones) == bool(self._zones):
            self._times_s.append(now_s - self._start_s)
            self._clock_mhz += [sum(clocks) / len(clocks) / 1e3] if clocks else []
            self._heat_c += [max(zones) / 1e3] if zones else []

    def seen(self) -> Conditions:
        """All looks so far."""
        return Conditions(tuple(self._times_s), tuple(self._clock_mhz), tuple(self._heat_c))


def machine(root: Path | None = None, proc: Path | None = None) -> Machine:
    """This machine."""
    root, proc = root or SYSTEM, proc or PROC
    policies = sorted(root.glob("devices/system/cpu/cpu[0-9]*/cpufreq"))
    governors = sorted({text for path in policies if (text := _text(path / "scaling_governor"))})
    lowest = [value for path in policies if (value := _number(path / "scaling_min_freq")) is not None]
    highest = [value for path in policies if (value := _number(path / "scaling_max_freq")) is not None]
    return Machine(
        name=platform.node() or "unknown",
        system=f"{platform.system()} {platform.machine()}",
        kernel=platform.release(),
        cpu=_cpu(proc),
        cores=os.cpu_count() or 1,
        memory_bytes=_memory_bytes(proc),
        governor=", ".join(governors) or None,
        min_frequency_mhz=min(lowest) / 1e3 if lowest else None,
        max_frequency_mhz=max(highest) / 1e3 if highest else None,
        python=platform.python_version(),
        versions=dict(_versions()),
    )


def _versions() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def _cpu(proc: Path) -> str:
    lines = _text(proc / "cpuinfo").splitlines()
    for key in ("model name", "Model", "Hardware"):
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == key and value.strip():
                return value.strip()
    return platform.processor() or "unknown"


def _memory_bytes(proc: Path) -> int | None:
    found = re.search(r"^MemTotal:\s+(\d+) kB", _text(proc / "meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> float | None:
    try:
        return float(_text(path))
    except ValueError:
        return None
