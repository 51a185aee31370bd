# SPDX-License-Identifier: Apache-2.0
"""Meters at a serial line, in their own formats: known loads come back, losses are gaps, nonsense is no figure."""

from __future__ import annotations

import os
import socket
import threading
import tty
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite import meters
from arenite.errors import LinkError, MeterError, UsageError
from arenite.metering import Recording
from arenite.meters.base import Samples
from arenite.meters.declared import DeclaredMeter, read_declaration
from arenite.meters.lpm01a import BinaryDecoder, Lpm01aMeter, Stamp, TextDecoder, open_lpm01a
from arenite.meters.ppk2 import Ppk2Meter, SpikeFilter, amperes, calibration, open_ppk2
from arenite.meters.trace import Portion, Trace, join
from support.energy_sources import (
    PPK2_METADATA,
    Instrument,
    lpm_answer,
    lpm_binary,
    lpm_text,
    ppk2_answer,
    ppk2_ranges,
    ppk2_words,
)

Array = npt.NDArray[np.float64]
VOLTS = 3.3


def whole(quantity: str, blocks: list[Samples]) -> Portion:
    samples = join(blocks)
    assert (np.diff(samples.times_s) >= 0).all()
    return Trace(quantity, samples).portion(samples.times_s[0], samples.times_s[-1])


def kit(supply_mv: int = 3300) -> Ppk2Meter:
    """A meter that has read its kit's calibration."""
    meter = Ppk2Meter("none", supply_mv, "ampere")
    meter._modifiers = calibration(PPK2_METADATA)
    return meter


def burst_load(seconds: float) -> tuple[Array, float]:
    """2 mA with bursts of 10 ms to 40 mA every 100 ms, and its joules by hand."""
    times_s = np.arange(round(seconds * 100_000)) * 1e-5
    currents = np.where(times_s % 0.1 < 0.01, 0.040, 0.002)
    return currents, VOLTS * (0.040 * 0.1 + 0.002 * 0.9) * seconds


def test_ppk2_recovers_a_known_load_within_one_percent() -> None:
    """Sampling this at intervals would be far off; the words are cut at every odd place."""
    currents, joules = burst_load(2.0)
    data = ppk2_words(currents, VOLTS)
    meter, blocks, at = kit(), [], 0
    for size in np.random.default_rng(3).integers(40, 5000, 10_000):
        arrived_s = 100 + (at + size) // 4 * 1e-5
        blocks.append(meter.decode(data[at : at + size], arrived_s))
        at += int(size)
        if at >= len(data):
            break
    part = whole("watts", blocks)
    assert part.joules == pytest.approx(joules, rel=0.01)
    assert part.seen_s == pytest.approx(2.0, rel=1e-3)
    assert part.peak_w == pytest.approx(0.040 * VOLTS, rel=0.02)


@pytest.mark.parametrize("current", [1e-6, 30e-6, 300e-6, 2e-3, 30e-3, 0.5])
def test_ppk2_currents_of_each_range(current: float) -> None:
    samples = kit().decode(ppk2_words(np.full(1000, current), VOLTS), 10.0)
    # Half a step of the converter, in amperes.
    step = 4 * 1.8 / 163840 / (1003.34, 101.61, 10.31, 0.94, 0.049)[int(ppk2_ranges(np.array(current)))]
    assert samples.values == pytest.approx(current * VOLTS, abs=step * VOLTS, rel=1e-3)


def test_ppk2_formula_by_hand() -> None:
    """R1 = 100, O1 = 10, GS1 = 2, GI1 = 1.5, S1 = 0.001, I1 = 0.002, UG1 = 1.1; converter 1000 at 3 V."""
    text = "R1: 100\nO1: 10\nGS1: 2\nGI1: 1.5\nS1: 0.001\nI1: 0.002\nUG1: 1.1\nHW: 9\nR7: 1\nGS2: -nan\nR0: 0\nEND"
    modifiers = calibration(text)
    x = (4000 - 10) * (1.8 / 163840) / 100
    expected = 1.1 * (x * (2 * x + 1.5) + 0.001 * 3 + 0.002)
    assert amperes(np.array([1000]), np.array([1]), modifiers, 3.0) == pytest.approx([expected])
    assert modifiers["GS"][2] == 1 and modifiers["R"][0] == 1031.64
    assert np.isnan(amperes(np.array([1000]), np.array([6]), modifiers, 3.0)).all()


@pytest.mark.parametrize("lost", [1, 10, 63])
def test_ppk2_lost_samples_are_a_gap_of_their_length(lost: int) -> None:
    data = ppk2_words(np.full(3000, 0.01), VOLTS)
    meter = kit()
    blocks = [meter.decode(data[:4000], 10.01), meter.decode(data[4000 + 4 * lost :], 10.03)]
    part = whole("watts", blocks)
    assert sum(block.gaps.sum() for block in blocks) == 1
    span_s = blocks[1].times_s[-1] - blocks[0].times_s[0]
    assert span_s == pytest.approx(2999e-5)
    assert part.seen_s == pytest.approx((2999 - lost - 1) * 1e-5)
    assert part.joules == pytest.approx(0.01 * VOLTS * part.seen_s, rel=1e-2)


def test_ppk2_lost_multiple_of_the_counter_shows_by_the_clock() -> None:
    """6,400 + 5 samples are lost: the counter shows 5, the arrival the rest."""
    data = ppk2_words(np.full(20_000, 0.01), VOLTS)
    meter = kit()
    blocks = [meter.decode(data[: 4 * 5000], 10.05), meter.decode(data[4 * (5000 + 12_805) :], 10.2)]
    assert join(blocks).times_s[-1] == pytest.approx(10.2, abs=2e-3)


def test_ppk2_stream_that_slipped_a_byte_is_brought_into_step() -> None:
    data = ppk2_words(np.full(2000, 0.01), VOLTS)
    meter = kit()
    blocks = [meter.decode(data[:1000], 10.0), meter.decode(data[1001:4000], 10.02), meter.decode(data[4000:], 10.03)]
    values = join(blocks).values
    assert np.nanmax(np.abs(values - 0.01 * VOLTS)) < 0.01 * VOLTS * 0.02
    assert whole("watts", blocks).seen_s < 1999e-5


def test_ppk2_noise_is_no_figure() -> None:
    noise = np.random.default_rng(1).integers(0, 256, 40_000, dtype=np.uint8).tobytes()
    assert np.isnan(kit().decode(noise, 10.0).values).all()


def test_ppk2_current_above_its_limit_is_no_figure() -> None:
    words = np.full(100, 0x3FFF | 4 << 14, "<u4") | (np.arange(100, dtype="<u4") % 64) << 18
    assert np.isnan(kit().decode(words.astype("<u4").tobytes(), 10.0).values).all()


def filtered_one_by_one(currents: Array, ranges: npt.NDArray[np.int64]) -> list[float]:
    """The rule sample by sample, as it is written down."""
    out, fast, slow, before, left, since = [], None, 0.0, None, 0, 0
    for current, kind in zip(currents, ranges, strict=True):
        old_fast, old_slow = fast, slow
        fast = current if fast is None else 0.18 * current + 0.82 * fast
        slow = current if old_fast is None else 0.06 * current + 0.94 * slow
        value = current
        if before is not None and before != kind:
            left, since = 3, 0
        elif left:
            since += 1
        if left:
            if kind == 4 and since < 2:
                fast, slow = old_fast, old_slow
            value = slow if kind == 4 else fast
            left -= 1
        before = kind
        out.append(value)
    return out


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=60),
    st.lists(st.integers(1, 59), max_size=4),
)
def test_ppk2_spike_filter_equals_the_rule_wherever_blocks_are_cut(
    samples: list[tuple[float, int]], cuts: list[int]
) -> None:
    currents, ranges = np.array([s[0] for s in samples]), np.array([s[1] for s in samples])
    edges = sorted({0, len(samples), *(cut for cut in cuts if cut < len(samples))})
    spikes = SpikeFilter()
    parts = [spikes.apply(currents[a:b], ranges[a:b]) for a, b in pairwise(edges)]
    assert np.concatenate(parts) == pytest.approx(filtered_one_by_one(currents, ranges), abs=1e-9)


def test_ppk2_over_a_terminal() -> None:
    """A kit that streams in real time, found at a port: start, samples, stop, in the order of its protocol."""

    def stream(a: float, b: float) -> bytes:
        first, last = round(a * 1e5), round(b * 1e5)
        times_s = np.arange(first, last) * 1e-5
        return ppk2_words(0.020 + 0.010 * np.sin(2 * np.pi * 50 * times_s), VOLTS, first) if last > first else b""

    with Instrument(ppk2_answer, b"\x06", stream) as instrument:
        source = f"ppk2:{instrument.port}?mv=3300&mode=source"
        with Recording(lambda: meters.start_named(source), idle_s=0, strict=True) as meter:
            threading.Event().wait(1.0)
        energy = meter.per_inference(10)
    assert instrument.received == b"\x07\x19\x11\x02\x0d\x0c\xe4\x0c\x01\x06\x07"
    assert energy.tag == "measured" and not energy.lower_bound
    assert energy.average_w == pytest.approx(0.020 * VOLTS, rel=0.01)
    assert energy.peak_w == pytest.approx(0.030 * VOLTS, rel=0.02)
    assert "from the kit" in energy.rail


def test_ppk2_unplugged_during_the_run() -> None:
    """What was seen is a lower bound, or nothing; never a figure for the whole."""

    def stream(a: float, b: float) -> bytes | None:
        first, last = round(a * 1e5), round(b * 1e5)
        if b > 0.9:
            return None
        return ppk2_words(np.full(last - first, 0.02), VOLTS, first) if last > first else b""

    with Instrument(ppk2_answer, b"\x06", stream) as instrument:
        source = f"ppk2:{instrument.port}?mv=3300"
        with Recording(lambda: meters.start_named(source), idle_s=0, strict=True) as meter:
            threading.Event().wait(1.2)
        energy = meter.per_inference(1)
    assert energy.tag == "measured" and energy.lower_bound
    assert energy.energy_mj is not None and energy.energy_mj < 0.02 * VOLTS * 1000
    assert "went away" in energy.source and str(energy).startswith("at least")


def test_ppk2_that_is_something_else() -> None:
    other = Instrument(lambda _: b"hello\n", b"\xff\xff", lambda a, b: b"")
    with other, pytest.raises(MeterError, match="does not answer as a PPK2"):
        Ppk2Meter(other.port, 3300, "ampere").start()
    with pytest.raises(LinkError, match="cannot be opened"):
        Ppk2Meter("/dev/ttyACM-none", 3300, "ampere").start()


@pytest.mark.parametrize("argument", ["", "p", "p?mv=9000", "p?mv=x", "p?mv=3300&mode=off", "p?volts=3"])
def test_ppk2_options(argument: str) -> None:
    with pytest.raises(UsageError):
        open_ppk2(argument)


def test_lpm01a_text_and_binary_by_the_manual() -> None:
    """6409-07 is 640.9 uJ; 52A0 is 0x2A0 * 16^-5."""
    text = TextDecoder()
    assert text.feed(b"PowerShield > ack start\r\nTimeStamp: 003s 245ms, buff 00%\r\n6409-07\r\n00") == [
        Stamp(3245),
        pytest.approx(640.9e-6),
    ]
    assert text.feed(b"00-10\r\nend\r\n") == [0.0]
    binary = BinaryDecoder()
    stamp = b"\xf0\xf3\x00\x00\xff\xff\x00\xff\xff"
    data = b"ack start\r\n" + stamp + b"\x52\xa0\xf0\xf1overrun\xff\xff\x52\xa0"
    found = [binary.feed(bytes([byte])) for byte in data]
    assert [item for items in found for item in items] == [
        Stamp(65535),
        pytest.approx(640.9e-6, rel=1e-3),
        pytest.approx(640.9e-6, rel=1e-3),
    ]


def lpm(rate: str, form: str) -> Lpm01aMeter:
    return open_lpm01a(f"none?mv=3300&freq={rate}&format={form}")


@pytest.mark.parametrize(("rate", "form", "rate_hz"), [("1k", "ascii_dec", 1000), ("10k", "bin_hexa", 10_000)])
def test_lpm01a_recovers_a_known_load_within_one_percent(rate: str, form: str, rate_hz: int) -> None:
    times_s = (np.arange(3 * rate_hz) + 0.5) / rate_hz
    joules = (0.010 + 0.008 * np.sin(2 * np.pi * 5 * times_s)) / rate_hz
    data = (lpm_text if form == "ascii_dec" else lpm_binary)(joules, rate_hz)
    meter = lpm(rate, form)
    blocks = [meter.decode(data[i : i + 777], 50 + 3 * i / len(data)) for i in range(0, len(data), 777)]
    part = whole("watts", blocks)
    assert part.joules == pytest.approx(joules.sum(), rel=0.01)
    assert part.seen_s == pytest.approx(3.0, rel=2e-3)
    assert part.peak_w == pytest.approx(0.018, rel=0.01)


@pytest.mark.parametrize("form", ["ascii_dec", "bin_hexa"])
def test_lpm01a_lost_samples_are_a_gap(form: str) -> None:
    """The second thousand arrives short by 200: the third time stamp shows it."""
    encode = lpm_text if form == "ascii_dec" else lpm_binary
    blocks = [encode(np.full(count, 1e-5), 1000, start) for count, start in ((1000, 0), (800, 1000), (1000, 2000))]
    meter = lpm("1k", form)
    samples = [meter.decode(block, 60 + i) for i, block in enumerate(blocks)]
    part = whole("watts", samples)
    assert sum(block.gaps.sum() for block in samples) == 1
    assert part.seen_s == pytest.approx(2.798, abs=2e-3)
    assert part.joules == pytest.approx(2798e-5, rel=1e-3)


def test_lpm01a_over_a_terminal() -> None:
    def stream(a: float, b: float) -> bytes:
        first, last = int(a * 1000), int(b * 1000)
        lines = "".join(f"{'TimeStamp: 000s 000ms, buff 00%' if i == 0 else ''}\r\n2500-08" for i in range(first, last))
        return lines.encode()

    with Instrument(lpm_answer, b"start\n", stream) as instrument:
        source = f"lpm01a:{instrument.port}?mv=3000"
        with Recording(lambda: meters.start_named(source), idle_s=0, strict=True) as meter:
            threading.Event().wait(0.8)
        energy = meter.per_inference(1)
    commands = instrument.received.decode().split("\n")
    assert commands[:2] == ["htc", "acqtime 0"] and "volt 3000m" in commands
    assert commands[-4:] == ["start", "stop", "hrc", ""]
    assert energy.average_w == pytest.approx(0.025, rel=0.01)


def test_lpm01a_that_refuses() -> None:
    other = Instrument(lambda _: b"\r\nPowerShield > error htc\r\n", b"\xff", lambda a, b: b"")
    with other, pytest.raises(MeterError, match=r"htc.*error htc"):
        Lpm01aMeter(other.port, 3300, "1k", "ascii_dec").start()


@pytest.mark.parametrize("argument", ["p?mv=3300&freq=3k", "p?mv=3300&freq=10k", "p?mv=5000", "p?mv=3300&format=x"])
def test_lpm01a_options(argument: str) -> None:
    with pytest.raises(UsageError):
        open_lpm01a(argument)


COLUMNS = {
    "time": {"index": 0, "unit": "ms"},
    "voltage": {"index": 1, "unit": "mV"},
    "current": {"index": 2, "unit": "uA"},
}


def declared(**changes: object) -> DeclaredMeter:
    content = {"port": "none", "interval_s": 0.01, "columns": COLUMNS, "invalid": ["OL", "-256"], **changes}
    return DeclaredMeter(read_declaration({k: v for k, v in content.items() if v is not None}))


def test_declared_meter_recovers_a_known_load_within_one_percent() -> None:
    """5 V and 100 mA +- 50 mA at 3 Hz, in millivolts and microamperes, with a heading and lines cut anywhere."""
    times_s = np.arange(400) * 0.01
    microamperes = 1e5 + 5e4 * np.sin(2 * np.pi * 3 * times_s)
    rows = "".join(f"{1000 * t:.1f}, 5000, {i:.1f}\r\n" for t, i in zip(times_s, microamperes, strict=True))
    data = ("t [ms], U, I\r\n" + rows).encode()
    meter = declared()
    part = whole("watts", [meter.decode(data[i : i + 37], 7 + i / 1e4) for i in range(0, len(data), 37)])
    assert part.joules == pytest.approx(0.5 * 3.99, rel=0.01)
    assert part.seen_s == pytest.approx(3.99)


def test_declared_meter_sentinels_and_lost_rows_are_gaps() -> None:
    rows = [(0, 100), (10, 100), (20, "OL"), (30, 100), (40, 100), (540, 100), (550, "-256"), (560, 100)]
    meter = declared(columns={"time": COLUMNS["time"], "power": {"index": 1, "unit": "mW"}})
    part = whole("watts", [meter.decode("".join(f"{t},{p}\n" for t, p in rows).encode(), 5.0)])
    assert part.seen_s == pytest.approx(0.02)
    assert part.joules == pytest.approx(0.1 * 0.02)


def test_declared_energy_column() -> None:
    """A counter's lost rows lose nothing; a counter that falls was reset."""
    meter = declared(columns={"time": COLUMNS["time"], "energy": {"index": 1, "unit": "mWh"}}, separator=" ")
    rows = [(0, 10), (10, 11), (500, 13), (510, 1), (520, 2)]
    part = whole("joules", [meter.decode("".join(f"{t}   {e}\n" for t, e in rows).encode(), 5.0)])
    assert part.joules == pytest.approx(3.6 * (3 + 1))
    assert part.seen_s == pytest.approx(0.51)


def test_declared_meter_on_a_file_that_grows(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("0,99999,99999\n")
    declaration = tmp_path / "meter.toml"
    declaration.write_text(
        f'name = "logger"\nfile = "{log}"\ninterval_s = 0.02\n[columns]\npower = {{ index = 1, unit = "W" }}\n'
    )
    over = threading.Event()

    def grow() -> None:
        with log.open("a") as stream:
            while not over.wait(0.02):
                stream.write("x,4.0\n")
                stream.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        with Recording(lambda: meters.start_named(f"declared:{declaration}"), idle_s=0, strict=True) as meter:
            threading.Event().wait(0.8)
        energy = meter.per_inference(1)
    finally:
        over.set()
        writer.join()
    assert energy.average_w == pytest.approx(4.0) and energy.source.startswith("logger")


@pytest.fixture
def silent_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"socket://127.0.0.1:{server.getsockname()[1]}"


def test_meter_that_sends_nothing(silent_port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arenite.metering._PATIENCE_S", 0.3)
    meter = declared(port=silent_port)
    meter.start()
    with pytest.raises(MeterError, match="sends nothing"), Recording(lambda: meter, strict=True):
        pass


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"colour": "red"}, "colour"),
        ({"columns": {"power": {"index": 0, "unit": "kW"}}}, "mW"),
        ({"columns": {"power": {"index": -1, "unit": "W"}}}, "index"),
        ({"columns": {"voltage": {"index": 0, "unit": "V"}}}, "voltage and current"),
        ({"columns": {"charge": {"index": 0, "unit": "C"}}}, "charge"),
        ({"file": "x.csv"}, "port and file"),
        ({"interval_s": None}, "interval_s"),
        ({"interval_s": 0}, "interval_s"),
    ],
)
def test_declarations_that_make_no_sense(changes: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        declared(**changes)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_no_bytes_break_a_decoder(data: bytes, cut: int) -> None:
    for meter in (kit(), lpm("1k", "ascii_dec"), lpm("1k", "bin_hexa"), declared()):
        blocks = [meter.decode(data[:cut], 1.0), meter.decode(data[cut:], 2.0)]
        part = Trace(meter.quantity, join(blocks)).portion(0.0, 3.0)
        assert np.isfinite(part.joules)


def test_terminals_exist() -> None:
    """The tests above stand on pseudo-terminals that pass every byte."""
    master, slave = os.openpty()
    tty.setraw(slave)
    os.write(master, bytes(range(256)))
    assert os.read(slave, 256) == bytes(range(256))
    os.close(master)
    os.close(slave)
