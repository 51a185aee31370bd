# SPDX-License-Identifier: Apache-2.0
"""Whatever the bytes are, reading a model gives a graph or a ModelError: never another exception."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.errors import AreniteError, ModelError
from arenite.graph import printable
from arenite.tflite_graph import parse_graph, read_graph
from arenite_codegen.legalise import legalise
from arenite_converters.flatbuffer import pack, unpack
from arenite_converters.tflite_builder import ModelBuilder
from support.graphs import KINDS, random_graph

MODELS = [random_graph(kind, 3).model_bytes for kind in sorted(KINDS)]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_graph_holds_what_the_file_says(kind: str) -> None:
    case = random_graph(kind, 3)
    graph = parse_graph(case.model_bytes)
    named_otherwise = {
        *("CONV_CHAIN", "DILATED_TRIPLE", "GROUPED_CONV_2D", "LSTM"),
        *("MOBILE_BLOCKS", "REQUANTIZE", "STREAM", "WIDE_CHAIN"),
    }
    names = {kind, re.sub("_(CONV|S16|U8|F32)$", "", kind)}
    assert kind in named_otherwise or names & {op.kind for op in graph.operators}
    for index, values in zip(graph.inputs, case.inputs, strict=True):
        assert graph.tensors[index].shape == values.shape
        assert graph.tensors[index].dtype == str(values.dtype)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(MODELS), st.data())
def test_damaged_files_are_refused_by_one_error(model: bytes, data: st.DataObject) -> None:
    damaged = bytearray(model)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(damaged)), st.integers(0, len(damaged))))
    try:
        legalise(parse_graph(bytes(damaged[:cut])))
    except AreniteError as error:
        assert str(error)


@pytest.mark.parametrize("content", [b"", b"TFL3", b"\0\0\0\0TFL3", b"PK\x03\x04 a zip file", b"\x89HDF\r\n\x1a\n" * 4])
def test_other_files_are_not_models(content: bytes) -> None:
    with pytest.raises(ModelError):
        parse_graph(content)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.tflite"):
        read_graph(tmp_path / "nowhere.tflite")


def test_a_name_cannot_break_a_message() -> None:
    assert printable("a*/\n\x1b[31m\\") == "a?/??[31m?"
    assert len(printable("x" * 500)) == 60


def test_constants_are_typed_and_shaped() -> None:
    graph = parse_graph(random_graph("CONV_2D", 5).model_bytes)
    weights = graph.tensors[graph.operators[0].inputs[1]]
    assert weights.data is not None
    assert weights.data.dtype == np.int8
    assert weights.data.shape == weights.shape


def test_operator_code_in_the_new_field_alone() -> None:
    """Some writers fill the new field and leave the old one at 0, which is ADD."""
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 4), "int8", scales=[scale]) for name, scale in (("x", 0.1), ("y", 0.2)))
    builder.operator("QUANTIZE", [x], [y])
    model = unpack(builder.finish([x], [y]))
    model.operatorCodes[0].deprecatedBuiltinCode = 0
    assert [operator.kind for operator in parse_graph(pack(model)).operators] == ["QUANTIZE"]
