# SPDX-License-Identifier: Apache-2.0
"""Energy sources as a machine shows them: trees of files, and instruments at the other end of a serial line.

The encoders are the inverse of the published formulas, written apart from the decoders that they test.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import tty
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "PPK2_METADATA",
    "Instrument",
    "lpm_answer",
    "lpm_binary",
    "lpm_text",
    "ppk2_answer",
    "ppk2_ranges",
    "ppk2_words",
    "tree",
]

Array = npt.NDArray[Any]

# Of the form that a kit sends; the numbers are one kit's order of magnitude.
_CALIBRATION = {
    "R": (1003.34, 101.61, 10.31, 0.94, 0.049),
    "GS": (2.17, 7.41, 0.0, 1.2, 0.9),
    "GI": (0.9990, 1.0010, 1.0005, 0.9980, 1.0020),
    "O": (84.3, 91.4, 79.5, 80.2, 72.6),
    "S": (2e-7, 1e-6, 0.0, 5e-6, 1e-5),
    "I": (-1e-7, -2e-6, 1e-6, 0.0, 3e-5),
    "UG": (1.0, 1.0, 1.01, 1.0, 0.99),
}
PPK2_METADATA = "\n".join(
    [
        "Calibrated: 1",
        *(f"{name}{i}: {value}" for name, values in _CALIBRATION.items() for i, value in enumerate(values)),
        "VDD: 3300",
        "HW: 9173",
        "mode: 2",
        "IA: 56",
        "END",
    ]
)
# What each range of the kit measures at most, in amperes.
_TOPS_A = np.array([50e-6, 500e-6, 5e-3, 60e-3])


def tree(root: Path, files: Mapping[str, object]) -> Path:
    """Files with one line each, replaced in one step so that a reader never sees half a value."""
    for name, value in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(f"{value}\n", encoding="ascii")
        fresh.replace(path)
    return root


def ppk2_ranges(amperes: Array) -> Array:
    """The range that a kit picks for each current."""
    ranges: Array = np.searchsorted(_TOPS_A, amperes)
    return ranges


def ppk2_words(amperes: Array, volts: float, first_counter: int = 0) -> bytes:
    """Currents as a kit's stream, by inverting its formula."""
    kind = ppk2_ranges(amperes)
    m = {name: np.array(values)[kind] for name, values in _CALIBRATION.items()}
    # A zero in the metadata stands for the default.
    gs = np.where(m["GS"] == 0, 1.0, m["GS"])
    target = amperes / m["UG"] - (m["S"] * volts + m["I"])
    x = target / m["GI"]
    for _ in range(30):
        x = x - (x * (gs * x + m["GI"]) - target) / (2 * gs * x + m["GI"])
    adc = np.rint((x * m["R"] * 163840 / 1.8 + m["O"]) / 4).astype(np.int64)
    assert adc.min() >= 0 and adc.max() < 1 << 14, (adc.min(), adc.max())
    counters = (first_counter + np.arange(len(adc))) % 64
    words: Array = adc | kind << 14 | counters << 18 | 0xA5 << 24
    return words.astype("<u4").tobytes()


def ppk2_answer(command: bytes) -> bytes:
    """What a kit says to a command; it streams after 0x06."""
    return PPK2_METADATA.encode() if b"\x19" in command else b""


def lpm_text(joules: Array, rate_hz: int, start_ms: int = 0) -> bytes:
    """Energies as `ascii_dec` lines, with a time stamp before each thousand."""
    lines = []
    for i, value in enumerate(joules):
        if i % 1000 == 0:
            now_ms = start_ms + round(1000 * i / rate_hz)
            lines.append(f"TimeStamp: {now_ms // 1000:03}s {now_ms % 1000:03}ms, buff 00%")
        mantissa, exponent = f"{value:.3e}".split("e")
        lines.append(f"{mantissa.replace('.', '')}{int(exponent) - 3:+03}")
    return ("\r\n".join(lines) + "\r\n").encode()


def lpm_binary(joules: Array, rate_hz: int, start_ms: int = 0) -> bytes:
    """Energies as `bin_hexa` words, with a time stamp before each thousand."""
    out = bytearray()
    for i, value in enumerate(joules):
        if i % 1000 == 0:
            out += b"\xf0\xf3" + (start_ms + round(1000 * i / rate_hz)).to_bytes(4, "big") + b"\x00\xff\xff"
        exponent = 0
        while value * 16 ** (exponent + 1) < 4096 and exponent < 15:
            exponent += 1
        out += (exponent << 12 | min(4095, round(value * 16**exponent))).to_bytes(2, "big")
    return bytes(out)


def lpm_answer(command: bytes) -> bytes:
    """What the LPM01A says to its commands."""
    words = [line.strip().decode() for line in command.splitlines() if line.strip()]
    says = ["Acquisition completed" if word == "stop" else f"ack {word}" for word in words]
    return "".join(f"\r\nPowerShield > {text}\r\n" for text in says).encode()


class Instrument:
    """An instrument at the other end of a pseudo-terminal: answers commands, and streams once it was started.

    Args:
        answer: Reply to what was received.
        starts: Streaming begins when this was received.
        stream: Bytes for the time from `a` to `b` seconds after the start; None unplugs the instrument.
    """

    def __init__(
        self, answer: Callable[[bytes], bytes], starts: bytes, stream: Callable[[float, float], bytes | None]
    ) -> None:
        self._answer, self._starts, self._stream = answer, starts, stream
        self._master, slave = os.openpty()
        tty.setraw(slave)
        self.port = os.ttyname(slave)
        self._slave = slave
        self.received = b""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Instrument:
        os.set_blocking(self._master, False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        # What was sent last is still in the terminal.
        with contextlib.suppress(OSError):
            self.received += os.read(self._master, 4096) if self._master >= 0 else b""
        for handle in {self._master, self._slave} - {-1}:
            os.close(handle)

    def _run(self) -> None:
        begun_s: float | None = None
        done_s = 0.0
        while not self._over.wait(0.002):
            try:
                command = os.read(self._master, 4096)
            except BlockingIOError:
                command = b""
            except OSError:
                return
            self.received += command
            self._write(self._answer(command) if command else b"")
            if begun_s is None and self._starts in self.received:
                begun_s = time.perf_counter()
            if begun_s is not None:
                now_s = time.perf_counter() - begun_s
                block = self._stream(done_s, now_s)
                if block is None:
                    os.close(self._master)
                    self._master = -1
                    return
                done_s = now_s
                self._write(block)

    def _write(self, data: bytes) -> None:
        while data and not self._over.is_set():
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                time.sleep(0.0005)
            except OSError:
                return
