# SPDX-License-Identifier: Apache-2.0
"""The host program of MLPerf Tiny, as far as the board sees it: its commands, its parsing, its rules.

Written from the protocol's description, not from the program: one command at a time, `%` behind it, lines until
`m-ready`.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from arenite.device.streams import Stream

__all__ = ["MlperfRunner", "Window"]

READY = "m-ready"
LINE_S, INFER_LINE_S = 5.0, 30.0
BYTES_A_COMMAND = 31
_LAP = re.compile(r"^m-lap-us-([0-9]+)$")
_RESULTS = re.compile(r"^m-results-\[([^]]+)\]$")


@dataclass(frozen=True)
class Window:
    """One `infer`: its laps in microseconds, first and last, and its results."""

    laps_us: list[int]
    results: list[float]
    lines: list[str]


@dataclass
class MlperfRunner:
    """The host's end of the line; every line ever read is in `transcript`."""

    stream: Stream
    transcript: list[str] = field(default_factory=list)
    _rest: bytes = b""

    def command(self, text: str, line_s: float = LINE_S) -> list[str]:
        """Sends a command; the lines of its reply without the final `m-ready`."""
        self.stream.write(f"{text}%".encode())
        return self.reply(line_s)

    def reply(self, line_s: float = LINE_S) -> list[str]:
        """Lines up to `m-ready`.

        Raises:
            TimeoutError: A line took longer than the host waits.
        """
        lines: list[str] = []
        while not lines or lines[-1] != READY:
            lines.append(self._line(line_s))
        self.transcript += lines
        return lines[:-1]

    def load(self, payload: bytes) -> None:
        """Downloads one input."""
        assert self.command(f"db load {len(payload)}") == [f"m-[Expecting {len(payload)} bytes]"]
        for at in range(0, len(payload), BYTES_A_COMMAND):
            part = payload[at : at + BYTES_A_COMMAND]
            last = at + len(part) == len(payload)
            assert self.command(f"db {part.hex()}") == (["m-load-done"] if last else [])

    def buffer(self, count: int, offset: int = 0) -> bytes:
        """Reads the input back."""
        lines = self.command(f"db print {count} {offset}")
        assert all(re.fullmatch(r"m-buffer(-[0-9a-f]{2}){1,8}", line) for line in lines)
        return bytes.fromhex("".join(line.removeprefix("m-buffer") for line in lines).replace("-", ""))

    def infer(self, count: int, warm_ups: int | None = None) -> Window:
        """Runs inferences and reads laps and results as the host does."""
        arguments = f"{count}" if warm_ups is None else f"{count} {warm_ups}"
        lines = self.command(f"infer {arguments}", INFER_LINE_S)
        laps = [int(match[1]) for line in lines if (match := _LAP.match(line))]
        results = [match[1] for line in lines if (match := _RESULTS.match(line))]
        assert len(results) == 1, lines
        return Window(laps, [float(value) for value in results[0].split(",") if value], lines)

    def _line(self, line_s: float) -> str:
        deadline = time.monotonic() + line_s
        while b"\n" not in self._rest:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(f"no line within {line_s} s; so far {self.transcript[-5:]} and {self._rest!r}")
            self._rest += self.stream.read(left_s)
        line, _, self._rest = self._rest.partition(b"\n")
        return line.replace(b"\r", b"").replace(b"\0", b"").decode("ascii")
