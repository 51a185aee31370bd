# SPDX-License-Identifier: Apache-2.0
"""Whose reference kernels a model's bytes come from, and how near its floats must be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import arenite
from arenite.authority import Authority, authority_of
from arenite.errors import MissingToolError, UsageError
from arenite.reference import LITERT, TFLM, reference_name, reference_outputs
from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.builder import ModelBuilder
from support.choices import Choices
from support.graphs import random_graph

UNITS = 40


def dense_and_gelu(seed: int, kinds: str = "FGF") -> bytes:
    """FULLY_CONNECTED (F) and GELU (G) one behind the other."""
    choices, builder = Choices.seeded(seed), ModelBuilder()
    at = first = builder.tensor("x", (1, UNITS), "int8", scales=[0.05], zero_points=[3])
    for number, kind in enumerate(kinds):
        out = builder.tensor(f"y{number}", (1, UNITS), "int8", scales=[0.05], zero_points=[-7])
        if kind == "G":
            builder.operator("GELU", [at], [out], options="GeluOptions", approximate=False)
        else:
            data = choices.weights((UNITS, UNITS))
            w = builder.tensor(f"w{number}", data.shape, "int8", scales=[0.0021], zero_points=[0], data=data)
            builder.operator("FULLY_CONNECTED", [at, w, -1], [out], version=4, options="FullyConnectedOptions")
        at = out
    return builder.finish([first], [at])


def chained(model: bytes, vector: np.ndarray) -> np.ndarray:
    """The model's output, each operator run as a model of its own that is built anew."""
    graph = parse_graph(model)
    value = vector
    for operator in graph.operators:
        builder = ModelBuilder()
        ends = [graph.tensors[index] for index in (operator.inputs[0], operator.outputs[0])]
        x, y = (
            builder.tensor(t.name, t.shape, "int8", scales=[float(q.scale)], zero_points=[q.zero_point])
            for t in ends
            if (q := t.quantisation) is not None
        )
        if operator.kind == "GELU":
            builder.operator("GELU", [x], [y], options="GeluOptions", approximate=False)
        else:
            data = graph.tensors[operator.inputs[1]].data
            assert data is not None
            w = builder.tensor("w", data.shape, "int8", scales=[0.0021], zero_points=[0], data=data)
            builder.operator("FULLY_CONNECTED", [x, w, -1], [y], version=4, options="FullyConnectedOptions")
        package = LITERT if operator.kind == "GELU" else TFLM
        value = reference_outputs(builder.finish([x], [y]), [[value]], package=package)[0][0]
    return value


def test_a_model_of_both_references_runs_in_parts() -> None:
    model = dense_and_gelu(1)
    authority = authority_of(parse_graph(model))
    assert authority == Authority((TFLM, LITERT, TFLM), ("GELU",))
    assert authority.name == f"{reference_name(TFLM)}, {reference_name(LITERT)} for GELU"
    chance = np.random.default_rng(2)
    vectors = [[chance.integers(-128, 128, (1, UNITS), dtype=np.int8)] for _ in range(2)]
    found = authority.outputs(model, vectors)
    for vector, outputs in zip(vectors, found, strict=True):
        assert outputs[0].tobytes() == chained(model, vector[0]).tobytes()
    assert len({outputs[0].tobytes() for outputs in found}) == 2
    inside = authority.tensors(model, vectors[0], [op.outputs[0] for op in parse_graph(model).operators])
    assert [value.shape for value in inside.values()] == [(1, UNITS)] * 3
    assert list(inside.values())[-1].tobytes() == found[0][0].tobytes()


def test_such_a_model_is_proven_with_vectors_layer_by_layer(tmp_path: Path) -> None:
    (tmp_path / "mixed.tflite").write_bytes(dense_and_gelu(4))
    report = bundle(tmp_path / "mixed.tflite", "host", tmp_path / "b")
    assert report.vectors == 3 and report.authority.endswith("for GELU")
    build(tmp_path / "b")
    proof = arenite.verify(tmp_path / "b", random=2)
    assert (proof.identical, proof.vectors, proof.layers_checked, proof.float_ulps) == (True, 5, 3, None)


def test_one_package_is_enough_where_it_rounds_alike() -> None:
    assert authority_of(parse_graph(dense_and_gelu(1, "GG"))) == Authority((LITERT, LITERT))
    assert authority_of(parse_graph(dense_and_gelu(1, "FF"))) == Authority((TFLM, TFLM))
    uint8 = authority_of(parse_graph(random_graph("CONV_2D_U8", 1).model_bytes))
    assert uint8 is not None and set(uint8.packages) == {LITERT}


def test_state_between_both_references_has_no_authority() -> None:
    graph = parse_graph(random_graph("STREAM", 1).model_bytes)
    assert "VAR_HANDLE" in {operator.kind for operator in graph.operators} and authority_of(graph) is not None
    last, other = (replace(graph.operators[-1], kind=kind) for kind in ("GELU", "FULLY_CONNECTED"))
    assert authority_of(replace(graph, operators=(*graph.operators, last))) is not None
    assert authority_of(replace(graph, operators=(*graph.operators, last, other))) is None


@pytest.fixture
def float_head(tmp_path: Path) -> Path:
    """A built bundle of DEQUANTIZE and a softmax of float32."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 12), "int8", scales=[0.1], zero_points=[-4])
    real, y = (builder.tensor(name, (1, 12), "float32") for name in ("real", "y"))
    builder.operator("DEQUANTIZE", [x], [real], version=2, options="DequantizeOptions")
    builder.operator("SOFTMAX", [real], [y], options="SoftmaxOptions", beta=1.0)
    (tmp_path / "m.tflite").write_bytes(builder.finish([x], [y]))
    bundle(tmp_path / "m.tflite", "host", tmp_path / "b", vectors=2)
    build(tmp_path / "b")
    return tmp_path / "b"


def test_floats_may_differ_in_their_last_bits_and_it_is_said(float_head: Path) -> None:
    proof = arenite.verify(float_head)
    assert proof.identical and proof.float_ulps is not None and proof.float_ulps <= 8
    path = float_head / "vectors" / "output_001.bin"
    expected = np.fromfile(path, np.float32)
    for steps, identical in ((20, True), (1000, False)):
        moved = expected.copy()
        moved[5] = (moved[5:6].view(np.int32) + steps).view(np.float32)[0]
        moved.tofile(path)
        proof = arenite.verify(float_head)
        assert proof.identical is identical
        assert proof.float_ulps is not None and abs(proof.float_ulps - steps) <= 8


def test_a_bundle_without_vectors_says_what_to_do(tmp_path: Path) -> None:
    """LiteRT's kernels give the vectors of GELU: nobody is told to install tflite-micro."""
    (tmp_path / "gelu.tflite").write_bytes(random_graph("GELU", 3).model_bytes)
    bundle(tmp_path / "gelu.tflite", "host", tmp_path / "b", vectors=0)
    build(tmp_path / "b")
    with pytest.raises(UsageError) as refusal:
        arenite.verify(tmp_path / "b")
    assert "no golden vectors" in str(refusal.value) and "tflite-micro" not in str(refusal.value)
    assert "Bundle the model again" in str(refusal.value)


def test_a_package_that_cannot_be_imported_is_no_corrupt_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python looks for modules in the folder that it is run in first."""
    (tmp_path / "tflite_micro").mkdir()
    (tmp_path / "tflite_micro" / "__init__.py").write_text("raise ImportError('not the package')\n")
    case = random_graph("ADD", 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"cannot be imported \(ImportError: not the package\)"):
        reference_outputs(case.model_bytes, [list(case.vectors[0])])
