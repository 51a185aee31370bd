# SPDX-License-Identifier: Apache-2.0
"""The session: LiteRT's own memory, views that keep it alive and go stale, and right answers."""

from __future__ import annotations

import gc
import operator
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image

import arenite
from arenite.engines import Placement
from arenite.engines.litert import KERNELS
from arenite.errors import ContractError, MissingToolError, ModelError, UsageError
from arenite.labels import read_labels
from arenite.output_view import StaleOutputError
from support.builder import ModelBuilder
from support.colour_model import LABELS, colour_model
from support.tflm import TflmModel


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "colours.tflite"
    path.write_bytes(colour_model())
    return path


def vector(seed: int = 0) -> npt.NDArray[np.int8]:
    return np.random.default_rng(seed).integers(-128, 128, (1, 4, 4, 3)).astype(np.int8)


def plain_litert(model: Path, kernels: str, value: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """The same model through LiteRT's own set_tensor and get_tensor."""
    resolver = getattr(OpResolverType, KERNELS[kernels][0])
    interpreter = Interpreter(str(model), num_threads=1, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize("kernels", ["fast", "builtin", "reference"])
def test_runs_on_the_engines_own_memory(model: Path, kernels: str) -> None:
    session = arenite.open(model, kernels=kernels)
    for seed in range(5):
        session.input[...] = vector(seed)
        session.run()
        assert np.array_equal(session.output, plain_litert(model, kernels, vector(seed)))
        # LiteRT rounds FULLY_CONNECTED once, the reference twice.
        expected = TflmModel(model.read_bytes()).run([vector(seed)])[0]
        assert np.abs(session.output.astype(int) - expected).max() <= 1
    assert session.report.kernels == kernels


def test_input_is_no_copy(model: Path) -> None:
    session = arenite.open(model)
    first = session.input
    first.fill(7)
    assert np.shares_memory(first, session.input)
    assert (session.input == 7).all()
    assert session.input.flags.writeable


def test_views_keep_the_session_alive(model: Path) -> None:
    session = arenite.open(model)
    session.input[...] = vector()
    session.run()
    expected = session.output.copy()
    row, output = session.input[0, 1], session.output
    del session
    gc.collect()
    blocks = [np.full(1 << 20, 0x55, np.uint8) for _ in range(20)]
    assert np.array_equal(row, vector()[0, 1])
    assert np.array_equal(output, expected)
    assert blocks


def test_output_raises_once_stale(model: Path) -> None:
    session = arenite.open(model)
    session.input[...] = vector()
    session.run()
    output = session.output
    kept, array = output.copy(), np.asarray(output)
    session.run()
    assert output.shape == (1, 3)
    for read in (lambda: output[0], lambda: np.asarray(output), lambda: output.argmax(), lambda: output + 1):
        with pytest.raises(StaleOutputError, match="stale"):
            read()
    assert "stale" in repr(output)
    assert np.array_equal(kept, array)


def test_classify_makes_outputs_stale(model: Path) -> None:
    session = arenite.open(model)
    session.run()
    output = session.output
    session.classify(np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(StaleOutputError):
        output.tolist()


def test_output_is_read_only(model: Path) -> None:
    session = arenite.open(model)
    session.run()
    output = session.output
    with pytest.raises(ValueError, match="read-only"):
        output[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        np.add(output, 1, out=output)
    with pytest.raises(ValueError, match="read-only"):
        output.fill(0)
    with pytest.raises(ValueError, match="copy"):
        np.array(output, copy=False)
    output[0].fill(99)
    assert not (output == 99).any()


def test_output_works_like_an_array(model: Path) -> None:
    session = arenite.open(model)
    session.input[...] = vector()
    session.run()
    output = session.output
    plain = output.copy()
    assert len(output) == 1
    assert [row.tolist() for row in output] == plain.tolist()
    assert np.array_equal(output + output, plain + plain)
    assert output.argmax() == plain.argmax() == np.argmax(output)
    assert np.asarray(output, np.float64).dtype == np.float64
    assert output.tobytes() == plain.tobytes()


@pytest.mark.parametrize(
    ("colour", "label"), [((255, 0, 0), "red"), ((0, 255, 0), "green"), ((0, 0, 255), "blue")]
)
def test_classify_sees_the_colour(model: Path, tmp_path: Path, colour: tuple[int, ...], label: str) -> None:
    picture = Image.new("RGB", (30, 20), colour)
    path = tmp_path / "card.png"
    picture.save(path)
    session = arenite.open(model)
    for source in (path, str(path), path.read_bytes(), picture, np.asarray(picture)):
        answer = session.classify(source)
        assert answer.best.text == label
        assert answer.best.index == LABELS.index(label)
        assert sum(found.score for found in answer.labels) == pytest.approx(1)
        assert answer.timing.invoke_ms > 0
        assert answer.timing.decode_ms > 0
        assert (answer.timing.read_ms > 0) == isinstance(source, (str, Path))


def test_top_k_and_equal_scores(model: Path) -> None:
    session = arenite.open(model)
    answer = session.classify(np.full((4, 4, 3), 128, np.uint8), top_k=2)
    assert [found.text for found in answer.labels] == ["red", "green"]


def test_without_contract_the_session_asks_for_one(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2, 2, 3), "int8", scales=[0.1])
    y = builder.tensor("y", (1, 2, 2, 3), "int8", scales=[0.1])
    builder.operator("RELU", [x], [y])
    path = tmp_path / "bare.tflite"
    path.write_bytes(builder.finish([x], [y]))
    session = arenite.open(path)
    session.input.fill(-5)
    session.run()
    assert (session.output == 0).all()
    with pytest.raises(ContractError, match=r"bare\.tflite.*contract=arenite\.make_contract"):
        session.classify(np.zeros((2, 2, 3), np.uint8))
    contract = arenite.make_contract(arenite.read_graph(path), normalisation="unit")
    assert arenite.open(path, contract=contract).classify(np.zeros((2, 2, 3), np.uint8)).labels


def test_several_inputs_have_no_single_view(tmp_path: Path) -> None:
    builder = ModelBuilder()
    inputs = [builder.tensor(n, (1, 4), "int8", scales=[0.1]) for n in "ab"]
    y = builder.tensor("y", (1, 4), "int8", scales=[0.1])
    builder.operator("ADD", inputs, [y], options="AddOptions")
    path = tmp_path / "add.tflite"
    path.write_bytes(builder.finish(inputs, [y]))
    session = arenite.open(path)
    with pytest.raises(UsageError, match="2 inputs"):
        _ = session.input
    session.inputs[0].fill(3)
    session.inputs[1].fill(4)
    session.run()
    assert (session.output == 7).all()


def test_report_says_what_runs_where(model: Path) -> None:
    fast, reference = arenite.open(model), arenite.open(model, kernels="reference")
    assert fast.report.placements == (Placement("XNNPACK", {"FULLY_CONNECTED": 1}),)
    assert reference.report.placements == (Placement("LiteRT", {"FULLY_CONNECTED": 1}),)
    assert (fast.report.rounding, reference.report.rounding) == ("float", "mixed")
    assert fast.report.refusals == () and fast.report.keeps_inputs
    assert reference.report.version[0].isdigit()


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_wrong_threads(model: Path, threads: object) -> None:
    with pytest.raises(UsageError, match="threads"):
        arenite.open(model, threads=threads)  # type: ignore[arg-type]


def test_wrong_kernels(model: Path) -> None:
    with pytest.raises(UsageError, match="'quick'"):
        arenite.open(model, kernels="quick")


def test_missing_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.tflite"):
        arenite.open(tmp_path / "gone.tflite")


def test_missing_engine_names_its_cure(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    with pytest.raises(MissingToolError, match=r"pip install 'arenite\[litert\]'"):
        arenite.open(model)


def test_importing_is_light() -> None:
    program = (
        "import sys, arenite;"
        "heavy = {'tensorflow', 'keras', 'PIL', 'jinja2', 'ai_edge_litert', 'tflite_micro'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_are_sorted_and_there() -> None:
    assert list(arenite.__all__) == sorted(arenite.__all__)
    assert [name for name in arenite.__all__ if not hasattr(arenite, name)] == []
    with pytest.raises(AttributeError, match="nonsense"):
        _ = arenite.nonsense


@pytest.mark.reference
@pytest.mark.parametrize(
    ("picture", "label"),
    [
        ("cat.bmp", "Egyptian cat"),
        ("bird.bmp", "chickadee"),
        ("parrot.jpg", "macaw"),
        ("grace_hopper.bmp", "military uniform"),
        ("hot_dog.jpg", "hotdog, hot dog, red hot"),
    ],
)
def test_imagenet_answers(shared_data: Path, picture: str, label: str) -> None:
    path = shared_data / "mobilenet_v2" / "tf2_mobilenet_v2_1.0_224_ptq.tflite"
    labels = read_labels(shared_data / "mobilenet_v2" / "imagenet_labels.txt")
    contract = arenite.make_contract(
        arenite.read_graph(path), normalisation="symmetric", labels=labels, meaning="probabilities"
    )
    answer = arenite.open(path, contract=contract).classify(shared_data / "pictures" / picture)
    assert answer.best.text == label


def test_output_before_the_first_run_raises(model: Path) -> None:
    session = arenite.open(model)
    output = session.output
    assert output.shape == (1, 3) and "not run yet" in repr(output)
    for read in (output.copy, lambda: output[0], lambda: np.asarray(output), lambda: output + 1, lambda: bool(output)):
        with pytest.raises(StaleOutputError, match="not run yet"):
            read()


def test_scalar_conversions_are_fresh(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(n, (1, 1), "int8", scales=[0.1]) for n in "xy")
    builder.operator("RELU", [x], [y])
    path = tmp_path / "one.tflite"
    path.write_bytes(builder.finish([x], [y]))
    session = arenite.open(path)
    session.input[...] = 0
    session.run()
    assert not session.output and 0 in session.output
    session.input[...] = 7
    session.run()
    output = session.output
    assert output and int(output) == 7 and float(output) == 7.0 and complex(output) == 7
    assert list(range(9))[output] == 7
    session.run()
    for convert in (bool, int, float, complex, operator.index):
        with pytest.raises(StaleOutputError, match="stale"):
            convert(output)


def test_given_contract_is_checked(model: Path) -> None:
    good = arenite.open(model).contract
    assert good is not None and good.input.picture is not None
    assert arenite.open(model, contract=good).contract == good
    picture = replace(good.input.picture, filter="magic")
    wrong = [
        (replace(good, rounding="up"), "rounding"),
        (replace(good, input=replace(good.input, picture=picture)), "filter"),
        (replace(good, input=replace(good.input, layout="NCHW")), "colour"),
        (replace(good, input=replace(good.input, layout="NCHW", picture=None)), "layout"),
        (replace(good, outputs=(replace(good.outputs[0], labels=("one",)),)), "labels"),
        (replace(good, name=object()), "JSON"),  # type: ignore[arg-type]
        ("a contract", "a str was given"),
    ]
    for contract, named in wrong:
        with pytest.raises(ContractError, match=named):
            arenite.open(model, contract=contract)  # type: ignore[arg-type]


def test_labels_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes("\ufefftench\r\ngreat\u2028white\x0cshark\n owl \n\n".encode())
    assert read_labels(path) == ("tench", "great\u2028white\x0cshark", "owl")
    path.write_text("a\nb\n\nd\n")
    with pytest.raises(UsageError, match=r"labels\.txt: line 3 of the labels is empty"):
        read_labels(path)


@pytest.mark.parametrize("top_k", [0, -1, 1.5, True])
def test_wrong_top_k(model: Path, top_k: object) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        arenite.open(model).classify(np.zeros((4, 4, 3), np.uint8), top_k=top_k)  # type: ignore[arg-type]


def test_labels_of_a_run_of_ones_own(model: Path) -> None:
    session = arenite.open(model)
    with pytest.raises(StaleOutputError, match="not run yet"):
        session.labels()
    picture = np.full((4, 4, 3), (10, 200, 30), np.uint8)
    answer = session.classify(picture)
    session.preprocessor(picture, session.input)
    session.run()
    assert session.labels() == answer.labels
    assert session.labels(1, threshold=0.5, temperature=0.5)[0].text == "green"
