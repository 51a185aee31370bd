# SPDX-License-Identifier: Apache-2.0
"""Energy of an inference, never without saying where the figure comes from.

Three tags exist: `measured` (a meter, see `arenite.meters`), `modelled` (declared joules a MAC and a byte) and
`unknown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from arenite.errors import UsageError

__all__ = ["Energy", "EnergyModel", "read_energy_model"]


@dataclass(frozen=True)
class Energy:
    """Energy of one inference.

    Attributes:
        energy_mj: Millijoules, None when unknown.
        tag: `measured`, `modelled` or `unknown`.
        source: The meter, the declared model and its source, or why nothing is known.
        lower_bound: Samples were lost or a part is not counted, so the true figure is at least this one.
        idle_subtracted: The idle power is not part of the figure.
        interval_mj: 95 % confidence interval of `energy_mj`; None when there were too few windows for one.
        windows: How many windows the interval comes from.
        inferences: How many were measured.
        gross_mj: Millijoules with the idle power, None when unknown.
        average_w: Power during the inferences, idle included; None when not measured.
        peak_w: Highest power that the meter saw during them: of a sensor's samples, or of a counter over 50 ms.
        idle_w: Power before them.
        rail: What the meter measures.
    """

    energy_mj: float | None
    tag: str
    source: str
    lower_bound: bool = False
    idle_subtracted: bool = False
    interval_mj: tuple[float, float] | None = None
    windows: int = 0
    inferences: int = 0
    gross_mj: float | None = None
    average_w: float | None = None
    peak_w: float | None = None
    idle_w: float | None = None
    rail: str = ""

    def __str__(self) -> str:
        if self.energy_mj is None:
            return f"{self.tag}: {self.source}"
        at_least = "at least " if self.lower_bound else ""
        interval = ""
        if self.interval_mj is not None:
            interval = f", 95 % {self.interval_mj[0]:.3g} to {self.interval_mj[1]:.3g}"
        return f"{at_least}{self.energy_mj:.3g} mJ an inference{interval} ({self.tag}: {self.source})"

    def inferences_from(self, battery_wh: float) -> float | None:
        """How many inferences, one after another, a battery of `battery_wh` watt-hours gives on the measured rail.

        The battery feeds the idle power too, so `gross_mj` counts. None when the energy is unknown, or only known to be
        at least something.
        """
        each_mj = self.energy_mj if self.gross_mj is None else self.gross_mj
        if not each_mj or self.lower_bound:
            return None
        return battery_wh * 3600e3 / each_mj


@dataclass(frozen=True)
class EnergyModel:
    """A declared cost of computing and of moving bytes.

    Attributes:
        j_per_mac: Joules a multiply-accumulate.
        j_per_byte: Joules a byte of weights and activations moved.
        source: Where the numbers come from; it is printed with every figure.
        idle_w: Power that flows whether or not the model runs.
    """

    j_per_mac: float
    j_per_byte: float
    source: str
    idle_w: float = 0.0

    def __post_init__(self) -> None:
        costs = (self.j_per_mac, self.j_per_byte)
        if not self.source.strip() or not all(0 <= cost < 1 for cost in costs) or not 0 <= self.idle_w < 1e4:
            raise UsageError(
                "an energy model needs joules a MAC, joules a byte and their source",
                cure="Give numbers of 0 or more, below 1 J, and say where they come from.",
            )

    def energy(self, macs: int, moved_bytes: int, duration_s: float = 0.0) -> Energy:
        """Modelled energy of an inference.

        Args:
            macs: Its multiply-accumulates.
            moved_bytes: Bytes of weights and activations that it reads and writes.
            duration_s: How long it takes; the idle power of that time is in `gross_mj` alone.
        """
        energy_mj = 1e3 * (macs * self.j_per_mac + moved_bytes * self.j_per_byte)
        source = f"{macs} MACs, {moved_bytes} bytes moved; {self.source}"
        gross_mj = energy_mj + 1e3 * duration_s * self.idle_w
        idle_w = self.idle_w or None
        return Energy(energy_mj, "modelled", source, idle_subtracted=True, gross_mj=gross_mj, idle_w=idle_w)


def read_energy_model(path: Path | str) -> EnergyModel:
    """An `EnergyModel` from a TOML file with its fields by name.

    Raises:
        UsageError: The file cannot be read, or a field is missing, unknown or no number.
    """
    from arenite.meters.declared import read_toml

    content = read_toml(path)
    numbers = {"j_per_mac": content.pop("j_per_mac", None), "j_per_byte": content.pop("j_per_byte", None)}
    numbers["idle_w"] = content.pop("idle_w", 0.0)
    source = content.pop("source", "")
    wrong = [name for name, value in numbers.items() if isinstance(value, bool) or not isinstance(value, int | float)]
    if content or wrong or not isinstance(source, str):
        field = next(iter(content), wrong[0] if wrong else "source")
        cure = "Give j_per_mac, j_per_byte, idle_w (numbers) and source (where they come from)."
        raise UsageError(f"field '{field}' of the energy model is missing or wrong", where=str(path), cure=cure)
    return EnergyModel(source=source, **numbers)
