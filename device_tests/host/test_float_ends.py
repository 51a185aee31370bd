# SPDX-License-Identifier: Apache-2.0
"""float32 at a model's ends alone costs a board nothing: the integers inside are its ends, and no answer changes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import arenite
from arenite.contract import CONTRACT_METADATA, GOLDEN_METADATA, contract_of
from arenite.golden import golden_of, pack_vectors
from arenite.graph import Graph
from arenite.host_model import HostModel
from arenite.reference import reference_outputs
from arenite.tflite_graph import parse_graph
from arenite_codegen.build import build
from arenite_codegen.ends import BoardModel, read_for_board, with_integer_ends
from arenite_converters.flatbuffer import pack, unpack
from arenite_converters.metadata import with_metadata
from support.graphs import random_graph

Real = np.ndarray[Any, np.dtype[np.float32]]


def with_float_ends(model: bytes, reverse: bool = False) -> bytes:
    """The model with a QUANTIZE behind each input and a DEQUANTIZE before each output, as TFLiteConverter leaves it.

    Args:
        reverse: List the operators that are independent of each other the other way round.
    """
    tree = unpack(model)
    graph = tree.subgraphs[0]
    codes = schema.BuiltinOperator
    before = [_beside(tree, int(i), codes.QUANTIZE, 0) for i in graph.inputs]
    after = [_beside(tree, int(i), codes.DEQUANTIZE, 1) for i in graph.outputs]
    graph.inputs = [op.inputs[0] for op in before]
    graph.outputs = [op.outputs[0] for op in after]
    graph.operators = [*(before[::-1] if reverse else before), *graph.operators, *after]
    return pack(tree)


def _beside(tree: schema.ModelT, index: int, code: int, made: int) -> schema.OperatorT:
    """An operator between a tensor and a new one of float32, which it reads or makes."""
    graph = tree.subgraphs[0]
    tensor, kind, operator = schema.TensorT(), schema.OperatorCodeT(), schema.OperatorT()
    tensor.shape, tensor.type = list(graph.tensors[index].shape), schema.TensorType.FLOAT32
    tensor.name, tensor.buffer = f"real_{index}", 0
    graph.tensors.append(tensor)
    kind.builtinCode, kind.deprecatedBuiltinCode, kind.version = code, min(code, 127), 1
    tree.operatorCodes.append(kind)
    ends = [len(graph.tensors) - 1, index]
    operator.opcodeIndex = len(tree.operatorCodes) - 1
    operator.inputs, operator.outputs = [ends[made]], [ends[1 - made]]
    return operator


def board_model(content: bytes) -> BoardModel:
    return BoardModel(content, parse_graph(content))


def real_of(values: np.ndarray[Any, Any], graph: Graph, index: int) -> Real:
    quant = graph.tensors[index].quantisation
    assert quant is not None
    steps = values.astype(np.float32) - np.float32(quant.zero_points[0])
    return (steps * np.float32(quant.scales[0])).astype(np.float32)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["CONV_2D", "ADD", "CONV_2D_S16", "CONV_2D_U8"])
def test_answers_are_those_of_the_whole_model(kind: str, reverse: bool) -> None:
    """The reference runs the whole file on real numbers, and what is left of it on the integers that they stand for."""
    whole = with_float_ends(random_graph(kind, 4).model_bytes, reverse)
    model = with_integer_ends(board_model(whole))
    graph = model.graph
    assert {"QUANTIZE", "DEQUANTIZE"}.isdisjoint(op.kind for op in graph.operators)
    assert {graph.tensors[i].dtype for i in (*graph.inputs, *graph.outputs)} <= {"int8", "int16", "uint8"}
    assert len(model.integer_ends) == len(graph.inputs) + len(graph.outputs)
    rng = np.random.default_rng(5)
    tensors = [graph.tensors[i] for i in graph.inputs]
    steps = [
        rng.integers(np.iinfo(t.dtype).min, np.iinfo(t.dtype).max, t.shape, endpoint=True).astype(t.dtype)
        for t in tensors
    ]
    package = "ai-edge-litert" if kind.endswith("U8") else "tflite-micro"
    real = [real_of(values, graph, i) for values, i in zip(steps, graph.inputs, strict=True)]
    wanted = reference_outputs(whole, [real], package=package)[0]
    found = reference_outputs(model.content, [steps], package=package)[0]
    for want, got, index in zip(wanted, found, graph.outputs, strict=True):
        assert np.array_equal(want, real_of(got, graph, index))


def test_a_bundle_keeps_a_byte_an_element(tmp_path: Path) -> None:
    """Arena and vectors are those of the model without float32; `float_ends` leaves it, at four bytes an element."""
    plain = random_graph("CONV_2D", 8).model_bytes
    (tmp_path / "plain.tflite").write_bytes(plain)
    (tmp_path / "real.tflite").write_bytes(with_float_ends(plain))
    reports = {
        name: arenite.bundle(tmp_path / f"{file}.tflite", "host", tmp_path / name, float_ends=name == "kept")
        for name, file in (("int8", "plain"), ("folded", "real"), ("kept", "real"))
    }
    assert reports["folded"].arena_bytes == reports["int8"].arena_bytes < reports["kept"].arena_bytes
    assert [r.models[0].integer_ends for r in reports.values()] == [(), ("real_0", "real_3"), ()]
    for name, dtype in (("folded", "int8"), ("kept", "float32")):
        entry = json.loads((tmp_path / name / "manifest.json").read_text())["models"][0]
        assert [io["dtype"] for io in entry["inputs"] + entry["outputs"]] == [dtype] * 2
        compiled = HostModel(build(tmp_path / name).elf)
        given, wanted = (
            np.fromfile(tmp_path / name / "vectors" / f"{what}_000.bin", dtype) for what in ("input", "output")
        )
        assert np.array_equal(compiled.run([given])[0].view(dtype).ravel(), wanted)


def test_a_contract_follows(tmp_path: Path) -> None:
    """It says of the integers what it said of float32, and still how a picture becomes them."""
    path = tmp_path / "model.tflite"
    path.write_bytes(with_float_ends(random_graph("CONV_2D", 7).model_bytes))
    shape = arenite.read_graph(path).tensors[arenite.read_graph(path).inputs[0]].shape
    arenite.set_contract(path, path, {"name": "told"})
    before, model = contract_of(arenite.read_graph(path)), read_for_board(path)
    after = contract_of(model.graph)
    assert before is not None and after is not None
    assert (before.input.dtype, before.input.quantised) == ("float32", None)
    quant = model.graph.tensors[model.graph.inputs[0]].quantisation
    assert quant is not None and after.input.quantised is not None
    assert (after.name, after.input.shape, after.input.dtype) == ("told", shape, "int8")
    assert (after.input.quantised.scale, after.input.quantised.zero_point) == (quant.scales[0], quant.zero_points[0])
    assert after.outputs[0].dtype == "int8" and golden_of(model.graph) is None


def test_golden_vectors_follow() -> None:
    """Those of float32 become the integers that they stand for."""
    whole = with_float_ends(random_graph("CONV_2D", 7).model_bytes)
    inside, graph = with_integer_ends(board_model(whole)).graph, parse_graph(whole)
    rng = np.random.default_rng(6)
    ends = (*inside.inputs, *inside.outputs)
    steps = [rng.integers(-128, 128, inside.tensors[i].shape).astype(np.int8) for i in ends]
    real = [real_of(values, inside, i) for values, i in zip(steps, ends, strict=True)]
    packed, entry = pack_vectors(real[:1], real[1:], "somebody")
    contract = dataclasses.replace(arenite.make_contract(graph), golden=entry)
    told = with_metadata(whole, {CONTRACT_METADATA: contract.to_json().encode(), GOLDEN_METADATA: packed})
    golden = golden_of(with_integer_ends(board_model(told)).graph)
    assert golden is not None and golden.authority == "somebody"
    assert np.array_equal(golden.inputs[0], steps[0]) and np.array_equal(golden.outputs[0], steps[1])


def _shared_input(tree: schema.ModelT) -> None:
    """The input is an output too."""
    tree.subgraphs[0].outputs = [*tree.subgraphs[0].outputs, tree.subgraphs[0].inputs[0]]


def _read_twice(tree: schema.ModelT) -> None:
    """Another QUANTIZE reads the input."""
    graph = tree.subgraphs[0]
    first = graph.operators[0]
    tensor = schema.TensorT()
    tensor.type, tensor.name, tensor.buffer = schema.TensorType.INT8, "more", 0
    tensor.shape = list(graph.tensors[first.outputs[0]].shape)
    tensor.quantization = graph.tensors[first.outputs[0]].quantization
    graph.tensors.append(tensor)
    again = schema.OperatorT()
    again.opcodeIndex, again.inputs = first.opcodeIndex, list(first.inputs)
    again.outputs = [len(graph.tensors) - 1]
    graph.operators = [first, again, *graph.operators[1:]]
    graph.outputs = [*graph.outputs, again.outputs[0]]


@pytest.mark.parametrize("change", [_shared_input, _read_twice])
def test_an_end_that_something_else_needs_stays(change: Any) -> None:
    tree = unpack(with_float_ends(random_graph("CONV_2D", 4).model_bytes))
    change(tree)
    whole = board_model(pack(tree))
    model = with_integer_ends(whole)
    graph = model.graph
    assert graph.tensors[graph.inputs[0]].dtype == "float32"
    assert graph.tensors[graph.outputs[0]].dtype == "int8"
    assert model.integer_ends == (whole.graph.tensors[whole.graph.outputs[0]].name,)


def test_a_model_that_is_nothing_but_its_ends_keeps_one() -> None:
    """QUANTIZE and DEQUANTIZE alone round their input; without the first, the second turns integers to float32."""
    tree = unpack(with_float_ends(random_graph("RELU", 1).model_bytes))
    graph = tree.subgraphs[0]
    first, _, last = graph.operators
    last.inputs = list(first.outputs)
    graph.operators = [first, last]
    model = with_integer_ends(board_model(pack(tree)))
    assert [operator.kind for operator in model.graph.operators] == ["DEQUANTIZE"]
    assert model.integer_ends == ("real_0",)
