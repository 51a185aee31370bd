# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: scenarios in this process, what their reports hold, the machine, and pages."""

from __future__ import annotations

import html.parser
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import arenite
from arenite._reports import plain
from arenite.benchmark import MOST_KEPT, _Recorder
from arenite.charts import Bar, bars, histogram, series
from arenite.energy import EnergyModel
from arenite.errors import MissingToolError, UnsupportedOperatorError, UsageError
from arenite.machine import Conditions, Watch, machine
from arenite.meters import rapl
from arenite.model_cost import mac_count
from arenite.report_page import report_page
from support.builder import ModelBuilder
from support.energy_sources import tree

QUICK = {"min_duration_s": 0, "min_queries": 20, "driver": "python"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2, 2, 3), "int8", scales=[0.1])
    y = builder.tensor("y", (1, 2, 2, 3), "int8", scales=[0.1])
    builder.operator("RELU", [x], [y])
    path = tmp_path / "relu.tflite"
    path.write_bytes(builder.finish([x], [y]))
    return path


def picture_session(model: Path) -> arenite.Session:
    contract = arenite.make_contract(arenite.read_graph(model), normalisation="unit")
    return arenite.open(model, contract=contract)


def test_both_minima_are_reached(model: Path) -> None:
    report = arenite.bench(model, min_duration_s=0.05, min_queries=20, driver="python")
    assert not report.valid  # as asked for, but by far no run of the scenario
    assert report.duration_s >= 0.05 and report.latency.count >= 20
    assert report.samples_per_s == pytest.approx(report.latency.count / report.duration_s)
    few = arenite.bench(model, min_duration_s=0, min_queries=7, warm_up=0, driver="python")
    assert few.latency.count == 7 and few.kept_every == 1
    times = np.array(few.times_ms)
    assert few.jitter_ms == pytest.approx(np.abs(np.diff(times)).mean(), abs=2e-6)
    assert few.latency.mean_ms == pytest.approx(times.mean(), abs=2e-6)


@pytest.mark.parametrize(("scenario", "samples"), [("SingleStream", 20), ("MultiStream", 160), ("Offline", 20)])
def test_scenarios_with_pictures(model: Path, scenario: str, samples: int) -> None:
    pictures = [np.zeros((5, 5, 3), np.uint8), np.ones((9, 9, 3), np.uint8)]
    report = arenite.bench(picture_session(model), pictures=pictures, scenario=scenario, **QUICK)
    assert [row.stage for row in report.stages] == ["read", "decode", "resize", "invoke", "post", "total"]
    assert report.stages[-1].times.count == samples and report.latency.count == 20
    assert report.samples_per_s * report.duration_s == pytest.approx(samples)
    assert (report.workload, report.pictures) == ("pictures", 2)
    if scenario != "MultiStream":
        assert report.stages[-1].times == report.latency
    assert (report.outcome.samples_per_s is None) == (scenario != "Offline")


def test_pictures_have_a_digest(model: Path) -> None:
    pictures = [np.zeros((5, 5, 3), np.uint8), np.ones((9, 9, 3), np.uint8)]
    session = picture_session(model)
    digests = [
        arenite.bench(session, pictures=chosen, **QUICK).pictures_sha256
        for chosen in (pictures, pictures, pictures[:1], [pictures[0] + 1])
    ]
    assert digests[0] == digests[1] and len({*digests}) == 3
    assert arenite.bench(session, **QUICK).pictures_sha256 is None


def test_many_latencies_are_thinned(model: Path) -> None:
    report = arenite.bench(model, min_duration_s=0, min_queries=2 * MOST_KEPT + 1, driver="python")
    assert report.kept_every == 3 and len(report.times_ms) == -(-(2 * MOST_KEPT + 1) // 3)


def test_json_names_the_machine(model: Path) -> None:
    content = json.loads(json.dumps(plain(arenite.bench(model, **QUICK)), allow_nan=False))
    assert content["format"] == "arenite-bench-1" and content["scenario"] == "SingleStream"
    assert content["machine"]["cpu"] and content["machine"]["cores"] >= 1
    assert content["machine"]["versions"]["numpy"] == np.__version__
    assert {"governor", "max_frequency_mhz", "kernel", "memory_bytes"} <= set(content["machine"])
    assert content["engine"]["engine"] == "litert" and content["cold_start"]["steps"]
    assert machine() == machine()


def test_declared_costs_are_the_least_of_a_picture(model: Path, no_meter: None) -> None:
    costs = EnergyModel(1e-9, 0, "a data sheet")
    session = picture_session(model)
    alone = arenite.bench(session, model_costs=costs, **QUICK).energy
    whole = arenite.bench(session, model_costs=costs, pictures=[np.zeros((5, 5, 3), np.uint8)], **QUICK).energy
    assert alone.energy_mj == pytest.approx(1e-6 * mac_count(arenite.read_graph(model)))
    assert (alone.tag, alone.lower_bound) == ("modelled", False)
    assert (whole.tag, whole.lower_bound, whole.energy_mj) == ("modelled", True, alone.energy_mj)


@pytest.mark.parametrize("with_picture", [False, True])
def test_first_inference_is_the_first(
    model: Path, no_meter: None, monkeypatch: pytest.MonkeyPatch, with_picture: bool
) -> None:
    """Declared costs run nothing by themselves: `first_ms` is of what runs once the session is open."""
    session = picture_session(model)
    run, sample = session.run, _Recorder.sample
    runs: list[None] = []
    seen: list[tuple[int, float]] = []

    def counted() -> None:
        runs.append(None)
        run()

    def watched(recorder: _Recorder, index: int) -> float:
        before = len(runs)
        seen.append((before, sample(recorder, index)))
        return seen[-1][1]

    monkeypatch.setattr(session, "run", counted)
    monkeypatch.setattr(_Recorder, "sample", watched)
    pictures = [np.zeros((5, 5, 3), np.uint8)] if with_picture else []
    report = arenite.bench(
        session, pictures=pictures, model_costs=EnergyModel(1e-9, 0, "a data sheet"), warm_up=2, **QUICK
    )
    assert (0, report.first_ms) == seen[0]
    assert len(runs) == len(seen) == 2 + 20


@pytest.mark.parametrize("with_picture", [False, True])
def test_modelled_idle_energy_is_of_the_measured_time(
    model: Path, no_meter: None, monkeypatch: pytest.MonkeyPatch, with_picture: bool
) -> None:
    """Not of the first run, which is cold: here it takes half a second."""
    session = picture_session(model)
    run, runs = session.run, []

    def cold() -> None:
        runs.append(None)
        if len(runs) == 1:
            time.sleep(0.5)
        run()

    monkeypatch.setattr(session, "run", cold)
    pictures = [np.zeros((5, 5, 3), np.uint8)] if with_picture else []
    report = arenite.bench(session, pictures=pictures, model_costs=EnergyModel(0, 0, "a sheet", idle_w=2.0), **QUICK)
    stages = {row.stage: row.times.mean_ms for row in report.stages}
    each_ms = stages["invoke"] if with_picture else 1e3 / report.samples_per_s
    assert report.first_ms >= 500
    assert report.energy.gross_mj == pytest.approx(2.0 * each_ms)


@pytest.mark.parametrize("function", [arenite.bench, arenite.energy_of])
def test_what_cannot_be_counted_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Callable[..., object]
) -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2, 2), "float32")
    y = builder.tensor("y", (1, 2, 2), "float32")
    builder.operator("BATCH_MATMUL", [x, x], [y], options="BatchMatMulOptions")
    path = tmp_path / "product.tflite"
    path.write_bytes(builder.finish([x], [y]))
    session = arenite.open(path)
    monkeypatch.setattr(session, "run", lambda: pytest.fail("it ran"))
    with pytest.raises(UnsupportedOperatorError, match="BATCH_MATMUL"):
        function(session, model_costs=EnergyModel(1e-9, 0, "a data sheet"))


def test_energy_is_measured_without_idle(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A RAPL counter at 3 W that goes to 8 W with the first inference: 5 W are the model's."""
    busy, over = threading.Event(), threading.Event()
    files = {"name": "package-0", "max_energy_range_uj": 262143328850}
    tree(tmp_path, {f"intel-rapl:0/{name}": value for name, value in files.items()})

    def count() -> None:
        energy_j, before_s = 0.0, time.perf_counter()
        while not over.is_set():
            now_s = time.perf_counter()
            energy_j += (8.0 if busy.is_set() else 3.0) * (now_s - before_s)
            before_s = now_s
            tree(tmp_path, {"intel-rapl:0/energy_uj": round(1e6 * energy_j)})
            time.sleep(0.001)

    session = arenite.open(model)
    run = session.run
    monkeypatch.setattr(session, "run", lambda: (busy.set(), run()))
    counter = threading.Thread(target=count)
    counter.start()
    try:
        while not (tmp_path / "intel-rapl:0" / "energy_uj").exists():
            time.sleep(0.001)
        monkeypatch.setattr("arenite.meters.own_meters", lambda: rapl.find(tmp_path))
        report = arenite.bench(session, min_duration_s=1.5, min_queries=1, driver="python")
    finally:
        over.set()
        counter.join()
    energy = report.energy
    assert (energy.tag, energy.idle_subtracted) == ("measured", True) and energy.energy_mj is not None
    assert energy.energy_mj == pytest.approx(5e3 / report.samples_per_s, rel=0.05)
    assert energy.idle_w == pytest.approx(3.0, rel=0.05)
    assert "idle meanwhile" in report_page(report)


@pytest.mark.parametrize(
    "options",
    [
        {"min_queries": 0},
        {"min_duration_s": -1},
        {"warm_up": -1},
        {"min_duration_s": float("nan")},
        {"scenario": "Server"},
        {"driver": "c"},
    ],
)
def test_nonsense_is_refused(model: Path, options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"cannot measure|there is no"):
        arenite.bench(model, **options)


def test_missing_loadgen_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    with pytest.raises(MissingToolError, match=r"arenite\[loadgen\]"):
        arenite.bench(model, driver="loadgen")


def test_machine_from_its_files(tmp_path: Path) -> None:
    """Two clusters of processors, as on a big.LITTLE board."""
    policy = "sys/devices/system/cpu/cpu{}/cpufreq/{}"
    values = {0: ("schedutil", 400000, 1800000, 600000), 1: ("performance", 600000, 2400000, 2400000)}
    names = ("scaling_governor", "scaling_min_freq", "scaling_max_freq", "scaling_cur_freq")
    tree(tmp_path, {policy.format(cpu, name): row[i] for cpu, row in values.items() for i, name in enumerate(names)})
    tree(tmp_path, {"sys/class/thermal/thermal_zone0/temp": 51500, "sys/class/thermal/thermal_zone1/temp": 62000})
    tree(tmp_path, {"proc/cpuinfo": "processor\t: 0\nModel\t\t: Raspberry Pi 5", "proc/meminfo": "MemTotal:  4096 kB"})
    found = machine(tmp_path / "sys", tmp_path / "proc")
    assert (found.governor, found.cpu) == ("performance, schedutil", "Raspberry Pi 5")
    assert (found.min_frequency_mhz, found.max_frequency_mhz, found.memory_bytes) == (400.0, 2400.0, 4096 * 1024)
    watch = Watch(tmp_path / "sys")
    for _ in range(5):
        watch.look()
    seen = watch.seen()
    assert (seen.frequency_mhz, seen.temperature_c) == ((1500.0,), (62.0,)) and len(seen.times_s) == 1


def sensors(root: Path, clocks_khz: Sequence[object] = (), zones: Sequence[object] = ()) -> Path:
    """The files of processors and of thermal zones, in millidegrees."""
    clock, zone = "devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", "class/thermal/thermal_zone{}/temp"
    tree(root, {clock.format(i): value for i, value in enumerate(clocks_khz)})
    return tree(root, {zone.format(i): value for i, value in enumerate(zones)})


def test_looks_count_from_the_first(tmp_path: Path) -> None:
    watch = Watch(sensors(tmp_path, [600000], [51500]))
    time.sleep(0.3)
    watch.look()
    time.sleep(0.3)
    watch.look()
    times_s = watch.seen().times_s
    assert len(times_s) == 2 and times_s[0] == 0.0 and times_s[1] >= 0.3


def test_looks_of_a_benchmark_count_from_its_first_query(
    model: Path, tmp_path: Path, no_meter: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arenite.machine.SYSTEM", sensors(tmp_path / "sys", [600000], [51500]))
    report = arenite.bench(model, warm_up=20, **QUICK)
    assert report.conditions.times_s[0] == 0.0
    assert (report.conditions.frequency_mhz[0], report.conditions.temperature_c[0]) == (600.0, 51.5)


@pytest.mark.parametrize(
    ("zones", "hottest_c"),
    [
        ([51500, 201000, -274000], (51.5,)),
        ([-256, 40000], (40.0,)),
        ([199999, 50000], (199.999,)),
        ([200000, -50000], ()),
        (["", "no number"], ()),
    ],
)
def test_insane_temperatures_are_none(tmp_path: Path, zones: list[object], hottest_c: tuple[float, ...]) -> None:
    """As for `ThermalWatch`; the clock is told all the same."""
    watch = Watch(sensors(tmp_path, [600000], zones))
    watch.look()
    assert watch.seen() == Conditions((0.0,), (600.0,), hottest_c)


def test_look_without_what_others_have_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries belong together: a look whose zones say nothing has no place beside those whose zones do."""
    monkeypatch.setattr("arenite.machine._LOOK_S", 0.0)
    watch = Watch(sensors(tmp_path, [600000, 800000], [40000]))
    for clock_khz, zone in ((800000, 40000), ("", 41000), (1000000, 250000), (1000000, 42000)):
        sensors(tmp_path, [600000, clock_khz], [zone])
        watch.look()
    seen = watch.seen()
    assert (seen.frequency_mhz, seen.temperature_c) == ((700.0, 600.0, 800.0), (40.0, 41.0, 42.0))
    assert len(seen.times_s) == 3


def test_processor_with_a_name_beyond_ascii(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_bytes("model name\t: Kern™ ".encode() + b"\xff\n")
    assert machine(tmp_path, tmp_path).cpu == "Kern™ \ufffd"


def test_machine_without_sensors(tmp_path: Path) -> None:
    found = machine(tmp_path, tmp_path)
    assert found.governor is None and found.max_frequency_mhz is None and found.memory_bytes is None
    watch = Watch(tmp_path)
    watch.look()
    assert watch.seen().times_s == ()


class Page(html.parser.HTMLParser):
    """Collects tags and checks that they are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_of_a_benchmark(model: Path) -> None:
    report = arenite.bench(picture_session(model), pictures=[np.zeros((5, 5, 3), np.uint8)], **QUICK)
    text = report_page(report)
    page = Page(text)
    assert page.open == [] and "script" not in page.tags and page.tags.count("svg") >= 4
    assert not re.search(r"https?:|src=|@import|url\(", text)
    for words in ("SingleStream", "Latency over the run", "Stages, mean", "Energy of a sample", report.machine.cpu):
        assert words in text


def test_page_of_an_energy_report(model: Path, no_meter: None) -> None:
    costs = EnergyModel(1e-9, 1e-9, "a <data> sheet")
    text = report_page(arenite.energy_of(model, model_costs=costs, duration_s=0.2, battery_wh=10))
    assert Page(text).open == [] and "<data>" not in text
    assert "modelled" in text and "measured" not in text


def test_histogram_holds_every_value() -> None:
    """The heights of the bars are the counts: 99 quick values and one slow one beyond the cut."""
    values = np.array([1.0] * 50 + [2.0] * 49 + [50.0])
    chart = histogram(values, [("p50", 1.0)], "ms")
    heights = sorted(float(h) for h in re.findall(r'<rect class="bar"[^>]* height="([\d.]+)"', chart))
    assert heights[-2] / heights[-1] == pytest.approx(49 / 50, abs=0.01) and sum(h > 0 for h in heights) == 2
    assert len(re.findall('class="rest"', chart)) == 1 and "p50" in chart


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [0.0, 0.0], [1e-9, 1e9]])
def test_charts_of_odd_values(values: list[float]) -> None:
    """No division by zero, nothing that is no number."""
    array = np.array(values)
    charts = [histogram(array, [], "ms"), series(np.arange(len(array), dtype=float), array, "ms")]
    charts.append(bars([Bar("a <b>", value, "t", (0.0, value)) for value in values]))
    assert not any(re.search(r"nan|inf", chart) for chart in charts)
    assert "a &lt;b&gt;" in charts[-1]
