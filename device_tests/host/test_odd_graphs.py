# SPDX-License-Identifier: Apache-2.0
"""Graphs that are legal and rare: what is read twice, by nobody, or is input and output at once."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from arenite.errors import ModelError, UnsupportedOperatorError
from arenite.host_model import HostModel
from arenite.reference import reference_outputs
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.builder import ModelBuilder
from support.graph_batch import GraphBatch
from support.host_compiler import HostCompiler

Array = npt.NDArray[Any]
GRID = {"scales": [0.1], "zero_points": [3]}
COARSE = {"scales": [0.23], "zero_points": [-7]}


def tensor(builder: ModelBuilder, name: str, shape: tuple[int, ...], grid: dict[str, Any] = GRID, **more: Any) -> int:
    return builder.tensor(name, shape, "int8", **grid, **more)


def add(builder: ModelBuilder, a: int, b: int, out: int) -> None:
    builder.operator("ADD", [a, b], [out], version=2, options="AddOptions", fusedActivationFunction=0)


def relu(builder: ModelBuilder, a: int, out: int) -> None:
    builder.operator("RELU", [a], [out], version=2)


def agrees(model: bytes, shapes: list[tuple[int, ...]], tmp_path: Path) -> list[Array]:
    """Outputs of the compiled model, which equal the reference's."""
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    bundle(path, "host", tmp_path / "b", vectors=0, force=True)
    generator = np.random.default_rng(1)
    inputs = [generator.integers(-128, 128, shape, dtype=np.int8) for shape in shapes]
    got = HostModel(build(tmp_path / "b").elf).run(inputs)
    expected = reference_outputs(model, [inputs])[0]
    assert [g.tobytes() for g in got] == [e.tobytes() for e in expected]
    return got


def test_an_input_that_is_an_output(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = tensor(builder, "x", (1, 4, 5, 3)), tensor(builder, "y", (1, 4, 5, 3), COARSE)
    builder.operator("QUANTIZE", [x], [y], options="QuantizeOptions")
    agrees(builder.finish([x], [x, y]), [(1, 4, 5, 3)], tmp_path)


def test_an_input_that_nobody_reads(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, unread, y = (tensor(builder, name, (1, 9, 2)) for name in ("x", "unread", "y"))
    relu(builder, x, y)
    agrees(builder.finish([x, unread], [y]), [(1, 9, 2), (1, 9, 2)], tmp_path)


def test_an_output_that_is_read_again(tmp_path: Path) -> None:
    """The second reader could run in place, were the value not wanted afterwards."""
    builder = ModelBuilder()
    x, middle, y = (tensor(builder, name, (1, 6, 4, 2)) for name in ("x", "middle", "y"))
    relu(builder, x, middle)
    add(builder, middle, x, y)
    agrees(builder.finish([x], [middle, y]), [(1, 6, 4, 2)], tmp_path)


def test_one_value_on_both_sides(tmp_path: Path) -> None:
    builder = ModelBuilder()
    grids = {"x": GRID, "doubled": COARSE, "y": COARSE}
    x, doubled, y = (tensor(builder, name, (1, 6, 4, 2), grid) for name, grid in grids.items())
    add(builder, x, x, doubled)
    add(builder, doubled, doubled, y)
    agrees(builder.finish([x], [y]), [(1, 6, 4, 2)], tmp_path)


def test_two_readers_of_which_both_could_run_in_place(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, a, b, y = (tensor(builder, name, (1, 6, 4, 2)) for name in "xaby")
    add(builder, x, x, a)
    relu(builder, a, b)
    add(builder, a, b, y)
    agrees(builder.finish([x], [y]), [(1, 6, 4, 2)], tmp_path)


def test_a_skip_over_a_strided_branch(tmp_path: Path) -> None:
    """The delay line must hold rows until the slow branch has caught up."""
    builder = ModelBuilder()
    x = tensor(builder, "x", (1, 12, 12, 2))
    pooled, small, y = (tensor(builder, name, (1, 4, 4, 2)) for name in ("pooled", "small", "y"))
    pool = {"padding": 1, "strideH": 3, "strideW": 3, "fusedActivationFunction": 0}
    for kind, size, out in (("MAX_POOL_2D", 3, pooled), ("AVERAGE_POOL_2D", 2, small)):
        builder.operator(kind, [x], [out], options="Pool2DOptions", filterHeight=size, filterWidth=size, **pool)
    add(builder, pooled, small, y)
    agrees(builder.finish([x], [y]), [(1, 12, 12, 2)], tmp_path)


def test_the_same_output_twice(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = tensor(builder, "x", (1, 5)), tensor(builder, "y", (1, 5))
    relu(builder, x, y)
    got = agrees(builder.finish([x], [y, y]), [(1, 5)], tmp_path)
    assert got[0].tobytes() == got[1].tobytes()


def test_an_operator_that_reaches_no_output_needs_no_kernel(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y, dead = (tensor(builder, name, (1, 5)) for name in ("x", "y", "dead"))
    builder.operator("TANH", [x], [dead])
    relu(builder, x, y)
    path = tmp_path / "model.tflite"
    path.write_bytes(builder.finish([x], [y]))
    report = bundle(path, "host", tmp_path / "b", vectors=0)
    assert [op.kernel for op in report.operators] == [None, "lookup_s8"]


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (1, 2, 3, 4, 5)])
def test_any_rank(tmp_path: Path, shape: tuple[int, ...]) -> None:
    builder = ModelBuilder()
    x, y = tensor(builder, "x", shape), tensor(builder, "y", shape)
    relu(builder, x, y)
    agrees(builder.finish([x], [y]), [shape], tmp_path)


def test_a_long_chain_and_many_rows(tmp_path: Path) -> None:
    """Deeper than Python's recursion limit, taller than a byte."""
    builder = ModelBuilder()
    shape = (1, 300, 1, 2)
    values = [tensor(builder, f"t{i}", shape, GRID if i % 2 else COARSE) for i in range(260)]
    for a, b in pairwise(values):
        builder.operator("QUANTIZE", [a], [b], options="QuantizeOptions")
    agrees(builder.finish([values[0]], [values[-1]]), [shape], tmp_path)


def test_different_scales_are_no_mere_movement(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = tensor(builder, "x", (1, 4)), tensor(builder, "y", (4, 1), COARSE)
    shape = builder.tensor("shape", (2,), "int32", data=np.array([4, 1], np.int32))
    builder.operator("RESHAPE", [x, shape], [y])
    path = tmp_path / "model.tflite"
    path.write_bytes(builder.finish([x], [y]))
    with pytest.raises(UnsupportedOperatorError, match="only moves bytes"):
        bundle(path, "host", tmp_path / "b")


def refused(model: bytes, tmp_path: Path, reason: str, error: type[Exception] = UnsupportedOperatorError) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    with pytest.raises(error, match=reason):
        bundle(path, "host", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_inputs_of_different_batches_are_refused(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = tensor(builder, "x", (2, 3, 2, 2)), tensor(builder, "y", (2, 3, 2, 2))
    z, dense = tensor(builder, "z", (1, 12)), tensor(builder, "dense", (2, 5))
    weights = builder.tensor("w", (5, 6), "int8", scales=[0.1], zero_points=[0], data=np.ones((5, 6), np.int8))
    relu(builder, x, y)
    options = {"fusedActivationFunction": 0, "keepNumDims": False}
    table = "FullyConnectedOptions"
    builder.operator("FULLY_CONNECTED", [z, weights, -1], [dense], version=4, options=table, **options)
    refused(builder.finish([x, z], [y, dense]), tmp_path, "batch of 2")


def transposed_after_a_reshape(order: tuple[int, int, int]) -> bytes:
    """A batch of 2 as rows of both items one behind the other, and then transposed."""
    builder = ModelBuilder()
    out_shape = tuple((4, 8, 3)[axis] for axis in order)
    x, mixed, y = tensor(builder, "x", (2, 4, 4, 3)), tensor(builder, "m", (4, 8, 3)), tensor(builder, "y", out_shape)
    shape = builder.tensor("shape", (3,), "int32", data=np.array([4, 8, 3], np.int32))
    axes = builder.tensor("order", (3,), "int32", data=np.array(order, np.int32))
    builder.operator("RESHAPE", [x, shape], [mixed])
    builder.operator("TRANSPOSE", [mixed, axes], [y])
    return builder.finish([x], [y])


def test_a_transpose_may_move_elements_within_the_items_of_a_batch_only(tmp_path: Path) -> None:
    refused(transposed_after_a_reshape((1, 0, 2)), tmp_path, "batch of 2")
    agrees(transposed_after_a_reshape((0, 2, 1)), [(2, 4, 4, 3)], tmp_path)


def test_a_constant_output_without_the_batch_is_refused(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = tensor(builder, "x", (2, 3, 3, 4)), tensor(builder, "y", (2, 3, 3, 4))
    c = tensor(builder, "c", (1, 4), data=np.array([[109, -101, -20, -48]], np.int8))
    relu(builder, x, y)
    refused(builder.finish([x], [y, c]), tmp_path, "batch of 2")


def test_a_tensor_that_two_operators_write_is_corrupt(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = tensor(builder, "x", (1, 4)), tensor(builder, "y", (1, 4))
    relu(builder, x, y)
    relu(builder, x, y)
    refused(builder.finish([x], [y]), tmp_path, "another operator has written", ModelError)


def test_a_small_quotient_is_rounded_where_the_reference_shifts_too_far(
    compiler: HostCompiler, prebuilt: list[Path]
) -> None:
    """All pairs of bytes; the quotient on a scale of 1 shifts by more than 31 bits, which C leaves undefined."""
    builder = ModelBuilder()
    a, b = tensor(builder, "a", (1, 256, 1, 1)), tensor(builder, "b", (1, 1, 256, 1))
    y = tensor(builder, "y", (1, 256, 256, 1), {"scales": [1.0], "zero_points": [3]})
    builder.operator("DIV", [a, b], [y], version=2, options="DivOptions", fusedActivationFunction=0)
    every = np.arange(-128, 128).astype(np.int8)
    inputs = [every.reshape(1, 256, 1, 1), every.reshape(1, 1, 256, 1)]
    with GraphBatch([builder.finish([a, b], [y])], compiler, prebuilt) as graphs:
        found = graphs.run(0, inputs, [np.empty((256, 256), np.int8)], 0, 0)[0].astype(int) - 3
    above, below = (every.astype(float) - 3)[:, None], np.delete(every.astype(float) - 3, 131)[None, :]
    wanted = np.clip(above / below, -131, 124)
    # A reciprocal, a product and a shift, each rounded once.
    assert np.abs(np.delete(found, 131, axis=1) - wanted).max() <= 0.51


def test_a_bias_at_the_end_of_int32_is_no_undefined_behaviour(compiler: HostCompiler, prebuilt: list[Path]) -> None:
    """The reference adds nothing to it (every input is at the zero point), the folded sum passes the end on its way."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 64), "int8", scales=[0.1], zero_points=[-128])
    y = builder.tensor("y", (1, 1), "int8", scales=[9e5], zero_points=[0])
    weights = builder.tensor("w", (1, 64), "int8", scales=[0.1], zero_points=[0], data=np.full((1, 64), 127, np.int8))
    bias = builder.tensor("b", (1,), "int32", scales=[0.01], data=np.array([2**31 - 1000], np.int32))
    options = {"fusedActivationFunction": 0, "keepNumDims": False}
    builder.operator("FULLY_CONNECTED", [x, weights, bias], [y], version=4, options="FullyConnectedOptions", **options)
    model = builder.finish([x], [y])
    vector = [np.full((1, 64), -128, np.int8)]
    expected = reference_outputs(model, [vector])[0]
    with GraphBatch([model], compiler, prebuilt) as batch:
        assert batch.run(0, vector, expected, offset=0, mode=0)[0].tobytes() == expected[0].tobytes()


def test_a_library_that_is_built_anew_is_loaded_anew(tmp_path: Path) -> None:
    """The loader knows a library by its path; proof of yesterday's bytes is no proof."""
    for name, point in (("first", 3), ("second", 90)):
        builder = ModelBuilder()
        x, y = tensor(builder, "x", (1, 8)), builder.tensor(name, (1, 8), "int8", scales=[0.1], zero_points=[point])
        builder.operator("QUANTIZE", [x], [y], options="QuantizeOptions")
        relu(builder, y, z := builder.tensor("z", (1, 8), "int8", scales=[0.1], zero_points=[point]))
        agrees(builder.finish([x], [z]), [(1, 8)], tmp_path)
