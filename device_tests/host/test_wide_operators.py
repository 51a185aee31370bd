# SPDX-License-Identifier: Apache-2.0
"""Cases that break tools like this one: transposed convolutions, wide sums, states, types that do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arenite.errors import UnsupportedOperatorError
from arenite.tflite_graph import parse_graph
from arenite_codegen.legalise import legalise
from support.builder import ModelBuilder
from support.graph_batch import GraphBatch
from support.graph_case import PADDINGS
from support.host_compiler import HostCompiler
from support.tflm import TflmModel


def one_to_one(kernel: int, stride: int, padding: str, made: int) -> bytes:
    """A TRANSPOSE_CONV over one row of four pixels, scales 1, weights 1, 2, 3, … and a bias of 10."""
    builder = ModelBuilder()
    grid = {"scales": [1.0], "zero_points": [0]}
    x = builder.tensor("x", (1, 1, 4, 1), "int8", **grid)
    weights = np.arange(1, kernel + 1, dtype=np.int8).reshape(1, 1, kernel, 1)
    w = builder.tensor("w", weights.shape, "int8", **grid, data=weights)
    b = builder.tensor("b", (1,), "int32", **grid, data=np.array([10], np.int32))
    shape = builder.tensor("shape", (4,), "int32", data=np.array([1, 1, made, 1], np.int32))
    y = builder.tensor("y", (1, 1, made, 1), "int8", **grid)
    options = {"padding": PADDINGS[padding], "strideH": 1, "strideW": stride}
    builder.operator("TRANSPOSE_CONV", [shape, w, x, b], [y], version=3, options="TransposeConvOptions", **options)
    return builder.finish([x], [y])


# Each input pixel i adds its weights at i * stride - pad; worked out by hand for the pixels 1, 2, 3, 4.
TRANSPOSED = {
    (3, 3, "VALID", 12): [11, 12, 13, 12, 14, 16, 13, 16, 19, 14, 18, 22],
    (3, 3, "SAME", 12): [11, 12, 13, 12, 14, 16, 13, 16, 19, 14, 18, 22],
    (4, 3, "VALID", 13): [11, 12, 13, 16, 14, 16, 21, 16, 19, 26, 18, 22, 26],
    (4, 3, "VALID", 15): [11, 12, 13, 16, 14, 16, 21, 16, 19, 26, 18, 22, 26, 10, 10],
    (4, 3, "SAME", 11): [12, 13, 16, 14, 16, 21, 16, 19, 26, 18, 22],
    (2, 3, "VALID", 12): [11, 12, 10, 12, 14, 10, 13, 16, 10, 14, 18, 10],
}


@pytest.mark.parametrize(("kernel", "stride", "padding", "made"), TRANSPOSED)
def test_transposed_convolutions_by_hand(
    kernel: int, stride: int, padding: str, made: int, compiler: HostCompiler, prebuilt: list[Path]
) -> None:
    model = one_to_one(kernel, stride, padding, made)
    pixels = np.array([1, 2, 3, 4], np.int8).reshape(1, 1, 4, 1)
    wanted = np.array(TRANSPOSED[kernel, stride, padding, made], np.int8).reshape(1, 1, made, 1)
    assert TflmModel(model).run([pixels])[0].tobytes() == wanted.tobytes()
    with GraphBatch([model], compiler, prebuilt) as batch:
        assert batch.run(0, [pixels], [wanted], offset=4, mode=3)[0].tobytes() == wanted.tobytes()


def test_sums_of_int16_run_past_int32(compiler: HostCompiler, prebuilt: list[Path]) -> None:
    """600 products of 32767 and 127 are 2,496,845,400: without a bias and with one of int64 they do not wrap."""
    terms, models = 600, []
    for bias in (None, np.array([1000], np.int64)):
        builder = ModelBuilder()
        x = builder.tensor("x", (1, terms), "int16", scales=[1e-4], zero_points=[0])
        data = np.full((1, terms), 127, np.int8)
        w = builder.tensor("w", (1, terms), "int8", scales=[1e-4], zero_points=[0], data=data)
        b = -1 if bias is None else builder.tensor("b", (1,), "int64", scales=[1e-8], zero_points=[0], data=bias)
        y = builder.tensor("y", (1, 1), "int16", scales=[1e-3], zero_points=[0])
        builder.operator("FULLY_CONNECTED", [x, w, b], [y], version=7, options="FullyConnectedOptions")
        models.append(builder.finish([x], [y]))
    loud = np.full((1, terms), 32767, np.int16)
    exact = round(terms * 32767 * 127 * 1e-8 / 1e-3)
    with GraphBatch(models, compiler, prebuilt) as batch:
        for index, model in enumerate(models):
            wanted = TflmModel(model).run([loud])
            assert abs(int(wanted[0][0, 0]) - exact) <= 1
            assert batch.run(index, [loud], wanted, offset=0, mode=1)[0].tobytes() == wanted[0].tobytes()


def svdf(state_point: int) -> bytes:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2), "int8", scales=[0.1], zero_points=[3])
    f = builder.tensor("f", (2, 2), "int8", scales=[0.1], zero_points=[0], data=np.array([[1, 2], [3, 4]], np.int8))
    t = builder.tensor("t", (2, 3), "int8", scales=[0.1], zero_points=[0], data=np.full((2, 3), 5, np.int8))
    b = builder.tensor("b", (2,), "int32", scales=[0.1 * 0.05], zero_points=[0], data=np.zeros(2, np.int32))
    s = builder.tensor("s", (1, 6), "int8", scales=[0.05], zero_points=[state_point], variable=True)
    y = builder.tensor("y", (1, 2), "int8", scales=[0.1], zero_points=[-7])
    options = {"rank": 1, "fusedActivationFunction": 1}
    builder.operator("SVDF", [x, f, t, b, s], [y], version=3, options="SVDFOptions", **options)
    return builder.finish([x], [y])


def test_a_state_on_which_versions_of_the_reference_disagree_is_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"operator 0 SVDF: a state with a zero point other than 0"):
        legalise(parse_graph(svdf(5)))
    assert len(legalise(parse_graph(svdf(0))).states) == 1


def variable_model(first: str = "int8", second: str = "int8") -> bytes:
    """y = what the variable was; then the variable becomes x."""
    builder = ModelBuilder()
    grid = {"scales": [0.5], "zero_points": [-9]}
    x = builder.tensor("x", (1, 4), second, **grid)
    y = builder.tensor("y", (1, 4), first, **grid)
    handle = builder.tensor("handle", (), "resource")
    builder.operator("VAR_HANDLE", [], [handle], options="VarHandleOptions", sharedName="last")
    builder.operator("READ_VARIABLE", [handle], [y])
    builder.operator("ASSIGN_VARIABLE", [handle, x], [])
    return builder.finish([x], [y])


def test_a_variable_starts_at_its_zero_point(compiler: HostCompiler, prebuilt: list[Path]) -> None:
    """Not at raw 0, which would be 4.5 here; then each run reads what the run before assigned."""
    model = variable_model()
    frames = [np.array([[n, n + 1, n + 2, n + 3]], np.int8) for n in (10, 20, 30)]
    wanted = [np.full((1, 4), -9, np.int8), *frames[:2]]
    oracle = TflmModel(model)
    assert [oracle.run([frame])[0].tolist() for frame in frames] == [one.tolist() for one in wanted]
    with GraphBatch([model], compiler, prebuilt) as batch:
        found = batch.run_in_turn(0, [[frame] for frame in frames], wanted[:1], offset=0, mode=0)
    assert [one.tolist() for (one,) in found] == [one.tolist() for one in wanted]


def test_variables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"variable 'last' is .* in one place and .* in another"):
        legalise(parse_graph(variable_model("int8", "int16")))


def test_ends_of_two_types_are_refused_by_name() -> None:
    builder = ModelBuilder()
    w, a = (builder.tensor(name, (1, 4), "bool") for name in "wa")
    b, y = (builder.tensor(name, (1, 4), "int8", scales=[0.1], zero_points=[0]) for name in "by")
    builder.operator("SELECT_V2", [w, a, b], [y], options="SelectV2Options")
    with pytest.raises(UnsupportedOperatorError, match=r"operator 0 SELECT_V2: .* differ in type"):
        legalise(parse_graph(builder.finish([w, a, b], [y])))


@pytest.mark.parametrize("kind", ["IF", "WHILE"])
def test_control_flow_is_refused_with_its_cure(kind: str) -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 4), "int8", scales=[0.1], zero_points=[0]) for name in "xy")
    builder.operator(kind, [x], [y])
    with pytest.raises(UnsupportedOperatorError, match=rf"operator 0 {kind}: .* has no kernel") as raised:
        legalise(parse_graph(builder.finish([x], [y])))
    assert "unrolled" in str(raised.value)
