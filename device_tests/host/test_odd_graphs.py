# SPDX-License-Identifier: Apache-2.0
"""Graphs that are legal and rare: what is read twice, by nobody, or is input and output at once."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from arenite.errors import UnsupportedOperatorError
from arenite.reference import reference_outputs
from arenite_codegen import bundle
from arenite_codegen.build import build
from arenite_codegen.host import HostModel
from support.builder import ModelBuilder

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
