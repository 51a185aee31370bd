# SPDX-License-Identifier: Apache-2.0
"""Several sources at once: sets in step, late sources, deadlines, ends and errors."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import arenite
from arenite._reports import plain
from arenite.errors import FrameError, UsageError
from support.colour_model import colour_model

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
PATIENT_MS = 60_000.0


@pytest.fixture
def session(tmp_path: Path) -> arenite.Session:
    path = tmp_path / "colours.tflite"
    path.write_bytes(colour_model())
    return arenite.open(path)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("arenite-")] == []


def card(colour: str) -> np.ndarray:
    return np.full((6, 5, 3), COLOURS[colour], np.uint8)


def texts(found: arenite.SetAnswer) -> list[str]:
    return [frame.answer[0].text for frame in found.answers]


def test_frames_in_step(session: arenite.Session) -> None:
    left = [card(colour) for colour in ("red", "green", "blue")]
    right = [card(colour) for colour in ("blue", "red", "green")]
    stream = arenite.MultiStream(session, [left, right], timeout_ms=PATIENT_MS)
    sets = list(stream)
    assert [texts(found) for found in sets] == [["red", "blue"], ["green", "red"], ["blue", "green"]]
    assert [found.number for found in sets] == [0, 1, 2]
    assert all(found.reused == (False, False) and found.spread_ms >= 0 and found.latency_ms > 0 for found in sets)
    assert [frame.name for frame in sets[1].answers] == ["list, frame 1", "list, frame 1"]
    report = stream.report()
    assert (report.sets, report.reused, report.misses, report.met) == (3, (0, 0), None, None)
    assert report.stages["invoke"].count == 6
    json.dumps(plain(report), allow_nan=False)


def test_a_late_source_is_represented_by_its_last_frame(session: arenite.Session) -> None:
    go = threading.Event()

    def late() -> Iterator[np.ndarray]:
        yield card("red")
        go.wait(60)
        yield card("green")

    found = []
    stream = arenite.MultiStream(session, [itertools.repeat(card("blue")), late()], timeout_ms=40)
    for frames in stream:
        found.append((texts(frames), frames.reused))
        assert frames.answers[1].skipped == frames.reused[1]
        if frames.number == 2:
            go.set()
        if frames.number >= 2 and not frames.reused[1]:
            break
    assert found[0] == (["blue", "red"], (False, False))
    assert len(found) >= 4 and set(map(str, found[1:-1])) == {str((["blue", "red"], (False, True)))}
    assert found[-1] == (["blue", "green"], (False, False))
    assert stream.report().reused == (0, len(found) - 2)


def test_a_model_for_each_source(session: arenite.Session, tmp_path: Path) -> None:
    path = tmp_path / "other.tflite"
    path.write_bytes(colour_model(8, ("R", "G", "B")))
    cascade = arenite.Cascade(arenite.open(path), session, unsure=lambda labels: labels[0].text == "G")
    stream = arenite.MultiStream([session, cascade], [[card("green")] * 2, [card("green"), card("blue")]])
    assert [texts(found) for found in stream] == [["green", "green"], ["green", "B"]]
    assert stream.report().decisions == {"first model": 1, "second model": 1}


def test_deadlines(session: arenite.Session) -> None:
    missed = arenite.MultiStream(session, [[card("red")] * 4] * 2, deadline_ms=1e-6).run()
    assert (missed.misses, missed.met) == (4, False)
    kept = arenite.MultiStream(session, [[card("red")] * 4] * 2, deadline_ms=1e9).run()
    assert (kept.misses, kept.met) == (0, True)


def test_it_ends_with_the_first_source_that_ends(session: arenite.Session) -> None:
    closed: list[bool] = []

    def endless() -> Iterator[np.ndarray]:
        try:
            while True:
                yield card("red")
        finally:
            closed.append(True)

    report = arenite.MultiStream(session, [endless(), [card("blue")] * 5], timeout_ms=PATIENT_MS).run()
    assert report.sets == 5
    assert closed == [True]


def test_leaving_early(session: arenite.Session) -> None:
    endless = (card("red") for _ in iter(int, 1))
    for found in arenite.MultiStream(session, [endless, [card("blue")] * 500]):
        if found.number == 2:
            break
    assert session.classify(card("green")).best.text == "green"


def test_an_error_surfaces_once(session: arenite.Session) -> None:
    def broken() -> Iterator[object]:
        yield card("red")
        yield b"no picture"

    sets = iter(arenite.MultiStream(session, [[card("red")] * 50, broken()], timeout_ms=PATIENT_MS))
    assert texts(next(sets)) == ["red", "red"]
    with pytest.raises(FrameError, match="generator, frame 1: decode failed") as caught:
        list(sets)
    assert caught.value.stage == "decode"
    assert list(sets) == []


def test_a_source_that_gives_nothing(session: arenite.Session) -> None:
    over = threading.Event()

    def silent() -> Iterator[np.ndarray]:
        over.wait(60)
        yield from ()

    class Silent(arenite.FrameSource):
        name = "silent"

        def __iter__(self) -> Iterator[np.ndarray]:
            return silent()

        def close(self) -> None:
            over.set()

    with pytest.raises(FrameError, match=r"silent: source failed: no frame for 0\.1 s"):
        arenite.MultiStream(session, [[card("red")] * 3, Silent()], patience_s=0.1).run()


def test_an_empty_source(session: arenite.Session) -> None:
    report = arenite.MultiStream(session, [[], [card("red")]]).run()
    assert (report.sets, report.latency, report.stages) == (0, None, {})


def test_it_runs_once(session: arenite.Session) -> None:
    stream = arenite.MultiStream(session, [[card("red")]])
    stream.run()
    with pytest.raises(UsageError, match="runs once"):
        stream.run()


def test_nonsense_is_refused(session: arenite.Session) -> None:
    with pytest.raises(UsageError, match="no list of sources"):
        arenite.MultiStream(session, [])
    with pytest.raises(UsageError, match="2 models for 1 sources"):
        arenite.MultiStream([session, session], [[]])
    with pytest.raises(UsageError, match="time-out"):
        arenite.MultiStream(session, [[]], timeout_ms=-1)
    with pytest.raises(UsageError, match="budget"):
        arenite.MultiStream(session, [[]], deadline_ms=0)
    with pytest.raises(UsageError, match="no such frame source"):
        arenite.MultiStream(session, [[], "nowhere"])
