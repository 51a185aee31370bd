# SPDX-License-Identifier: Apache-2.0
"""ONNX models in TFLite: ONNX Runtime's answers, from channel-last maps that nothing transposes or stretches."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arenite.errors import AreniteError, ModelError, UnsupportedOperatorError, UsageError
from arenite.graph import Graph
from arenite_converters.loaders import load
from arenite_converters.quiet import quiet
from support.onnx_graphs import Array, imported, in_litert, node, onnx_model, random_input

pytest.importorskip("onnxruntime", reason="ONNX models need onnx and onnxruntime: pip install 'arenite[onnx]'")
RNG = np.random.default_rng(1)


def weights(*shape: int) -> Array:
    return RNG.normal(0, 0.5, shape)


def agree(model: Any, input_shape: Any = None) -> tuple[Graph, Array]:
    """ONNX Runtime and LiteRT give the same; returns the graph and the output."""
    loaded, graph = imported(model, input_shape)
    sample = random_input(loaded.shape)
    expected, found = loaded.run(sample), in_litert(loaded.content, sample)
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(expected).max())))
    for tensor in graph.tensors:
        if tensor.data is not None and tensor.dtype == "float32":
            assert np.abs(tensor.data).max(initial=0) < 1e6, f"{tensor} would ruin a calibration"
    return graph, found


def kinds(graph: Graph) -> list[str]:
    return [operator.kind for operator in graph.operators]


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 8, 8), (4, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 3, 9, 8), (4, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 3, 9, 9), (4, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 3, 8, 7), (4, 3, 3, 5), {"pads": [1, 2, 1, 2]}),
    ((1, 3, 8, 8), (4, 3, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 3, 8, 8), (4, 3, 3, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((1, 3, 8, 8), (4, 3, 3, 3), {"auto_pad": "VALID", "strides": [1, 2]}),
    ((1, 3, 9, 8), (4, 3, 3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    ((1, 3, 8, 8), (4, 3, 2, 3), {"pads": [0, 3, 2, 0]}),
    ((1, 3, 8, 8), (4, 3, 1, 1), {"strides": [2, 2]}),
    ((1, 3, 8, 8), (3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 3, 8, 8), (6, 1, 5, 3), {"group": 3, "pads": [2, 1, 2, 1]}),
    ((1, 4, 8, 8), (6, 2, 3, 3), {"group": 2}),
    ((1, 1, 8, 8), (5, 1, 3, 3), {"group": 1}),
    ((1, 3, 10), (4, 3, 3), {"pads": [1, 1], "strides": [2]}),
    ((1, 4, 9), (4, 1, 3), {"group": 4, "pads": [2, 0]}),
]


@pytest.mark.parametrize(("shape", "kernel", "attributes"), CONVOLUTIONS)
def test_convolutions(shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    constants = {"w": weights(*kernel), "b": weights(kernel[0])}
    graph, found = agree(onnx_model([node("Conv", ["x", "w", "b"], **attributes)], shape, constants))
    assert "TRANSPOSE" not in kinds(graph)
    assert found.shape[-1] == kernel[0]


def test_symmetric_pads_with_stride_2_are_not_same() -> None:
    """PyTorch's sums over windows of 0..15 in 4×4 with a row and a column of zeros around it."""
    model = onnx_model(
        [node("Conv", ["x", "w"], pads=[1, 1, 1, 1], strides=[2, 2])], (1, 1, 4, 4), {"w": np.ones((1, 1, 3, 3))}
    )
    loaded, graph = imported(model)
    values = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    padded = np.pad(values[0, :, :, 0], 1)
    expected = [[padded[r : r + 3, c : c + 3].sum() for c in (0, 2)] for r in (0, 2)]
    assert kinds(graph) == ["PAD", "CONV_2D"]
    assert in_litert(loaded.content, values)[0, :, :, 0].tolist() == expected


def test_max_pool_with_symmetric_pads() -> None:
    values = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    model = onnx_model([node("MaxPool", ["x"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])], (1, 1, 4, 4))
    loaded, _ = imported(model)
    assert in_litert(loaded.content, values)[0, :, :, 0].tolist() == [[5, 7], [13, 15]]
    # Nothing is above zero, so zeros around the map would win.
    assert in_litert(loaded.content, values - 100)[0, :, :, 0].tolist() == [[-95, -93], [-87, -85]]


POOLS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("MaxPool", (1, 3, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("MaxPool", (1, 3, 9, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("MaxPool", (1, 3, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]}),
    ("MaxPool", (1, 3, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("MaxPool", (1, 3, 7, 7), {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
    ("MaxPool", (1, 3, 8, 8), {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}),
    ("MaxPool", (1, 3, 11), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    ("AveragePool", (1, 3, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("AveragePool", (1, 3, 8, 8), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("AveragePool", (1, 3, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("AveragePool", (1, 3, 8, 8), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("AveragePool", (1, 3, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("GlobalAveragePool", (1, 3, 5, 4), {}),
    ("GlobalMaxPool", (1, 3, 5, 4), {}),
]


@pytest.mark.parametrize(("kind", "shape", "attributes"), POOLS)
def test_pools(kind: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    graph, _ = agree(onnx_model([node(kind, ["x"], **attributes)], shape))
    assert not {"TRANSPOSE", "PADV2"} & set(kinds(graph))


def test_max_pool_behind_a_relu_is_padded_with_zeros() -> None:
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    graph, _ = agree(onnx_model([node("Relu", ["x"], "r"), node("MaxPool", ["r"], **attributes)], (1, 3, 8, 8)))
    assert kinds(graph) == ["RELU", "PAD", "MAX_POOL_2D"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": [3, 3], "pads": [1, 1, 1, 1]},
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "kernel_shape": [4, 4]},
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
        {"strides": [2, 1]},
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ],
)
@pytest.mark.parametrize("kernel", [(3, 3), (4, 4), (3, 4)])
def test_transposed_convolutions(attributes: dict[str, Any], kernel: tuple[int, int]) -> None:
    attributes = {**attributes, "kernel_shape": list(kernel)}
    constants = {"w": weights(2, 3, *kernel), "b": weights(3)}
    graph, _ = agree(onnx_model([node("ConvTranspose", ["x", "w", "b"], **attributes)], (1, 2, 4, 5), constants))
    assert "TRANSPOSE" not in kinds(graph)


def test_batch_normalisation_and_activation_go_into_the_convolution() -> None:
    constants = {
        "w": weights(4, 3, 3, 3),
        **{name: np.abs(weights(4)) + 0.1 for name in ("gamma", "beta", "mean", "variance")},
        "low": np.array(0.0),
        "high": np.array(6.0),
        "s": 20 * weights(4, 1, 1),
    }
    nodes = [
        node("Conv", ["x", "w"], "a"),
        node("BatchNormalization", ["a", "gamma", "beta", "mean", "variance"], "b"),
        node("Mul", ["b", "s"], "c"),
        node("Clip", ["c", "low", "high"]),
    ]
    graph, found = agree(onnx_model(nodes, (1, 3, 6, 6), constants))
    assert kinds(graph) == ["CONV_2D"]
    assert found.max() == pytest.approx(6)


def test_flatten_keeps_the_order_of_the_weights() -> None:
    nodes = [
        node("Conv", ["x", "k"], "c"),
        node("Flatten", ["c"], "f"),
        node("Mul", ["f", "m"], "g"),
        node("Gemm", ["g", "w", "b"], "h", transB=1),
        node("Softmax", ["h"]),
    ]
    constants = {"k": weights(4, 3, 3, 3), "m": weights(64), "w": weights(5, 64), "b": weights(5)}
    graph, found = agree(onnx_model(nodes, (1, 3, 6, 6), constants))
    assert "TRANSPOSE" not in kinds(graph)
    assert found.std() > 0.05


def test_flattened_maps_that_go_out_are_in_their_own_order() -> None:
    nodes = [node("Conv", ["x", "k"], "c"), node("Flatten", ["c"])]
    graph, _ = agree(onnx_model(nodes, (1, 3, 6, 6), {"k": weights(4, 3, 3, 3)}))
    assert kinds(graph)[-3:] == ["RESHAPE", "TRANSPOSE", "RESHAPE"]


CHAINS: dict[str, tuple[list[Any], dict[str, Array]]] = {
    "channel shuffle": (
        [
            node("Reshape", ["c", "five"], "s"),
            node("Transpose", ["s"], "t", perm=[0, 2, 1, 3, 4]),
            node("Reshape", ["t", "four"]),
        ],
        {"five": np.array([1, 2, 2, 4, 4]), "four": np.array([1, 4, 4, 4])},
    ),
    "to a sequence": (
        [
            node("Reshape", ["c", "three"], "s"),
            node("Transpose", ["s"], "t", perm=[0, 2, 1]),
            node("MatMul", ["t", "w"]),
        ],
        {"three": np.array([1, 4, -1]), "w": weights(4, 3)},
    ),
    "squeeze and excite": (
        [
            node("ReduceMean", ["c", "hw"], "m"),
            node("Conv", ["m", "e"], "e1"),
            node("HardSigmoid", ["e1"], "e2", alpha=1 / 6),
            node("Mul", ["c", "e2"]),
        ],
        {"hw": np.array([2, 3]), "e": weights(4, 4, 1, 1)},
    ),
    "hard swish": ([node("HardSigmoid", ["c"], "h", alpha=1 / 6), node("Mul", ["c", "h"])], {}),
    "hard swish in steps": (
        [
            node("Add", ["c", "three"], "p"),
            node("Clip", ["p", "low", "six"], "q"),
            node("Mul", ["c", "q"], "r"),
            node("Div", ["r", "six"]),
        ],
        {"three": np.array(3.0), "low": np.array(0.0), "six": np.array(6.0)},
    ),
    "swish": ([node("Sigmoid", ["c"], "s"), node("Mul", ["c", "s"])], {}),
    "hard sigmoid": ([node("HardSigmoid", ["c"])], {}),
    "leaky": ([node("LeakyRelu", ["c"], alpha=0.1)], {}),
    "slopes": ([node("PRelu", ["c", "s"])], {"s": weights(4, 1, 1)}),
    "square root of a square": ([node("Pow", ["c", "two"], "p"), node("Sqrt", ["p"])], {"two": np.array(2.0)}),
    "odd limits": ([node("Clip", ["c", "low", "high"])], {"low": np.array(-0.5), "high": np.array(2.5)}),
    "subtraction from a constant": ([node("Abs", ["c"], "a"), node("Sub", ["n", "a"])], {"n": weights(4, 1, 1)}),
    "division of maps": ([node("Exp", ["c"], "e"), node("Div", ["c", "e"])], {}),
    "extremes": (
        [node("Neg", ["c"], "n"), node("Max", ["c", "n"], "m"), node("Min", ["m", "two"])],
        {"two": np.array(2.0)},
    ),
    "join": ([node("Relu", ["c"], "r"), node("Concat", ["c", "r"], axis=1)], {}),
    "join of rows": ([node("Relu", ["c"], "r"), node("Concat", ["c", "r"], axis=-2)], {}),
    "halves": (
        [node("Split", ["c"], ["a", "b"], axis=1, num_outputs=2), node("Sub", ["a", "b"])],
        {},
    ),
    "slice": (
        [node("Slice", ["c", "from", "to", "axes", "steps"])],
        {"from": np.array([1, 0]), "to": np.array([9, -1]), "axes": np.array([1, 3]), "steps": np.array([1, 2])},
    ),
    "one channel": (
        [node("Gather", ["c", "i"], "g", axis=1), node("Unsqueeze", ["g", "a"])],
        {"i": np.array(2), "a": np.array([1])},
    ),
    "some channels": ([node("Gather", ["c", "i"], axis=1)], {"i": np.array([3, 0, -2])}),
    "zeros around": ([node("Pad", ["c", "p"])], {"p": np.array([0, 0, 1, 2, 0, 0, 0, 1])}),
    "mirrored edges": ([node("Pad", ["c", "p"], mode="reflect")], {"p": np.array([0, 0, 1, 2, 0, 0, 2, 1])}),
    "nearest": (
        [
            node(
                "Resize",
                ["c", "", "s"],
                mode="nearest",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            )
        ],
        {"s": np.array([1.0, 1.0, 2.0, 2.0])},
    ),
    "bilinear": ([node("Resize", ["c", "", "s"], mode="linear")], {"s": np.array([1.0, 1.0, 2.0, 2.0])}),
    "bilinear to the corners": (
        [node("Resize", ["c", "", "", "n"], mode="linear", coordinate_transformation_mode="align_corners")],
        {"n": np.array([1, 4, 7, 10])},
    ),
    "depth to space": ([node("DepthToSpace", ["c"], blocksize=2)], {}),
    "depth to space by columns": ([node("DepthToSpace", ["c"], blocksize=2, mode="CRD")], {}),
    "space to depth": ([node("SpaceToDepth", ["c"], blocksize=2)], {}),
    "softmax of channels": ([node("Softmax", ["c"], axis=1)], {}),
    "softmax of columns": ([node("Softmax", ["c"], axis=3)], {}),
    "mean of rows": ([node("ReduceMean", ["c", "a"], keepdims=0)], {"a": np.array([2])}),
    "sum of channels": ([node("ReduceSum", ["c", "a"])], {"a": np.array([1])}),
    "greatest of all": ([node("ReduceMax", ["c"])], {}),
    "batch normalisation alone": (
        [node("Relu", ["c"], "r"), node("BatchNormalization", ["r", "g", "b", "m", "v"])],
        {**{name: weights(4) for name in "gbm"}, "v": np.abs(weights(4)) + 0.1},
    ),
    "map times map": ([node("Transpose", ["c"], "t", perm=[0, 1, 3, 2]), node("MatMul", ["c", "t"])], {}),
    "squeezed": ([node("GlobalAveragePool", ["c"], "g"), node("Squeeze", ["g", "a"])], {"a": np.array([2, 3])}),
}


@pytest.mark.parametrize("name", CHAINS)
def test_behind_a_convolution(name: str) -> None:
    nodes, constants = CHAINS[name]
    model = onnx_model([node("Conv", ["x", "k"], "c"), *nodes], (1, 3, 6, 6), {"k": weights(4, 3, 3, 3), **constants})
    graph, _ = agree(model)
    assert ("HARD_SWISH" in kinds(graph)) == name.startswith("hard swish")


@pytest.mark.parametrize("rule", ["asymmetric", "half_pixel", "align_corners"])
def test_resize_by_each_rule(rule: str) -> None:
    first_row = {
        "asymmetric": [5, 4.2, 3.4, 2.6, 1.8, 1, 1, 1, 1, 1],
        "half_pixel": [5, 5, 5, 4.2, 3.4, 2.6, 1.8, 1, 1, 1],
        "align_corners": [5, 4.5556, 4.1111, 3.6667, 3.2222, 2.7778, 2.3333, 1.8889, 1.4444, 1],
    }
    nodes = [node("Resize", ["x", "", "", "n"], mode="linear", coordinate_transformation_mode=rule)]
    loaded, _ = imported(onnx_model(nodes, (1, 1, 2, 2), {"n": np.array([1, 1, 10, 10])}))
    values = np.array([[5, 1], [1, 5]], np.float32).reshape(loaded.shape)
    found = in_litert(loaded.content, values).reshape(10, 10)
    assert found[0].tolist() == pytest.approx(first_row[rule], abs=1e-3)


def test_old_softmax_joins_the_axes_from_its_own() -> None:
    nodes = [node("Conv", ["x", "k"], "c"), node("Softmax", ["c"])]
    _, found = agree(onnx_model(nodes, (1, 3, 4, 4), {"k": weights(4, 3, 3, 3)}, opset=11))
    assert found.sum() == pytest.approx(1, abs=1e-5)


def test_channel_last_exporters_leave_no_transposition() -> None:
    """As exporters of TensorFlow write it: each convolution between two Transposes, everything else channel-last."""
    to_first, to_last = {"perm": [0, 3, 1, 2]}, {"perm": [0, 2, 3, 1]}
    nodes = [
        node("Transpose", ["x"], "x1", **to_first),
        node("Conv", ["x1", "k"], "c1", strides=[2, 2], pads=[0, 0, 1, 1]),
        node("Transpose", ["c1"], "l1", **to_last),
        node("Mul", ["l1", "s"], "m1"),
        node("Add", ["m1", "s"], "a1"),
        node("Relu", ["a1"], "r1"),
        node("Pad", ["r1", "p"], "p1"),
        node("Transpose", ["p1"], "t1", **to_first),
        node("Conv", ["t1", "d"], "c2", group=4),
        node("Transpose", ["c2"], "l2", **to_last),
        node("Add", ["l2", "r1"], "sum"),
        node("ReduceMean", ["sum", "hw"], "mean", keepdims=0),
        node("MatMul", ["mean", "w"], "dense"),
        node("Add", ["dense", "b"]),
    ]
    constants = {
        "k": weights(4, 3, 3, 3),
        "d": weights(4, 1, 3, 3),
        "s": weights(4),
        "w": weights(4, 5),
        "b": weights(5),
        "p": np.array([0, 1, 1, 0, 0, 1, 1, 0]),
        "hw": np.array([1, 2]),
    }
    graph, _ = agree(onnx_model(nodes, ("batch", 8, 8, 3), constants))
    assert kinds(graph) == ["CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "MEAN", "FULLY_CONNECTED"]
    assert graph.tensors[graph.inputs[0]].shape == (1, 8, 8, 3)


def test_shapes_that_the_model_computes_are_folded() -> None:
    nodes = [
        node("Conv", ["x", "k"], "c"),
        node("Shape", ["c"], "shape"),
        node("Gather", ["shape", "zero"], "n", axis=0),
        node("Concat", ["n", "minus"], "wanted", axis=0),
        node("Reshape", ["c", "wanted"], "flat"),
        node("Gemm", ["flat", "w"]),
    ]
    constants = {"k": weights(2, 3, 3, 3), "w": weights(32, 3), "zero": np.array([0]), "minus": np.array([-1])}
    graph, _ = agree(onnx_model(nodes, ("n", 3, 6, 6), constants))
    assert kinds(graph) == ["CONV_2D", "RESHAPE", "FULLY_CONNECTED"]


def test_quantised_activations_become_the_clipping_that_they_stood_for() -> None:
    """The quantiser that wrote the file dropped the ReLU6: the range 0 to 6 is all that is left of it."""
    nodes = [
        node("DequantizeLinear", ["w", "ws", "wz"], "k", axis=0),
        node("Conv", ["x", "k"], "c"),
        node("QuantizeLinear", ["c", "s", "z"], "q"),
        node("DequantizeLinear", ["q", "s", "z"]),
    ]
    constants = {
        "w": RNG.integers(-127, 128, (4, 3, 3, 3), dtype=np.int8),
        "ws": np.abs(weights(4)) / 50,
        "wz": np.zeros(4, np.int8),
        "s": np.array(6 / 255),
        "z": np.array(-128, np.int8),
    }
    graph, found = agree(onnx_model(nodes, (1, 3, 6, 6), constants))
    assert kinds(graph) == ["CONV_2D"]
    assert (found.min(), found.max()) == (0, 6)


def test_open_dimensions() -> None:
    model = onnx_model([node("Conv", ["x", "k"])], ("n", 3, "height", "width"), {"k": weights(4, 3, 3, 3)})
    with pytest.raises(UsageError, match=r"open \(3×height×width\).*\(3, 224, 224\)"):
        imported(model)
    loaded, _ = imported(model, (3, 8, 6))
    assert loaded.shape == (1, 8, 6, 3)


@pytest.mark.parametrize(
    ("shape", "input_shape", "error", "named"),
    [
        ((8, 3, 6, 6), None, ModelError, "batch of 8"),
        ((1, 3, 6, 6), (3, 7, 6), UsageError, "3×6×6, not 3×7×6"),
        ((1, 3, 6, 6), (6, 6), UsageError, "3×6×6, not 6×6"),
    ],
)
def test_shapes_that_do_not_fit(shape: Any, input_shape: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        imported(onnx_model([node("Relu", ["x"])], shape), input_shape)


def test_unsupported_operators_are_named_with_their_place() -> None:
    cumulated = node("CumSum", ["c", "axis"], "s")
    for key, value in {
        "pkg.torch.onnx.name_scopes": "['', 'head', 'head.0', 'cumsum']",
        "pkg.torch.onnx.stack_trace": 'File "net.py", line 7, in forward\n    y = self.head(x)\n'
        'File "lib/site-packages/torch/nn/functional.py", line 1, in f\n    return g(x)',
    }.items():
        cumulated.metadata_props.add(key=key, value=value)
    nodes = [node("Conv", ["x", "k"], "c"), cumulated, node("Det", ["s"])]
    model = onnx_model(nodes, (1, 3, 6, 6), {"k": weights(4, 3, 3, 3), "axis": np.array(1)})
    start = time.monotonic()
    with pytest.raises(UnsupportedOperatorError) as caught:
        imported(model)
    assert time.monotonic() - start < 10
    assert "CumSum (node 'node_s', module head.0, net.py line 7 in forward: y = self.head(x))" in caught.value.what
    assert "Det (node 'node_y')" in caught.value.what
    assert caught.value.where == "small.onnx"


@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        ([node("Relu", ["x"], "r"), node("Conv", ["x", "r"])], r"Conv \(node 'node_y'\) whose weight is no constant"),
        ([node("Pad", ["x", "p"], mode="edge")], r"Pad \(node 'node_y'\) with mode 'edge'"),
        ([node("Resize", ["x", "", "s"], mode="cubic")], r"Resize .* mode 'cubic'"),
        ([node("LSTM", ["x", "k", "k"], hidden_size=4)], r"LSTM \(node 'node_y'\)"),
    ],
)
def test_attributes_without_a_form_are_named(nodes: list[Any], named: str) -> None:
    constants = {"k": weights(4, 3, 3, 3), "p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "s": np.array([1.0, 1, 2, 2])}
    with pytest.raises(UnsupportedOperatorError, match=named):
        imported(onnx_model(nodes, (1, 3, 3, 3), constants))


def test_ends_that_do_not_convert() -> None:
    from onnx import TensorProto

    model = onnx_model([node("Relu", ["x"])], (1, 4))
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    with pytest.raises(ModelError, match="'x' is uint8"):
        imported(model)
    model = onnx_model([node("Relu", ["x"])], (1, 4))
    model.graph.output.append(model.graph.output[0])
    with pytest.raises(ModelError, match="2 outputs"):
        imported(model)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    """Whatever a few bytes become, the answer is a model or one of our errors."""
    nodes = [
        node("Conv", ["x", "k"], "c", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("MaxPool", ["c"], "m", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Reshape", ["m", "s"], "f"),
        node("Gemm", ["f", "w"]),
    ]
    constants = {"k": weights(2, 3, 3, 3), "s": np.array([1, -1]), "w": weights(8, 3)}
    content = onnx_model(nodes, (1, 3, 8, 8), constants).SerializeToString()
    outcomes = set()
    for seed in range(200):
        changed, path = damaged(content, seed), tmp_path / "damaged.onnx"
        path.write_bytes(changed)
        try:
            with quiet():
                load(path)
            outcomes.add("loaded")
        except AreniteError as error:
            outcomes.add(type(error).__name__)
    assert {"loaded", "ModelError", "UnsupportedOperatorError"} <= outcomes


def damaged(content: bytes, seed: int) -> bytes:
    """A few bytes changed; every seventh cut short."""
    generator = np.random.default_rng(seed)
    changed = bytearray(content)
    for position in generator.integers(0, len(content), generator.integers(1, 6)):
        changed[position] = generator.integers(0, 256)
    return bytes(changed[: generator.integers(1, len(content))] if seed % 7 == 0 else changed)
