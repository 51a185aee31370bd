# SPDX-License-Identifier: Apache-2.0
"""Energy of an inference, never without saying where the figure comes from.

Three tags exist: `measured` (a counter of this machine), `modelled` (declared joules a MAC and a byte) and
`unknown`. This module reads Linux's RAPL counters (/sys/class/powercap) and computes declared models.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from arenite.errors import UsageError

__all__ = ["Energy", "EnergyModel", "RaplDomain", "RaplMeter", "rapl_domains", "rapl_meter"]

POWERCAP = Path("/sys/class/powercap")
# The fastest wrap known is about a minute (2^32 x 15.3 uJ at 1 kW); twice a second leaves a wide margin.
_POLL_S = 0.5
# The counters tick about once a millisecond: a shorter window would be a few ticks' worth of guesswork.
MIN_WINDOW_S = 0.1


@dataclass(frozen=True)
class Energy:
    """Energy of one inference.

    Attributes:
        energy_mj: Millijoules, None when unknown.
        tag: `measured`, `modelled` or `unknown`.
        source: The counter, the declared model and its source, or why nothing is known.
        lower_bound: Samples were lost, so the true figure is at least this one.
        idle_subtracted: The machine's idle power is not part of the figure.
    """

    energy_mj: float | None
    tag: str
    source: str
    lower_bound: bool = False
    idle_subtracted: bool = False

    def __str__(self) -> str:
        if self.energy_mj is None:
            return f"{self.tag}: {self.source}"
        at_least = "at least " if self.lower_bound else ""
        return f"{at_least}{self.energy_mj:.3g} mJ an inference ({self.tag}: {self.source})"


@dataclass(frozen=True)
class EnergyModel:
    """A declared cost of computing and of moving bytes.

    Attributes:
        j_per_mac: Joules a multiply-accumulate.
        j_per_byte: Joules a byte of weights and activations moved.
        source: Where the two numbers come from; it is printed with every figure.
    """

    j_per_mac: float
    j_per_byte: float
    source: str

    def __post_init__(self) -> None:
        if not self.source.strip() or not (0 <= self.j_per_mac < 1 and 0 <= self.j_per_byte < 1):
            raise UsageError(
                "an energy model needs joules a MAC, joules a byte and their source",
                cure="Give numbers of 0 or more, below 1 J, and say where they come from.",
            )

    def energy(self, macs: int, moved_bytes: int) -> Energy:
        """Modelled energy of an inference with `macs` multiply-accumulates that moves `moved_bytes` bytes."""
        joules = macs * self.j_per_mac + moved_bytes * self.j_per_byte
        return Energy(joules * 1e3, "modelled", f"{macs} MACs, {moved_bytes} bytes moved; {self.source}")


@dataclass(frozen=True)
class RaplDomain:
    """One package counter of RAPL.

    Attributes:
        path: Its folder, with `energy_uj`.
        name: Such as `package-0`.
        wrap_uj: The counter's range, None when it cannot be read.
    """

    path: Path
    name: str
    wrap_uj: int | None


def rapl_domains(root: Path = POWERCAP) -> tuple[RaplDomain, ...]:
    """The package domains, which contain cores and graphics: sub-domains are never added to them."""
    found = []
    for path in sorted(root.glob("intel-rapl:*")):
        name = _text(path / "name")
        if path.name.count(":") == 1 and name is not None and name.startswith("package"):
            found.append(RaplDomain(path, name, _integer(path / "max_energy_range_uj")))
    return tuple(found)


def counter_step_uj(before: int, after: int, wrap_uj: int | None) -> int | None:
    """Microjoules between two readings at most one wrap apart; None after a wrap of unknown range."""
    if after >= before:
        return after - before
    return None if wrap_uj is None else after - before + wrap_uj


class RaplMeter:
    """Integrates the package counters over a `with` block, polling faster than they wrap.

    Args:
        root: Folder of the powercap tree.
        min_window_s: A shorter block is too short for a figure: its energy is unknown.
    """

    def __init__(self, root: Path = POWERCAP, min_window_s: float = MIN_WINDOW_S) -> None:
        self._min_window_s = min_window_s
        self._start = self._window_s = 0.0
        self._domains = rapl_domains(root)
        self._last: dict[RaplDomain, int] = {}
        self._total_uj = 0
        self._lost = False
        self._problem = "" if self._domains else f"no meter: {root} has no RAPL package counter"
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> RaplMeter:
        for domain in self._domains:
            value = _integer(domain.path / "energy_uj")
            if value is None:
                self._problem = f"{domain.path / 'energy_uj'} cannot be read; recent kernels allow root only"
                break
            self._last[domain] = value
        if not self._problem:
            self._start = time.perf_counter()
            self._thread = threading.Thread(target=self._poll, name="arenite-rapl", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self.sample()
            self._window_s = time.perf_counter() - self._start

    def _poll(self) -> None:
        while not self._stop.wait(_POLL_S):
            self.sample()

    def sample(self) -> None:
        """Read every counter once and add what went by since the last reading."""
        for domain in self._domains:
            value = _integer(domain.path / "energy_uj")
            step = None if value is None else counter_step_uj(self._last[domain], value, domain.wrap_uj)
            self._lost |= step is None
            self._total_uj += step or 0
            if value is not None:
                self._last[domain] = value

    def per_inference(self, count: int) -> Energy:
        """Energy of one of `count` inferences in the block."""
        if self._problem:
            return Energy(None, "unknown", self._problem)
        if self._window_s < self._min_window_s:
            wanted = f"at least {self._min_window_s:g} s are needed"
            return Energy(None, "unknown", f"the measured time of {self._window_s:.3f} s is too short, {wanted}")
        if self._total_uj <= 0:
            return Energy(None, "unknown", "the RAPL counters did not move: the measured time was too short")
        names = " + ".join(d.name for d in self._domains)
        source = f"RAPL {names}, whole package over {count} inferences, idle not subtracted"
        return Energy(self._total_uj / 1e3 / count, "measured", source, lower_bound=self._lost)


def rapl_meter() -> RaplMeter:
    """A meter on this machine's counters; without any, its figures are `unknown` and say why."""
    return RaplMeter(POWERCAP)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _integer(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.isdecimal() else None
