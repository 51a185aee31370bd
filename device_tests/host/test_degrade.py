# SPDX-License-Identifier: Apache-2.0
"""Cascade, adaptive size, skipped frames: what is decided, and that it is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import arenite
from arenite.degrade import FrameSkipper
from arenite.errors import FrameError, UsageError
from support.colour_model import colour_model

both = pytest.mark.parametrize("overlap", [True, False], ids=["overlapped", "in turn"])
CLEAR, MIXED = (250, 10, 10), (120, 118, 119)


def opened(tmp_path: Path, name: str, **options: object) -> arenite.Session:
    path = tmp_path / f"{name}.tflite"
    preprocessing = str(options.pop("preprocessing", "exact"))
    path.write_bytes(colour_model(**options))  # type: ignore[arg-type]
    return arenite.open(path, preprocessing=preprocessing)


def cards(*colours: tuple[int, int, int]) -> list[np.ndarray]:
    return [np.full((16, 16, 3), colour, np.uint8) for colour in colours]


@both
def test_cascade_asks_the_second_model_when_unsure(tmp_path: Path, overlap: bool) -> None:
    first = opened(tmp_path, "small")
    second = opened(tmp_path, "large", side=8, labels=("Red", "Green", "Blue"))
    cascade = arenite.Cascade(first, second, unsure=0.6)
    pictures = cards(CLEAR, MIXED, CLEAR, MIXED, MIXED)
    expected = [(second if picture[0, 0, 0] == 120 else first).classify(picture).labels for picture in pictures]
    pipeline = arenite.Pipeline(cascade, pictures, overlap=overlap)
    assert [frame.answer for frame in pipeline] == expected
    report = pipeline.report()
    assert report.decisions == {"first model": 2, "second model": 3}
    assert report.models == (first.model_sha256, second.model_sha256)
    stages = {row.stage: row.times for row in report.stages}
    assert stages["second"].max_ms > 0 and stages["second"].min_ms == 0
    assert "second model 3" in str(report)


def test_cascade_by_a_function(tmp_path: Path) -> None:
    sessions = opened(tmp_path, "a"), opened(tmp_path, "b", labels=("Red", "Green", "Blue"))
    cascade = arenite.Cascade(*sessions, unsure=lambda text: text == "red")
    found = arenite.Pipeline(cascade, cards(CLEAR, (0, 255, 0)), post=lambda session: session.labels()[0].text)
    assert [frame.answer for frame in found] == ["Red", "green"]


def test_cascade_without_labels_is_unsure(tmp_path: Path) -> None:
    cascade = arenite.Cascade(opened(tmp_path, "a"), opened(tmp_path, "b"))
    report = arenite.Pipeline(cascade, cards(MIXED), threshold=0.99).run()
    assert report.decisions == {"second model": 1}


def test_cascade_cannot_read_every_answer(tmp_path: Path) -> None:
    cascade = arenite.Cascade(opened(tmp_path, "a"), opened(tmp_path, "b"))
    with pytest.raises(FrameError, match="second failed: a cascade cannot tell from a int whether the model is unsure"):
        arenite.Pipeline(cascade, cards(CLEAR), post=lambda _: 5).run()


def test_cascade_shares_one_decoded_picture(tmp_path: Path) -> None:
    """The exact one of the two decides how much is decoded, so that it sees what it sees alone."""
    fast = opened(tmp_path, "fast", preprocessing="fast")
    exact = opened(tmp_path, "exact", side=8)
    noise = np.random.default_rng(3).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    from PIL import Image

    path = tmp_path / "noise.jpg"
    Image.fromarray(noise).resize((512, 512)).save(path)
    cascade = arenite.Cascade(fast, exact, unsure=1.0)
    (frame,) = arenite.Pipeline(cascade, path)
    assert frame.image is not None and frame.image.size == (512, 512)
    assert frame.answer == exact.classify(path).labels


@pytest.mark.parametrize("unsure", [-0.1, 1.1, float("nan")])
def test_cascade_refuses_nonsense(tmp_path: Path, unsure: float) -> None:
    session = opened(tmp_path, "a")
    with pytest.raises(UsageError, match="no limit"):
        arenite.Cascade(session, session, unsure=unsure)


def test_cascade_of_two_orientations(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="orientation"):
        arenite.Cascade(opened(tmp_path, "a"), opened(tmp_path, "b", orientation="stored"))


def sizes(tmp_path: Path) -> list[arenite.Session]:
    return [opened(tmp_path, f"side {side}", side=side) for side in (4, 16, 8)]


def feed(chooser: arenite.AdaptiveSize, cost_ms: dict[int, float], frames: int) -> list[int]:
    """Pretends that a frame of each size costs so much; the sizes that were picked."""
    picked = []
    for _ in range(frames):
        session = chooser.pick()
        side = session.preprocessor.size[0]
        picked.append(side)
        chooser.learn(session, cost_ms[side])
    return picked


def test_adaptive_size_finds_what_fits_and_stays(tmp_path: Path) -> None:
    chooser = arenite.AdaptiveSize(sizes(tmp_path), budget_ms=20)
    picked = feed(chooser, {16: 60, 8: 15, 4: 4}, 100)
    assert picked[:8] == [16] * 8
    assert set(picked[8:]) == {8}
    assert chooser.decisions == {"16×16": 8, "8×8": 92, "smaller input": 1}


def test_adaptive_size_grows_again(tmp_path: Path) -> None:
    chooser = arenite.AdaptiveSize(sizes(tmp_path), budget_ms=20)
    assert feed(chooser, {16: 60, 8: 30, 4: 10}, 40)[-1] == 4
    picked = feed(chooser, {16: 16, 8: 4, 4: 1}, 700)  # cool again; what it cost is forgotten after 300 frames
    assert picked[0] == 4 and picked[-1] == 16
    assert chooser.decisions["larger input"] == 2
    assert chooser.decisions["smaller input"] == 2


def test_adaptive_size_has_no_smaller_one(tmp_path: Path) -> None:
    chooser = arenite.AdaptiveSize(sizes(tmp_path), budget_ms=1)
    assert set(feed(chooser, {16: 60, 8: 30, 4: 10}, 300)[20:]) == {4}


@both
def test_adaptive_size_in_a_pipeline(tmp_path: Path, overlap: bool) -> None:
    """No budget is that small: it ends with the smallest input, and answers rightly all the way."""
    sessions = sizes(tmp_path)
    pictures = cards((250, 10, 10), (10, 250, 10), (10, 10, 250)) * 20
    pipeline = arenite.Pipeline(arenite.AdaptiveSize(sessions, budget_ms=1e-4), pictures, overlap=overlap)
    assert [frame.answer[0].text for frame in pipeline] == ["red", "green", "blue"] * 20
    report = pipeline.report()
    assert report.decisions["smaller input"] == 2
    assert sum(report.decisions[f"{side}×{side}"] for side in (4, 8, 16)) == 60
    assert report.pace is None


def test_adaptive_size_refuses_nonsense(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="budget"):
        arenite.AdaptiveSize(sizes(tmp_path), budget_ms=0)
    with pytest.raises(UsageError, match="no session"):
        arenite.AdaptiveSize([], budget_ms=1)


@pytest.mark.parametrize(("cost_ms", "answered"), [(5, 1.0), (10, 1.0), (20, 1 / 2), (25, 2 / 5), (100, 1 / 10)])
def test_as_many_frames_as_can_be_answered(cost_ms: float, answered: float) -> None:
    skipper = FrameSkipper(10)
    count = 0
    for _ in range(1000):
        if not skipper.skip():
            count += 1
            skipper.spent(cost_ms)
    assert count == pytest.approx(1000 * answered, abs=1)


def test_time_that_was_not_used_is_not_saved_up() -> None:
    skipper = FrameSkipper(10)
    for _ in range(100):
        assert not skipper.skip()
        skipper.spent(1)
    skipper.spent(25)
    assert skipper.skip() and not skipper.skip()
