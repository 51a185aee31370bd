# SPDX-License-Identifier: Apache-2.0
"""Meters: which are here, which is best, and one by its name.

    rapl, rapl:psys            counters of Intel and AMD processors
    jetson, jetson:RAIL        sensors of NVIDIA Jetson boards
    rpi5                       power chip of the Raspberry Pi 5
    hwmon:DRIVER/CHANNEL       other sensors of the kernel
    battery                    a discharging battery
    nvml:N                     graphics card N alone
    ppk2:PORT?mv=N             Power Profiler Kit II
    lpm01a:PORT?mv=N           X-NUCLEO-LPM01A
    joulescope, joulescope:ID  Joulescope JS110, JS220
    declared:FILE.toml         any meter that writes lines

The first six measure this machine and are found by themselves. The others measure what is wired to them, which may be
another machine: they are used when they are named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from arenite.errors import AreniteError, MeterError, UsageError
from arenite.meters import battery, hwmon, jetson, nvml, rapl, raspberry
from arenite.meters.base import Meter
from arenite.meters.declared import open_declared
from arenite.meters.joulescope import open_joulescope
from arenite.meters.lpm01a import open_lpm01a
from arenite.meters.ppk2 import open_ppk2

__all__ = ["FoundMeter", "found_meters", "own_meters", "start_best", "start_named"]

_ATTACHED: dict[str, Callable[[str], Meter]] = {
    "ppk2": open_ppk2,
    "lpm01a": open_lpm01a,
    "joulescope": open_joulescope,
    "declared": open_declared,
}
_USB_PPK2 = (0x1915, 0xC00A)


@dataclass(frozen=True)
class FoundMeter:
    """A meter that is here.

    Attributes:
        source: Its name for `arenite.meter(source=...)` and `--meter`.
        rail: What it measures.
        usable: It gave a figure just now.
        problem: Why not, and the cure; empty when it did.
    """

    source: str
    rail: str
    usable: bool
    problem: str = ""


def own_meters() -> list[Meter]:
    """Meters of this machine that may be chosen without being named, the one that sees most first.

    A whole board or machine comes before the processor's package, and a graphics card, which is not where a CPU engine
    runs, comes last. `rapl:psys` must be named: on many machines nobody calibrated it.
    """
    return [
        *(meter for meter in jetson.find() if meter.source == "jetson"),
        *hwmon.find_whole(),
        *raspberry.find(),
        *rapl.find()[:1],
        *battery.find(),
        *nvml.find(),
    ]


def _all_own() -> list[Meter]:
    return [*jetson.find(), *hwmon.find(), *raspberry.find(), *rapl.find(), *battery.find(), *nvml.find()]


def start_best() -> Meter:
    """The first meter of this machine that can measure, started.

    Raises:
        MeterError: There is none; the message says why each one cannot.
    """
    problems = []
    for meter in own_meters():
        try:
            meter.start()
        except AreniteError as error:
            problems.append(str(error))
            continue
        return meter
    what = "; ".join(problems) or "this machine has no energy sensor that is known"
    parts = [meter.source for meter in _all_own() if ":" in meter.source]
    named = f"one of {', '.join(parts)}, or an attached one" if parts else "an attached one"
    raise MeterError(f"no meter: {what}", cure=f"Name {named} (--meter), or declare a model.")


def start_named(source: str) -> Meter:
    """The meter of that name, started.

    Raises:
        UsageError: There is no such name.
        MeterError: It cannot measure now.
        LinkError: Its port cannot be opened.
        MissingToolError: A package is missing.
    """
    kind, _, argument = source.partition(":")
    if kind in _ATTACHED:
        meter = _ATTACHED[kind](argument)
    else:
        own = {meter.source: meter for meter in _all_own()}
        if source not in own:
            names = ", ".join([*own, *(f"{name}:..." for name in _ATTACHED)])
            raise UsageError(f"there is no meter '{source}' here", cure=f"Use one of: {names}.")
        meter = own[source]
    meter.start()
    return meter


def found_meters() -> tuple[FoundMeter, ...]:
    """Every meter of this machine, tried once, and kits at its USB ports."""
    found = []
    for meter in _all_own():
        try:
            meter.start()
        except AreniteError as error:
            found.append(FoundMeter(meter.source, meter.rail, False, str(error)))
        else:
            meter.stop()
            found.append(FoundMeter(meter.source, meter.rail, True))
    return (*found, *_kits())


def _kits() -> list[FoundMeter]:
    try:
        from serial.tools import list_ports
    except ImportError:
        return []
    # A kit has two ports of the same kind; which of them measures shows only when one asks.
    ports = sorted(port.device for port in list_ports.comports() if (port.vid, port.pid) == _USB_PPK2)
    return [FoundMeter(f"ppk2:{port}?mv=...", "board at the kit", True) for port in ports]
