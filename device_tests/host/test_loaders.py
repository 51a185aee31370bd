# SPDX-License-Identifier: Apache-2.0
"""Trained models of every family: known by their content, equal to the trained model, refused by name."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arenite
from arenite.errors import ModelError, UnsupportedOperatorError, UsageError
from arenite.tflite_graph import parse_graph
from arenite_converters.float_model import FloatModel
from arenite_converters.loaders import load
from arenite_converters.meaning import default_name
from arenite_converters.quantisation import QuantiseOptions
from arenite_converters.quiet import quiet
from support.builder import ModelBuilder
from support.onnx_graphs import in_litert, node, onnx_model, random_input
from support.tflm import TflmModel

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Each test draws the same numbers, whichever ran before it."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


def dense(dtype: str, batch: int = 1, extra: bool = False) -> bytes:
    """y = W x + b, W per channel when INT8."""
    builder = ModelBuilder()
    if dtype == "float32":
        x, y = builder.tensor("x", (batch, 4), dtype), builder.tensor("y", (batch, 3), dtype)
        w = builder.tensor("w", (3, 4), dtype, data=RNG.normal(0, 1, (3, 4)).astype(np.float32))
        b = builder.tensor("b", (3,), dtype, data=np.array([1, -1, 0.5], np.float32))
    else:
        x = builder.tensor("x", (batch, 4), dtype, scales=[0.02], zero_points=[3])
        y = builder.tensor("y", (batch, 3), dtype, scales=[0.1], zero_points=[-5])
        kernel = RNG.integers(-127, 128, (3, 4), dtype=np.int8)
        w = builder.tensor("w", (3, 4), "int8", scales=[0.01, 0.02, 0.03], data=kernel)
        scales = [0.0002, 0.0004, 0.0006]
        b = builder.tensor("b", (3,), "int32", scales=scales, data=np.array([5000, -2500, 900], np.int32))
    builder.operator("FULLY_CONNECTED", [x, w, b], [y], options="FullyConnectedOptions")
    return builder.finish([x], [y, y] if extra else [y])


def write(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def equal(model: FloatModel) -> None:
    """Float TFLite against the trained model."""
    sample = random_input(model.shape)
    trained = model.run(sample)
    assert np.abs(in_litert(model.content, sample) - trained).max() <= 1e-3 * np.abs(trained).max()


@pytest.mark.parametrize("name", ["model.tflite", "model.h5", "model"])
def test_the_content_says_what_a_file_is(tmp_path: Path, name: str) -> None:
    model = load(write(tmp_path, name, dense("float32")))
    assert model.loader.startswith("float TFLite, ai-edge-litert")
    assert model.quantised is None
    equal(model)


def test_onnx_by_content(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    content = onnx_model([node("Relu", ["x"])], (1, 3, 6, 6)).SerializeToString()
    for name in ("model.onnx", "model.bin"):
        model = load(write(tmp_path, name, content))
        assert model.loader.startswith("ONNX opset 18, onnx 1.")
        assert model.shape == (1, 6, 6, 3)


def test_a_model_is_named_by_its_file_or_function() -> None:
    names = ("folder/net.v2.onnx", "package.module:factory", "saved")
    assert [default_name(Path(name)) for name in names] == ["net.v2", "factory", "saved"]


def test_int8_model_gets_a_contract_and_keeps_its_bytes(tmp_path: Path) -> None:
    source = write(tmp_path, "int8.tflite", dense("int8"))
    model = load(source)
    assert model.loader.startswith("INT8 TFLite")
    assert model.quantised == source.read_bytes()
    real = parse_graph(model.content)
    assert {tensor.dtype for tensor in real.tensors} == {"float32"}
    assert real.tensors[2].data is not None
    kernel = parse_graph(source.read_bytes()).tensors[2]
    assert kernel.data is not None
    assert np.allclose(real.tensors[2].data, kernel.data * np.array([[0.01], [0.02], [0.03]]), rtol=1e-6)

    samples = RNG.uniform(-2.5, 2.4, (40, 4)).astype(np.float32)
    report = arenite.convert(source, tmp_path / "out.tflite", calibration=samples)
    written = Path(report.path).read_bytes()
    for index, quantised in enumerate(RNG.integers(-128, 128, (5, 1, 4), dtype=np.int8)):
        answers = [TflmModel(content).run([quantised])[0] for content in (source.read_bytes(), written)]
        assert np.array_equal(*answers), index
    contract = arenite.read_contract(report.path)
    assert contract is not None and contract.calibration is None and contract.golden is not None
    assert contract.input.quantised is not None and contract.input.quantised.zero_point == 3
    assert report.agreement.sqnr_db > 25
    with pytest.raises(UsageError, match="quantised already: options of quantising would change nothing"):
        arenite.convert(
            source, tmp_path / "no.tflite", calibration=samples, quantisation=QuantiseOptions(ranges="mse")
        )
    assert not (tmp_path / "no.tflite").exists()


@pytest.mark.parametrize(
    ("content", "options", "error", "named"),
    [
        (dense("float32", batch=3), {}, ModelError, "input is 3×4"),
        (dense("float32", extra=True), {}, ModelError, "2 outputs"),
        (dense("uint8"), {}, ModelError, "neither float nor INT8 .*uint8"),
        (dense("float32"), {"input_shape": (5,)}, UsageError, "is 4, not 5"),
        (dense("float32")[:60], {}, ModelError, "truncated or corrupt"),
        (dense("float32"), {"signature": "call"}, UsageError, "signature is for another kind"),
        (dense("float32"), {"weights": Path("w.pth")}, UsageError, "weights is for another kind"),
    ],
)
def test_tflite_files_that_are_refused(
    tmp_path: Path, content: bytes, options: dict[str, Any], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        load(write(tmp_path, "model.tflite", content), **options)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pth", "w") as archive:
        archive.writestr("model/data.pkl", b"cos\nsystem\n(S'exit'\ntR.")
    with pytest.raises(ModelError, match=r"pickle of PyTorch.*torch\.export\.save"):
        load(tmp_path / "model.pth")


def test_signatures_are_chosen_by_name(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")

    class Module(tf.Module):  # type: ignore[misc, name-defined]
        @tf.function(input_signature=[tf.TensorSpec((None, 3), tf.float32)])
        def double(self, x: Any) -> Any:
            return {"y": 2 * x}

        @tf.function(input_signature=[tf.TensorSpec((None, 3), tf.float32)])
        def triple(self, x: Any) -> Any:
            return {"y": 3 * x}

    module = Module()
    with quiet():
        tf.saved_model.save(module, str(tmp_path / "m"), {"double": module.double, "triple": module.triple})
        model = load(tmp_path / "m", signature="triple")
    assert model.loader.endswith("signature triple")
    assert model.run(np.ones((1, 3), np.float32)).tolist() == [[3, 3, 3]]
    for wanted, named in ((None, "serving_default"), ("quadruple", "quadruple")):
        with pytest.raises(UsageError, match=f"no signature '{named}'.*It has double, triple"), quiet():
            load(tmp_path / "m", signature=wanted)


@pytest.fixture(scope="session")
def torch_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small CNN as an exported program, its weights beside it."""
    torch = pytest.importorskip("torch", reason="PyTorch models need PyTorch: pip install 'arenite[torch]'")
    pytest.importorskip("onnxscript")
    from support import torch_networks

    folder = tmp_path_factory.mktemp("torch")
    module = torch_networks.small()
    with quiet():
        torch.export.save(torch.export.export(module, (torch.zeros(1, 3, 32, 32),)), folder / "small.pt2")
    torch.save(module.state_dict(), folder / "small.pth")
    return folder / "small.pt2"


def test_torch_program(torch_program: Path, tmp_path: Path) -> None:
    renamed = Path(shutil.copy(torch_program, tmp_path / "model.bin"))
    with quiet():
        model = load(renamed)
    assert model.loader.startswith("PyTorch exported program, torch 2.")
    assert model.shape == (1, 32, 32, 3)
    equal(model)
    assert not {"TRANSPOSE", "PADV2"} & {operator.kind for operator in parse_graph(model.content).operators}


def test_torch_factory_with_weights(torch_program: Path, tmp_path: Path) -> None:
    import torch

    from support import torch_networks

    changed = torch.load(torch_program.with_suffix(".pth"), weights_only=True)
    changed["head.bias"] += 10
    torch.save({"state_dict": changed}, tmp_path / "changed.pth")
    with quiet():
        model = load(Path("support.torch_networks:small"), (3, 32, 32), weights=tmp_path / "changed.pth")
    equal(model)
    as_made = torch_networks.small()(torch.zeros(1, 3, 32, 32)).detach().numpy()
    assert np.allclose(model.run(np.zeros((1, 32, 32, 3), np.float32)), as_made + 10, atol=1e-4)


@pytest.mark.parametrize(
    ("spec", "options", "named"),
    [
        ("support.torch_networks:small", {}, "what shape its input has.*channels first"),
        ("support.torch_networks:nothing", {"input_shape": (3, 8, 8)}, "no such function"),
        ("support.nowhere:small", {"input_shape": (3, 8, 8)}, "no such function.*nowhere"),
    ],
)
def test_factories_that_are_refused(torch_program: Path, spec: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named), quiet():
        load(Path(spec), **options)


def test_weights_with_code_are_refused(torch_program: Path, tmp_path: Path) -> None:
    import torch

    torch.save(torch.nn.Linear(2, 2), tmp_path / "module.pth")
    spec = Path("support.torch_networks:small")
    with pytest.raises(ModelError, match=r"module\.pth: the weights cannot be loaded"), quiet():
        load(spec, (3, 32, 32), weights=tmp_path / "module.pth")


@pytest.mark.parametrize(
    ("factory", "named"),
    [
        ("cumulated", r"CumSum \(node 'node_cumsum', module head, torch_networks\.py line \d+ in "),
        ("without_onnx_form", r"bessel_j0 \(node 'special_bessel_j0', module head, torch_networks\.py line \d+ in "),
    ],
)
def test_unsupported_torch_operators_are_named_with_their_place(
    torch_program: Path, factory: str, named: str
) -> None:
    with pytest.raises(UnsupportedOperatorError, match=named), quiet():
        load(Path(f"support.torch_networks:{factory}"), (3, 16, 16))


@pytest.mark.reference
@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("vww_96_float.tflite", "float TFLite"),
        ("kws_ref_model.tflite", "INT8 TFLite"),
        ("ad01_int8.tflite", "INT8 TFLite"),
        ("pretrainedResnet_quant.tflite", "INT8 TFLite"),
    ],
)
def test_published_tflite_files(shared_data: Path, name: str, loader: str) -> None:
    model = load(shared_data / "mlperf_tiny" / name)
    assert model.loader.startswith(loader)
    equal(model)


@pytest.mark.reference
def test_half_quantised_file_is_no_reference(shared_data: Path) -> None:
    with pytest.raises(ModelError, match="input and output float32, 5 quantised tensors"):
        load(shared_data / "mlperf_tiny" / "kws_ref_model_float32.tflite")
