# SPDX-License-Identifier: Apache-2.0
"""Conversion of trained models: right, checked, deterministic, and nothing half-written."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import arenite
from arenite._text import models as models_text
from arenite.contract import GOLDEN_METADATA, OutputSpec, Quantised
from arenite.errors import (
    AreniteError,
    CheckFailedError,
    ContractError,
    MissingToolError,
    ModelError,
    OutputError,
    UsageError,
)
from arenite.golden import golden_of
from arenite.tflite_graph import parse_graph, read_graph
from arenite_converters import golden as golden_module
from arenite_converters.checks import check_graph, check_outputs, check_tensors, last_computing_operator
from arenite_converters.loaders import load
from arenite_converters.quiet import quiet
from arenite_converters.report import ConversionReport, TensorQuality
from arenite_converters.writing import write_whole
from support.builder import ModelBuilder
from support.tflm import TflmModel

pytest.importorskip("tensorflow", reason="conversion needs TensorFlow: pip install 'arenite[convert]'")
LABELS = ("a", "b", "c", "d", "e")
SIZE = 16


def pictures(count: int = 30, seed: int = 0) -> npt.NDArray[np.uint8]:
    """Smooth random pictures, as photographs are."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (count, 5, 5, 3), dtype=np.uint8)
    resize = Image.Resampling.BICUBIC
    return np.stack([np.asarray(Image.fromarray(p).resize((SIZE + 4, SIZE), resize)) for p in small])


def build(keras: Any, size: int | None = SIZE, softmax: bool = True) -> Any:
    """The layers of a MobileNet: convolution, depthwise, batch norm, residual, pooling."""
    keras.utils.set_random_seed(7)
    layers = keras.layers
    x = inputs = keras.Input((size, size, 3))
    x = layers.Conv2D(8, 3, 2, "same")(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    y = layers.DepthwiseConv2D(3, padding="same")(x)
    x = layers.Add()([x, layers.Conv2D(8, 1)(layers.ReLU(6.0)(y))])
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(len(LABELS), kernel_initializer="random_normal")(layers.Rescaling(20.0)(x))
    return keras.Model(inputs, layers.Softmax()(x) if softmax else x)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def keras_file(folder: Path) -> Path:
    with quiet():
        import keras

        path = folder / "small.keras"
        build(keras).save(path)
    return path


@pytest.fixture(scope="module")
def converted(keras_file: Path, folder: Path) -> ConversionReport:
    return convert(keras_file, folder / "small.tflite")


def convert(source: Path, out: Path, **options: Any) -> ConversionReport:
    defaults: dict[str, Any] = {
        "calibration": pictures(),
        "evaluation": pictures(20, seed=1),
        "normalisation": "symmetric",
        "labels": LABELS,
    }
    return arenite.convert(source, out, **{**defaults, **options})


def test_everything_computes_in_int8(converted: ConversionReport) -> None:
    found = arenite.inspect(converted.path)
    assert found.quantisation == "int8"
    assert (found.inputs[0].dtype, found.outputs[0].dtype) == ("int8", "int8")
    assert found.model_sha256 == converted.model_sha256
    assert converted.loader.startswith("keras 3")
    assert all(check.passed for check in converted.checks)


def test_contract_is_in_the_file(converted: ConversionReport) -> None:
    contract = arenite.read_contract(converted.path)
    assert contract == converted.contract
    assert contract is not None
    assert contract.input.picture is not None
    assert contract.input.picture.normalisation.mean == (1.0, 1.0, 1.0)
    assert contract.outputs[0].meaning == "probabilities"
    assert contract.outputs[0].labels == LABELS
    assert contract.calibration is not None
    assert contract.calibration.samples == 30
    assert contract.tools["tensorflow"][0].isdigit()


def test_golden_vectors_are_the_references(converted: ConversionReport) -> None:
    graph = read_graph(converted.path)
    golden = golden_of(graph)
    assert golden is not None
    assert golden.authority.startswith("tflite-micro")
    model = TflmModel(Path(converted.path).read_bytes())
    for given, expected in zip(golden.inputs, golden.outputs, strict=True):
        assert np.array_equal(model.run([given])[0], expected)
    assert len({bytes(v) for v in golden.inputs}) == 3


def test_golden_inputs_are_the_sessions_inputs(converted: ConversionReport) -> None:
    session = arenite.open(converted.path)
    golden = golden_of(read_graph(converted.path))
    assert golden is not None
    for picture, expected in zip(pictures(20, seed=1), golden.inputs, strict=False):
        assert np.array_equal(session.preprocessor(picture), expected)


def test_agreement_is_what_keras_says(converted: ConversionReport, keras_file: Path) -> None:
    with quiet():
        import keras

        model = keras.models.load_model(keras_file)
        resized = [
            np.asarray(Image.fromarray(p).resize((SIZE, SIZE), Image.Resampling.BILINEAR))
            for p in pictures(20, seed=1)
        ]
        floats = model.predict(np.stack(resized) / 127.5 - 1, verbose=0)
    session = arenite.open(converted.path)
    answers = [session.classify(p).best for p in pictures(20, seed=1)]
    same = np.mean([a.index == f.argmax() for a, f in zip(answers, floats, strict=True)])
    assert converted.agreement.top1 == pytest.approx(same)
    assert converted.agreement.held_out
    assert np.allclose([a.score for a in answers], floats.max(axis=1), atol=0.1)
    assert answers[0].text in LABELS


def test_same_inputs_same_bytes(converted: ConversionReport, keras_file: Path, tmp_path: Path) -> None:
    again = convert(keras_file, tmp_path / "again.tflite")
    assert Path(again.path).read_bytes() == Path(converted.path).read_bytes()


def test_activations_are_compared(converted: ConversionReport) -> None:
    assert len(converted.tensors) >= 4
    assert 0.9 < min(t.cosine for t in converted.worst_tensors) <= 1
    ordered = [t.sqnr_db for t in converted.worst_tensors]
    assert ordered == sorted(ordered)


def test_failed_check_writes_nothing(keras_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.tflite"
    out.write_bytes(b"the last good model")
    with pytest.raises(CheckFailedError, match=r"SQNR is at least 99 dB: \d+\.\d dB over 20") as caught:
        convert(keras_file, out, min_sqnr_db=99)
    assert caught.value.exit_code == 1
    assert out.read_bytes() == b"the last good model"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"calibration": pictures(3)}, UsageError, "3 distinct"),
        ({"calibration": pictures()[:, :, :, :1]}, UsageError, "no picture"),
        ({"normalisation": None}, UsageError, "uint8"),
        ({"normalisation": "tanh"}, ContractError, "tanh"),
        ({"labels": ("a",)}, ContractError, "labels"),
        ({"labels": "nowhere.txt"}, UsageError, "nowhere.txt"),
        ({"meaning": "logits"}, ContractError, "softmax"),
        ({"input_shape": (8, 8, 3)}, UsageError, "16×16×3"),
        ({"golden": 0}, UsageError, "golden"),
    ],
)
def test_wrong_arguments(
    keras_file: Path, tmp_path: Path, options: dict[str, Any], error: type[AreniteError], named: str
) -> None:
    with pytest.raises(error, match=named):
        convert(keras_file, tmp_path / "model.tflite", **options)
    assert list(tmp_path.iterdir()) == []


def test_output_that_cannot_be_written(keras_file: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        convert(keras_file, tmp_path / "gone" / "model.tflite")
    (tmp_path / "folder.tflite").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        convert(keras_file, tmp_path / "folder.tflite")


def test_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(OutputError, match=r"model\.tflite.*No space left"):
        write_whole(tmp_path / "model.tflite", b"content")
    assert list(tmp_path.iterdir()) == []


def test_missing_tensorflow_names_its_cure(keras_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(MissingToolError, match=r"pip install 'arenite\[convert\]'"):
        load(keras_file)


def test_logits_need_a_meaning(folder: Path, tmp_path: Path) -> None:
    with quiet():
        import keras

        build(keras, softmax=False).save(folder / "logits.keras")
    with pytest.raises(ContractError, match="meaning"):
        convert(folder / "logits.keras", tmp_path / "model.tflite")
    report = convert(folder / "logits.keras", tmp_path / "model.tflite", meaning="logits")
    answer = arenite.open(report.path).classify(pictures()[0])
    assert sum(label.score for label in answer.labels) == pytest.approx(1)


def test_open_dimensions_need_a_shape(folder: Path, tmp_path: Path) -> None:
    with quiet():
        import keras

        build(keras, size=None).save(folder / "open.keras")
    with pytest.raises(UsageError, match=r"open \(\?×\?×3\).*input_shape"):
        convert(folder / "open.keras", tmp_path / "model.tflite")
    report = convert(folder / "open.keras", tmp_path / "model.tflite", input_shape=(SIZE, SIZE, 3))
    assert report.contract.input.shape == (1, SIZE, SIZE, 3)


def test_tensor_model_without_pictures(folder: Path, tmp_path: Path) -> None:
    with quiet():
        import keras

        keras.utils.set_random_seed(1)
        layers = [keras.Input((12,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(3)]
        keras.Sequential(layers).save(folder / "dense.keras")
    values = np.random.default_rng(0).normal(0, 3, (64, 12)).astype(np.float32)
    report = convert(
        folder / "dense.keras",
        tmp_path / "dense.tflite",
        calibration=values,
        evaluation=None,
        normalisation=None,
        labels=None,
    )
    assert report.contract.input.picture is None
    assert not report.agreement.held_out
    assert report.agreement.sqnr_db > 25


def test_all_zero_channel_keeps_a_scale(folder: Path, tmp_path: Path) -> None:
    with quiet():
        import keras

        model = build(keras)
        kernel, bias = model.layers[1].get_weights()
        kernel[..., 2] = 0
        model.layers[1].set_weights([kernel, bias])
        model.save(folder / "zero.keras")
    report = convert(folder / "zero.keras", tmp_path / "zero.tflite")
    scales = [s for t in read_graph(report.path).tensors if t.quantisation for s in t.quantisation.scales]
    assert min(scales) > 0


def test_operator_without_int8_form_is_named(folder: Path, tmp_path: Path) -> None:
    with quiet():
        import keras

        inputs = keras.Input((SIZE, SIZE, 3))
        x = keras.layers.GlobalAveragePooling2D()(keras.ops.erf(inputs))
        keras.Model(inputs, x).save(folder / "erf.keras")
    with pytest.raises(AreniteError, match=r"(?i)erf"):
        convert(folder / "erf.keras", tmp_path / "erf.tflite", labels=None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["keras.h5", "tf_keras.h5", "saved_model"])
def test_every_source_loads_and_is_named(folder: Path, kind: str) -> None:
    path = folder / f"source_{kind}"
    with quiet():
        import keras
        import tf_keras

        if kind == "keras.h5":
            build(keras).save(path)
        elif kind == "tf_keras.h5":
            # Keras 3 cannot read this one: its DepthwiseConv2D has an argument that is no more.
            build(tf_keras).save(path)
        else:
            build(keras).export(path, verbose=False)
        model = load(path)
        output = model.run(np.zeros((1, SIZE, SIZE, 3), np.float32))
    expected = {"keras.h5": "keras 3", "tf_keras.h5": "tf_keras 2", "saved_model": "SavedModel, tensorflow 2"}
    assert model.loader.startswith(expected[kind])
    assert model.shape == (1, SIZE, SIZE, 3)
    assert output.sum() == pytest.approx(1, abs=1e-5)


def test_lambda_layer_is_refused_unrun(folder: Path) -> None:
    path = folder / "lambda.h5"
    with quiet():
        import tf_keras

        layers = [tf_keras.layers.InputLayer((4,)), tf_keras.layers.Lambda(lambda x: x * 2)]
        tf_keras.Sequential(layers).save(path)
    with pytest.raises(ModelError, match=r"lambda\.h5.*Lambda layer.*would run"):
        load(path)


def test_weights_only_file_is_refused(folder: Path) -> None:
    path = folder / "only.weights.h5"
    with quiet():
        import keras

        build(keras).save_weights(path)
    with pytest.raises(ModelError, match="weights only"):
        load(path)


def test_two_outputs_are_refused(folder: Path) -> None:
    path = folder / "two.keras"
    with quiet():
        import keras

        x = keras.Input((4,))
        keras.Model(x, [keras.layers.Dense(2)(x), keras.layers.Dense(3)(x)]).save(path)
    with pytest.raises(ModelError, match="2 outputs"), quiet():
        load(path)


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("gone.keras", None, "no such file"),
        ("model.onnx", b"x", r"model\.onnx: the file is damaged or no ONNX model"),
        ("model.bin", b"x", r"'\.bin' is no trained model.*\.onnx, \.tflite or \.pt2"),
        ("model.h5", b"", "damaged"),
        ("model.h5", b"\x89HDF\r\n\x1a\n and no more", "damaged"),
        ("model.keras", b"PK\x03\x04 and no more", "keras: .*; tf_keras: "),
    ],
)
def test_sources_that_are_no_model(tmp_path: Path, name: str, content: bytes | None, named: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=named), quiet():
        load(tmp_path / name)


def test_folder_that_is_no_saved_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"saved_model\.pb"):
        load(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ModelError, match="cannot load the SavedModel"), quiet():
        load(tmp_path)


SPEC = OutputSpec("y", (1, 4), "int8", Quantised(1 / 256, -128), "probabilities", ())


def failed(checks: list[Any]) -> list[str]:
    return [check.name for check in checks if not check.passed]


def test_softmax_that_does_not_sum_to_one_is_caught() -> None:
    floats = [np.array([[0.7, 0.1, 0.1, 0.1]], np.float32), np.array([[0.1, 0.7, 0.1, 0.1]], np.float32)]
    good = [np.array([[51, -102, -102, -102]], np.int8), np.array([[-102, 51, -102, -102]], np.int8)]
    assert failed(check_outputs(floats, good, SPEC)) == []
    high = [np.array([[127, 127, 127, -128]], np.int8), good[1]]
    assert "sum to 1" in failed(check_outputs(floats, high, SPEC))[0]
    low = [np.array([[-128, -128, -128, -128]], np.int8), good[1]]
    assert "sum to 1" in failed(check_outputs(floats, low, SPEC))[0]


def test_thousand_classes_that_round_to_zero_still_sum() -> None:
    spec = OutputSpec("y", (1, 1000), "int8", Quantised(1 / 256, -128), "probabilities", ())
    floats = [np.full((1, 1000), 0.001, np.float32), np.full((1, 1000), 0.001, np.float32)]
    zeros = [np.full((1, 1000), -128, np.int8), np.full((1, 1000), -128, np.int8)]
    zeros[0][0, 3] = -100
    assert failed(check_outputs(floats, zeros, spec)) == []
    sums_to_23 = np.full((1, 1000), -122, np.int8)
    assert "sum to 1" in failed(check_outputs(floats, [sums_to_23, zeros[0]], spec))[0]


def test_constant_output_is_caught() -> None:
    floats = [np.array([[0.7, 0.3, 0, 0]], np.float32), np.array([[0.2, 0.8, 0, 0]], np.float32)]
    stuck = [np.array([[0, 0, -128, -128]], np.int8)] * 2
    assert failed(check_outputs(floats, stuck, SPEC)) == ["the output is not constant"]


def quality(name: str, sqnr_db: float, cosine: float) -> TensorQuality:
    return TensorQuality(name, "CONV_2D", sqnr_db, cosine, -1.0, 1.0, (-1.0, 1.0), 0.0)


def test_lost_activation_is_named() -> None:
    check = check_tensors([quality("good", 30, 0.999), quality("bad", -1.4, 0.2)])
    assert not check.passed
    assert "bad (cosine 0.20)" in check.detail


def test_bad_graphs_are_named() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2), "int8", scales=[0.0])
    w = builder.tensor("w", (1, 2), "int8", scales=[0.1], data=np.ones((1, 2), np.int8))
    b = builder.tensor("b", (1,), "int32", scales=[1e-9], data=np.array([2**31 - 1], np.int32))
    y = builder.tensor("y", (1, 1), "int8", scales=[1e-9])
    f = builder.tensor("f", (1, 1), "float32")
    builder.operator(
        "FULLY_CONNECTED", [x, w, b], [y], options="FullyConnectedOptions", fusedActivationFunction=3
    )
    builder.operator("DEQUANTIZE", [y], [f])
    checks = {check.name: check for check in check_graph(parse_graph(builder.finish([x], [f])))}
    assert failed(list(checks.values())) == list(checks)
    assert checks["no operator stayed float"].detail == "1 DEQUANTIZE"
    assert "'b'" in checks["no bias overflows int32"].detail
    assert "'x'" in checks["every scale is above 0 and finite"].detail


@pytest.mark.reference
@pytest.mark.parametrize(("name", "loader"), [("vww_96.h5", "tf_keras"), ("pretrainedResnet.h5", "keras")])
def test_models_of_the_keras_2_era(shared_data: Path, name: str, loader: str) -> None:
    with quiet():
        assert load(shared_data / "mlperf_tiny" / name).loader.split()[0] == loader


@pytest.mark.reference
def test_saved_model_converts_as_the_published_one(shared_data: Path, tmp_path: Path) -> None:
    values = np.load(shared_data / "mlperf_tiny" / "kws_inputs_int8.npy")
    published = read_graph(shared_data / "mlperf_tiny" / "kws_ref_model.tflite")
    given = published.tensors[published.inputs[0]].quantisation
    assert given is not None
    rng = np.random.default_rng(0)
    base = (values.reshape(1, 49, 10, 1).astype(np.float32) - given.zero_points[0]) * given.scales[0]
    samples = base * rng.uniform(0.6, 1.2, (40, 1, 1, 1)) + rng.normal(0, 2, (40, 49, 10, 1))
    report = arenite.convert(
        shared_data / "mlperf_tiny" / "kws_saved_model", tmp_path / "kws.tflite", calibration=samples
    )
    assert report.loader.startswith("SavedModel")
    assert report.agreement.top1 > 0.9
    assert report.agreement.sqnr_db > 15


def test_shared_samples_are_not_held_out(keras_file: Path, tmp_path: Path) -> None:
    """One calibration picture among the evaluation pictures is enough."""
    mixed = np.concatenate([pictures(10, seed=1), pictures()[:1]])
    assert not convert(keras_file, tmp_path / "model.tflite", evaluation=mixed).agreement.held_out


def test_without_the_reference_no_vectors_are_written(
    keras_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden_module, "reference_available", lambda: False)
    report = convert(keras_file, tmp_path / "model.tflite")
    assert report.contract.golden is None and report.engine_difference is None
    graph = read_graph(report.path)
    assert golden_of(graph) is None and GOLDEN_METADATA not in graph.metadata
    assert any("tflite-micro is not installed" in line for line in models_text.conversion(report))


def test_single_sigmoid_is_a_value(folder: Path, tmp_path: Path) -> None:
    path = folder / "sigmoid.keras"
    with quiet():
        import keras

        base = build(keras, softmax=False)
        keras.Model(base.input, keras.layers.Dense(1, "sigmoid")(base.output)).save(path)
    with pytest.raises(ContractError, match=r"own output .*Give meaning 'values'"):
        convert(path, tmp_path / "model.tflite", meaning="probabilities", labels=("person",))
    report = convert(path, tmp_path / "model.tflite", meaning="values", labels=("person",))
    assert report.contract.outputs[0].meaning == "values"


def test_softmax_is_found_behind_a_reshape(folder: Path, tmp_path: Path) -> None:
    path = folder / "reshaped.keras"
    with quiet():
        import keras

        base = build(keras)
        keras.Model(base.input, keras.layers.Reshape((1, len(LABELS)))(base.output)).save(path)
    with pytest.raises(ContractError, match="ends in a softmax"):
        convert(path, tmp_path / "model.tflite", meaning="logits")
    report = convert(path, tmp_path / "model.tflite")
    assert report.contract.outputs[0].meaning == "probabilities"


def test_last_computing_operator() -> None:
    builder = ModelBuilder()
    x, y, z = (builder.tensor(n, (1, 4), "int8", scales=[0.1]) for n in "xyz")
    f = builder.tensor("f", (1, 4), "float32")
    builder.operator("SOFTMAX", [x], [y], options="SoftmaxOptions")
    builder.operator("RESHAPE", [y], [z])
    builder.operator("DEQUANTIZE", [z], [f])
    assert last_computing_operator(parse_graph(builder.finish([x], [f]))) == "SOFTMAX"
    assert last_computing_operator(parse_graph(builder.finish([x], [x]))) == ""
