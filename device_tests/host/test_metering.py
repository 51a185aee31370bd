# SPDX-License-Identifier: Apache-2.0
"""Recordings: known loads through idle subtraction, windows and intervals; what is not seen is never filled in."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from arenite.energy import Energy
from arenite.errors import LinkError, MeterError, UsageError
from arenite.metering import Recording, student_95
from arenite.meters import joulescope, nvml, rapl
from arenite.meters.base import JOULES, WATTS, Meter, PowerMeter, Samples
from arenite.meters.trace import Trace
from support.energy_sources import tree


class Load(Meter):
    """A generated load: watts as a function of time, reported as exact joules or as samples, every `interval_s`."""

    source, rail, poll_s = "load", "generated", 0.01

    def __init__(self, quantity: str, power_w: Callable[[Any], Any], interval_s: float = 0.001) -> None:
        self.quantity, self.interval_s = quantity, interval_s
        self._power_w = power_w
        self._total_j = 0.0
        self._next_s = time.perf_counter()

    def read(self) -> Samples:
        now_s = time.perf_counter()
        times_s = np.arange(self._next_s, now_s, self.interval_s)
        if not len(times_s):
            return Samples.none()
        self._next_s = times_s[-1] + self.interval_s
        # At the present itself too, as a sensor that is read gives it.
        times_s = np.append(times_s, now_s)
        self._next_s = max(self._next_s, now_s)
        powers_w = np.vectorize(self._power_w, otypes=[float])(times_s)
        if self.quantity == WATTS:
            return Samples(times_s, powers_w, np.zeros(len(times_s), bool))
        steps_j = powers_w * np.diff(times_s, prepend=getattr(self, "_before_s", times_s[0]))
        self._before_s = now_s
        values = self._total_j + np.cumsum(steps_j)
        self._total_j = float(values[-1])
        return Samples(times_s, values, np.zeros(len(times_s), bool))


def recorded(
    meter: Meter, count: int, each_s: float, idle_s: float = 0.0, switch: Callable[[bool], None] = lambda _: None
) -> Energy:
    """`count` inferences of `each_s` seconds; `switch` turns the load on and off."""
    with Recording(lambda: meter, idle_s=idle_s, strict=True) as recording:
        with recording.section() as section:
            switch(True)
            for _ in range(count):
                time.sleep(each_s)
                section.tick()
            switch(False)
        energy = section.per_inference()
    assert section.end_s is not None
    if energy.tag == "measured" and not energy.lower_bound:
        seconds_each = (section.end_s - section.start_s) / count
        assert energy.gross_mj == pytest.approx(1e3 * (energy.average_w or 0) * seconds_each)
    return energy


@pytest.mark.parametrize("quantity", [JOULES, WATTS])
def test_known_load_is_recovered_within_one_percent(quantity: str) -> None:
    """8 W with a ripple of 2 W at 40 Hz over 2 W of idle: the net power is 6 W, the gross one 8 W."""
    state = {"on": False}

    def power_w(at_s: float) -> float:
        return 8 + 2 * math.sin(2 * math.pi * 40 * at_s) if state["on"] else 2.0

    energy = recorded(Load(quantity, power_w), 60, 0.025, idle_s=1.0, switch=lambda on: state.update(on=on))
    assert energy.tag == "measured" and energy.idle_subtracted and not energy.lower_bound
    assert energy.energy_mj is not None and energy.gross_mj is not None
    assert energy.energy_mj / energy.gross_mj == pytest.approx(6 / 8, rel=0.01)
    assert energy.average_w == pytest.approx(8.0, rel=0.01)
    assert energy.idle_w == pytest.approx(2.0, rel=0.01)
    # A counter's peak is a mean over 50 ms, here two periods of the ripple.
    assert energy.peak_w == pytest.approx(10.0 if quantity == WATTS else 8.0, rel=0.02)
    assert energy.interval_mj is not None and energy.windows >= 5
    assert energy.interval_mj[0] <= energy.energy_mj <= energy.interval_mj[1]
    assert energy.inferences == 60
    assert energy.inferences_from(1.0) == pytest.approx(3600e3 / energy.gross_mj)


def test_rapl_between_two_readings_is_exact(tmp_path: Path) -> None:
    """10 inferences move the counter by 3 J, over its wrap."""
    range_uj = 262_143_328_850
    files = {"name": "package-0", "energy_uj": range_uj - 1_000_000, "max_energy_range_uj": range_uj}
    tree(tmp_path, {f"intel-rapl:0/{name}": value for name, value in files.items()})
    (meter,) = rapl.find(tmp_path)
    meter.start()
    with Recording(lambda: meter, idle_s=0) as recording, recording.section() as section:
        time.sleep(0.15)
        tree(tmp_path, {"intel-rapl:0/energy_uj": 2_000_000})
        time.sleep(0.15)
    energy = section.per_inference(10)
    assert energy.energy_mj == pytest.approx(300) and energy.tag == "measured"
    assert not energy.idle_subtracted and "idle not subtracted" in energy.source
    assert energy.interval_mj is None and energy.windows < 5


def test_rapl_that_vanishes_during_the_run_is_a_lower_bound(tmp_path: Path) -> None:
    tree(tmp_path, {"intel-rapl:0/name": "package-0", "intel-rapl:0/energy_uj": 0})
    (meter,) = rapl.find(tmp_path)
    meter.start()
    with Recording(lambda: meter, idle_s=0) as recording:
        time.sleep(0.3)
        tree(tmp_path, {"intel-rapl:0/energy_uj": 3_000_000})
        time.sleep(0.15)
        (tmp_path / "intel-rapl:0/energy_uj").unlink()
        time.sleep(0.1)
    energy = recording.per_inference(1)
    assert energy.energy_mj == pytest.approx(3000) and energy.lower_bound
    assert str(energy).startswith("at least 3") and energy.inferences_from(10) is None


def test_counter_that_stands_still_is_unknown(tmp_path: Path) -> None:
    tree(tmp_path, {"intel-rapl:0/name": "package-0", "intel-rapl:0/energy_uj": 77})
    (meter,) = rapl.find(tmp_path)
    meter.start()
    with Recording(lambda: meter, idle_s=0) as recording:
        time.sleep(0.12)
    assert "did not move" in recording.per_inference(5).source


@pytest.mark.parametrize(("length_s", "interval_s", "reason"), [(0.02, 0.001, "too short"), (0.3, 0.1, "too few")])
def test_window_of_a_few_ticks_is_unknown(length_s: float, interval_s: float, reason: str) -> None:
    meter = Load(WATTS, lambda _: 5.0, interval_s)
    meter.poll_s = interval_s
    energy = recorded(meter, 1, length_s)
    assert energy.tag == "unknown" and energy.energy_mj is None and reason in energy.source


def test_load_below_idle_is_unknown() -> None:
    """A sensor that does not see the load, or a machine that was busy before: no negative energy, and none made up."""
    state = {"on": False}
    energy = recorded(
        Load(JOULES, lambda _: 1.0 if state["on"] else 3.0), 5, 0.1, idle_s=0.5, switch=lambda on: state.update(on=on)
    )
    assert energy.tag == "unknown" and energy.energy_mj is None
    assert "no more than idle" in energy.source and energy.average_w == pytest.approx(1.0, rel=0.05)


class Flaky(PowerMeter):
    """Gives 4 W until `fails_s` seconds after its making, then nothing, or goes away."""

    def __init__(self, fails_s: float, error: bool) -> None:
        super().__init__("flaky", "test", 0.01)
        self._ends_s, self._error = time.perf_counter() + fails_s, error

    def power_w(self) -> float | None:
        if time.perf_counter() < self._ends_s:
            return 4.0
        if self._error:
            raise LinkError("the port went away", where="flaky")
        return None


@pytest.mark.parametrize("error", [False, True])
def test_sensor_that_vanishes_is_a_lower_bound_or_unknown(error: bool) -> None:
    energy = recorded(Flaky(0.5, error), 8, 0.1)
    assert energy.tag == "measured" and energy.lower_bound
    assert energy.energy_mj is not None and 0.3 * 4000 / 8 < energy.energy_mj < 0.55 * 4000 / 8
    assert ("went away" in energy.source) == error
    energy = recorded(Flaky(0.1, error), 8, 0.1)
    assert energy.tag == "unknown" and "saw" in energy.source


def test_meter_that_cannot_start() -> None:
    def start() -> Meter:
        raise MeterError("root only", cure="chmod")

    with pytest.raises(MeterError, match="root only"), Recording(start, strict=True):
        pass
    with Recording(start) as recording:
        recording.tick()
    assert recording.per_inference() == Energy(None, "unknown", "root only. chmod")


def test_nothing_counted_is_an_error() -> None:
    with Recording(lambda: Load(WATTS, lambda _: 1.0), idle_s=0) as recording:
        pass
    with pytest.raises(UsageError, match="tick"):
        recording.per_inference()
    with pytest.raises(UsageError, match="with statement"):
        Recording(lambda: Load(WATTS, lambda _: 1.0)).tick()


@pytest.mark.parametrize(
    ("degrees", "point"),
    [(1, 12.706), (4, 2.776), (10, 2.228), (11, 2.201), (15, 2.131), (20, 2.086), (30, 2.042), (60, 2.000)],
)
def test_points_of_students_t(degrees: int, point: float) -> None:
    """From the published tables."""
    assert student_95(degrees) == pytest.approx(point, rel=1e-3)


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    """1,000 recordings of a noisy load, from their windows: about 95 % of the intervals hold the true mean."""
    from arenite.metering import _interval, _mean

    rng = np.random.default_rng(11)
    held = 0
    for _ in range(1000):
        net = rng.normal(10.0, 1.0, 12)
        idle = rng.normal(2.0, 0.5, 8)
        # The estimated idle power, not the true one of 2 W, is subtracted; each inference lasts a millisecond.
        each = net + 2.0 - idle.mean()
        low_high = _interval(_mean(each, float(each.mean())), _mean(idle, float(idle.mean())), 1.0)
        assert low_high is not None
        held += low_high[0] <= 10.0 <= low_high[1]
    assert 930 <= held <= 985


def arrays(*rows: tuple[float, float, bool]) -> Samples:
    times_s, values, gaps = zip(*rows, strict=True)
    return Samples(np.array(times_s), np.array(values), np.array(gaps))


def test_trace_by_hand() -> None:
    nan = math.nan
    rows = ((0, 2, False), (1, 4, False), (2, nan, True), (3, 4, False), (4, 4, False), (6, 2, True))
    sensor = Trace(WATTS, arrays(*rows))
    part = sensor.portion(0, 6)
    assert (part.joules, part.seen_s, part.peak_w, part.samples) == (3 + 4, 2, 4, 4)
    assert sensor.portion(0.5, 1.0).joules == pytest.approx(1.5)
    assert sensor.portion(-10, 20).seen_s == 2
    counter = Trace(JOULES, arrays((0, 10, False), (1, 12, False), (2, nan, False), (3, 18, False), (4, 18, True)))
    part = counter.portion(0, 4)
    assert (part.joules, part.seen_s) == (8, 3)
    assert counter.portion(-1, 5).peak_w == 3
    for trace in (Trace(WATTS, Samples.none()), Trace(JOULES, arrays((0, 1, False)))):
        assert trace.portion(0, 10).seen_s == 0


class NvmlError(Exception):
    """The error of NVML's package."""


def card(energies_mj: list[int | None], power_mw: int | None = 75_500) -> Any:
    """NVML's package on a machine with one card; None is what an older card refuses."""

    def total(_: object) -> int:
        value = energies_mj.pop(0) if len(energies_mj) > 1 else energies_mj[0]
        if value is None:
            raise NvmlError
        return value

    def power(_: object) -> int:
        if power_mw is None:
            raise NvmlError
        return power_mw

    return SimpleNamespace(
        NVMLError=NvmlError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda _: b"NVIDIA T4",
        nvmlDeviceGetTotalEnergyConsumption=total,
        nvmlDeviceGetPowerUsage=power,
    )


def test_nvml_counter_and_sensor() -> None:
    (counter,) = nvml.find(card([0, 1_000, 1_000, 3_500]))
    counter.start()
    first, second = counter.read(), counter.read()
    assert second.values[0] - first.values[0] == pytest.approx(2.5)
    assert counter.rail == "GPU 0 only (NVIDIA T4)" and counter.quantity == JOULES
    (sensor,) = nvml.find(card([None]))
    assert sensor.quantity == WATTS and sensor.read().values[0] == pytest.approx(75.5)
    (lost,) = nvml.find(card([None], None))
    assert np.isnan(lost.read().values[0])


def test_nvml_without_a_driver() -> None:
    def fail() -> None:
        raise NvmlError

    assert nvml.find(SimpleNamespace(NVMLError=NvmlError, nvmlInit=fail)) == []


class Instruments:
    """The Joulescope's driver, with instruments that are given."""

    def __init__(self, *paths: str) -> None:
        self.paths, self.published, self.closed = paths, {}, []  # type: ignore[var-annotated]
        self.callback: Callable[[str, object], None] = lambda topic, value: None

    def device_paths(self) -> list[str]:
        return list(self.paths)

    def open(self, path: str, mode: str) -> None:
        assert path in self.paths and mode == "restore"

    def publish(self, topic: str, value: object) -> None:
        self.published[topic] = value

    def subscribe(self, topic: str, flags: str, callback: Callable[[str, object], None]) -> None:
        self.topic, self.callback = topic, callback

    def close(self, path: str) -> None:
        self.closed.append(path)

    def finalize(self) -> None:
        self.closed.append("driver")

    def say(self, joules: float) -> None:
        self.callback(self.topic, {"accumulators": {"energy": {"value": joules, "units": "J"}}})


def test_joulescope_accumulates_joules() -> None:
    driver = Instruments("u/js220/004557")
    meter = joulescope.JoulescopeMeter(driver, None)
    meter.start()
    assert driver.topic == "u/js220/004557/s/stats/value"
    assert driver.published["u/js220/004557/s/stats/scnt"] == 50_000
    for joules in (5.0, 5.5, 7.0, 1.0, 1.25):
        driver.say(joules)
    samples = meter.read()
    assert samples.values.tolist() == pytest.approx([0, 0.5, 2.0, 2.0, 2.25])
    assert samples.gaps.tolist() == [False, False, False, True, False], "a counter that falls was reset"
    meter.stop()
    assert driver.closed == ["u/js220/004557", "driver"]


def test_joulescope_must_be_the_only_one_or_be_named() -> None:
    with pytest.raises(MeterError, match="cable"):
        joulescope.JoulescopeMeter(Instruments(), None).start()
    two = Instruments("u/js110/001", "u/js220/002")
    assert not two.closed
    with pytest.raises(MeterError, match="u/js110/001, u/js220/002"):
        joulescope.JoulescopeMeter(two, None).start()
    assert two.closed == ["driver"], "a driver that is not needed is not left running"
    meter = joulescope.JoulescopeMeter(two, "u/js110/001")
    meter.start()
    assert two.topic == "u/js110/001/s/sstats/value"
