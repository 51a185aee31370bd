# SPDX-License-Identifier: Apache-2.0
"""Skew: which step of which library differs, by how much, and what the answer becomes."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import arenite
from arenite._text import models as models_text
from arenite.contract import CONTRACT_METADATA, make_contract
from arenite.errors import ContractError, UsageError
from arenite.serving_skew import fast_skew, synthetic_picture
from arenite.tflite_graph import parse_graph
from support.builder import ModelBuilder

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def brightness_model(**choices: object) -> bytes:
    """Red, green and blue of a 32×32 picture, averaged: three logits."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 32, 32, 3), "int8", scales=[1 / 255], zero_points=[-128])
    axes = builder.tensor("axes", (2,), "int32", data=np.array([1, 2], np.int32))
    y = builder.tensor("y", (1, 3), "int8", scales=[1 / 255], zero_points=[-128])
    builder.operator("MEAN", [x, axes], [y], options="ReducerOptions")
    arguments = {"normalisation": "unit", "labels": ("red", "green", "blue"), "meaning": "logits", **choices}
    contract = make_contract(parse_graph(builder.finish([x], [y])), **arguments)  # type: ignore[arg-type]
    builder.metadata(CONTRACT_METADATA, contract.to_json().encode())
    return builder.finish([x], [y])


def jpeg(size: tuple[int, int] = (640, 480), **options: object) -> bytes:
    """Fine stripes over a gradient: what antialiasing is for."""
    x, y = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    stripes = np.where(x // 2 % 2, 220, 30)
    pixels = np.stack([stripes, x * 255 // size[0], y * 255 // size[1]], -1).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=95, **options)
    return stream.getvalue()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "colours.tflite"
    path.write_bytes(brightness_model())
    return path


def routes(report: object) -> dict[str, object]:
    return {route.name: route for route in report.routes}  # type: ignore[attr-defined]


def test_the_same_library_and_filter_differ_nowhere(model: Path) -> None:
    """x/255 over a scale of 1/255 has no ties, so another rounding rule does not show."""
    report = arenite.skew(model, jpeg())
    pillow = routes(report)["Pillow, bilinear"]
    assert pillow.first is None and pillow.output_sqnr_db is None and pillow.score_change == 0  # type: ignore[attr-defined]
    assert all(not difference.differs for difference in pillow.differences.values())  # type: ignore[attr-defined]


def test_another_filter_differs_at_the_resize(model: Path) -> None:
    bicubic = routes(arenite.skew(model, jpeg()))["Pillow, its default (bicubic)"]
    assert bicubic.first == "resize"  # type: ignore[attr-defined]


def test_fast_mode_differs_at_the_decode(model: Path) -> None:
    fast = routes(arenite.skew(model, jpeg()))["Arenite, fast"]
    assert fast.first == "decode"  # type: ignore[attr-defined]
    assert fast.differences["decode"].note == "80×60 instead of 640×480"  # type: ignore[attr-defined]


def test_a_library_without_antialiasing_changes_the_answer(model: Path) -> None:
    """TensorFlow's default takes single pixels of the stripes."""
    pytest.importorskip("tensorflow", reason="TensorFlow is not here: pip install 'arenite[convert]'")
    found = routes(arenite.skew(model, jpeg((960, 480))))
    plain, smooth = found["TensorFlow, bilinear"], found["TensorFlow, bilinear, antialias"]
    assert plain.differences["resize"].largest > 60 > 12 > smooth.differences["resize"].largest  # type: ignore[attr-defined]


def test_opencv_is_compared_when_it_is_here(model: Path) -> None:
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not here: pip install opencv-python-headless")
    content = jpeg((960, 480))
    linear = routes(arenite.skew(model, content))["OpenCV, INTER_LINEAR"]
    decoded = cv2.cvtColor(cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    exact = np.asarray(Image.open(io.BytesIO(content)).resize((32, 32), Image.Resampling.BILINEAR)).astype(int)
    apart = np.abs(cv2.resize(decoded, (32, 32)).astype(int) - exact)
    assert linear.differences["resize"].largest == apart.max()  # type: ignore[attr-defined]
    assert linear.differences["resize"].mean == pytest.approx(apart.mean())  # type: ignore[attr-defined]


@pytest.mark.parametrize("choices", [{"colour": "BGR"}, {"filter": "box"}, {"filter": "nearest"}])
def test_routes_follow_the_contract(tmp_path: Path, choices: dict[str, object]) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(brightness_model(**choices))
    report = arenite.skew(path, jpeg())
    pillow = routes(report)[f"Pillow, {choices.get('filter', 'bilinear')}"]
    assert pillow.first is None  # type: ignore[attr-defined]


def test_cutting_out_first_differs_at_the_edges_only(tmp_path: Path) -> None:
    """The filter sees no pixel outside the cut, as it does with a box: a small skew of its own, and it is told."""
    path = tmp_path / "model.tflite"
    path.write_bytes(brightness_model(crop="centre", crop_fraction=0.5))
    pillow = routes(arenite.skew(path, jpeg()))["Pillow, bilinear"]
    assert pillow.first == "resize" and pillow.differences["resize"].mean < 0.2  # type: ignore[attr-defined]


def test_turned_pictures_are_turned_by_all(model: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    report = arenite.skew(model, jpeg(exif=exif))
    assert routes(report)["Pillow, bilinear"].first is None  # type: ignore[attr-defined]
    assert routes(report)["Arenite, fast"].differences["decode"].note == "60×80 instead of 480×640"  # type: ignore[attr-defined]


def test_command(arenite_command: Command, model: Path, tmp_path: Path) -> None:
    picture = tmp_path / "stripes.jpg"
    picture.write_bytes(jpeg())
    done = arenite_command("skew", model, picture, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["same_answer"] else 1)
    assert report["best"]["text"] in ("red", "green", "blue")
    assert {"name", "first", "differences", "same_answer", "score_change"} <= set(report["routes"][0])
    said = arenite_command("skew", model, picture)
    assert "Pillow, bilinear" in said.stdout and "nowhere" in said.stdout and said.returncode == done.returncode


def test_what_is_no_picture_is_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ndarray is no picture file"):
        arenite.skew(model, np.zeros((4, 4, 3), np.uint8))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot decode"):
        arenite.skew(model, b"no picture")
    with pytest.raises(UsageError, match=r"gone\.jpg"):
        arenite.skew(model, tmp_path / "gone.jpg")


def test_without_a_contract(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 2, 2, 3), "int8", scales=[0.1]) for name in "xy")
    builder.operator("RELU", [x], [y])
    path = tmp_path / "bare.tflite"
    path.write_bytes(builder.finish([x], [y]))
    with pytest.raises(ContractError, match="no contract"):
        arenite.skew(path, jpeg())


def test_inspect_prints_the_skew_of_the_fast_mode(model: Path, tmp_path: Path) -> None:
    report = arenite.inspect(model)
    assert report.fast_skew is not None and report.fast_skew.picture.startswith("a synthetic")
    assert 0 < report.fast_skew.resized.largest < 12  # type: ignore[operator]
    picture = tmp_path / "stripes.jpg"
    picture.write_bytes(jpeg())
    spec = arenite.open(model).contract.input  # type: ignore[union-attr]
    found = arenite.inspect(model, picture)
    assert found.fast_skew == fast_skew(spec, picture)
    assert any(line.startswith("fast mode") and "stripes.jpg" in line for line in models_text.inspection(found))


def test_the_synthetic_picture_is_always_the_same() -> None:
    first = synthetic_picture()
    assert first == synthetic_picture()
    image = Image.open(io.BytesIO(first))
    assert image.size == (1920, 1080) and np.asarray(image).std() > 20
