# SPDX-License-Identifier: Apache-2.0
"""What the table of operators says of each, and what it refuses: newer versions, constants that are no axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from arenite.errors import UnsupportedOperatorError
from arenite.tflite_graph import parse_graph
from arenite_codegen.legalise import legalise
from arenite_codegen.operators import OPERATORS
from support.builder import ModelBuilder

GRID = {"scales": [0.5], "zero_points": [0]}


def bare(kind: str, version: int) -> bytes:
    """An operator of a version, without its options: enough for an interpreter to look for its kernel."""
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 4), "int8", **GRID) for name in "xy")
    builder.operator(kind, [x], [y], version=version)
    return builder.finish([x], [y])


def is_known_to_litert(kind: str, version: int) -> bool:
    """Whether LiteRT has a kernel for this version; what else it says of the file does not matter."""
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        Interpreter(model_content=bare(kind, version), experimental_op_resolver_type=resolver)
    except ValueError as error:
        return "Didn't find op" not in str(error)
    return True


@pytest.mark.parametrize("kind", OPERATORS)
def test_the_newest_version_of_each_operator_is_litert_s(kind: str) -> None:
    newest = OPERATORS[kind].version
    assert is_known_to_litert(kind, newest)
    assert not is_known_to_litert(kind, newest + 1)


def test_a_newer_version_is_refused_by_name() -> None:
    newer = OPERATORS["RELU"].version + 1
    known = legalise(parse_graph(bare("RELU", newer - 1)))
    assert [layer.kind for layer in known.layers] == ["RELU"]
    with pytest.raises(UnsupportedOperatorError) as refusal:
        legalise(parse_graph(bare("RELU", newer)))
    assert f"operator 0 RELU: version {newer} has no kernel; versions 1 to {newer - 1} have" in str(refusal.value)
    assert "older converter" in str(refusal.value)


def test_an_unknown_operator_is_refused_with_its_index_and_tensor() -> None:
    with pytest.raises(UnsupportedOperatorError) as refusal:
        legalise(parse_graph(bare("CUMSUM", 1)))
    assert "operator 0 CUMSUM: it (version 1) has no kernel; it makes tensor 1 'y' int8[1×4]" in str(refusal.value)


def reduced_along(axis: np.ndarray) -> bytes:
    """A MEAN whose axis is this constant."""
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 4, 4), "int8", **GRID), builder.tensor("y", (1, 1, 4), "int8", **GRID)
    along = builder.tensor("axis", axis.shape, str(axis.dtype), data=axis)
    builder.operator("MEAN", [x, along], [y], options="ReducerOptions", keepDims=True)
    return builder.finish([x], [y])


def gathered(count: int, dtype: type) -> bytes:
    """A GATHER of `count` rows of 100,000 bytes into an output of one."""
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 100_000), "int8", **GRID), builder.tensor("y", (1, 100_000), "int8", **GRID)
    positions = builder.tensor("positions", (count,), np.dtype(dtype).name, data=np.zeros(count, dtype))
    builder.operator("GATHER", [x, positions], [y], options="GatherOptions", axis=0)
    return builder.finish([x], [y])


def tiled() -> bytes:
    """A TILE of more elements than a map of them may have."""
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 5000, 5000), "int8", **GRID) for name in "xy")
    counts = builder.tensor("counts", (3,), "int32", data=np.ones(3, np.int32))
    builder.operator("TILE", [x, counts], [y])
    return builder.finish([x], [y])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: reduced_along(np.array([1.0], np.float32)), "must hold int32 or int64"),
        (lambda: reduced_along(np.array([7], np.int32)), "axis 7 is out of range"),
        (lambda: gathered(1, np.float32), "must hold int32 or int64"),
        (lambda: gathered(100_000, np.int32), "it makes 10,000,000,000 elements"),
        (tiled, "more than 16,777,216 elements"),
    ],
)
def test_constants_of_a_wrong_type_or_size_are_refused(make: Callable[[], bytes], message: str) -> None:
    with pytest.raises(UnsupportedOperatorError, match=message):
        legalise(parse_graph(make()))
