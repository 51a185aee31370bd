# SPDX-License-Identifier: Apache-2.0
"""Nordic's Power Profiler Kit II over its serial port: 100,000 currents a second, up to 1 A.

A sample is a 32-bit little-endian word: 14 bits of the converter, 3 of the range, 6 of a counter that shows lost
samples, 8 of the logic port. The kit's own calibration turns the first into amperes:

    x = (4 * adc - O) * (1.8 / 163840) / R
    amperes = UG * (x * (GS * x + GI) + (S * volts + I))

Around a change of range the kit gives spikes; as in Nordic's own program a sample within three of a change is replaced
by a running average (0.18 a sample, 0.06 in the highest range). Protocol: Nordic's nRF Connect Power Profiler,
github.com/NordicSemiconductor/pc-nrfconnect-ppk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.device.streams import SerialStream
from arenite.errors import UsageError
from arenite.meters.base import WATTS, Samples
from arenite.meters.serial_line import Clock, LineMeter, drain, millivolts, open_line, options_of, read_until

__all__ = ["Ppk2Meter", "SpikeFilter", "amperes", "calibration", "open_ppk2"]

Array = npt.NDArray[Any]

_START, _STOP, _POWER, _VOLTAGE, _MODE, _METADATA = 0x06, 0x07, 0x0C, 0x0D, 0x11, 0x19
_MODES = {"ampere": 1, "source": 2}
_PERIOD_S = 1e-5
_RANGES = 5
_COUNTER = 64
# So many words show whether the stream is in step.
_SMALLEST_BYTES = 9 * 4 + 3
# The kit protects itself above 1 A; a larger figure is no current.
_HIGHEST_A = 1.2
_DEFAULTS = {
    "R": (1031.64, 101.65, 10.15, 0.94, 0.043),
    "GS": (1.0,) * _RANGES,
    "GI": (1.0,) * _RANGES,
    "O": (0.0,) * _RANGES,
    "S": (0.0,) * _RANGES,
    "I": (0.0,) * _RANGES,
    "UG": (1.0,) * _RANGES,
}
_LINE = re.compile(r"^\s*([A-Za-z]+?)([0-4]):\s*(\S+)\s*$")


def calibration(text: str) -> dict[str, Array]:
    """The kit's answer, lines such as `R0: 1031.64`, as five numbers a letter. As in Nordic's program, a number that is
    missing, zero or not a number leaves the default."""
    found = {name: np.array(values) for name, values in _DEFAULTS.items()}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and match[1].upper() in found:
            try:
                value = float(match[3])
            except ValueError:
                continue
            if np.isfinite(value) and value != 0:
                found[match[1].upper()][int(match[2])] = value
    return found


def split_words(words: Array) -> tuple[Array, Array, Array]:
    """Converter value, range and counter of each word."""
    return words & 0x3FFF, (words >> 14) & 0x7, (words >> 18) & 0x3F


def amperes(adc: Array, ranges: Array, modifiers: Mapping[str, Array], volts: float) -> Array:
    """Currents before the spike filter; NaN where the range is none."""
    known = np.minimum(ranges, _RANGES - 1)
    m = {name: values[known] for name, values in modifiers.items()}
    x = (adc * 4.0 - m["O"]) * (1.8 / 163840 / m["R"])
    result = m["UG"] * (x * (m["GS"] * x + m["GI"]) + (m["S"] * volts + m["I"]))
    known_currents: Array = np.where(ranges < _RANGES, result, np.nan)
    return known_currents


class SpikeFilter:
    """Replaces samples after a change of range by running averages. Blocks may be cut anywhere."""

    _ALPHA, _ALPHA_HIGHEST, _SAMPLES = 0.18, 0.06, 3

    def __init__(self) -> None:
        self._average: float | None = None
        self._average_highest = 0.0
        self._range = -1
        self._since = self._SAMPLES

    def apply(self, currents: Array, ranges: Array) -> Array:
        """Filtered currents, of the same length, at least one."""
        result: Array = currents.copy()
        changes = np.flatnonzero(np.diff(ranges, prepend=self._range))
        edges = [0, *(int(i) for i in changes if i > 0), len(currents)]
        for start, end in pairwise(edges):
            self._run(result[start:end], int(ranges[start]))
        return result

    def _run(self, currents: Array, kind: int) -> None:
        """One run of samples in one range, changed in place."""
        if kind != self._range:
            # The very first sample has nothing before it to be averaged with.
            self._since = 0 if self._average is not None else self._SAMPLES
            self._range = kind
        head = min(len(currents), max(0, self._SAMPLES - self._since))
        for i in range(head):
            highest = kind == _RANGES - 1
            # The first two samples of the highest range are too wild to enter the averages.
            if not (highest and self._since < 2):
                self._update(currents[i : i + 1])
            currents[i] = self._average_highest if highest else self._average
            self._since += 1
        self._update(currents[head:])

    def _update(self, currents: Array) -> None:
        currents = currents[np.isfinite(currents)]
        if not len(currents):
            return
        if self._average is None:
            self._average = self._average_highest = float(currents[0])
        self._average = _decayed(self._average, currents, self._ALPHA)
        self._average_highest = _decayed(self._average_highest, currents, self._ALPHA_HIGHEST)


def _decayed(average: float, values: Array, alpha: float) -> float:
    """An exponential average after `values`."""
    weights = alpha * (1 - alpha) ** np.arange(len(values) - 1, -1, -1.0)
    return float(average * (1 - alpha) ** len(values) + np.dot(weights, values))


class Ppk2Meter(LineMeter[SerialStream]):
    """A kit at a serial port.

    Args:
        port: Serial port or pyserial URL.
        supply_mv: The supply's voltage: what the kit shall give in mode `source`, what feeds the board in `ampere`.
        mode: `ampere` or `source`.
    """

    quantity = WATTS
    interval_s = _PERIOD_S

    def __init__(self, port: str, supply_mv: int, mode: str) -> None:
        super().__init__()
        self.source = f"ppk2:{port}"
        self.rail = f"board at the kit, {supply_mv} mV {'from the kit' if mode == 'source' else 'as declared'}"
        self._port, self._supply_mv, self._mode = port, supply_mv, mode
        self._modifiers = calibration("")
        self._filter = SpikeFilter()
        self._clock = Clock(_PERIOD_S)
        self._rest = b""
        self._expected: int | None = None

    def start(self) -> None:
        """Reads the calibration and starts the stream.

        Raises:
            LinkError: The port cannot be opened.
            MeterError: What answers is no kit.
        """
        line = self._line = open_line(self._port, 115200)
        line.write(bytes([_STOP]))
        drain(line, 0.05, 1.0)
        line.write(bytes([_METADATA]))
        text = read_until(line, b"END", 3.0).decode("ascii", "replace")
        if "END" not in text or "R0" not in text:
            self.stop()
            raise self.error("what is at the port does not answer as a PPK2", "Check the port; see arenite doctor.")
        self._modifiers = calibration(text)
        line.write(bytes([_MODE, _MODES[self._mode]]))
        if self._mode == "source":
            line.write(bytes([_VOLTAGE, *divmod(self._supply_mv, 256)]))
        line.write(bytes([_POWER, 1]))
        line.write(bytes([_START]))

    def stop(self) -> None:
        """Stops the stream. The board's supply stays as it is."""
        if self._line is not None:
            try:
                self._line.write(bytes([_STOP]))
            finally:
                self._line.close()
                self._line = None

    def decode(self, received: bytes, arrived_s: float) -> Samples:
        """Bytes as samples; words may be cut anywhere, and a stream that slipped is brought into step again."""
        data = self._rest + received
        if len(data) < _SMALLEST_BYTES:
            self._rest = data
            return Samples.none()
        offset = _offset(data)
        start = offset or 0
        end = start + (len(data) - start) // 4 * 4
        self._rest = data[end:]
        adc, ranges, counters = split_words(np.frombuffer(data[start:end], "<u4").astype(np.int64))
        lost = self._lost(counters)
        if offset:
            lost[0] = max(1, lost[0])
        currents = self._filter.apply(amperes(adc, ranges, self._modifiers, self._supply_mv / 1e3), ranges)
        if offset is None:
            currents[:] = np.nan
        currents[~(np.abs(currents) < _HIGHEST_A)] = np.nan
        indices = np.arange(len(currents)) + np.cumsum(lost)
        times_s = self._clock.stamps(indices, arrived_s, bool(lost.any()))
        return Samples(times_s, currents * (self._supply_mv / 1e3), lost > 0)

    def _lost(self, counters: Array) -> Array:
        """Samples that are missing before each one, modulo the counter."""
        before = counters[0] - 1 if self._expected is None else self._expected - 1
        self._expected = (int(counters[-1]) + 1) % _COUNTER
        return (np.diff(counters, prepend=before) - 1) % _COUNTER


def _offset(data: bytes) -> int | None:
    """Bytes to drop so that the counters run one by one; None when they never do."""
    for offset in range(4):
        words = np.frombuffer(data[offset : offset + (len(data) - offset) // 4 * 4], "<u4")
        steps = np.diff((words >> 18) & 0x3F) % _COUNTER
        if np.mean(steps == 1) >= 0.5:
            return offset
    return None


def open_ppk2(argument: str) -> Ppk2Meter:
    """`PORT?mv=N&mode=ampere|source`.

    Raises:
        UsageError: An option is wrong or missing.
    """
    port, options = options_of(argument, ("mv", "mode"), "ppk2")
    mode = options.get("mode", "ampere")
    if mode not in _MODES:
        raise UsageError(f"unknown mode '{mode}'", where="ppk2", cure="Use one of " + ", ".join(_MODES) + ".")
    return Ppk2Meter(port, millivolts(options, 800, 5000, "ppk2"), mode)
