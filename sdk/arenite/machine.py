# SPDX-License-Identifier: Apache-2.0
"""The machine that a figure belongs to, and what its clock and its temperature do meanwhile."""

from __future__ import annotations

import math
import os
import platform
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from statistics import fmean

from arenite.meters.base import number_in, text_in
from arenite.thermal import SANE_C

__all__ = ["Conditions", "Machine", "Watch", "installed_version", "machine"]

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
        times_s: Since the first look.
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
        # The first look, whatever was made ready before it.
        self._start_s: float | None = None
        # Without a sensor there is nothing to look at, ever.
        self._due_s = 0.0 if self._clocks or self._zones else math.inf
        # Since the start, and clock and heat with NaN for no figure.
        self._looks: list[tuple[float, float, float]] = []

    def look(self) -> None:
        """Reads the sensors if that is due."""
        now_s = time.perf_counter()
        if now_s < self._due_s:
            return
        self._due_s = now_s + _LOOK_S
        if self._start_s is None:
            self._start_s = now_s
        clocks_mhz = [value / 1e3 for path in self._clocks if (value := number_in(path)) is not None]
        zones_c = [value / 1e3 for path in self._zones if (value := number_in(path)) is not None]
        heat_c = max((value for value in zones_c if SANE_C[0] < value < SANE_C[1]), default=math.nan)
        self._looks.append((now_s - self._start_s, fmean(clocks_mhz) if clocks_mhz else math.nan, heat_c))

    def seen(self) -> Conditions:
        """All looks so far, but for those that lack what others have."""
        told = [kind for kind in (1, 2) if not all(math.isnan(look[kind]) for look in self._looks)]
        whole = [look for look in self._looks if told and not any(math.isnan(look[kind]) for kind in told)]
        times_s, clock_mhz, heat_c = (
            tuple(look[kind] for look in whole if kind in (0, *told)) for kind in range(3)
        )
        return Conditions(times_s, clock_mhz, heat_c)


def machine(root: Path | None = None, proc: Path | None = None) -> Machine:
    """This machine."""
    root, proc = root or SYSTEM, proc or PROC
    policies = sorted(root.glob("devices/system/cpu/cpu[0-9]*/cpufreq"))
    governors = sorted({text for path in policies if (text := text_in(path / "scaling_governor"))})
    lowest = [value for path in policies if (value := number_in(path / "scaling_min_freq")) is not None]
    highest = [value for path in policies if (value := number_in(path / "scaling_max_freq")) is not None]
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
        versions={name: version for name in _PACKAGES if (version := installed_version(name))},
    )


def installed_version(package: str) -> str | None:
    """The version of a package; None when it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu(proc: Path) -> str:
    lines = _proc_text(proc / "cpuinfo").splitlines()
    for key in ("model name", "Model", "Hardware"):
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == key and value.strip():
                return value.strip()
    return platform.processor() or "unknown"


def _memory_bytes(proc: Path) -> int | None:
    found = re.search(r"^MemTotal:\s+(\d+) kB", _proc_text(proc / "meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _proc_text(path: Path) -> str:
    """A file of any length; a processor's name may hold any character."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
