# SPDX-License-Identifier: Apache-2.0
"""A firmware with one fault: `verify` names the layer that the fault is in, its row and channel, and both values."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import arenite
from arenite.authority import authority_of
from arenite.device import LayerDifference, VerifyReport, verify
from arenite.device.first_layer import ReferenceModel
from arenite.device.rounding_rules import values_by_rule
from arenite.tflite_graph import parse_graph
from support.builder import ModelBuilder
from support.mutants import flip_weight_byte, swap_steps, take_constants, with_scale_of_channel
from support.residual_network import residual_network

pytest.importorskip("tflite_micro", reason="layers are compared with tflite-micro: pip install 'arenite[firmware]'")
pytest.importorskip("unicorn", reason="the boards are emulated: pip install 'arenite[firmware]'")

Bundle = Callable[[str], Path]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("network") / "residual.tflite"
    path.write_bytes(residual_network(size=16, width=8, blocks=2))
    return path


@pytest.fixture(scope="module")
def bundled(network: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The network's bundle for a board, built once."""
    made: dict[str, Path] = {}

    def get(board: str) -> Path:
        if board not in made:
            folder = tmp_path_factory.mktemp("bundle") / "b"
            arenite.bundle(network, board, folder, vectors=1)
            arenite.build(folder)
            made[board] = folder
        return made[board]

    return get


def mutant(bundle: Path, to: Path, fault: Callable[[Path], None]) -> Path:
    shutil.copytree(bundle, to)
    fault(to)
    arenite.build(to)
    return to


def layers_of(bundle: Path) -> list[dict[str, object]]:
    return list(json.loads((bundle / "manifest.json").read_text())["models"][0]["layers"])


# Layers of the residual network: 0 convolution, then for each block 1 expand, 2 depthwise, 3 project, 4 add.
@pytest.mark.parametrize("board", ["qemu-riscv32", "qemu-mps2-an386"])
@pytest.mark.parametrize(
    ("fault", "layer"),
    [(lambda bundle: flip_weight_byte(bundle, 3, 5), 3), (lambda bundle: swap_steps(bundle, 1, 2), 2)],
    ids=["weight", "schedule"],
)
def test_the_first_wrong_layer_is_named(
    bundled: Bundle, tmp_path: Path, board: str, fault: Callable[[Path], None], layer: int
) -> None:
    good = bundled(board)
    check_first_layer(good, verify(mutant(good, tmp_path / "b", fault)), layer)


@pytest.mark.parametrize("board", ["qemu-riscv32", "qemu-mps2-an386"])
def test_a_wrong_multiplier_is_named_with_its_channel(
    bundled: Bundle, network: Path, tmp_path: Path, board: str
) -> None:
    """Whether or not it reaches an output, the comparison of layers sees it."""
    other, good = tmp_path / "other.tflite", bundled(board)
    other.write_bytes(with_scale_of_channel(network.read_bytes(), operator=2, channel=7, factor=0.8))
    arenite.bundle(other, board, tmp_path / "other", vectors=0)
    report = verify(mutant(good, tmp_path / "b", lambda bundle: take_constants(bundle, tmp_path / "other")))
    found = check_first_layer(good, report, 2)
    assert (found.channel, found.variants) == (7, tuple(layers_of(good)[2]["variants"]))  # type: ignore[arg-type]


def test_a_uint8_output_is_compared_as_it_is(tmp_path: Path) -> None:
    """What a QUANTIZE at the end writes are the bytes of the file's own uint8 tensor."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 4, 4, 3), "int8", scales=[0.1], zero_points=[3])
    y = builder.tensor("y", (1, 4, 4, 3), "int8", scales=[0.1], zero_points=[3])
    end = builder.tensor("end", (1, 4, 4, 3), "uint8", scales=[0.1], zero_points=[131])
    builder.operator("RELU", [x], [y])
    builder.operator("QUANTIZE", [y], [end], options="QuantizeOptions")
    (tmp_path / "m.tflite").write_bytes(builder.finish([x], [end]))
    arenite.bundle(tmp_path / "m.tflite", "qemu-mps2-an386", tmp_path / "b", vectors=2)
    arenite.build(tmp_path / "b")
    report = verify(tmp_path / "b")
    assert report.identical and report.layers_checked >= 1 and report.first_layer is None


def check_first_layer(good: Path, report: VerifyReport, layer: int) -> LayerDifference:
    """That the layer is named, and its values are the authority's and other ones."""
    assert not report.identical
    found = report.first_layer
    assert found is not None
    assert (found.layer, list(found.operators)) == (layer, layers_of(good)[layer]["operators"])
    assert found.rows_made == found.rows_expected == layers_of(good)[layer]["rows"]
    assert found.expected != found.got
    expected = _authority(good, layer)
    assert found.row is not None
    assert found.expected == expected[0, found.row, found.column, found.channel]
    assert "no known rounding rule" in found.explanation
    return found


def _authority(bundle: Path, layer: int) -> np.ndarray:
    model = json.loads((bundle / "manifest.json").read_text())["models"][0]
    reference = ReferenceModel(bundle, model)
    tensor = int(model["layers"][layer]["tensor"])
    return reference.tensors([(bundle / "vectors" / "input_000.bin").read_bytes()], [tensor])[tensor]


def test_random_vectors_are_compared_too(bundled: Bundle) -> None:
    report = verify(bundled("qemu-mps2-an386"), random=3, seed=5)
    assert (report.identical, report.vectors, report.random_vectors, report.first_layer) == (True, 4, 3, None)
    assert report.layers_checked == len(layers_of(bundled("qemu-mps2-an386")))


def test_a_rule_is_what_its_library_computes(network: Path) -> None:
    """Of every convolution: `double` as TFLM computes it, at places over the whole map."""
    content = network.read_bytes()
    graph = parse_graph(content)
    chance = np.random.default_rng(3)
    inputs = [chance.integers(-128, 128, graph.tensors[graph.inputs[0]].shape, dtype=np.int8)]
    tensors = [op.outputs[0] for op in graph.operators]
    authority = authority_of(graph)
    assert authority is not None
    values = {graph.inputs[0]: inputs[0], **authority.tensors(content, inputs, tensors)}
    compared = 0
    for operator in graph.operators:
        output = values[operator.outputs[0]].ravel()
        for index in chance.choice(output.size, min(200, output.size), replace=False):
            rules = values_by_rule(graph, operator, values[operator.inputs[0]], int(index))
            assert bool(rules) == (operator.kind not in ("ADD", "MEAN"))
            if rules:
                assert rules["double"] == output[index]
                compared += 1
    assert compared > 1000


def test_xnnpack_rounds_as_the_rule_float_says(network: Path) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    from arenite_converters.flatbuffer import single_operator, unpack

    graph = parse_graph(network.read_bytes())
    content, _ = single_operator(unpack(network.read_bytes()), graph, graph.operators[0])
    alone = parse_graph(content)
    interpreter = litert.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    data = np.random.default_rng(4).integers(-128, 128, alone.tensors[alone.inputs[0]].shape, dtype=np.int8)
    interpreter.set_tensor(alone.inputs[0], data)
    interpreter.invoke()
    output = interpreter.get_tensor(alone.outputs[0]).ravel()
    ruled = [values_by_rule(alone, alone.operators[0], data, index) for index in range(output.size)]
    wrong = {rule: sum(values[rule] != got for values, got in zip(ruled, output, strict=True)) for rule in ruled[0]}
    assert wrong["float"] == 0
    assert min(wrong["double"], wrong["truncated"]) > 0
