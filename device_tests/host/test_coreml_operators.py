# SPDX-License-Identifier: Apache-2.0
"""Kernels of the MIL executor: against PyTorch, and against values worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arenite.errors import ModelError, UnsupportedOperatorError
from arenite_converters.coreml.biases import mended_biases
from arenite_converters.coreml.compress import LayerValues, int8_weights, palette
from arenite_converters.coreml.input_statistics import gather_statistics
from arenite_converters.coreml.mil_executor import MilExecutor
from arenite_converters.coreml.operators import OPERATORS
from arenite_converters.coreml.operators.windowed import columns
from arenite_converters.coreml.program import Operation, Program, Reference, Value, unpack

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RANDOM.normal(0, 2, shape).astype(np.float32)


def near(found: Any, expected: Any) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("stride", "dilation", "pad"), [(1, 1, 0), (2, 1, 1), (1, 2, 2), (2, 2, 1)])
def test_convolutions_are_torchs(groups: int, stride: int, dilation: int, pad: int) -> None:
    torch = pytest.importorskip("torch")
    x, bias = floats(2, 4, 9, 11), floats(8)
    weight = floats(8, 4 // groups, 3, 2)
    options = {"stride": stride, "dilation": dilation, "padding": pad, "groups": groups}
    expected = torch.nn.functional.conv2d(*map(torch.from_numpy, (x, weight, bias)), **options)
    pads, both = np.array([pad] * 4), np.array([stride, stride])
    found = OPERATORS["conv"](
        x, weight, bias, strides=both, pad_type="custom", pad=pads, dilations=np.array([dilation] * 2), groups=groups
    )
    near(found, expected.numpy())


@pytest.mark.parametrize(("kernel", "stride", "pad", "more"), [(3, 3, 1, 0), (4, 3, 1, 1), (2, 2, 0, 0)])
def test_transposed_convolutions_are_torchs(kernel: int, stride: int, pad: int, more: int) -> None:
    torch = pytest.importorskip("torch")
    x, weight, bias = floats(1, 4, 5, 6), floats(4, 3, kernel, kernel), floats(6)
    options = {"stride": stride, "padding": pad, "output_padding": more, "groups": 2}
    expected = torch.nn.functional.conv_transpose2d(*map(torch.from_numpy, (x, weight, bias)), **options).numpy()
    found = OPERATORS["conv_transpose"](
        x, weight, bias, pad=np.array([pad] * 4), output_shape=np.array(expected.shape), pad_type="custom",
        strides=np.array([stride] * 2), groups=2,
    )  # fmt: skip
    near(found, expected)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_pools_are_torchs(whole: bool, counted: bool) -> None:
    torch = pytest.importorskip("torch")
    x = floats(1, 3, 8, 10)
    given = {"strides": np.array([2, 2]), "pad_type": "custom", "pad": np.array([1] * 4), "ceil_mode": whole}
    function = torch.nn.functional
    mean = function.avg_pool2d(torch.from_numpy(x), 3, 2, 1, whole, counted).numpy()
    size = np.array([3, 3])
    near(OPERATORS["avg_pool"](x, size, exclude_padding_from_average=not counted, **given), mean)
    highest = function.max_pool2d(torch.from_numpy(x), 3, 2, 1, ceil_mode=whole).numpy()
    near(OPERATORS["max_pool"](x, size, **given), highest)


def test_pads_of_same_are_tensorflows() -> None:
    """3×3 stride 2 over an even extent pads 0 before and 1 after, over an odd one 1 and 1."""
    weight = np.ones((1, 1, 3, 3), np.float32)
    for extent, corner in ((4, 9), (5, 4)):
        x = np.ones((1, 1, extent, extent), np.float32)
        assert OPERATORS["conv"](x, weight, strides=np.array([2, 2]), pad_type="same")[0, 0, 0, 0] == corner


def _activations() -> dict[str, tuple[str, dict[str, Any], Any]]:
    torch = pytest.importorskip("torch")
    f = torch.nn.functional
    return {
        "elu": ("elu", {"alpha": 0.7}, lambda x: f.elu(x, 0.7)),
        "gelu exact": ("gelu", {"mode": "EXACT"}, f.gelu),
        "gelu tanh": ("gelu", {"mode": "TANH_APPROXIMATION"}, lambda x: f.gelu(x, approximate="tanh")),
        "hard sigmoid": ("sigmoid_hard", {"alpha": 1 / 6, "beta": 0.5}, f.hardsigmoid),
        "leaky relu": ("leaky_relu", {"alpha": 0.1}, lambda x: f.leaky_relu(x, 0.1)),
        "relu6": ("relu6", {}, f.relu6),
        "sigmoid": ("sigmoid", {}, torch.sigmoid),
        "silu": ("silu", {}, f.silu),
        "softmax": ("softmax", {"axis": 1}, lambda x: f.softmax(x, 1)),
        "softplus": ("softplus", {}, f.softplus),
        "tanh": ("tanh", {}, torch.tanh),
        "log sum": ("reduce_log_sum_exp", {"axes": np.array([1]), "keep_dims": True}, lambda x: x.logsumexp(1, True)),
        "mean": ("reduce_mean", {"axes": np.array([2, 3]), "keep_dims": False}, lambda x: x.mean((2, 3))),
        "layer norm": ("layer_norm", {"axes": np.array([3])}, lambda x: f.layer_norm(x, (x.shape[3],))),
        "instance norm": ("instance_norm", {}, f.instance_norm),
        "pixel shuffle": ("pixel_shuffle", {"upscale_factor": 2}, lambda x: f.pixel_shuffle(x, 2)),
        "space to depth of depth to space": (
            "reshape", {"shape": np.array([0, -1])}, lambda x: x.reshape(x.shape[0], -1),
        ),
        "half-pixel": (
            "resize_bilinear",
            {"target_size_height": 9, "target_size_width": 7, "sampling_mode": "UNALIGN_CORNERS"},
            lambda x: f.interpolate(x, (9, 7), mode="bilinear"),
        ),
        "aligned corners": (
            "resize_bilinear",
            {"target_size_height": 9, "target_size_width": 7, "sampling_mode": "STRICT_ALIGN_CORNERS"},
            lambda x: f.interpolate(x, (9, 7), mode="bilinear", align_corners=True),
        ),
        "nearest": (
            "upsample_nearest_neighbor",
            {"scale_factor_height": 2, "scale_factor_width": 3},
            lambda x: f.interpolate(x, scale_factor=(2.0, 3.0)),
        ),
        "reflected pads": (
            "pad", {"pad": np.array([1, 2, 2, 1]), "mode": "reflect"}, lambda x: f.pad(x, (2, 1, 1, 2), mode="reflect"),
        ),
    }  # fmt: skip


def test_other_operators_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    x = floats(2, 4, 5, 6)
    for name, (kind, given, expected) in _activations().items():
        found = OPERATORS[kind](x, **given)
        np.testing.assert_allclose(found, expected(torch.from_numpy(x)).numpy(), 1e-4, 1e-4, err_msg=name)


def test_depth_to_space_and_back() -> None:
    x = floats(1, 8, 2, 3)
    wide = OPERATORS["depth_to_space"](x, block_size=2)
    assert wide.shape == (1, 2, 4, 6)
    assert wide[0, 1, 1, 0] == x[0, 2 * 2 + 1, 0, 0]  # row 1, column 0 of a block is its third part
    near(OPERATORS["space_to_depth"](wide, block_size=2), x)


def test_slices() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    cut = OPERATORS["slice_by_index"](
        x, np.array([1, 0, -1]), np.array([0, 2, 0]), np.array([1, 1, -2]),
        begin_mask=[False, True, False], end_mask=[False, False, True], squeeze_mask=[True, False, False],
    )  # fmt: skip
    assert cut.tolist() == x[1, :2, -1::-2].tolist()
    assert OPERATORS["slice_by_size"](x, np.array([0, 1, 1]), np.array([1, -1, 2])).tolist() == x[0:1, 1:, 1:3].tolist()


def test_quantising() -> None:
    """Half to even, and back; per tensor and per channel."""
    x = np.array([-1.0, -0.25, 0.25, 0.75, 200.0], np.float32)
    steps = OPERATORS["quantize"](x, np.float32(0.5), "uint8", np.uint8(3))
    assert steps.tolist() == [1, 3, 3, 5, 255] and steps.dtype == np.uint8
    assert OPERATORS["dequantize"](steps, np.float32(0.5), np.uint8(3)).tolist() == [-1, 0, 0, 1, 126]
    rows = np.array([[2, 4], [2, 4]], np.int8)
    scales, zeros = np.array([1.0, 0.5], np.float32), np.array([0, 2], np.int8)
    assert OPERATORS["constexpr_affine_dequantize"](rows, zeros, scales, np.int32(0)).tolist() == [[2, 4], [0, 1]]
    assert OPERATORS["constexpr_blockwise_shift_scale"](rows, scales[None]).tolist() == [[2, 2], [2, 2]]


def test_packed_numbers() -> None:
    assert unpack(bytes([0b10_001_101, 0b00000001]), 3, 3).tolist() == [5, 1, 6]
    table = np.array([1.0, -2.0], np.float32)
    packed = np.array([0b101], np.uint8)
    assert OPERATORS["constexpr_lut_to_dense"](packed, table, np.array([1, 3])).tolist() == [[-2, 1, -2]]
    dense = OPERATORS["constexpr_sparse_to_dense"](table, np.array([0b110], np.uint8), np.array([3]))
    assert dense.tolist() == [0, 1, -2]


def test_rounding_of_weights() -> None:
    weight = floats(6, 5, 3, 3)
    weight[2] = 0
    steps, scales = int8_weights(weight)
    wide = scales.astype(np.float32).reshape(-1, 1, 1, 1)
    assert np.abs(weight - steps * wide).max() <= 0.5 * wide.max() * 1.001
    assert (np.abs(weight - steps * wide) <= 0.5 * wide * 1.001).all()
    assert not steps[2].any() and scales[2] == 1


@pytest.mark.parametrize("depthwise", [False, True])
def test_rounding_by_least_squares_suits_what_the_layer_reads(depthwise: bool) -> None:
    """Inputs that go together: the layer's outputs are nearer than with weights rounded to the nearest step."""
    groups, terms = (6, 9) if depthwise else (1, 18)
    weight = floats(6, 1, 3, 3) if depthwise else floats(6, 2, 3, 3)
    reads = floats(groups, 400, 3) @ floats(groups, 3, terms) + 0.05 * floats(groups, 400, terms)
    moment = reads.transpose(0, 2, 1) @ reads / 400

    def noise(steps: Any, scales: Any) -> Any:
        error = (weight - steps * scales.astype(np.float32).reshape(-1, 1, 1, 1)).reshape(groups, -1, terms)
        return float(np.square(reads @ error.transpose(0, 2, 1)).mean())

    nearest, suited = int8_weights(weight), int8_weights(weight, moment)
    assert (nearest[1] == suited[1]).all() and suited[0].dtype == np.int8 and suited[0].shape == weight.shape
    assert noise(*suited) < 0.7 * noise(*nearest)


@pytest.mark.parametrize(("groups", "stride", "pad"), [(1, 2, "same"), (4, 1, "valid"), (2, 2, "same_lower")])
def test_statistics_are_of_what_the_weights_meet(groups: int, stride: int, pad: str) -> None:
    """Weights times the mean of their terms is the mean of the layer's own output."""
    x, weight = floats(1, 4, 7, 9), floats(8, 4 // groups, 3, 3)
    window = {"strides": np.array([stride, stride]), "pad_type": pad, "groups": np.int32(groups)}
    made = OPERATORS["conv"](x, weight, **window)
    met = columns(x, (3, 3), **window)
    mean = np.einsum("gok,gk->go", weight.reshape(groups, -1, met.shape[1]), met.mean(axis=2))
    np.testing.assert_allclose(mean.reshape(-1), made.mean(axis=(0, 2, 3)), atol=1e-5)


def test_palette_is_near_the_best() -> None:
    """Four clusters and four values: each is its cluster's mean."""
    weights = np.concatenate([centre + 0.01 * floats(50) for centre in (-3.0, -1.0, 0.5, 4.0)]).astype(np.float32)
    values, indices = palette(weights, 2)
    np.testing.assert_allclose(values, weights.reshape(4, 50).mean(axis=1), atol=1e-5)
    assert (indices.reshape(4, 50) == np.arange(4)[:, None]).all()


def _program(*operations: Operation) -> Program:
    return Program("test.mlpackage", (Value("x", "float16", (1, 2)),), operations, ("y",))


def test_unknown_operations_are_named_all_at_once() -> None:
    value = (Value("y", "float16", (1, 2)),)
    lstm = Operation("lstm", "first", {"x": Reference("x")}, value)
    odd = Operation("relu", "second", {"x": Reference("x"), "slope": np.float32(1)}, value)
    with pytest.raises(UnsupportedOperatorError, match=r"2 kind.*lstm \(first 'first'\).*relu .*slope.*'second'"):
        MilExecutor(_program(lstm, odd))


def test_values_are_rounded_to_float16_where_the_program_stores_it() -> None:
    third = Operation("mul", "y", {"x": Reference("x"), "y": np.float32(1 / 3)}, (Value("y", "float16", (1, 2)),))
    found = MilExecutor(_program(third)).run({"x": np.array([[1.0, 1e6]])})["y"]
    assert found[0, 0] == np.float32(np.float16(1 / 3)) and np.isinf(found[0, 1])


def test_contradictions_are_errors(tmp_path: Path) -> None:
    value = (Value("y", "float16", (1, 2)),)
    executor = MilExecutor(_program(Operation("relu", "y", {"x": Reference("gone")}, value)))
    with pytest.raises(ModelError, match="does not fit together"):
        executor.run({"x": np.zeros((1, 2))})
    with pytest.raises(ModelError, match=r"input 'x' is \[1, 2\], \[3\] was given"):
        executor.run({"x": np.zeros(3)})
    with pytest.raises(ModelError, match="Check the path"):
        MilExecutor(tmp_path / "none.mlpackage")


def _two_layers(first: str, layers: dict[str, LayerValues], biases: dict[str, Any]) -> MilExecutor:
    """x -> first -> a -> relu -> y."""

    def op(kind: str, name: str, **inputs: Any) -> Operation:
        return Operation(kind, name, inputs, (Value(name, "float16", (1, 4)),))

    def linear(name: str, x: str) -> Operation:
        return op("linear", name, x=Reference(x), weight=Reference(f"{name}_weight"), bias=biases[name])

    weights = [op("const", f"{name}_weight", val=layer.weight.astype(np.float16)) for name, layer in layers.items()]
    relu = op("relu", "b", x=Reference("a"))
    seen = op(first, "seen", x=Reference("x"))
    return MilExecutor(_program(*weights, seen, linear("a", "seen"), relu, linear("y", "b")))


def test_mended_biases_keep_every_layers_mean() -> None:
    """Behind a coarse rounding the second layer's mean is right too, whatever the ReLU between makes of the first's."""
    layers = {name: LayerValues(floats(4, terms), floats(4)) for name, terms in (("a", 2), ("y", 4))}
    samples = [{"x": floats(1, 2)} for _ in range(40)]
    trained = {name: layer.bias for name, layer in layers.items()}
    statistics = gather_statistics(_two_layers("identity", layers, trained), samples)
    mended = mended_biases(_two_layers("floor", layers, trained), samples, statistics, layers)
    assert {name: bias.dtype for name, bias in mended.items()} == {"a": np.float16, "y": np.float16}

    x = np.concatenate([sample["x"] for sample in samples])
    first, last = layers["a"], layers["y"]
    expected = np.maximum(x @ first.weight.T + first.bias, 0) @ last.weight.T + last.bias
    errors = []
    for biases in (trained, mended):
        executor = _two_layers("floor", layers, biases)
        found = np.concatenate([executor.run(sample)["y"] for sample in samples])
        errors.append(np.abs(found.mean(axis=0) - expected.mean(axis=0)).max())
    assert errors[0] > 1 and errors[1] < 0.02, errors
