# SPDX-License-Identifier: Apache-2.0
"""The pipeline: right answers in order, errors that surface once, threads that end, sessions of one thread."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import arenite
from arenite import _channel
from arenite._reports import plain
from arenite.errors import ConcurrentUseError, FrameError, UsageError
from support.colour_model import colour_model

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
both = pytest.mark.parametrize("overlap", [True, False], ids=["overlapped", "in turn"])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "colours.tflite"
    path.write_bytes(colour_model())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nine pictures: red, green, blue, red, ..."""
    made = tmp_path / "pictures"
    made.mkdir()
    for number in range(9):
        Image.new("RGB", (12, 8), list(COLOURS.values())[number % 3]).save(made / f"{number}.png")
    return made


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("arenite-")] == []


def card(colour: str) -> np.ndarray:
    return np.full((6, 5, 3), COLOURS[colour], np.uint8)


@both
def test_answers_are_the_sessions_own(model: Path, folder: Path, overlap: bool) -> None:
    session = arenite.open(model)
    expected = [session.classify(path).labels for path in sorted(folder.iterdir())]
    frames = list(arenite.Pipeline(session, folder, overlap=overlap))
    assert [frame.answer for frame in frames] == expected
    assert [frame.answer[0].text for frame in frames] == ["red", "green", "blue"] * 3
    assert [Path(frame.name).name for frame in frames] == [f"{i}.png" for i in range(9)]
    assert [frame.number for frame in frames] == list(range(9))
    assert all(frame.image is not None and frame.image.size == (12, 8) for frame in frames)


@both
@pytest.mark.parametrize("preprocessing", ["exact", "fast"])
def test_tensors_are_not_mixed_up(model: Path, overlap: bool, preprocessing: str) -> None:
    """Many different frames, faster than the model is asked for them."""
    session = arenite.open(model, preprocessing=preprocessing)
    pictures = [np.random.default_rng(i).integers(0, 256, (9, 7, 3)).astype(np.uint8) for i in range(200)]
    expected = [session.classify(picture).labels for picture in pictures]
    pipeline = arenite.Pipeline(session, iter(pictures), overlap=overlap)
    for frame, labels in zip(pipeline, expected, strict=True):
        assert frame.answer == labels
        if frame.number % 50 == 0:
            time.sleep(0.002)


def test_every_kind_of_frame(model: Path, folder: Path) -> None:
    frame = arenite.Frame(card("green").tobytes(), 5, 6, "RGB")
    picture = (folder / "2.png").read_bytes()
    items = [card("red"), frame, picture, Image.new("RGB", (3, 3), (0, 0, 255)), arenite.Named("mine", card("green"))]
    found = list(arenite.Pipeline(arenite.open(model), items))
    assert [f.answer[0].text for f in found] == ["red", "green", "blue", "blue", "green"]
    assert [f.name for f in found] == ["frame 0", "frame 1", "frame 2", "frame 3", "mine"]


def test_the_next_frame_is_prepared_while_one_is_inferred(model: Path) -> None:
    """Frame 1 is asked for while frame 0 is still in `post`; in turn it would never be."""
    asked = threading.Event()

    def source() -> Iterator[np.ndarray]:
        yield card("red")
        asked.set()
        yield card("green")

    pipeline = arenite.Pipeline(arenite.open(model), source(), post=lambda _: asked.wait(20))
    assert [frame.answer for frame in pipeline] == [True, True]


def test_in_turn_nothing_is_taken_ahead(model: Path) -> None:
    taken: list[int] = []

    def source() -> Iterator[np.ndarray]:
        for number in range(5):
            taken.append(number)
            yield card("red")

    for frame in arenite.Pipeline(arenite.open(model), source(), overlap=False):
        assert taken[-1] == frame.number


def test_the_source_is_held_back(model: Path) -> None:
    """However fast the source: one frame with the app, one prepared."""
    taken: list[int] = []

    def source() -> Iterator[np.ndarray]:
        for number in range(60):
            taken.append(number)
            yield card("red")

    for frame in arenite.Pipeline(arenite.open(model), source()):
        time.sleep(0.001)
        assert taken[-1] <= frame.number + 1
    assert len(taken) == 60


@both
def test_a_damaged_picture_surfaces_once_by_name(model: Path, folder: Path, overlap: bool) -> None:
    (folder / "4.png").write_bytes(b"no picture")
    session = arenite.open(model)
    answers = []
    pipeline = arenite.Pipeline(session, folder, overlap=overlap)
    with pytest.raises(FrameError, match=r"4\.png: decode failed: cannot decode the picture") as caught:
        answers += [frame.answer[0].text for frame in pipeline]
    assert (caught.value.stage, Path(caught.value.frame).name) == ("decode", "4.png")
    assert caught.value.exit_code == 2
    assert pipeline.report().frames == 4
    assert session.classify(card("blue")).best.text == "blue"


@both
def test_damaged_pictures_can_be_passed_over(model: Path, folder: Path, overlap: bool) -> None:
    (folder / "0.png").write_bytes(b"no picture")
    (folder / "4.png").unlink()
    missing = [*sorted(folder.iterdir()), folder / "gone.png"]
    pipeline = arenite.Pipeline(arenite.open(model), missing, overlap=overlap, skip_damaged=True)
    frames = list(pipeline)
    assert [Path(frame.name).stem for frame in frames] == ["1", "2", "3", "5", "6", "7", "8"]
    assert pipeline.report().damaged == 2


@both
def test_a_source_that_fails(model: Path, overlap: bool) -> None:
    def source() -> Iterator[np.ndarray]:
        yield card("red")
        raise OSError("the cable is out")

    frames = iter(arenite.Pipeline(arenite.open(model), source(), overlap=overlap))
    assert next(frames).answer[0].text == "red"
    with pytest.raises(FrameError, match="generator, frame 1: source failed: OSError: the cable is out"):
        next(frames)
    with pytest.raises(StopIteration):
        next(frames)


@both
def test_what_is_no_picture(model: Path, overlap: bool) -> None:
    with pytest.raises(FrameError, match="frame 0: decode failed"):
        arenite.Pipeline(arenite.open(model), [object()], overlap=overlap).run()


@both
def test_a_post_that_fails(model: Path, overlap: bool) -> None:
    def post(session: arenite.Session) -> None:
        raise ZeroDivisionError("nothing to divide by")

    with pytest.raises(FrameError, match="frame 0: post failed: ZeroDivisionError: nothing to divide by"):
        arenite.Pipeline(arenite.open(model), [card("red")] * 5, post=post, overlap=overlap).run()


@both
def test_leaving_early_ends_everything(model: Path, overlap: bool) -> None:
    closed: list[bool] = []

    def source() -> Iterator[np.ndarray]:
        try:
            while True:
                yield card("red")
        finally:
            closed.append(True)

    session = arenite.open(model)
    pipeline = arenite.Pipeline(session, source(), overlap=overlap)
    for frame in pipeline:
        if frame.number == 3:
            break
    assert closed == [True]
    assert pipeline.report().frames == 4
    answers: list[str] = []
    other = threading.Thread(target=lambda: answers.append(session.classify(card("green")).best.text))
    other.start()
    other.join()
    assert answers == ["green"]


@both
def test_an_error_in_the_loop_ends_everything(model: Path, overlap: bool) -> None:
    with pytest.raises(LookupError):
        for _ in arenite.Pipeline(arenite.open(model), (card("red") for _ in range(100)), overlap=overlap):
            raise LookupError


def test_a_source_that_never_returns_is_left_behind(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_channel, "_PATIENCE_S", 0.05)
    asked, never = threading.Event(), threading.Event()

    def source() -> Iterator[np.ndarray]:
        yield card("red")
        asked.set()
        never.wait(60)

    frames = iter(arenite.Pipeline(arenite.open(model), source()))
    next(frames)
    asked.wait(60)
    with pytest.warns(RuntimeWarning, match=r"the source generator has not returned"):
        frames.close()  # type: ignore[attr-defined]
    never.set()
    for thread in threading.enumerate():
        if thread.name == "arenite-feeder":
            thread.join()


def test_an_interrupt_in_the_source(model: Path) -> None:
    def source() -> Iterator[np.ndarray]:
        yield card("red")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        arenite.Pipeline(arenite.open(model), source()).run()


@both
def test_ctrl_c_ends_the_process(model: Path, folder: Path, overlap: bool) -> None:
    program = (
        "import sys, arenite\n"
        "session = arenite.open(sys.argv[1])\n"
        "source = arenite.PictureFolder(sys.argv[2], repeat=0, fps=200)\n"
        "for frame in arenite.Pipeline(session, source, overlap=sys.argv[3] == 'True'):\n"
        "    if frame.number == 5: print('running', flush=True)\n"
    )
    arguments = [sys.executable, "-c", program, str(model), str(folder), str(overlap)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert errors.count("Traceback") == 1


@both
def test_a_session_of_another_thread(model: Path, overlap: bool) -> None:
    session = arenite.open(model)
    has, done = threading.Event(), threading.Event()

    def hold() -> None:
        _ = session.input
        has.set()
        done.wait(60)

    holder = threading.Thread(target=hold, name="holder")
    holder.start()
    has.wait(60)
    closed: list[bool] = []

    class Camera(arenite.FrameSource):
        def close(self) -> None:
            closed.append(True)

    with pytest.raises(ConcurrentUseError, match="'holder'"):
        arenite.Pipeline(session, Camera(), overlap=overlap).run()
    assert closed
    done.set()
    holder.join()


@both
def test_while_it_runs_the_session_is_its_threads(model: Path, overlap: bool) -> None:
    session = arenite.open(model)
    refused: list[str] = []

    def other() -> None:
        try:
            session.classify(card("red"))
        except ConcurrentUseError as error:
            refused.append(str(error))

    for _ in arenite.Pipeline(session, [card("red")] * 2, overlap=overlap):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 2


@both
def test_report(model: Path, folder: Path, overlap: bool) -> None:
    source = arenite.PictureFolder(folder, repeat=20)
    pipeline = arenite.Pipeline(arenite.open(model), source, overlap=overlap, budget_ms=1e6, percentile=99)
    report = pipeline.run()
    stages = [row.stage for row in report.stages]
    assert stages == ["source", "read", "decode", "resize", *(["wait"] if overlap else []), "invoke", "post", "app"]
    assert report.frames == 180
    assert report.frames_per_s == pytest.approx(180 / report.duration_s)
    assert all(row.times.count == 180 and row.times.p99_ms is not None for row in report.stages)
    assert sum(row.share for row in report.stages) == pytest.approx(1)
    assert all(row.best_gain >= 1 for row in report.stages)
    assert report.work_on in stages and report.best_gain == max(row.best_gain for row in report.stages)
    assert report.budget is not None and report.budget.met and report.budget.misses == 0
    assert report.budget.work_on is None
    assert report.latency is not None and report.latency.p50_ms == pytest.approx(report.latency.p50_ms)
    assert report.pace is not None
    content = json.loads(json.dumps(plain(report), allow_nan=False))
    assert content["machine"]["cores"] >= 1 and content["thermal"]["readings"] >= 2
    assert "180 frames from" in str(report) and "budget 1e+06 ms for 99 %: kept" in str(report)


def test_a_budget_that_nothing_keeps(model: Path) -> None:
    report = arenite.Pipeline(arenite.open(model), [card("red")] * 10, budget_ms=1e-6, percentile=50).run()
    assert report.budget is not None
    assert (report.budget.misses, report.budget.met) == (10, False)
    assert report.budget.work_on is not None
    assert "NOT kept" in str(report)


def test_frames_are_skipped_to_keep_the_pace(model: Path) -> None:
    """Each frame costs far more than its interval: most are skipped, and the last answer stands for them."""
    pictures = [card("red" if i < 50 else "green") for i in range(100)]

    def post(session: arenite.Session) -> str:
        time.sleep(0.004)
        return session.labels()[0].text

    pipeline = arenite.Pipeline(arenite.open(model), pictures, every_ms=1.0, post=post)
    frames = list(pipeline)
    report = pipeline.report()
    assert len(frames) == 100
    assert report.skipped == sum(frame.skipped for frame in frames)
    assert report.frames == 100 - report.skipped
    assert report.skipped >= 50
    assert not frames[0].skipped
    for before, frame in pairwise(frames):
        if frame.skipped:
            assert frame.answer == before.answer and frame.image is None


def test_an_empty_source(model: Path) -> None:
    report = arenite.Pipeline(arenite.open(model), [], budget_ms=5).run()
    assert (report.frames, report.stages, report.latency, report.work_on, report.budget) == (0, (), None, None, None)
    assert "0 frames" in str(report)


def test_it_runs_once(model: Path) -> None:
    pipeline = arenite.Pipeline(arenite.open(model), [card("red")])
    pipeline.run()
    with pytest.raises(UsageError, match="runs once"):
        pipeline.run()


@pytest.mark.parametrize(
    "options",
    [{"budget_ms": 0}, {"budget_ms": float("nan")}, {"percentile": 0}, {"percentile": 101}, {"every_ms": -1}],
)
def test_nonsense_is_refused(model: Path, options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"above 0|every"):
        arenite.Pipeline(arenite.open(model), [], **options)  # type: ignore[arg-type]


def test_no_model_and_no_source(model: Path) -> None:
    with pytest.raises(UsageError, match="a str is no open model"):
        arenite.Pipeline(str(model), [])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a int is no frame source"):
        arenite.Pipeline(arenite.open(model), 5)
    with pytest.raises(UsageError, match="no such frame source"):
        arenite.Pipeline(arenite.open(model), "nowhere")
