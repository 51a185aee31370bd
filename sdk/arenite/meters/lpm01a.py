# SPDX-License-Identifier: Apache-2.0
"""ST's X-NUCLEO-LPM01A, the meter of MLPerf Tiny's energy runs, over its serial port.

It is told to send the energy of each sample period. In `ascii_dec` a sample is a line `6409-07`, which is 6409e-7 J; in
`bin_hexa` it is two bytes, 0x52A0, which is 0x2A0 * 16^-5 J. Between samples come time stamps, which show samples that
were lost: a line `TimeStamp: 003s 245ms, buff 00%`, or the bytes F0 F3, four of milliseconds, one of load, FF FF. Other
messages in binary begin with F0 F and end with FF FF.
Protocol: ST's user manual UM2243 and MLPerf Tiny's runner, github.com/mlcommons/tiny.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from arenite.device.streams import SerialStream
from arenite.errors import UsageError
from arenite.meters.base import WATTS, Samples
from arenite.meters.serial_line import Clock, LineMeter, drain, millivolts, open_line, options_of, read_until

__all__ = ["BinaryDecoder", "Lpm01aMeter", "TextDecoder", "open_lpm01a"]

_BAUD = 3_686_400
_RATES = {"100": 100, "200": 200, "500": 500, "1k": 1000, "2k": 2000, "5k": 5000, "10k": 10_000}
_TEXT_HIGHEST_HZ = 5000
_SAMPLE = re.compile(r"(\d{4})([+-]\d{2})")
_STAMP = re.compile(r"TimeStamp:\s*(\d+)s\s+(\d+)ms")


@dataclass(frozen=True)
class Stamp:
    """The meter's own clock, between two samples."""

    time_ms: int


class TextDecoder:
    """Lines as joules and time stamps; a line that is neither is one of the meter's messages and says nothing."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, received: bytes) -> list[float | Stamp]:
        """What the bytes say so far; a line may be cut anywhere."""
        *lines, self._rest = (self._rest + received.decode("ascii", "replace")).split("\n")
        found: list[float | Stamp] = []
        for line in lines:
            text = line.replace("\x00", "").strip()
            if stamp := _STAMP.search(text):
                found.append(Stamp(1000 * int(stamp[1]) + int(stamp[2])))
            elif sample := _SAMPLE.fullmatch(text):
                found.append(int(sample[1]) * 10.0 ** int(sample[2]))
        return found


class BinaryDecoder:
    """Two-byte samples and framed messages; both may be cut anywhere. Bytes before the first time stamp are the meter's
    answers in text and are skipped."""

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, received: bytes) -> list[float | Stamp]:
        """What the bytes say so far."""
        data = self._rest + received
        found: list[float | Stamp] = []
        at = 0
        if not self._begun:
            at = data.find(b"\xf0\xf3")
            if at < 0:
                self._rest = data[-1:]
                return found
            self._begun = True
        while len(data) - at >= 2:
            if data[at] == 0xF0 and data[at + 1] >> 4 == 0xF:
                # A time stamp may hold the ending's bytes itself; the others are text.
                end = at + 9 if data[at + 1] == 0xF3 else data.find(b"\xff\xff", at + 2) + 2
                if end > len(data) or end < at + 4:
                    break
                if data[at + 1] == 0xF3:
                    found.append(Stamp(int.from_bytes(data[at + 2 : at + 6], "big")))
                at = end
            else:
                found.append(((data[at] & 0xF) << 8 | data[at + 1]) * 16.0 ** -(data[at] >> 4))
                at += 2
        self._rest = data[at:]
        return found


class Lpm01aMeter(LineMeter[SerialStream]):
    """The meter as the board's supply.

    Args:
        port: Serial port or pyserial URL.
        supply_mv: Voltage that it gives, 1800 to 3300.
        rate: Samples a second, a key of `_RATES`.
        form: `ascii_dec` or `bin_hexa`.
    """

    quantity = WATTS

    def __init__(self, port: str, supply_mv: int, rate: str, form: str) -> None:
        super().__init__()
        self.source = f"lpm01a:{port}"
        self.rail = f"board at the meter, {supply_mv} mV from it"
        self.interval_s = 1 / _RATES[rate]
        self._port, self._supply_mv, self._rate, self._form = port, supply_mv, rate, form
        self._decoder: TextDecoder | BinaryDecoder = TextDecoder() if form == "ascii_dec" else BinaryDecoder()
        self._clock = Clock(self.interval_s)
        self._stamp_ms: int | None = None
        self._since = 0

    def start(self) -> None:
        """Takes control, sets voltage, output and rate, and starts.

        Raises:
            LinkError: The port cannot be opened.
            MeterError: What is there refuses a command.
        """
        self._line = open_line(self._port, _BAUD)
        drain(self._line, 0.05, 1.0)
        commands = ["htc", "acqtime 0", "trigdelay 0", "trigsrc sw", "output energy"]
        commands += [f"format {self._form}", f"freq {self._rate}", f"volt {self._supply_mv}m", "pwr on"]
        for command in commands:
            self._command(command)
        self._line.write(b"start\n")

    def _command(self, command: str) -> None:
        assert self._line is not None
        self._line.write(command.encode() + b"\n")
        answer = read_until(self._line, f"ack {command}".encode(), 3.0).decode("ascii", "replace")
        if f"ack {command}" not in answer:
            said = " ".join(answer.split()) or "nothing"
            self._line.close()
            self._line = None
            raise self.error(f"'{command}' was answered with: {said}", "Check the port and that no program holds it.")

    def decode(self, received: bytes, arrived_s: float) -> Samples:
        """Bytes as samples."""
        powers_w: list[float] = []
        lost: list[int] = []
        missing = 0
        for item in self._decoder.feed(received):
            if isinstance(item, Stamp):
                missing += self._missing(item)
            else:
                powers_w.append(item / self.interval_s)
                lost.append(missing)
                missing = 0
                self._since += 1
        if not powers_w:
            return Samples.none()
        losses = np.array(lost)
        indices = np.arange(len(powers_w)) + np.cumsum(losses)
        times_s = self._clock.stamps(indices, arrived_s, bool(losses.any()))
        return Samples(times_s, np.array(powers_w), losses > 0)

    def _missing(self, stamp: Stamp) -> int:
        """Samples that should have come between the last two time stamps but did not."""
        due = 0 if self._stamp_ms is None else round((stamp.time_ms - self._stamp_ms) / 1e3 / self.interval_s)
        missing = max(0, due - self._since)
        self._stamp_ms, self._since = stamp.time_ms, 0
        # The stamp has milliseconds only, so at high rates a few samples are within its rounding.
        return missing if missing * self.interval_s > 1e-3 else 0

    def stop(self) -> None:
        """Stops and gives control back. The board stays powered."""
        if self._line is not None:
            try:
                self._line.write(b"stop\n")
                read_until(self._line, b"Acquisition completed", 1.0)
                self._line.write(b"hrc\n")
            finally:
                self._line.close()
                self._line = None


def open_lpm01a(argument: str) -> Lpm01aMeter:
    """`PORT?mv=N&freq=1k&format=ascii_dec|bin_hexa`.

    Raises:
        UsageError: An option is wrong or missing.
    """
    port, options = options_of(argument, ("mv", "freq", "format"), "lpm01a")
    rate, form = options.get("freq", "1k"), options.get("format", "ascii_dec")
    if rate not in _RATES or form not in {"ascii_dec", "bin_hexa"}:
        cure = f"Use freq={'|'.join(_RATES)} and format=ascii_dec or bin_hexa."
        raise UsageError(f"unknown freq '{rate}' or format '{form}'", where="lpm01a", cure=cure)
    if form == "ascii_dec" and _RATES[rate] > _TEXT_HIGHEST_HZ:
        raise UsageError("ascii_dec carries 5k samples a second", where="lpm01a", cure="Add &format=bin_hexa.")
    return Lpm01aMeter(port, millivolts(options, 1800, 3300, "lpm01a"), rate, form)
