# SPDX-License-Identifier: Apache-2.0
"""The report of a conversion: figures by the models themselves, one set of numbers as JSON, text and page."""

from __future__ import annotations

import base64
import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import arenite
from arenite import cli
from arenite._reports import plain
from arenite._text import models as models_text
from arenite.charts import Bar, Span, columns, spans
from arenite.contract import OutputSpec, Quantised, read_contract
from arenite.tflite_graph import parse_graph, read_graph
from arenite_converters import conversion_page
from arenite_converters.checks import check_graph, concat_cautions, output_cautions
from arenite_converters.quantisation import Sensitivity
from arenite_converters.quiet import quiet
from arenite_converters.report import ConversionReport
from support.builder import ModelBuilder
from support.photograph_network import CLASSES, photographs


@pytest.fixture(scope="module")
def report(keras_photographs: Path) -> ConversionReport:
    """Converted with the colours of calibration exchanged, and a serving sample of flat pictures."""
    return arenite.convert(
        keras_photographs / "model.keras",
        keras_photographs / "int8.tflite",
        calibration=photographs()[..., ::-1],
        evaluation=keras_photographs / "evaluation",
        serving_sample=photographs(12, seed=2, contrast=5),
        normalisation="symmetric",
        labels=("a", "b", "c", "<d>"),
    )


def test_agreement_is_that_of_the_two_models(report: ConversionReport, keras_photographs: Path) -> None:
    """Against the Keras model itself and the written file."""
    with quiet():
        import keras

        model = keras.models.load_model(keras_photographs / "model.keras")
        expected = np.asarray(model(photographs(24, seed=1).astype(np.float32) / 127.5 - 1), np.float64)
    session = arenite.open(report.path)
    found = []
    for path in sorted((keras_photographs / "evaluation").iterdir()):
        session.classify(path)
        found.append((np.array(session.output).astype(float)[0] + 128) / 256)
    agreed = report.agreement
    assert agreed.held_out and agreed.samples == 24
    assert agreed.top1 == (expected.argmax(1) == np.stack(found).argmax(1)).mean()
    noise = ((expected - np.stack(found)) ** 2).sum()
    assert agreed.sqnr_db == pytest.approx(10 * np.log10((expected**2).sum() / noise), abs=0.02)
    assert agreed.sqnr_interval_db[0] < agreed.sqnr_db < agreed.sqnr_interval_db[1]
    # Wilson's formula, written out.
    n, p, z = 24, agreed.top1, 1.959964
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n * n))
    low, high = ((p + z**2 / (2 * n) + side * half) / (1 + z**2 / n) for side in (-1, 1))
    assert agreed.top1_interval == pytest.approx((max(0, low), min(1, high)), abs=1e-6)


def test_wrong_samples_are_cautions(report: ConversionReport) -> None:
    names = [caution.name for caution in report.cautions]
    assert names[:2] == [
        "calibration pictures look as if red and blue were exchanged (BGR for RGB)",
        "calibration and evaluation pictures have red and blue exchanged",
    ]
    assert "serving is far from calibration" in names
    text = "\n".join(models_text.conversion(report))
    assert all(f"CAUTION    {name}" in text for name in names)


def test_ranges_are_those_of_the_file(report: ConversionReport) -> None:
    graph = read_graph(report.path)
    by_name = {tensor.name: tensor for tensor in graph.tensors}
    assert len(report.tensors) >= 5
    for row in report.tensors:
        quantisation = by_name[row.name].quantisation
        assert quantisation is not None and row.range is not None
        scale, zero = quantisation.scales[0], quantisation.zero_points[0]
        assert row.range == ((-128 - zero) * scale, (127 - zero) * scale)
        assert row.operator in report.operators
        assert row.low < row.high and 0 <= row.clipped < 0.2
    assert report.operators == {kind: sum(op.kind == kind for op in graph.operators) for kind in report.operators}
    assert sum(report.operators.values()) == len(graph.operators)


def test_thumbnails_show_the_pictures(report: ConversionReport, keras_photographs: Path) -> None:
    for picture in report.worst_pictures:
        content = base64.b64decode(picture.thumbnail.removeprefix("data:image/jpeg;base64,"))
        shown = np.asarray(Image.open(io.BytesIO(content)), float)
        assert np.abs(shown - np.asarray(Image.open(picture.name), float)).mean() < 8  # JPEG's loss


def test_json_is_the_whole_report(report: ConversionReport) -> None:
    content = json.loads(json.dumps(plain(report), allow_nan=False))
    assert content["agreement"]["top1"] == report.agreement.top1
    assert len(content["tensors"]) == len(report.tensors)
    assert content["serving"]["tensors"][0]["clipped"] == report.serving.tensors[0].clipped  # type: ignore[union-attr]
    assert content["recipe"]["result_sha256"] == content["model_sha256"] == read_graph(report.path).sha256
    assert content["contract"]["outputs"][0]["labels"] == ["a", "b", "c", "<d>"]
    assert read_contract(report.path) == report.contract


def charts(page: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def test_page_holds_the_numbers_of_the_json(report: ConversionReport) -> None:
    rows = (Sensitivity("first", "CONV_2D", 21.25, 0.875),)
    page = conversion_page(replace(report, sensitivity=rows))
    content = plain(report)
    text = unescape(re.sub(r"<[^>]*>", " ", page))
    agreed, serving = content["agreement"], content["serving"]
    figures = [
        f"{agreed['top1']:.3f} (95 %: {agreed['top1_interval'][0]:.3f} to {agreed['top1_interval'][1]:.3f})",
        f"{agreed['sqnr_db']:.1f} dB",
        f"{content['file_bytes']:,} bytes",
        f"{content['float_bytes']:,} bytes",
        f"{serving['drift']:.3f} of 0",
        f"{serving['clipped']:.3%} of values",
        content["model_sha256"],
        content["recipe"]["model_sha256"],
        "21.2 dB",
        "0.875",
    ]
    answers = (picture["expected"] for picture in content["worst_pictures"])
    figures += [f"{answer['text']} {answer['score']:.3f}" for answer in answers]
    figures += [f"{i} {t['name']}: {t['sqnr_db']:.1f} dB" for i, t in enumerate(content["tensors"])]
    figures += [f"{i} {t['name']}: {t['clipped']:.3%}" for i, t in enumerate(serving["tensors"])]
    figures += [check["name"] for check in content["checks"]] + [caution["detail"] for caution in content["cautions"]]
    assert [figure for figure in figures if figure not in text] == []
    for kind, count in content["operators"].items():
        assert f"<th>{kind}</th><td>{count}</td>" in page


def test_bars_are_as_long_as_the_numbers(report: ConversionReport) -> None:
    """The first chart of columns: heights above the axis are the SQNR of the tensors, on one scale."""
    noise = charts(conversion_page(report))[1]
    heights = [float(next(g.iter("rect")).get("height", 0)) for g in noise.iter("g")]
    values = [t.sqnr_db for t in report.tensors]
    assert len(heights) == len(values)
    assert np.array(heights) / np.array(values) == pytest.approx(heights[0] / values[0], rel=0.01)


def test_page_needs_nothing_from_elsewhere(report: ConversionReport) -> None:
    page = conversion_page(report)
    assert not re.search(r"https?://|<script|<link|src=\"(?!data:)", page)
    assert "<d>" not in page  # a label is only ever text


def test_charts_of_odd_values() -> None:
    for values in ([], [math.inf], [-3.0, 2.0, -math.inf], [0.0]):
        ElementTree.fromstring(columns([Bar("n", value, "t") for value in values], "dB"))
    for ranges in ([], [Span("a", (0.0, 0.0), None)], [Span("<a>", (-1.0, 2.0), (-3.0, 3.0))]):
        ElementTree.fromstring(spans(ranges))


def test_failed_check_still_gives_a_page(
    keras_photographs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1, no model, and a page and JSON that say why."""
    files = [tmp_path / name for name in ("m.tflite", "page.html", "report.json")]
    source = (keras_photographs / "model.keras", "-o", files[0], "--calibration", keras_photographs / "calibration")
    options = ("--normalisation", "symmetric", "--min-top1", "1.01", "--report", files[1], "--report", files[2])
    assert cli.main([*map(str, ("convert", *source, *options))]) == 1
    said = r"top-1 agreement is at least 1.01: [01]\.\d{3} over 40 samples \(95 %: "
    assert re.search(said, capsys.readouterr().err)
    assert not files[0].exists()
    assert "refused: no file was written" in files[1].read_text() and "✗ failed" in files[1].read_text()
    content = json.loads(files[2].read_text())
    assert content["path"] == "" and [c["passed"] for c in content["checks"]].count(False) == 1
    assert content["cautions"] == [] and content["serving"] is None


def test_report_that_cannot_be_written_is_refused_first(keras_photographs: Path, tmp_path: Path) -> None:
    source = (keras_photographs / "model.keras", "-o", tmp_path / "m.tflite", "--calibration", keras_photographs)
    assert cli.main([*map(str, ("convert", *source, "--report", tmp_path / "none" / "page.html"))]) == 2
    assert list(tmp_path.iterdir()) == []


def concatenated(box: float, score: float) -> Any:
    """Two tensors joined on the scale of the larger, the second one after a QUANTIZE as converters write it."""
    builder = ModelBuilder()
    boxes = builder.tensor("boxes", (1, 8, 4), "int8", scales=[box / 255], zero_points=[-128])
    scores = builder.tensor("scores", (1, 8, 3), "int8", scales=[score / 255], zero_points=[-128])
    same = builder.tensor("scores1", (1, 8, 3), "int8", scales=[box / 255], zero_points=[-128])
    joined = builder.tensor("joined", (1, 8, 7), "int8", scales=[box / 255], zero_points=[-128])
    builder.operator("QUANTIZE", [scores], [same])
    builder.operator("CONCATENATION", [boxes, same], [joined], options="ConcatenationOptions", axis=2)
    return parse_graph(builder.finish([boxes, scores], [joined]))


@pytest.mark.parametrize(
    ("box", "said"),
    [(640, "all of it is rounded to one value"), (100, "2.5 steps of 256 are left"), (4, None)],
)
def test_parts_with_ranges_far_apart(box: float, said: str | None) -> None:
    """Boxes of 0..640 leave a score of 1.0 less than half a step: it becomes 0."""
    found = list(concat_cautions(concatenated(box, 1), {"boxes": (0, box), "scores": (0, 1)}))
    assert [caution.detail for caution in found] == ([] if said is None else [found[0].detail])
    if said is not None:
        assert said in found[0].detail and "'scores' spans 1" in found[0].detail
        step = box / 255
        assert found[0].detail.count(f"{step:g}") == 1
        assert round(1 / step) == (0 if box == 640 else 3)


def test_kinds_of_numbers_in_one_output() -> None:
    """As detectors without a CONCATENATION at their end have them."""
    rng = np.random.default_rng(0)
    values = [np.concatenate([rng.uniform(0, 640, (1, 8, 4)), rng.uniform(0, 1, (1, 8, 3))], 2) for _ in range(4)]
    spec = OutputSpec("y", (1, 8, 7), "int8", Quantised(640 / 255, -128), "values", ())
    (caution,) = output_cautions(values, spec)
    assert "3 of 7 along axis 2 (first: 4)" in caution.detail and "all of it is rounded" in caution.detail
    turned = replace(spec, shape=(1, 7, 8))
    (caution,) = output_cautions([v.transpose(0, 2, 1) for v in values], turned)
    assert "3 of 7 along axis 1 (first: 4)" in caution.detail
    boxes_alone = [v[:, :, :4] for v in values]
    assert not list(output_cautions(boxes_alone, replace(spec, shape=(1, 8, 4))))


def multiplied(source: float, weight: float, target: float, data: int = 3) -> bool:
    """Whether the check of shifts passes for a dense layer with these scales."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2), "int8", scales=[source])
    w = builder.tensor("w", (2, 2), "int8", scales=[0.1, weight], data=np.array([[1, 1], [data, 0]], np.int8))
    y = builder.tensor("y", (1, 2), "int8", scales=[target])
    builder.operator("FULLY_CONNECTED", [x, w], [y], options="FullyConnectedOptions")
    checks = {c.name: c.passed for c in check_graph(parse_graph(builder.finish([x], [y])))}
    return checks["every requantisation shift is one that kernels can do"]


def test_multipliers_that_no_kernel_can_do() -> None:
    """Shifts of -31 to 30 are what a 32-bit product can be shifted by; a channel of zeros may have any scale."""
    assert multiplied(0.1, 0.1, 0.1)
    assert multiplied(1.0, 2.0**29, 1.0) and not multiplied(1.0, 2.0**30, 1.0)
    assert multiplied(1.0, 2.0**-31, 1.0) and not multiplied(1.0, 2.0**-33, 1.0)
    assert multiplied(1.0, 2.0**-33, 1.0, data=0)
    assert not multiplied(0.0, 0.1, 0.1)
    assert CLASSES == 4
