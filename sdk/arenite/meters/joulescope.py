# SPDX-License-Identifier: Apache-2.0
"""Joulescope JS110 and JS220 through the maker's package `pyjoulescope_driver`: the instrument's own accumulated
joules.

The driver calls back with a dictionary: `accumulators.energy.value` in joules since the instrument was opened.
API: Jetperch's joulescope_driver, github.com/jetperch/joulescope_driver.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from arenite.errors import MissingToolError
from arenite.meters.base import JOULES, Meter, Samples
from arenite.meters.trace import join

__all__ = ["JoulescopeMeter", "open_joulescope"]

_SAMPLES_A_SECOND = {"js220": 1_000_000}
_INTERVAL_S = {"js220": 0.05, "js110": 0.5}
_NOISE_J = 1e-3


class JoulescopeMeter(Meter):
    """One instrument.

    Args:
        driver: `pyjoulescope_driver.Driver`, started.
        path: The instrument's name in the driver, such as `u/js220/004557`; None takes the only one.
    """

    quantity = JOULES

    def __init__(self, driver: Any, path: str | None) -> None:
        self._driver, self._path = driver, path
        self.source = "joulescope" if path is None else f"joulescope:{path}"
        self.rail = "board at the instrument"
        self.interval_s = self.poll_s = 0.05
        self._blocks: list[Samples] = []
        self._last_j: float | None = None
        self._total_j = 0.0
        self._opened = ""

    def start(self) -> None:
        """Opens the instrument and starts its statistics.

        Raises:
            MeterError: There is none, several, or not the one that was named.
        """
        paths = list(self._driver.device_paths())
        wanted = [path for path in paths if self._path in (None, path)]
        if len(wanted) != 1:
            self._driver.finalize()
            cure = f"Name one of: {', '.join(paths)}." if paths else "Check its cable and the rules for USB devices."
            raise self.error(f"{len(wanted)} instruments are there", cure)
        self._opened = path = wanted[0]
        kind = "js220" if "js220" in path else "js110"
        self.interval_s = _INTERVAL_S[kind]
        self._driver.open(path, "restore")
        if kind == "js220":
            self._driver.publish(f"{path}/s/i/range/mode", "auto")
            self._driver.publish(f"{path}/s/stats/scnt", round(_SAMPLES_A_SECOND[kind] * self.interval_s))
            self._driver.publish(f"{path}/s/stats/ctrl", 1)
            topic = f"{path}/s/stats/value"
        else:
            self._driver.publish(f"{path}/s/i/range/select", "auto")
            topic = f"{path}/s/sstats/value"
        self._driver.subscribe(topic, "pub", self.received)

    def received(self, _: str, value: Mapping[str, Any]) -> None:
        """One message of the driver."""
        now_j = float(value["accumulators"]["energy"]["value"])
        step_j = 0.0 if self._last_j is None else now_j - self._last_j
        # Noise around zero may take some nanojoules back; more than that is a counter that was reset.
        reset = step_j < -_NOISE_J
        self._last_j = now_j
        self._total_j += 0.0 if reset else step_j
        self._blocks.append(Samples.one(time.perf_counter(), self._total_j, reset))

    def read(self) -> Samples:
        """What arrived."""
        blocks, self._blocks = self._blocks, []
        return join(blocks)

    def stop(self) -> None:
        """Closes the instrument and the driver."""
        if self._opened:
            self._driver.close(self._opened)
        self._driver.finalize()


def open_joulescope(argument: str) -> JoulescopeMeter:
    """The only instrument, or the one that the driver calls `argument`.

    Raises:
        MissingToolError: The package is not installed.
    """
    try:
        from pyjoulescope_driver import Driver
    except ImportError as error:
        cure = "pip install pyjoulescope-driver"
        raise MissingToolError("a Joulescope needs the package pyjoulescope-driver", cure=cure) from error
    return JoulescopeMeter(Driver(), argument or None)
