# SPDX-License-Identifier: Apache-2.0
"""Small graphs whose answers are known by hand: where tools like this one went wrong. The reference must agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from arenite.errors import UnsupportedOperatorError
from arenite.tflite_graph import parse_graph
from arenite_codegen.boards import load_board
from arenite_codegen.legalise import legalise
from arenite_codegen.rounding import multiply_by_quantised_multiplier, quantise_multiplier
from arenite_codegen.variants import choose_for
from support.builder import ModelBuilder
from support.graph_batch import GraphBatch
from support.graph_case import ACTIVATIONS, PADDINGS
from support.host_compiler import HostCompiler
from support.litert_reference import LiteRtReference
from support.tflm import TflmModel

Array = npt.NDArray[Any]
Prove = Callable[..., None]
UNIT: dict[str, Any] = {"scales": [1.0], "zero_points": [0]}


@pytest.fixture
def prove(compiler: HostCompiler, prebuilt: list[Path]) -> Prove:
    """Asserts that the reference and our C both give the wanted bytes."""

    def run(model: bytes, inputs: Sequence[Array], wanted: Array, by: type = TflmModel) -> None:
        assert by(model).run(list(inputs))[0].tobytes() == wanted.tobytes()
        with GraphBatch([model], compiler, prebuilt) as batch:
            for offset, mode in ((0, 0), (4, 3)):
                found = batch.run(0, list(inputs), [wanted], offset=offset, mode=mode)[0]
                assert found.tobytes() == wanted.tobytes()

    return run


def unary(
    kind: str,
    shape: Sequence[int],
    out_shape: Sequence[int],
    grids: Sequence[dict[str, Any]] = (UNIT, UNIT),
    constants: Sequence[Array] = (),
    dtype: str = "int8",
    **options: Any,
) -> bytes:
    """One operator of one computed input."""
    builder = ModelBuilder()
    x = builder.tensor("x", shape, dtype, **grids[0])
    more = [builder.tensor(f"c{i}", a.shape, str(a.dtype), data=a) for i, a in enumerate(constants)]
    y = builder.tensor("y", out_shape, dtype, **grids[1])
    builder.operator(kind, [x, *more], [y], version=2, **options)
    return builder.finish([x], [y])


def binary(kind: str, shapes: Sequence[Sequence[int]], scales: Sequence[float]) -> bytes:
    """One operator of two computed inputs, all zero points 0."""
    builder = ModelBuilder()
    out = np.broadcast_shapes(*map(tuple, shapes))
    grids = [{"scales": [scale], "zero_points": [0]} for scale in scales]
    a, b, y = (builder.tensor(n, s, "int8", **g) for n, s, g in zip("aby", (*shapes, out), grids, strict=True))
    builder.operator(kind, [a, b], [y], version=2, options=f"{kind.title()}Options", fusedActivationFunction=0)
    return builder.finish([a, b], [y])


def conv(
    shape: Sequence[int], weights: Array, out_shape: Sequence[int], point: int, stride: int = 1, dilation: int = 1
) -> bytes:
    """CONV_2D with SAME padding, all scales 1."""
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", scales=[1.0], zero_points=[point])
    w = builder.tensor("w", weights.shape, "int8", **UNIT, data=weights)
    b = builder.tensor("b", (len(weights),), "int32", **UNIT, data=np.zeros(len(weights), np.int32))
    y = builder.tensor("y", out_shape, "int8", **UNIT)
    steps = {"strideH": stride, "strideW": stride, "dilationHFactor": dilation, "dilationWFactor": dilation}
    builder.operator("CONV_2D", [x, w, b], [y], version=3, options="Conv2DOptions", padding=PADDINGS["SAME"], **steps)
    return builder.finish([x], [y])


def test_a_sum_is_rounded_once_on_a_finer_grid(prove: Prove) -> None:
    """0.1 + 0.1 is 1 step of 0.2; each rounded by itself to half a step would make 2."""
    a, b = np.array([[1, 1, 3, -1]], np.int8), np.array([[1, -1, 1, -1]], np.int8)
    prove(binary("ADD", [(1, 4), (1, 4)], (0.1, 0.1, 0.2)), [a, b], np.array([[1, 0, 2, -1]], np.int8))


def test_a_product_may_have_a_scale_above_one(prove: Prove) -> None:
    """0.5 × 4 / 1 = 2 for each step, broadcast over channels or not; it saturates."""
    a = np.arange(-4, 4, dtype=np.int8).reshape(1, 2, 2, 2)
    same = np.full((1, 2, 2, 2), 5, np.int8)
    channels = np.array([3, -100], np.int8).reshape(1, 1, 1, 2)
    for b in (same, channels):
        wanted = np.clip(2 * a.astype(int) * b, -128, 127).astype(np.int8)
        prove(binary("MUL", [a.shape, b.shape], (0.5, 4.0, 1.0)), [a, b], wanted)


@pytest.mark.parametrize(("height", "width"), [(10, 25), (20, 49), (96, 10), (25, 20)])
def test_same_padding_of_even_and_odd_extents_at_stride_2(prove: Prove, height: int, width: int) -> None:
    """An even extent is padded behind alone, an odd one on both sides, with the zero point."""
    values = np.random.default_rng(height).integers(-3, 4, (height, width))
    sides = [(0, 1) if extent % 2 == 0 else (1, 1) for extent in (height, width)]
    padded = np.pad(values, sides)
    out = ((height + 1) // 2, (width + 1) // 2)
    wanted = np.array(
        [[padded[2 * y : 2 * y + 3, 2 * x : 2 * x + 3].sum() for x in range(out[1])] for y in range(out[0])]
    )
    model = conv((1, height, width, 1), np.ones((1, 3, 3, 1), np.int8), (1, *out, 1), point=7, stride=2)
    prove(
        model, [(values + 7).astype(np.int8).reshape(1, height, width, 1)], wanted.astype(np.int8).reshape(1, *out, 1)
    )


DILATED = np.array([2, 2, 3, 3, 3, 3, 2, 2], np.int8).reshape(1, 1, 8, 1)


def test_dilation_2_on_ones(prove: Prove) -> None:
    """Three taps two apart: two of them at either end, three in the middle."""
    model = conv((1, 1, 8, 1), np.ones((1, 1, 3, 1), np.int8), (1, 1, 8, 1), point=-5, dilation=2)
    prove(model, [np.full((1, 1, 8, 1), -4, np.int8)], DILATED)


def test_a_dilation_beyond_all_rows(prove: Prove) -> None:
    """Two taps three apart over two rows: the upper one lies above the first row, then the lower one below the last."""
    values = np.array([5, 7], np.int8).reshape(1, 2, 1, 1)
    weights = np.array([2, 3], np.int8).reshape(1, 2, 1, 1)
    model = conv((1, 2, 1, 1), weights, (1, 2, 1, 1), point=0, dilation=3)
    # SAME pads one row before and two behind: rows -1 and 2, then 0 and 3.
    prove(model, [values], np.array([0, 2 * 5], np.int8).reshape(1, 2, 1, 1))


def test_what_no_window_reaches_needs_no_memory(compiler: HostCompiler, prebuilt: list[Path]) -> None:
    """A window so dilated that it steps over the whole picture: the layer before it never runs."""
    builder = ModelBuilder()
    x, middle = (
        builder.tensor(n, (1, 2, 1, 1), "int8", scales=[s], zero_points=[0]) for n, s in (("x", 1.0), ("m", 2.0))
    )
    w = builder.tensor("w", (1, 2, 1, 1), "int8", **UNIT, data=np.ones((1, 2, 1, 1), np.int8))
    b = builder.tensor("b", (1,), "int32", **UNIT, data=np.array([6], np.int32))
    y = builder.tensor("y", (1, 2, 1, 1), "int8", scales=[2.0], zero_points=[0])
    steps = {"strideH": 1, "strideW": 1, "dilationHFactor": 97, "dilationWFactor": 1}
    builder.operator("QUANTIZE", [x], [middle], version=2, options="QuantizeOptions")
    builder.operator("CONV_2D", [middle, w, b], [y], options="Conv2DOptions", padding=PADDINGS["SAME"], **steps)
    model, values = builder.finish([x], [y]), np.full((1, 2, 1, 1), 100, np.int8)
    wanted = TflmModel(model).run([values])
    assert wanted[0].ravel().tolist() == [6, 6]
    with GraphBatch([model], compiler, prebuilt) as batch:
        assert batch.run(0, [values], wanted, offset=0, mode=0)[0].tobytes() == wanted[0].tobytes()


def test_dilation_2_spelt_as_a_batch_of_phases(prove: Prove) -> None:
    """The same as SPACE_TO_BATCH_ND, CONV_2D and BATCH_TO_SPACE_ND: one convolution, nothing else."""
    builder, grid = ModelBuilder(), {"scales": [1.0], "zero_points": [-5]}
    x, phases = builder.tensor("x", (1, 1, 8, 1), "int8", **grid), builder.tensor("p", (2, 1, 6, 1), "int8", **grid)
    made, y = builder.tensor("m", (2, 1, 4, 1), "int8", **UNIT), builder.tensor("y", (1, 1, 8, 1), "int8", **UNIT)
    block, pads, crops = (
        builder.tensor(name, np.shape(values), "int32", data=np.array(values, np.int32))
        for name, values in (("block", [1, 2]), ("pads", [[0, 0], [2, 2]]), ("crops", [[0, 0], [0, 0]]))
    )
    w = builder.tensor("w", (1, 1, 3, 1), "int8", **UNIT, data=np.ones((1, 1, 3, 1), np.int8))
    b = builder.tensor("b", (1,), "int32", **UNIT, data=np.zeros(1, np.int32))
    steps = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    builder.operator("SPACE_TO_BATCH_ND", [x, block, pads], [phases])
    builder.operator("CONV_2D", [phases, w, b], [made], options="Conv2DOptions", padding=PADDINGS["VALID"], **steps)
    builder.operator("BATCH_TO_SPACE_ND", [made, block, crops], [y])
    model = builder.finish([x], [y])
    network = legalise(parse_graph(model))
    assert [layer.kernel for layer in network.layers] == ["conv_2d_s8"]
    assert {network.removed[index] for index in (0, 2)} == {"folded into the dilation of operator 1"}
    prove(model, [np.full((1, 1, 8, 1), -4, np.int8)], DILATED, LiteRtReference)


def pool(kind: str, shape: Sequence[int], window: int, grid: dict[str, Any], dtype: str, activation: str) -> bytes:
    """A window over pixels of one row or over a square, no padding, as wide as its stride."""
    height = window if shape[1] > 1 else 1
    out = (shape[0], shape[1] // height, shape[2] // window, shape[3])
    options = {"filterHeight": height, "filterWidth": window, "strideH": height, "strideW": window}
    options |= {"padding": PADDINGS["VALID"], "fusedActivationFunction": ACTIVATIONS[activation]}
    return unary(kind, shape, out, (grid, grid), dtype=dtype, options="Pool2DOptions", **options)


def test_an_average_rounds_half_away_from_zero(prove: Prove) -> None:
    """-3/2, 3/2, 5/2, -5/2 by twos; -6/4 by fours; int16 of a large window needs a wide sum."""
    pairs = np.array([-1, -2, 1, 2, 2, 3, -2, -3], np.int8).reshape(1, 1, 8, 1)
    wanted = np.array([-2, 2, 3, -3], np.int8).reshape(1, 1, 4, 1)
    prove(pool("AVERAGE_POOL_2D", pairs.shape, 2, UNIT, "int8", "none"), [pairs], wanted)
    four = np.array([-1, -2, -1, -2], np.int8).reshape(1, 1, 4, 1)
    prove(pool("AVERAGE_POOL_2D", four.shape, 4, UNIT, "int8", "none"), [four], np.full((1, 1, 1, 1), -2, np.int8))
    loud = np.full((1, 17, 17, 1), 32767, np.int16)
    fine = {"scales": [0.001], "zero_points": [0]}
    wanted = np.full((1, 1, 1, 1), 32767, np.int16)
    prove(pool("AVERAGE_POOL_2D", loud.shape, 17, fine, "int16", "none"), [loud], wanted)


def test_a_pooling_with_a_fused_activation_clamps_on_both_sides(prove: Prove) -> None:
    """Real numbers 0 to 6 are steps -10 to 50 of a grid of 0.1 around -10."""
    pixels = np.array([-100, -90, 100, 20, 0, -128], np.int8).reshape(1, 1, 6, 1)
    grid = {"scales": [0.1], "zero_points": [-10]}
    wanted = np.array([-10, 50, 0], np.int8).reshape(1, 1, 3, 1)
    prove(pool("MAX_POOL_2D", pixels.shape, 2, grid, "int8", "relu6"), [pixels], wanted)


RESIZED = {
    (False, False): [50, 42, 34, 26, 18, 10, 10, 10, 10, 10],
    (False, True): [50, 50, 50, 42, 34, 26, 18, 10, 10, 10],
    (True, False): [50, 46, 41, 37, 32, 28, 23, 19, 14, 10],
}


@pytest.mark.parametrize(("corners", "centres"), RESIZED)
def test_a_resize_by_each_rule(prove: Prove, corners: bool, centres: bool) -> None:
    """[[5, 1], [1, 5]] to 10 × 10 in tenths: the first row, and all of it turned about."""
    picture = np.array([50, 10, 10, 50], np.int8).reshape(1, 2, 2, 1)
    options = {"options": "ResizeBilinearOptions", "alignCorners": corners, "halfPixelCenters": centres}
    tenths = {"scales": [0.1], "zero_points": [0]}
    size = np.array([10, 10], np.int32)
    model = unary("RESIZE_BILINEAR", (1, 2, 2, 1), (1, 10, 10, 1), (tenths, tenths), [size], **options)
    whole = TflmModel(model).run([picture])[0]
    assert whole[0, 0, :, 0].tolist() == RESIZED[corners, centres]
    assert whole[0, :, 0, 0].tolist() == RESIZED[corners, centres]
    prove(model, [picture], whole)


@pytest.mark.parametrize("axes", [(1,), (2,), (3,), (1, 3), (2, -1), (1, 2, 3)])
@pytest.mark.parametrize("keep", [True, False])
def test_a_mean_over_any_axes_on_another_grid(prove: Prove, axes: tuple[int, ...], keep: bool) -> None:
    """Multiples of 24, halved by the grid: every mean is whole."""
    values = 24 * np.random.default_rng(1).integers(-5, 6, (1, 2, 3, 4))
    means = values.mean(axis=axes, keepdims=keep)
    grids = (UNIT, {"scales": [2.0], "zero_points": [3]})
    axis = np.array(axes, np.int32)
    model = unary("MEAN", values.shape, means.shape, grids, [axis], options="ReducerOptions", keepDims=keep)
    wanted = np.where(means >= 0, np.floor(means / 2 + 0.5), np.ceil(means / 2 - 0.5)) + 3
    prove(model, [values.astype(np.int8)], np.clip(wanted, -128, 127).astype(np.int8))


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_a_mean_of_any_rank(prove: Prove, rank: int) -> None:
    shape = (1, 2, 4, 2, 3)[:rank]
    values = 8 * np.random.default_rng(rank).integers(-9, 10, shape)
    means = values.mean(axis=-1)
    axis = np.array([-1], np.int32)
    model = unary("MEAN", shape, means.shape, (UNIT, UNIT), [axis], options="ReducerOptions", keepDims=False)
    found = TflmModel(model).run([values.astype(np.int8)])[0]
    assert np.abs(found - means).max() <= 0.5
    prove(model, [values.astype(np.int8)], found)


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks", "wanted"),
    [
        ([0, -3, 0, 0], [1, -1, 5, 2], [1, 1, 1, 1], {}, np.s_[:, -3:-1]),
        ([0, 3, 0, 0], [1, 0, 2, 2], [1, -1, 1, 1], {}, np.s_[:, 3:0:-1, 0:2]),
        ([0, 9, 1, 1], [0, 9, 9, -9], [1, 2, 1, -1], {"beginMask": 3, "endMask": 11}, np.s_[:, ::2, 1:9, 1::-1]),
        ([0, -2, 0, 0], [1, 0, 5, 2], [1, 1, 1, 1], {"shrinkAxisMask": 2}, np.s_[:, -2]),
        ([0, 1], [1, 3], [1, 1], {}, np.s_[:, 1:3]),
    ],
    ids=["negative", "backwards", "masks", "shrink", "short"],
)
def test_a_strided_slice_is_that_of_numpy(
    prove: Prove, begin: list[int], end: list[int], strides: list[int], masks: dict[str, int], wanted: Any
) -> None:
    """Negative positions, open bounds, dimensions that vanish; vectors shorter than the rank, which LiteRT takes."""
    values = np.arange(40, dtype=np.int8).reshape(1, 4, 5, 2)
    part = np.ascontiguousarray(values[wanted])
    constants = [np.array(numbers, np.int32) for numbers in (begin, end, strides)]
    options = {"options": "StridedSliceOptions", **masks}
    model = unary("STRIDED_SLICE", values.shape, part.shape, (UNIT, UNIT), constants, **options)
    prove(model, [values], part, TflmModel if len(begin) == 4 else LiteRtReference)


def softmax(scale: float, point: int) -> bytes:
    grids = ({"scales": [scale], "zero_points": [point]}, {"scales": [1 / 256], "zero_points": [-128]})
    return unary("SOFTMAX", (3, 4), (3, 4), grids, options="SoftmaxOptions", beta=1.0)


def test_a_softmax_does_not_look_at_the_zero_point_and_holds_one(prove: Prove) -> None:
    """A batch of three: one certain class is 127, four equal ones are a quarter each."""
    rows = np.array([[100, -100, -100, -100], [5, 5, 5, 5], [-128, -128, 127, -128]], np.int8)
    wanted = np.array([[127, -128, -128, -128], [-64] * 4, [-128, -128, 127, -128]], np.int8)
    for point in (-128, -1, 0, 127):
        prove(softmax(1.0, point), [rows], wanted)


@pytest.mark.parametrize("scale", [1e-4, 1e-3, 1e-2, 1e-1])
def test_a_softmax_of_any_input_scale_sums_to_one(prove: Prove, scale: float) -> None:
    rows = np.array([[0, 50, 100, -50], [1, 2, 3, 4], [-128, 127, 0, 0]], np.int8)
    wanted = TflmModel(softmax(scale, 0)).run([rows])[0]
    real = np.exp(scale * rows) / np.exp(scale * rows).sum(axis=1, keepdims=True)
    assert np.abs((wanted.astype(int) + 128) / 256 - real).max() < 0.006
    prove(softmax(scale, 0), [rows], wanted)


def test_dense_channels_whose_scales_are_a_hundred_times_apart(prove: Prove) -> None:
    """50 × 0.01 and 50 × 1 on a grid of a half: 1 and 100."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 1), "int8", **UNIT)
    w = builder.tensor("w", (2, 1), "int8", scales=[0.01, 1.0], data=np.ones((2, 1), np.int8))
    y = builder.tensor("y", (1, 2), "int8", scales=[0.5], zero_points=[0])
    builder.operator("FULLY_CONNECTED", [x, w, -1], [y], version=5, options="FullyConnectedOptions")
    prove(builder.finish([x], [y]), [np.array([[50]], np.int8)], np.array([[1, 100]], np.int8))


def test_a_concatenation_of_two_grids_is_refused() -> None:
    """100 means 4.729 on the first grid and 0.894 on the second: copying it would change the number."""
    builder = ModelBuilder()
    grids: list[dict[str, Any]] = [
        {"scales": [0.046824861], "zero_points": [-1]},
        {"scales": [0.0039213620], "zero_points": [-128]},
    ]
    assert [round((100 - g["zero_points"][0]) * g["scales"][0], 3) for g in grids] == [4.729, 0.894]
    a, b = (builder.tensor(n, (1, 4), "int8", **g) for n, g in zip("ab", grids, strict=True))
    y = builder.tensor("y", (1, 8), "int8", **grids[1])
    builder.operator("CONCATENATION", [a, b], [y], options="ConcatenationOptions", axis=1)
    with pytest.raises(UnsupportedOperatorError, match=r"operator 0 CONCATENATION: its input has scale 0\.0468"):
        legalise(parse_graph(builder.finish([a, b], [y])))


def test_a_quantise_takes_the_ratio_of_its_scales_in_double(prove: Prove) -> None:
    """Scales whose ratio rounded to float32 moves a byte: the exact ratio is a half of a step short, or beyond."""
    chance = np.random.default_rng(7)
    for _ in range(100_000):
        first, second = (float(np.float32(s)) for s in chance.uniform(0.01, 0.1, 2))
        pairs = [
            quantise_multiplier(ratio) for ratio in (first / second, float(np.float32(first) / np.float32(second)))
        ]
        tables = [[multiply_by_quantised_multiplier(v, *pair) for v in range(-128, 128)] for pair in pairs]
        if tables[0] != tables[1] and max(map(abs, tables[0])) < 128:
            break
    else:
        raise AssertionError("no such scales")
    grids = ({"scales": [first], "zero_points": [0]}, {"scales": [second], "zero_points": [0]})
    model = unary("QUANTIZE", (1, 256), (1, 256), grids, options="QuantizeOptions")
    prove(model, [np.arange(-128, 128, dtype=np.int8).reshape(1, 256)], np.array([tables[0]], np.int8))


def test_a_layer_gets_the_same_kernel_whatever_its_zero_point() -> None:
    """The zero point is part of the bias, also where it is the least byte; the report says which variant and why."""
    for board in ("qemu-mps2-an386", "host", "qemu-riscv32"):
        choices = [
            choose_for(load_board(board))(
                legalise(parse_graph(conv((1, 8, 8, 4), weights, (1, 8, 8, 4), point))).layers[0]
            )
            for weights in (np.ones((4, 3, 3, 4), np.int8),)
            for point in (-128, 0, 5)
        ]
        assert len({choice.variant.name for choice in choices}) == 1
        assert all(why for choice in choices for why in choice.passed_over.values())


@pytest.mark.parametrize("scale", [0.0, 3e38, 1e-45])
def test_scales_beyond_all_shifts_are_defined_or_refused(
    scale: float, compiler: HostCompiler, prebuilt: list[Path]
) -> None:
    """A weight scale of nothing makes the bias alone; one that no shift holds is refused, never undefined."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 4), "int8", **UNIT)
    w = builder.tensor("w", (1, 4), "int8", scales=[scale], zero_points=[0], data=np.ones((1, 4), np.int8))
    y = builder.tensor("y", (1, 1), "int8", **UNIT)
    builder.operator("FULLY_CONNECTED", [x, w, -1], [y], version=4, options="FullyConnectedOptions")
    model = builder.finish([x], [y])
    if scale > 1:
        with pytest.raises(UnsupportedOperatorError, match="beyond 2\\^30"):
            legalise(parse_graph(model))
        return
    with GraphBatch([model], compiler, prebuilt) as batch:
        loud, nothing = np.full((1, 4), 127, np.int8), np.zeros((1, 1), np.int8)
        assert batch.run(0, [loud], [nothing], offset=0, mode=1)[0].tobytes() == nothing.tobytes()
