# SPDX-License-Identifier: Apache-2.0
"""Any meter that writes lines of numbers, to a serial port or to a file that grows, by a small declaration:

    name = "bench INA226"
    rail = "5 V input of the board"
    port = "/dev/ttyUSB0"        # or: file = "log.csv"
    baud = 115200
    separator = ","
    interval_s = 0.01            # between two lines
    invalid = ["-256", "OL"]     # what stands for no figure

    [columns]                    # counted from 0, with their units
    time = { index = 0, unit = "ms" }
    voltage = { index = 1, unit = "mV" }
    current = { index = 2, unit = "mA" }

Either `power`, or `voltage` and `current`, or `energy` (joules since some moment) is there. Without `time` the moment
of arrival counts. A line that is no row of numbers, such as a heading, is left out.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arenite.errors import UsageError
from arenite.meters.base import JOULES, WATTS, Samples
from arenite.meters.serial_line import Line, LineMeter, open_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Column", "Declaration", "DeclaredMeter", "open_declared", "read_declaration", "read_toml"]

_UNITS: Mapping[str, Mapping[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "power": {"W": 1.0, "mW": 1e-3, "uW": 1e-6, "nW": 1e-9},
    "voltage": {"V": 1.0, "mV": 1e-3, "uV": 1e-6},
    "current": {"A": 1.0, "mA": 1e-3, "uA": 1e-6, "nA": 1e-9},
    "energy": {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "nJ": 1e-9, "Wh": 3600.0, "mWh": 3.6, "uWh": 3.6e-3},
}
_KINDS = ({"power"}, {"voltage", "current"}, {"energy"})
_KEYS = {"name", "rail", "port", "file", "baud", "separator", "interval_s", "invalid", "columns"}
# Rows this much further apart than declared have lost some between them.
_LATE = 3.0


@dataclass(frozen=True)
class Column:
    """Which number of a row, and what one unit of it is in SI."""

    index: int
    scale: float


@dataclass(frozen=True)
class Declaration:
    """A meter as its owner describes it; see the module's text."""

    name: str
    rail: str
    port: str | None
    file: Path | None
    baud: int
    separator: str
    interval_s: float
    invalid: frozenset[str]
    columns: Mapping[str, Column]


class DeclaredMeter(LineMeter[Line]):
    """Reads the lines of a declared meter."""

    def __init__(self, declaration: Declaration) -> None:
        super().__init__()
        self.source, self.rail = declaration.name, declaration.rail
        self.interval_s = declaration.interval_s
        self.quantity = JOULES if "energy" in declaration.columns else WATTS
        self._declared = declaration
        self._rest = b""
        self._origin_s: float | None = None
        self._before_s: float | None = None
        self._before_value: float | None = None
        self._total_j = 0.0

    def start(self) -> None:
        """Opens the port, or goes to the file's end.

        Raises:
            LinkError: The port cannot be opened.
            MeterError: The file is not there.
        """
        if self._declared.port is not None:
            self._line = open_line(self._declared.port, self._declared.baud)
            return
        assert self._declared.file is not None
        try:
            self._line = _Tail(self._declared.file)
        except OSError as error:
            raise self.error(f"{self._declared.file} cannot be read", "Start the program that writes it.") from error

    def stop(self) -> None:
        """Closes the port or file."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def decode(self, received: bytes, arrived_s: float) -> Samples:
        """Bytes as samples; a line may be cut anywhere."""
        *lines, self._rest = (self._rest + received).split(b"\n")
        rows = [row for line in lines if (row := self._row(line.decode("utf-8", "replace"))) is not None]
        samples = [self._sample(row, arrived_s) for row in rows]
        if not samples:
            return Samples.none()
        times_s, values, gaps = zip(*samples, strict=True)
        return Samples(np.array(times_s), np.array(values), np.array(gaps))

    def _row(self, line: str) -> dict[str, float] | None:
        """The numbers of a line in SI units, NaN for those that stand for none; None for a line that is no row."""
        separator = self._declared.separator
        words = [word.strip() for word in (line.split() if separator.isspace() else line.split(separator))]
        found = {}
        for name, column in self._declared.columns.items():
            if column.index >= len(words):
                return None
            word = words[column.index]
            try:
                found[name] = math.nan if word in self._declared.invalid else float(word) * column.scale
            except ValueError:
                return None
        return found

    def _sample(self, row: Mapping[str, float], arrived_s: float) -> tuple[float, float, bool]:
        time_s = self._stamp(row.get("time"), arrived_s)
        late = self._before_s is not None and time_s - self._before_s > _LATE * self.interval_s
        late, self._before_s = late and "time" in row, time_s
        if self.quantity == WATTS:
            power_w = row["power"] if "power" in row else row["voltage"] * row["current"]
            return time_s, power_w if math.isfinite(power_w) else math.nan, late
        value = row["energy"]
        if not math.isfinite(value):
            return time_s, math.nan, False
        step_j = 0.0 if self._before_value is None else value - self._before_value
        self._before_value = value
        self._total_j += max(0.0, step_j)
        # Rows lost on the way lose none of a counter's joules; a counter that falls was reset.
        return time_s, self._total_j, step_j < 0

    def _stamp(self, own_s: float | None, arrived_s: float) -> float:
        """The meter's own time on this machine's clock, which meet at the first row. Never runs backwards."""
        if own_s is None or not math.isfinite(own_s):
            time_s = arrived_s
        else:
            if self._origin_s is None:
                self._origin_s = arrived_s - own_s
            time_s = self._origin_s + own_s
        return time_s if self._before_s is None else max(time_s, self._before_s)


class _Tail:
    """What is appended to a file from now on."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("rb")
        self._stream.seek(0, 2)

    def read(self, timeout_s: float) -> bytes:
        """New bytes; empty after `timeout_s`."""
        found = self._stream.read()
        if not found:
            time.sleep(timeout_s)
        return found

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()


def read_toml(path: Path | str) -> dict[str, Any]:
    """A TOML file.

    Raises:
        UsageError: It cannot be read or is no TOML.
    """
    try:
        return dict(tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read ({error})", where=str(path), cure="Give a TOML file.") from error


def read_declaration(content: Mapping[str, Any], where: str = "declaration") -> Declaration:
    """Checks a declaration as in the module's text.

    Raises:
        UsageError: A field is missing, unknown or makes no sense.
    """
    unknown = sorted(set(content) - _KEYS)
    if unknown:
        raise _wrong(where, f"unknown field '{unknown[0]}'", f"Known are {', '.join(sorted(_KEYS))}.")
    columns = {name: _column(name, column, where) for name, column in dict(content.get("columns", {})).items()}
    if set(columns) - {"time"} not in _KINDS:
        raise _wrong(where, "no complete set of columns", "Declare power, or voltage and current, or energy.")
    if ("port" in content) == ("file" in content):
        raise _wrong(where, "exactly one of port and file must be there", "Name where the lines come from.")
    interval_s = content.get("interval_s")
    if not isinstance(interval_s, int | float) or not 0 < interval_s <= 60:
        raise _wrong(where, "interval_s must be a number above 0", "Give the seconds between two lines.")
    name = str(content.get("name", "declared meter"))
    return Declaration(
        name=name,
        rail=str(content.get("rail", name)),
        port=str(content["port"]) if "port" in content else None,
        file=Path(str(content["file"])) if "file" in content else None,
        baud=int(content.get("baud", 115200)),
        separator=str(content.get("separator", ",")) or ",",
        interval_s=float(interval_s),
        invalid=frozenset(str(word) for word in content.get("invalid", ())),
        columns=columns,
    )


def _column(name: str, column: Any, where: str) -> Column:
    if name not in _UNITS:
        raise _wrong(where, f"unknown column '{name}'", f"Known are {', '.join(_UNITS)}.")
    units = _UNITS[name]
    good = isinstance(column, Mapping) and isinstance(column.get("index"), int) and column["index"] >= 0
    if not good or column.get("unit") not in units:
        raise _wrong(where, f"column '{name}' needs an index and a unit", f"Units are {', '.join(units)}.")
    return Column(column["index"], units[column["unit"]])


def _wrong(where: str, what: str, cure: str) -> UsageError:
    return UsageError(what, where=where, cure=cure)


def open_declared(path: str) -> DeclaredMeter:
    """The meter that a TOML file declares."""
    return DeclaredMeter(read_declaration(read_toml(path), path))
