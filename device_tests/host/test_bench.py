# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: scenarios in this process, what their reports hold, the machine, and pages."""

from __future__ import annotations

import html.parser
import json
import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import arenite
from arenite._reports import plain
from arenite.benchmark import MOST_KEPT
from arenite.charts import Bar, bars, histogram, series
from arenite.energy import EnergyModel
from arenite.errors import MissingToolError, UsageError
from arenite.loadgen import find_loadgen
from arenite.machine import Watch, machine
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


def test_declared_costs_are_the_least_of_a_picture(model: Path) -> None:
    costs = EnergyModel(1e-9, 0, "a data sheet")
    session = picture_session(model)
    alone = arenite.bench(session, model_costs=costs, **QUICK).energy
    whole = arenite.bench(session, model_costs=costs, pictures=[np.zeros((5, 5, 3), np.uint8)], **QUICK).energy
    if alone.tag == "measured":
        pytest.skip("this machine has a meter")
    assert alone.energy_mj == pytest.approx(1e-6 * mac_count(arenite.read_graph(model)))
    assert (alone.tag, alone.lower_bound) == ("modelled", False)
    assert (whole.tag, whole.lower_bound, whole.energy_mj) == ("modelled", True, alone.energy_mj)


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


@pytest.mark.skipif(find_loadgen() is not None, reason="LoadGen is installed")
def test_missing_loadgen_is_named(model: Path) -> None:
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


def test_page_of_an_energy_report(model: Path) -> None:
    costs = EnergyModel(1e-9, 1e-9, "a <data> sheet")
    text = report_page(arenite.energy_of(model, model_costs=costs, duration_s=0.2, battery_wh=10))
    assert Page(text).open == [] and "<data>" not in text
    assert "modelled" in text or "measured" in text


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
