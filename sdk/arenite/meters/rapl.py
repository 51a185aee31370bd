# SPDX-License-Identifier: Apache-2.0
"""RAPL: the energy counters of Intel and AMD processors, as Linux shows them in /sys/class/powercap.

A `package` contains its `core` and `uncore` sub-domains, so these are never added. A `dram` sub-domain lies outside the
package and is added. `psys` is the whole platform and contains both: it is used alone.
Format: the kernel's Documentation/power/powercap/powercap.rst.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from arenite.meters.base import CounterMeter, number_in, text_in

__all__ = ["RaplDomain", "RaplMeter", "find"]

POWERCAP = Path("/sys/class/powercap")
# Counters tick about once a millisecond, and the fastest wrap known is about a minute. A reading takes microseconds.
_POLL_S = 0.01
_CURE = "Run as root, or let everybody read: chmod a+r /sys/class/powercap/intel-rapl*/energy_uj"


@dataclass(frozen=True)
class RaplDomain:
    """One counter.

    Attributes:
        path: Its folder, with `energy_uj`.
        name: Such as `package-0`, `dram` or `psys`.
        wrap_uj: The counter's range, None when it cannot be read.
    """

    path: Path
    name: str
    wrap_uj: int | None


def rapl_domains(root: Path = POWERCAP) -> tuple[RaplDomain, ...]:
    """All domains, each once: the same counters through MMIO (`intel-rapl-mmio`) are left out."""
    found = []
    for path in sorted(root.glob("intel-rapl:*")):
        name = text_in(path / "name")
        if name is not None:
            found.append(RaplDomain(path, name, number_in(path / "max_energy_range_uj")))
    return tuple(found)


class RaplMeter(CounterMeter):
    """The sum of domains that do not contain each other."""

    def __init__(self, source: str, domains: tuple[RaplDomain, ...]) -> None:
        super().__init__(source, " + ".join(domain.name for domain in domains), _POLL_S)
        self._domains = domains

    def start(self) -> None:
        """Takes the first reading.

        Raises:
            MeterError: A counter cannot be read.
        """
        for domain, value in zip(self._domains, self.counters_j(), strict=True):
            if value is None:
                path = domain.path / "energy_uj"
                raise self.error(f"{path} cannot be read; recent kernels allow root only", _CURE)
        self.read()

    def counters_j(self) -> list[float | None]:
        """Each domain's counter."""
        values = [number_in(domain.path / "energy_uj") for domain in self._domains]
        return [None if value is None else value / 1e6 for value in values]

    def wraps_j(self) -> list[float | None]:
        """Each counter's range."""
        return [None if domain.wrap_uj is None else domain.wrap_uj / 1e6 for domain in self._domains]


def find(root: Path = POWERCAP) -> list[RaplMeter]:
    """`rapl`, packages and their memory, and `rapl:psys` where the platform has it."""
    domains = rapl_domains(root)
    inside = tuple(d for d in domains if d.name.startswith("package") or d.name == "dram")
    platform = tuple(d for d in domains if d.name == "psys")
    meters = [RaplMeter("rapl", inside)] if any(d.name.startswith("package") for d in inside) else []
    return meters + ([RaplMeter("rapl:psys", platform[:1])] if platform else [])
