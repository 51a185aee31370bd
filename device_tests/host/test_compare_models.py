# SPDX-License-Identifier: Apache-2.0
"""Any two models on the same pictures: figures by NumPy, formats mixed, limits and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import arenite
from arenite import cli
from arenite._text import models as models_text
from arenite.contract import CONTRACT_METADATA, make_contract
from arenite.errors import ContractError, UsageError
from arenite.tflite_graph import parse_graph
from arenite_converters import ModelComparison, comparison_page
from arenite_converters.metadata import with_metadata
from support.photograph_network import CLASSES, SIDE, network, photographs, weights

pytest.importorskip("ai_edge_litert", reason="needs LiteRT: pip install 'arenite[litert]'")
OPTIONS: dict[str, Any] = {"normalisation": "symmetric", "meaning": "logits"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network in float without a contract, in INT8 with one, and as ONNX; pictures beside them."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "float.tflite").write_bytes(network())
    int8 = network(4.0)
    contract = make_contract(parse_graph(int8), **OPTIONS, labels=("a", "b", "c", "d"))
    (folder / "int8.tflite").write_bytes(with_metadata(int8, {CONTRACT_METADATA: contract.to_json().encode()}))
    (folder / "pictures").mkdir()
    for i, picture in enumerate(photographs(24)):
        Image.fromarray(picture).save(folder / "pictures" / f"{i:02}.png")
    return folder


def logits(clip: float = 6.0) -> np.ndarray[Any, Any]:
    """What the float network says to the pictures, in float64."""
    kernel, dense = weights()
    values = photographs(24).astype(np.float64) / 127.5 - 1
    padded = np.pad(values, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    made = np.clip(np.einsum("nhwcij,oijc->nhwo", windows, kernel), 0, clip)
    return np.asarray(made.mean(axis=(1, 2)) @ dense.T)


@pytest.fixture(scope="module")
def compared(folder: Path) -> ModelComparison:
    return arenite.compare_models(folder / "float.tflite", folder / "int8.tflite", pictures=folder / "pictures")


def test_figures_are_those_of_the_models(folder: Path, compared: ModelComparison) -> None:
    """Against the network in NumPy and the INT8 model run by itself."""
    session = arenite.open(folder / "int8.tflite")
    answers = []
    for path in sorted((folder / "pictures").iterdir()):
        session.classify(path)
        answers.append((np.array(session.output).astype(float)[0]) * np.float32(0.2))
    real, found = logits(), np.stack(answers)
    agreed = compared.agreement
    assert agreed.samples == 24
    assert agreed.top1 == (real.argmax(1) == found.argmax(1)).mean()
    expected_db = 10 * np.log10((real**2).sum() / ((real - found) ** 2).sum())
    assert agreed.sqnr_db == pytest.approx(expected_db, abs=0.01)
    assert agreed.sqnr_interval_db[0] < agreed.sqnr_db < agreed.sqnr_interval_db[1]
    assert agreed.top1_interval[0] < agreed.top1 <= agreed.top1_interval[1]


def test_layers_share_names(compared: ModelComparison) -> None:
    assert [(t.name, t.operator) for t in compared.tensors] == [
        ("y", "CONV_2D"), ("m", "MEAN"), ("z", "FULLY_CONNECTED"),
    ]  # fmt: skip
    convolution = compared.tensors[0]
    assert convolution.range == pytest.approx((0, 4))
    assert convolution.low == 0 and 4 < convolution.high <= 6 and convolution.clipped > 0


def test_worst_pictures_come_first(folder: Path, compared: ModelComparison) -> None:
    worst = compared.worst_pictures
    assert len(worst) == 6
    # Other classes first, then by noise.
    assert [(p.same, p.sqnr_db) for p in worst] == sorted((p.same, p.sqnr_db) for p in worst)
    real = logits()
    for picture in worst:
        index = int(Path(picture.name).stem)
        assert picture.expected.index == real[index].argmax()
        assert picture.expected.text == "abcd"[picture.expected.index]
        assert picture.thumbnail.startswith("data:image/jpeg;base64,")


def test_a_model_agrees_with_itself(folder: Path) -> None:
    found = arenite.compare_models(folder / "int8.tflite", folder / "int8.tflite", pictures=photographs(8), min_top1=1)
    assert found.agrees and found.agreement.top1 == 1 and found.agreement.sqnr_db == float("inf")
    assert {t.sqnr_db for t in found.tensors} == {float("inf")}
    comparison_page(found)


def test_onnx_against_tflite(folder: Path) -> None:
    """The same network, NCHW, with a softmax: pictures go in by each contract, scores are put on one meaning."""
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime: pip install 'arenite[onnx]'")
    onnx = pytest.importorskip("onnx")
    kernel, dense = weights()
    helper, numbers = onnx.helper, onnx.numpy_helper
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Clip", ["c", "low", "high"], ["y"]),
        helper.make_node("ReduceMean", ["y"], ["m"], axes=[2, 3], keepdims=0),
        helper.make_node("Gemm", ["m", "d"], ["z"], transB=1),
        helper.make_node("Softmax", ["z"], ["p"], axis=1),
    ]
    constants = {"w": kernel.transpose(0, 3, 1, 2).copy(), "d": dense, "low": np.float32(0), "high": np.float32(6)}
    ends = (("x", [1, 3, SIDE, SIDE]), ("p", [1, CLASSES]))
    graph = helper.make_graph(
        nodes, "g", *([helper.make_tensor_value_info(n, 1, shape)] for n, shape in ends),
        [numbers.from_array(np.asarray(v), n) for n, v in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    options = {**OPTIONS, "meaning": "probabilities"}
    files = folder / "pictures"
    found = arenite.compare_models(folder / "model.onnx", folder / "int8.tflite", pictures=files, **options)
    assert found.models[0].engine.startswith("onnxruntime") and found.tensors == ()
    exponents = np.exp(logits() - logits().max(1, keepdims=True))
    scores = (exponents / exponents.sum(1, keepdims=True)).max(1)
    for picture in found.worst_pictures:
        assert picture.expected.score == pytest.approx(scores[int(Path(picture.name).stem)], abs=1e-4)
    same = arenite.compare_models(folder / "model.onnx", folder / "float.tflite", pictures=photographs(8), **options)
    assert same.models[1].contract.outputs[0].meaning == "probabilities"


def test_what_cannot_be_compared(folder: Path) -> None:
    from support.colour_model import colour_model

    with pytest.raises(ContractError, match="not how a picture becomes the input"):
        arenite.compare_models(folder / "float.tflite", folder / "float.tflite", pictures=folder / "pictures")
    (folder / "colours.tflite").write_bytes(colour_model())
    with pytest.raises(UsageError, match="not comparable: 4 numbers and 3"):
        arenite.compare_models(folder / "int8.tflite", folder / "colours.tflite", pictures=photographs(8))


def test_text_and_page_hold_the_same_figures(compared: ModelComparison) -> None:
    agreed = compared.agreement
    page, text = comparison_page(compared), "\n".join(models_text.model_comparison(compared))
    for figure in (f"{agreed.top1:.3f}", f"{agreed.sqnr_db:.1f} dB", f"{compared.models[0].file_bytes:,} bytes"):
        assert figure in page and figure in text
    assert page.count("<figure>") == 6 and "<script" not in page


def test_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0 when they agree, 1 when not, 2 when it cannot be said."""
    page = folder / "page.html"

    def run(*words: str | Path) -> tuple[int, str]:
        models = (folder / "float.tflite", folder / "int8.tflite")
        code = cli.main([*map(str, ("compare-models", *models, *words))])
        return code, capsys.readouterr().out

    code, text = run("--pictures", folder / "pictures", "--json", "--html", page)
    report = json.loads(text)
    assert code == 0 and report["agrees"] is True and report["agreement"]["samples"] == 24
    assert f"{report['agreement']['sqnr_db']:.1f} dB" in page.read_text()
    code, text = run("--pictures", folder / "pictures", "--min-sqnr-db", "80")
    assert code == 1 and "NO         SQNR is at least 80 dB" in text
    assert run("--pictures", folder / "none")[0] == 2
