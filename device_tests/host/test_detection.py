# SPDX-License-Identifier: Apache-2.0
"""Post-processing: scores, temperature and threshold; boxes, their suppression, and their way back to the picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arenite
from arenite.boxes import BOX_FORMATS, Boxes, suppress
from arenite.contract import CONTRACT_METADATA, Contract, OutputSpec, Quantised, make_contract
from arenite.errors import ContractError, UsageError
from arenite.labels import top
from arenite.tflite_graph import parse_graph
from support.builder import ModelBuilder

Array = npt.NDArray[Any]
FLOATS = OutputSpec("y", (1, 4), "float32", None, "logits", ())


def intersection_over_union(a: Array, b: Array) -> float:
    """Of two boxes, plainly."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    whole = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return float(shared / whole)


def plain_suppress(boxes: Array, scores: Array, overlap: float) -> list[int]:
    """The definition, box against box."""
    taken: list[int] = []
    for i in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        if all(intersection_over_union(boxes[i], boxes[j]) <= overlap for j in taken):
            taken.append(i)
    return taken


def random_boxes(count: int, seed: int) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    corner = generator.uniform(0, 1, (count, 2))
    return np.concatenate([corner, corner + generator.uniform(0.05, 0.5, (count, 2))], 1), generator.uniform(size=count)


@settings(max_examples=60, deadline=None)
@given(count=st.integers(0, 40), seed=st.integers(0, 1000), overlap=st.sampled_from([0.0, 0.3, 0.45, 0.7, 1.0]))
def test_suppression_is_the_definition(count: int, seed: int, overlap: float) -> None:
    boxes, scores = random_boxes(count, seed)
    assert suppress(boxes, scores, overlap, count) == plain_suppress(boxes, scores, overlap)


def test_suppression_is_tensorflows() -> None:
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not here: pip install 'arenite[convert]'")
    for seed in range(20):
        boxes, scores = random_boxes(80, seed)
        boxes, scores = boxes.astype(np.float32), scores.astype(np.float32)
        expected = tf.image.non_max_suppression(boxes[:, [1, 0, 3, 2]], scores, 30, 0.4).numpy().tolist()
        assert suppress(boxes, scores, 0.4, 30) == expected


def test_suppression_is_torchvisions() -> None:
    torch = pytest.importorskip("torch", reason="torch is not here")
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not here")
    boxes, scores = random_boxes(80, 3)
    expected = ops.nms(torch.from_numpy(boxes), torch.from_numpy(scores), 0.4).tolist()
    assert suppress(boxes, scores, 0.4, 80) == expected


def test_equal_scores_keep_their_order() -> None:
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [0, 0, 1, 1]], float)
    assert suppress(boxes, np.full(4, 0.5), 0.5, 4) == [0, 2]


@pytest.mark.parametrize("format", BOX_FORMATS)
@pytest.mark.parametrize("units", ["unit", "input"])
def test_formats_of_boxes(format: str, units: str) -> None:
    """One box, from (8, 4) to (24, 16) of an input of 64×32."""
    written = {
        "xyxy": (8, 4, 24, 16),
        "yxyx": (4, 8, 16, 24),
        "xywh": (8, 4, 16, 12),
        "cxcywh": (16, 10, 16, 12),
    }[format]
    scale = (32, 64, 32, 64) if format == "yxyx" else (64, 32, 64, 32)
    values = np.array([written], float) / (np.array(scale) if units == "unit" else 1)
    found = Boxes(format=format, units=units).corners(values, (64, 32))
    assert np.allclose(found, [[8 / 64, 4 / 32, 24 / 64, 16 / 32]])


def detector(numbers: int, boxes: Boxes, scores: int | None = None, **choices: Any) -> bytes:
    """A network whose outputs are its input, read as boxes: five of `numbers`; `scores` classes as a second output."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 20, 40, 3), "float32")
    outputs = []
    for name, width in (("boxes", numbers), ("scores", scores)):
        if width is None:
            continue
        begin = builder.tensor(f"{name} begin", (2,), "int32", data=np.zeros(2, np.int32))
        size = builder.tensor(f"{name} size", (2,), "int32", data=np.array([1, 5 * width], np.int32))
        flat = builder.tensor(f"{name} flat", (1, 2400), "float32")
        part = builder.tensor(name, (1, 5 * width), "float32")
        to_flat = builder.tensor(f"{name} s", (2,), "int32", data=np.array([1, 2400], np.int32))
        shape = (1, 5, width) if boxes.layout == "rows" else (1, width, 5)
        to_shape = builder.tensor(f"{name} t", (3,), "int32", data=np.array(shape, np.int32))
        out = builder.tensor(f"{name} out", shape, "float32")
        builder.operator("RESHAPE", [x, to_flat], [flat], options="ReshapeOptions")
        builder.operator("SLICE", [flat, begin, size], [part], options="SliceOptions")
        builder.operator("RESHAPE", [part, to_shape], [out], options="ReshapeOptions")
        outputs.append(out)
    model = builder.finish([x], outputs)
    contract = make_contract(parse_graph(model), normalisation="unit", filter="nearest", boxes=boxes, **choices)
    builder.metadata(CONTRACT_METADATA, contract.to_json().encode())
    return builder.finish([x], outputs)


def picture_of(values: Array) -> npt.NDArray[np.uint8]:
    """A picture whose first bytes are these values of 0..1, so that the network's outputs are they."""
    pixels = np.zeros(2400, np.uint8)
    pixels[: values.size] = np.round(np.ravel(values) * 255).astype(np.uint8)
    return pixels.reshape(20, 40, 3)


ROWS = np.array(
    [
        # left, top, right, bottom, score of cat, score of dog
        [0.2, 0.2, 0.6, 0.6, 0.8, 0.0],
        [0.2, 0.2, 0.6, 0.64, 0.6, 0.4],
        [0.2, 0.2, 0.6, 0.6, 0.0, 0.2],
        [0.6, 0.4, 0.4, 0.2, 1.0, 1.0],
        [0.8, 0.8, 1.0, 1.0, 0.0, 1.0],
    ]
)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_boxes_come_out_on_the_picture(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector(6, Boxes(layout=layout), labels=("cat", "dog")))
    session = arenite.open(path)
    picture = picture_of(ROWS if layout == "rows" else ROWS.T)
    answer = session.detect(picture, threshold=0.3, overlap=0.5)
    found = [(d.label.text, round(d.label.score, 2)) for d in answer.found]
    # The second cat overlaps the first, the dog at the same place does not count as one; the fourth is inside out.
    assert found == [("dog", 1.0), ("cat", 0.8), ("dog", 0.4)]
    cat = answer.found[1]
    assert (cat.left, cat.top, cat.right, cat.bottom) == pytest.approx((8, 4, 24, 12), abs=0.1)
    assert answer.timing.post_ms > 0 and answer.timing.invoke_ms > 0
    assert len(session.detect(picture, threshold=0.3, overlap=1.0).found) == 4
    assert len(session.detect(picture, threshold=0.1, overlap=0.5, most=1).found) == 1
    assert session.detect(picture, threshold=1.0, overlap=0.5).found[0].label.text == "dog"


def test_boxes_follow_crop_and_resize(tmp_path: Path) -> None:
    """A centre crop of 80×40 out of 120×40, half of it kept: from (40, 10) to (80, 30)."""
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector(6, Boxes(), crop="centre", crop_fraction=0.5))
    session = arenite.open(path)
    whole = np.zeros((40, 120, 3), np.uint8)
    whole[10:30, 40:80] = picture_of(ROWS)
    found = session.detect(whole, threshold=0.7).found
    assert [d.label.text for d in found] == ["class 1", "class 0"]
    assert (found[1].left, found[1].top) == pytest.approx((40 + 8, 10 + 4), abs=0.1)
    assert (found[0].right, found[0].bottom) == pytest.approx((80, 30), abs=0.1)


def test_scores_of_another_output(tmp_path: Path) -> None:
    """Both outputs begin with the same numbers here: box (0.2, 0.4, 0.6, 0.8) has the scores 0.2 and 0.4."""
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector(4, Boxes(scores_output=1), scores=2, labels=("cat", "dog")))
    values = np.array([0.2, 0.4, 0.6, 0.8] * 5)
    found = arenite.open(path).detect(picture_of(values), threshold=0.1, overlap=0.9).found
    assert [(d.label.text, round(d.label.score, 1)) for d in found] == [("dog", 0.8), ("cat", 0.6)]


def test_activation_and_objectness() -> None:
    how = Boxes(activation="sigmoid", objectness=True)
    values = np.array([[-800.0, 0.0, 800.0]])
    assert np.allclose(how.activated(values), [[0, 0.5, 1]])
    assert np.allclose(Boxes(activation="softmax").activated(values), [[0, 0, 1]])
    assert how.classes((1, 9, 7)) == 2 and Boxes(layout="columns").classes((1, 84, 8400)) == 80


def test_objectness_multiplies(tmp_path: Path) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector(6, Boxes(objectness=True)))
    row = [0.2, 0.2, 0.6, 0.6, 0.6, 0.8]
    found = arenite.open(path).detect(picture_of(np.array([row] * 5)), threshold=0.3).found
    assert [round(d.label.score, 2) for d in found] == [0.48]


def test_contract_of_boxes_survives(tmp_path: Path) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector(4, Boxes("cxcywh", "input", "columns", False, "sigmoid", 1), scores=3, labels="abc"))
    contract = arenite.open(path).contract
    assert contract is not None
    assert Contract.from_json(contract.to_json()) == contract
    assert json.loads(contract.to_json())["outputs"][0]["boxes"]["format"] == "cxcywh"
    assert "boxes" not in json.loads(contract.to_json())["outputs"][1]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"format": "ltrb"}, r"boxes\.format"),
        ({"objectness": 1}, r"boxes\.objectness.*true or false"),
        ({"scores_output": 0}, "place of another output"),
        ({"scores_output": 7}, "place of another output"),
        ({"layout": "rows"}, "scores_output.*4 boxes"),
        ({"speed": 1}, "unknown"),
    ],
)
def test_wrong_boxes_are_named(change: dict[str, object], named: str) -> None:
    model = detector(4, Boxes(layout="columns", scores_output=1), scores=3)
    fields = json.loads(parse_graph(model).metadata[CONTRACT_METADATA])
    fields["outputs"][0]["boxes"].update(change)
    with pytest.raises(ContractError, match=named):
        Contract.from_json(json.dumps(fields))


def test_wrong_labels_and_shapes_are_named() -> None:
    with pytest.raises(ContractError, match=r"labels.*2, one for each class"):
        detector(6, Boxes(), labels=("cat",))
    with pytest.raises(ContractError, match=r"labels.*3, one for each class"):
        detector(4, Boxes(scores_output=1), scores=3, labels=("cat",))
    with pytest.raises(ContractError, match="5 numbers or more"):
        detector(4, Boxes())


def test_asking_for_the_wrong_answer(tmp_path: Path) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector(6, Boxes()))
    session = arenite.open(path)
    with pytest.raises(ContractError, match=r"boxes.*session\.detect"):
        session.classify(picture_of(ROWS))
    with pytest.raises(UsageError, match="threshold"):
        session.detect(picture_of(ROWS), threshold=1.5)
    with pytest.raises(UsageError, match="at least 1"):
        session.detect(picture_of(ROWS), most=0)


def test_softmax_with_temperature() -> None:
    logits = np.array([[1.0, 3.0, 2.0, -1.0]], np.float32)
    for temperature in (0.5, 1.0, 4.0):
        exact = np.exp(logits[0].astype(float) / temperature)
        exact /= exact.sum()
        found = top(logits, FLOATS, 4, temperature=temperature)
        assert [label.index for label in found] == [1, 2, 0, 3]
        assert [label.score for label in found] == pytest.approx([exact[i] for i in (1, 2, 0, 3)])


def test_temperature_of_probabilities_is_that_of_their_logits() -> None:
    logits = np.array([0.5, -1.0, 2.0, 0.0])
    probabilities = np.exp(logits) / np.exp(logits).sum()
    spec = OutputSpec("y", (1, 4), "float32", None, "probabilities", ())
    warm = top(probabilities[None], spec, 4, temperature=3)
    assert [x.score for x in warm] == pytest.approx([x.score for x in top(logits[None], FLOATS, 4, temperature=3)])
    certain = top(np.array([[0, 1, 0, 0]]), spec, 4, temperature=2)
    assert [x.score for x in certain] == [1, 0, 0, 0]


def test_threshold_counts_equal_scores() -> None:
    spec = OutputSpec("y", (1, 4), "int8", Quantised(1 / 256, -128), "probabilities", ("a", "b", "c", "d"))
    values = np.array([[-128, 0, 64, -64]], np.int8)  # 0, 0.5, 0.75, 0.25
    assert [x.text for x in top(values, spec, threshold=0.5)] == ["c", "b"]
    assert top(values, spec, threshold=0.9) == ()
    assert [x.text for x in top(values, spec, 1)] == ["c"]


@pytest.mark.parametrize("temperature", [0, -1, float("nan"), float("inf")])
def test_wrong_temperature_is_named(temperature: float) -> None:
    with pytest.raises(UsageError, match="temperature"):
        top(np.zeros((1, 4)), FLOATS, temperature=temperature)


def test_values_have_no_temperature() -> None:
    with pytest.raises(UsageError, match="no temperature"):
        top(np.zeros((1, 4)), OutputSpec("y", (1, 4), "float32", None, "values", ()), temperature=2)


def test_best_below_the_threshold_is_said(tmp_path: Path) -> None:
    answer = arenite.Classification((), arenite.Timing())
    with pytest.raises(UsageError, match="no label reaches the threshold"):
        _ = answer.best
