# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as an engine: arrays bound in place, the contract in ONNX metadata, providers that are not here."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import arenite
from arenite.errors import ContractError, FallbackWarning, MissingToolError, ModelError, UsageError
from arenite.onnx_model import parse_onnx, with_onnx_contract

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not here: pip install 'arenite[onnx]'")
onnx = pytest.importorskip("onnx", reason="onnx is not here: pip install 'arenite[onnx]'")

LABELS = ("red", "green", "blue")


def saved(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: dict[str, Any]) -> Path:
    """An ONNX file; inputs and outputs are (name, type, shape)."""
    values = [[onnx.helper.make_tensor_value_info(*value) for value in part] for part in (inputs, outputs)]
    held = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = onnx.helper.make_graph(nodes, "test", values[0], values[1], held)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    """Logits of a 4×4 picture: the mean of each channel. The batch has no number."""
    nodes = [onnx.helper.make_node("GlobalAveragePool", ["x"], ["m"]), onnx.helper.make_node("Flatten", ["m"], ["y"])]
    inputs, outputs = ("x", onnx.TensorProto.FLOAT, ["N", 3, 4, 4]), ("y", onnx.TensorProto.FLOAT, ["N", 3])
    return saved(tmp_path / "colours.onnx", nodes, [inputs], [outputs], {})


@pytest.fixture
def integers(tmp_path: Path) -> Path:
    """int8 in and out, quantised as QDQ: y = relu(x)."""
    make = onnx.helper.make_node
    nodes = [
        make("DequantizeLinear", ["x", "sx", "zx"], ["a"]),
        make("Relu", ["a"], ["b"]),
        make("QuantizeLinear", ["b", "sy", "zy"], ["y"]),
    ]
    constants = {
        "sx": np.float32(0.5),
        "zx": np.int8(-3),
        "sy": np.float32(0.25),
        "zy": np.int8(-128),
    }
    tensors = [(name, onnx.TensorProto.INT8, [1, 8]) for name in "xy"]
    return saved(tmp_path / "integers.onnx", nodes, tensors[:1], tensors[1:], constants)


def picture(seed: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(1, 3, 4, 4)).astype(np.float32)


def test_runs_on_arrays_of_ours(colours: Path) -> None:
    session = arenite.open(colours)
    own = onnxruntime.InferenceSession(str(colours), providers=["CPUExecutionProvider"])
    where = session.input.ctypes.data
    for seed in range(5):
        session.input[...] = picture(seed)
        session.run()
        assert np.array_equal(session.output, own.run(None, {"x": picture(seed)})[0])
        assert np.allclose(session.output, picture(seed).mean(axis=(2, 3)), atol=1e-6)
    assert session.input.ctypes.data == where
    assert session.input.flags.writeable and session.output.shape == (1, 3)
    with pytest.raises(ValueError, match="read-only"):
        session.output[0, 0] = 1


def test_report_says_what_runs_where(colours: Path) -> None:
    report = arenite.open(colours, threads=2).report
    assert (report.engine, report.version, report.threads) == ("onnxruntime", onnxruntime.__version__, 2)
    assert [placement.where for placement in report.placements] == ["CPUExecutionProvider"]
    assert report.placements[0].operators == {"Flatten": 1, "GlobalAveragePool": 1}


def test_views_keep_the_session_alive(colours: Path) -> None:
    session = arenite.open(colours)
    session.input[...] = picture(1)
    session.run()
    row, output, expected = session.input[0, 1], session.output, session.output.copy()
    del session
    gc.collect()
    blocks = [np.full(1 << 16, 7, np.uint8) for _ in range(50)]
    assert np.array_equal(row, picture(1)[0, 1]) and np.array_equal(output, expected) and blocks


def test_stale_outputs_raise(colours: Path) -> None:
    session = arenite.open(colours)
    session.run()
    output = session.output
    session.run()
    with pytest.raises(arenite.StaleOutputError, match="stale"):
        output.copy()


def test_contract_travels_in_the_metadata(colours: Path) -> None:
    contract = arenite.make_contract(
        arenite.read_model(colours), name="colours", normalisation="unit", labels=LABELS, meaning="logits"
    )
    content = with_onnx_contract(colours.read_bytes(), contract)
    content = with_onnx_contract(content, contract)  # replaces, does not add
    colours.write_bytes(content)
    model = onnx.load(str(colours))
    onnx.checker.check_model(model)
    assert [entry.key for entry in model.metadata_props] == ["ARENITE_CONTRACT"]
    assert onnxruntime.InferenceSession(content).get_modelmeta().custom_metadata_map == {
        "ARENITE_CONTRACT": contract.to_json()
    }
    session = arenite.open(colours)
    assert session.contract == contract
    green = np.zeros((9, 7, 3), np.uint8)
    green[..., 1] = 255
    answer = session.classify(green)
    assert answer.best.text == "green"
    assert answer.best.score == pytest.approx(np.e / (np.e + 2))


def test_foreign_metadata_survives(colours: Path) -> None:
    model = onnx.load(str(colours))
    onnx.helper.set_model_props(model, {"author": "somebody", "note": "große Straße"})
    contract = arenite.make_contract(arenite.read_model(colours), normalisation="unit")
    stamped = onnx.load_from_string(with_onnx_contract(model.SerializeToString(), contract))
    assert {e.key: e.value for e in stamped.metadata_props}["note"] == "große Straße"
    assert stamped.graph == model.graph


def test_contract_that_contradicts_the_model_is_refused(colours: Path, integers: Path) -> None:
    contract = arenite.make_contract(arenite.read_model(integers))
    with pytest.raises(ContractError, match=r"input\.shape"):
        with_onnx_contract(colours.read_bytes(), contract)
    with pytest.raises(ContractError, match=r"input\.shape"):
        arenite.open(colours, contract=contract)


def test_quantised_inputs_are_read_from_the_graph(integers: Path) -> None:
    graph = arenite.read_model(integers)
    x, y = graph.tensors
    assert (x.dtype, x.shape) == ("int8", (1, 8))
    assert x.quantisation is not None and (x.quantisation.scale, x.quantisation.zero_point) == (0.5, -3)
    assert y.quantisation is not None and (y.quantisation.scale, y.quantisation.zero_point) == (0.25, -128)
    session = arenite.open(integers)
    session.input[...] = [-128, -4, -3, -2, 0, 5, 50, 60]
    session.run()
    assert session.output.tolist() == [[-128, -128, -128, -126, -122, -112, -22, -2]]


def test_absent_provider_is_a_warning_that_names_the_operators(colours: Path) -> None:
    with pytest.warns(FallbackWarning, match=r"delegate qnn was refused .*only .*CPUExecutionProvider.*the CPU runs"):
        session = arenite.open(colours, delegate="qnn")
    refusal = session.report.refusals[0]
    assert (refusal.what, refusal.operators) == ("delegate qnn", ("Flatten", "GlobalAveragePool"))
    session.run()


def test_provider_that_takes_nothing_is_told(colours: Path) -> None:
    name = "AzureExecutionProvider"
    if name not in onnxruntime.get_available_providers():
        pytest.skip("this build of ONNX Runtime has no provider that takes no operator")
    with pytest.warns(FallbackWarning, match="it took none of the operators.*Flatten, GlobalAveragePool"):
        report = arenite.open(colours, delegate=name).report
    assert [placement.where for placement in report.placements] == ["CPUExecutionProvider"]


def test_without_a_delegate_none_is_refused(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """ONNX Runtime folds the only operator away, so no provider runs any."""
    node = onnx.helper.make_node("Relu", ["c"], ["y"])
    tensors = [(name, onnx.TensorProto.FLOAT, [1, 3]) for name in "xy"]
    path = saved(tmp_path / "folded.onnx", [node], tensors[:1], tensors[1:], {"c": np.ones((1, 3), np.float32)})
    session = arenite.open(path)
    session.run()
    assert session.report.refusals == () and session.output.tolist() == [[1, 1, 1]]
    assert [warning for warning in recwarn if warning.category is FallbackWarning] == []


@pytest.mark.parametrize("shape", [[1, 3, "H", "W"], [1, 3, -1, 4]])
def test_open_shapes_are_refused(tmp_path: Path, shape: list[Any]) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    tensors = [(name, onnx.TensorProto.FLOAT, shape) for name in "xy"]
    path = saved(tmp_path / "open.onnx", [node], tensors[:1], tensors[1:], {})
    with pytest.raises(ModelError, match=r"open\.onnx.*every dimension"):
        arenite.open(path)


def test_corrupt_files_are_refused(colours: Path) -> None:
    content = colours.read_bytes()
    generator = np.random.default_rng(0)
    for length in range(0, len(content), 3):
        try:
            parse_onnx(content[:length])
        except ModelError:
            continue
    for _ in range(400):
        damaged = bytearray(content)
        damaged[generator.integers(len(content))] = generator.integers(256)
        try:
            parse_onnx(bytes(damaged))
        except ModelError:
            continue


def test_model_that_the_runtime_refuses(tmp_path: Path, colours: Path) -> None:
    model = onnx.load(str(colours))
    model.graph.node[0].op_type = "NoSuchOperator"
    path = tmp_path / "odd.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"odd\.onnx: ONNX Runtime refuses the model .*NoSuchOperator"):
        arenite.open(path)


def test_missing_package_names_its_cure(colours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingToolError, match=r"pip install 'arenite\[onnx\]'"):
        arenite.open(colours)


def test_engine_of_another_format(colours: Path) -> None:
    with pytest.raises(UsageError, match="no engine 'litert' for a onnx model"):
        arenite.open(colours, engine="litert")
    with pytest.raises(UsageError, match="no kernels 'reference'"):
        arenite.open(colours, kernels="reference")
