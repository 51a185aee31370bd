# SPDX-License-Identifier: Apache-2.0
"""Quantising: ranges, equalisation, correction, float layers, every precision, and the same bytes each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from arenite.errors import CheckFailedError, UsageError
from arenite.graph import Graph
from arenite.inspection import float_operators
from arenite.tflite_graph import parse_graph
from arenite_converters.backends import by_litert
from arenite_converters.calibration import halves
from arenite_converters.checks import check_graph
from arenite_converters.correction import corrected
from arenite_converters.equalise import equalised
from arenite_converters.layers import ActivationRunner, on_grid
from arenite_converters.outputs import fidelity, outputs_of
from arenite_converters.quantisation import QuantiseOptions
from arenite_converters.quantiser import CANDIDATES, quantise
from arenite_converters.ranges import Histogram, activation_ranges, estimate
from arenite_converters.sensitivity import layer_sensitivity
from support.builder import ModelBuilder
from support.tflm import run_tflm

pytest.importorskip("litert_quantizer", reason="quantising needs litert-quantizer: pip install 'arenite[convert]'")
Array = npt.NDArray[Any]
SIZE, CLASSES = 12, 6
RELU, NO_ACTIVATION = 1, 0


@dataclass(frozen=True)
class Network:
    content: bytes
    samples: list[npt.NDArray[np.float32]]
    held_out: list[npt.NDArray[np.float32]]


def build(dead_channel: bool = False) -> bytes:
    """Convolution, depthwise, pointwise, pooling, dense, softmax; channels of very different size."""
    rng = np.random.default_rng(3)
    builder = ModelBuilder()

    def constant(name: str, *shape: int, spread: int | None = None) -> int:
        values = rng.normal(0, 1 / np.sqrt(max(np.prod(shape[1:]), 1)), shape)
        if spread is not None:
            factors = np.logspace(-1, 1, shape[spread])
            values *= factors.reshape([-1 if i == spread else 1 for i in range(len(shape))])
        if dead_channel and name == "w0":
            values[1] = 0
        return builder.tensor(name, shape, "float32", data=values.astype(np.float32))

    def tensor(name: str, *shape: int) -> int:
        return builder.tensor(name, shape, "float32")

    window = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    x = first = tensor("x", 1, SIZE, SIZE, 3)
    half = SIZE // 2
    y = tensor("conv", 1, half, half, 8)
    weights = [constant("w0", 8, 3, 3, 3, spread=0), constant("b0", 8)]
    strided = {**window, "strideH": 2, "strideW": 2}
    builder.operator(
        "CONV_2D", [x, *weights], [y], options="Conv2DOptions", fusedActivationFunction=RELU, padding=0, **strided
    )
    x, y = y, tensor("depthwise", 1, half, half, 8)
    weights = [constant("w1", 1, 3, 3, 8), constant("b1", 8)]
    options = "DepthwiseConv2DOptions"
    builder.operator(
        "DEPTHWISE_CONV_2D", [x, *weights], [y], options=options, fusedActivationFunction=RELU, depthMultiplier=1,
        padding=0, **window,
    )
    x, y = y, tensor("pointwise", 1, half, half, 16)
    weights = [constant("w2", 16, 1, 1, 8), constant("b2", 16)]
    builder.operator(
        "CONV_2D", [x, *weights], [y], options="Conv2DOptions", fusedActivationFunction=RELU, padding=0, **window
    )
    x, y = y, tensor("pooled", 1, 1, 1, 16)
    pool = {"filterHeight": half, "filterWidth": half, "strideH": 1, "strideW": 1, "padding": 1}
    builder.operator("AVERAGE_POOL_2D", [x], [y], options="Pool2DOptions", **pool)
    x, y = y, tensor("dense", 1, CLASSES)
    weights = [constant("w3", CLASSES, 16, spread=0), constant("b3", CLASSES)]
    builder.operator("FULLY_CONNECTED", [x, *weights], [y], options="FullyConnectedOptions")
    x, y = y, tensor("softmax", 1, CLASSES)
    builder.operator("SOFTMAX", [x], [y], options="SoftmaxOptions", beta=1.0)
    return builder.finish([first], [y])


def pictures(count: int, seed: int) -> list[npt.NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(-1, 1, (count, 1, 3, 3, 3)).repeat(SIZE // 3, axis=2).repeat(SIZE // 3, axis=3)
    return list((coarse + rng.normal(0, 0.1, (count, 1, SIZE, SIZE, 3))).clip(-1, 1).astype(np.float32))


@pytest.fixture(scope="module")
def network() -> Network:
    return Network(build(), pictures(32, 0), pictures(64, 1))


def histogram(values: Array) -> Histogram:
    counts, _ = np.histogram(values, 2048)
    return Histogram(float(values.min()), float(values.max()), counts)


def squared_error(values: Array, low: float, high: float) -> float:
    scale = (high - low) / 255
    zero_point = np.round(-low / scale)
    return float(((np.clip(np.round(values / scale) + zero_point, 0, 255) - zero_point) * scale - values).var())


def test_ranges_of_known_distributions() -> None:
    rng = np.random.default_rng(0)
    normal = np.append(rng.normal(0, 1, 1_000_000), [60.0])
    found = histogram(normal)
    assert estimate(found, "min-max") == (normal.min(), 60.0)
    assert 4 < estimate(found, "entropy")[1] < 60
    low, high = estimate(found, "percentile")
    width = (60 - normal.min()) / 2048
    assert low == pytest.approx(np.quantile(normal, 1e-5), abs=2 * width)
    assert high == pytest.approx(np.quantile(normal, 1 - 1e-5), abs=2 * width)
    # One value far out is worth a clip: the error of all others counts more.
    chosen = estimate(found, "mse")
    assert chosen[1] < 30
    assert squared_error(normal, *chosen) < 0.8 * squared_error(normal, normal.min(), 60.0)


def test_uniform_values_are_not_clipped() -> None:
    values = np.random.default_rng(0).uniform(-1, 3, 500_000)
    low, high = estimate(histogram(values), "mse")
    assert low == pytest.approx(-1, abs=0.05)
    assert high == pytest.approx(3, abs=0.1)


def test_extents_are_what_flows(network: Network) -> None:
    ranges = activation_ranges(network.content, network.samples, "min-max")
    runner = ActivationRunner(network.content)
    seen = [dict(runner.activations(sample)) for sample in network.samples]
    assert ranges["x"] == (min(s.min() for s in network.samples), max(s.max() for s in network.samples))
    for name in ("conv", "depthwise", "pointwise", "dense"):
        values = np.stack([np.array(entry[name]) for entry in seen[-1:]])
        assert ranges[name][0] <= values.min() <= values.max() <= ranges[name][1]
    assert ranges["conv"][0] == 0.0


def test_equalised_network_is_the_same_function(network: Network) -> None:
    other = equalised(network.content)
    assert other != network.content
    before, after = outputs_of(network.content, network.held_out), outputs_of(other, network.held_out)
    assert np.allclose(before, after, rtol=1e-4, atol=1e-6)
    first, second = (parse_graph(other).tensors[i].data for i in (2, 5))
    assert first is not None and second is not None
    made, read = np.abs(first).max(axis=(1, 2, 3)), np.abs(second).max(axis=(0, 1, 2))
    assert np.ptp(np.log(made / read)) < 0.05


def channel_errors(content: bytes, network: Network, name: str) -> Array:
    """Mean error of each channel of an activation."""
    runners = ActivationRunner(network.content), ActivationRunner(content)
    errors = []
    for sample in network.held_out:
        real, other = (np.array(dict(runner.activations(sample, [name]))[name]) for runner in runners)
        errors.append(other - real)
    return np.asarray(np.mean(errors, axis=(0, 1, 2, 3)))


def test_correction_takes_the_mean_error_out(network: Network) -> None:
    ranges = activation_ranges(network.content, network.samples, "min-max")
    plain = by_litert(network.content, "int8", ranges)
    better = corrected(plain, network.content, network.samples)
    for name in ("depthwise", "pointwise"):
        before, after = (np.abs(channel_errors(c, network, name)).mean() for c in (plain, better))
        assert after < before
    graphs = parse_graph(plain), parse_graph(better)
    for one, two in zip(graphs[0].tensors, graphs[1].tensors, strict=True):
        assert (one.name, one.dtype, one.shape, one.quantisation) == (two.name, two.dtype, two.shape, two.quantisation)


def test_rounding_by_least_squares_lowers_the_error(network: Network) -> None:
    ranges = activation_ranges(network.content, network.samples, "min-max")
    plain = by_litert(network.content, "int8", ranges)
    rounded = corrected(plain, network.content, network.samples, rounding=True)
    nearest = corrected(plain, network.content, network.samples)
    noise = []
    for content in (nearest, rounded):
        runners = ActivationRunner(network.content), ActivationRunner(content)
        pairs = [[np.array(dict(r.activations(s, ["dense"]))["dense"]) for r in runners] for s in network.held_out]
        noise.append(np.mean([(one - two) ** 2 for one, two in pairs]))
    assert noise[1] < noise[0]


def is_plain_int8(graph: Graph) -> bool:
    for op in graph.operators:
        if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            source, weights, bias = (graph.tensors[i] for i in op.inputs)
            assert source.quantisation and weights.quantisation and bias.quantisation
            products = np.float32(source.quantisation.scale) * np.asarray(weights.quantisation.scales, np.float32)
            if bias.dtype != "int32" or not np.allclose(bias.quantisation.scales, products, rtol=1e-5):
                return False
            if any(weights.quantisation.zero_points) or len(weights.quantisation.scales) == 1:
                return False
    return True


def test_default_is_full_int8_that_the_reference_runs(network: Network) -> None:
    content, done = quantise(network.content, network.samples)
    graph = parse_graph(content)
    assert all(check.passed for check in check_graph(graph))
    assert is_plain_int8(graph)
    assert done.options.ranges == "percentile"
    assert done.backend.startswith("litert-quantizer")
    near = fidelity(outputs_of(network.content, network.held_out), outputs_of(content, network.held_out))
    assert near.sqnr_db > 25
    source = graph.tensors[graph.inputs[0]]
    reference = run_tflm(content, [on_grid(source, network.held_out[0])])[0]
    ours = outputs_of(content, network.held_out[:1])[0]
    assert np.abs((reference.reshape(-1) + 128.0) / 256 - ours).max() <= 2 / 256
    assert quantise(network.content, network.samples)[0] == content


def test_dead_channel_keeps_its_bias_in_int32() -> None:
    content, _ = quantise(build(dead_channel=True), pictures(32, 0))
    floats = outputs_of(build(dead_channel=True), pictures(8, 1))
    assert all(check.passed for check in check_graph(parse_graph(content)))
    assert fidelity(floats, outputs_of(content, pictures(8, 1))).sqnr_db > 25


@pytest.mark.parametrize(
    ("options", "dtype", "floor_db"),
    [
        (QuantiseOptions(io="uint8"), "uint8", 25),
        (QuantiseOptions(precision="int16x8"), "int16", 30),
        (QuantiseOptions(precision="float16"), "float32", 50),
        (QuantiseOptions(precision="dynamic"), "float32", 20),
    ],
    ids=lambda value: value.precision if isinstance(value, QuantiseOptions) else str(value),
)
def test_every_precision_has_its_types(network: Network, options: QuantiseOptions, dtype: str, floor_db: int) -> None:
    content, done = quantise(network.content, network.samples, options)
    graph = parse_graph(content)
    assert [graph.tensors[i].dtype for i in (*graph.inputs, *graph.outputs)] == [dtype, dtype]
    assert bool(float_operators(graph)) != done.is_full_integer
    floats = outputs_of(network.content, network.held_out)
    assert fidelity(floats, outputs_of(content, network.held_out)).sqnr_db > floor_db
    if options.precision == "float16":
        assert len(content) < 0.9 * len(network.content)


def test_uint8_is_int8_shifted(network: Network) -> None:
    plain, _ = quantise(network.content, network.samples)
    shifted, _ = quantise(network.content, network.samples, QuantiseOptions(io="uint8"))
    source = parse_graph(plain).tensors[parse_graph(plain).inputs[0]]
    signed = on_grid(source, network.held_out[0])
    unsigned = (signed.astype(np.int16) + 128).astype(np.uint8)
    expected = run_tflm(plain, [signed])[0].astype(np.int16) + 128
    assert np.array_equal(run_tflm(shifted, [unsigned])[0], expected)


def test_layers_stay_float_by_name(network: Network) -> None:
    options = QuantiseOptions(keep_float=("first", "dense"))
    content, done = quantise(network.content, network.samples, options)
    assert done.kept_float == ("conv", "dense")
    assert not done.is_full_integer
    graph = parse_graph(content)
    weighted = [op for op in graph.operators if len(op.inputs) == 3]
    kinds = {graph.tensors[op.outputs[0]].name: graph.tensors[op.inputs[1]].dtype for op in weighted}
    assert kinds["conv"] == kinds["dense"] == "float32"
    assert kinds["depthwise"] == kinds["pointwise"] == "int8"
    assert all(check.passed for check in check_graph(graph, "int8", done.kept_float))
    assert not check_graph(graph, "int8", ("conv",))[0].passed


def test_sensitivity_names_the_layer_that_hurts(network: Network) -> None:
    ranges = activation_ranges(network.content, network.samples, "min-max")
    ranges["pointwise"] = (0.0, ranges["pointwise"][1] / 8)  # clipped hard
    found = {s.layer: s for s in layer_sensitivity(network.content, network.held_out[:16], ranges)}
    assert list(found) == ["conv", "depthwise", "pointwise", "dense"]
    assert min(found, key=lambda layer: found[layer].sqnr_db) == "pointwise"


def test_budget_keeps_the_answers(network: Network) -> None:
    samples = pictures(120, 5)
    tried, compared = halves(samples)
    floats = outputs_of(network.content, compared)

    def changed(**options: Any) -> float:
        """Percentage of answers that are not float's."""
        content, _ = quantise(network.content, tried, QuantiseOptions(**options))
        return 100 * (1 - fidelity(floats, outputs_of(content, compared)).top1)

    bad: dict[str, Any] = {"rounding": False, "bias_correction": False, "ranges": "entropy"}
    most, least = changed(**bad), changed(**bad, keep_float=("conv", "depthwise", "pointwise", "dense"))
    assert least < most
    _, done = quantise(network.content, samples, QuantiseOptions(**bad, max_drop=most))
    assert done.kept_float == ()
    _, done = quantise(network.content, samples, QuantiseOptions(**bad, max_drop=least))
    assert done.kept_float
    if least > 0:
        with pytest.raises(CheckFailedError, match="even with every layer float"):
            quantise(network.content, samples, QuantiseOptions(**bad, max_drop=0))


def test_search_takes_the_best_of_what_it_tried(network: Network) -> None:
    _, done = quantise(network.content, network.samples, QuantiseOptions(search=True))
    assert len(done.trials) == len(CANDIDATES)
    best = max(done.trials, key=lambda trial: (trial.fidelity.top1, trial.fidelity.sqnr_db))
    assert (done.options.ranges, done.options.rounding, done.options.equalise) == (
        best.options.estimator,
        best.options.rounding,
        best.options.equalise,
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (QuantiseOptions(precision="int4"), "int4"),
        (QuantiseOptions(ranges="guess"), "guess"),
        (QuantiseOptions(io="uint8", precision="int16x8"), "uint8"),
        (QuantiseOptions(backend="tensorflow"), "TensorFlow did not load"),
        (QuantiseOptions(keep_float=("nowhere",)), "nowhere.*conv, depthwise, pointwise"),
        (QuantiseOptions(max_drop=-1), "-1"),
        (QuantiseOptions(precision="float16", search=True), "search.*float16"),
    ],
)
def test_wrong_options(network: Network, options: QuantiseOptions, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        quantise(network.content, network.samples, options)
