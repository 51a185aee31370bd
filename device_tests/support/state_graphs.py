# SPDX-License-Identifier: Apache-2.0
"""Random graphs that remember: variables that are read and assigned, and the operators with a state of their own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import ACTIVATIONS, PADDINGS, GraphCase, MacQuantisation, case, mac_quantisation

__all__ = ["lstm", "stream", "svdf"]

RUNS = 7
_TANH = 4


def stream(choices: Choices) -> GraphCase:
    """A convolution over a stream's newest frames; the last ones stay in a variable, as in wake-word models."""
    new, kept, width = choices.integer(1, 4), choices.integer(1, 6), choices.integer(1, 3)
    channels = choices.channels(17)
    units, window = choices.channels(9), choices.integer(1, new + kept)
    q = mac_quantisation(choices, window * width * channels, units, per_channel=True)
    grid: dict[str, Any] = {"scales": [q.input_scale], "zero_points": [q.input_zero_point]}
    builder = ModelBuilder()
    frames, state, whole = ((1, count, width, channels) for count in (new, kept, new + kept))
    x = builder.tensor("x", frames, "int8", **grid)
    handle = builder.tensor("handle", (), "resource")
    old, last = (builder.tensor(name, state, "int8", **grid) for name in ("old", "last"))
    joined = builder.tensor("joined", whole, "int8", **grid)
    if choices.chance(60):
        first = choices.bytes_of(state)
        initial = builder.tensor("initial", state, "int8", **grid, data=first)
        builder.initialise("frames", initial)
        builder.operator("CALL_ONCE", [], [], options="CallOnceOptions", initSubgraphIndex=1)
    builder.operator("VAR_HANDLE", [], [handle], options="VarHandleOptions", sharedName="frames")
    builder.operator("READ_VARIABLE", [handle], [old])
    builder.operator("CONCATENATION", [old, x], [joined], version=2, options="ConcatenationOptions", axis=1)
    corners = [(0, new, 0, 0), (0, 0, 0, 0), (1, 1, 1, 1)]
    ends = [builder.tensor(n, (4,), "int32", data=np.array(c, np.int32)) for n, c in zip("bes", corners, strict=True)]
    builder.operator(
        "STRIDED_SLICE", [joined, *ends], [last], version=2, options="StridedSliceOptions", beginMask=13, endMask=15
    )
    y = _conv(builder, choices, joined, (window, width, channels, units), new + kept, q)
    if choices.chance(50):
        builder.operator("ASSIGN_VARIABLE", [handle, last], [])
    else:
        builder.operator("ASSIGN_VARIABLE", [handle, old if new > 3 else last], [])
    text = f"STREAM {frames} after {state} window {window} -> {units} {q.summary}"
    return _streamed(choices, case(choices, text, builder, [(x, frames, "int8", q.input_zero_point)], y))


def svdf(choices: Choices) -> GraphCase:
    """SVDF: ranks 1 to 3, its state int8 or int16."""
    inputs, units, rank, memory = choices.channels(), choices.channels(9), choices.integer(1, 3), choices.integer(1, 9)
    filters, state = units * rank, choices.pick(["int8", "int16"])
    limit = 127 if state == "int8" else 32767
    scales = {name: choices.real(1e-3, 0.1) for name in ("x", "f")}
    scales["s"] = scales["x"] * scales["f"] * 74.0 * 74.0 * math.sqrt(inputs) * choices.real(1.0, 4.0) / limit
    scales["t"] = choices.real(1e-3, 0.1) / (limit / 127)
    spread = 0.3 * limit * limit * math.sqrt(rank * memory) * scales["s"] * scales["t"]
    scales["y"] = spread * choices.real(0.5, 3.0) / 127
    grids = {name: [float(np.float32(scale))] for name, scale in scales.items()}
    points = {"x": choices.zero_point(), "s": 0, "y": choices.zero_point()}
    builder = ModelBuilder()
    x = builder.tensor("x", (1, inputs), "int8", scales=grids["x"], zero_points=[points["x"]])
    features = choices.weights((filters, inputs))
    f = builder.tensor("f", (filters, inputs), "int8", scales=grids["f"], data=features)
    times = choices.bytes_of((filters, memory), state)
    t = builder.tensor("t", (filters, memory), state, scales=grids["t"], data=times)
    bias = np.rint(choices.normal(units, limit * limit * 0.1)).astype(np.int32)
    bias_scale = [grids["s"][0] * grids["t"][0]]
    b = builder.tensor("b", (units,), "int32", scales=bias_scale, data=bias)
    s = builder.tensor("s", (1, filters * memory), state, scales=grids["s"], zero_points=[points["s"]], variable=True)
    y = builder.tensor("y", (1, units), "int8", scales=grids["y"], zero_points=[points["y"]])
    relu = ACTIVATIONS["relu"]
    builder.operator(
        "SVDF", [x, f, t, b, s], [y], version=3, options="SVDFOptions", rank=rank, fusedActivationFunction=relu
    )
    text = f"SVDF {inputs}->{units} rank {rank} memory {memory} state {state} zero points {points}"
    return _streamed(choices, case(choices, text, builder, [(x, (1, inputs), "int8", points["x"])], y))


def lstm(choices: Choices) -> GraphCase:
    """UNIDIRECTIONAL_SEQUENCE_LSTM: one step or several, a clipped cell or none, cells on fine and coarse grids."""
    steps, inputs, units = choices.integer(1, 6), choices.channels(17), choices.channels(17)
    builder = ModelBuilder()
    shape, made = (1, steps, inputs), (1, steps, units)
    points = [choices.zero_point(), choices.zero_point()]
    hidden = float(np.float32(choices.real(1 / 300, 1 / 100)))
    x = builder.tensor("x", shape, "int8", scales=[choices.real(0.004, 0.05)], zero_points=[points[0]])
    matrices = [
        builder.tensor(
            f"w{i}", (units, depth), "int8", scales=[choices.real(5e-4, 0.02)], data=choices.weights((units, depth))
        )
        for i, depth in enumerate([inputs] * 4 + [units] * 4)
    ]
    biases = [
        builder.tensor(f"b{i}", (units,), "int32", data=np.rint(choices.normal(units, 3000.0)).astype(np.int32))
        for i in range(4)
    ]
    exponent = choices.integer(-14, -9)
    h = builder.tensor("h", (1, units), "int8", scales=[hidden], zero_points=[points[1]], variable=True)
    c = builder.tensor("c", (1, units), "int16", scales=[2.0**exponent], zero_points=[0], variable=True)
    y = builder.tensor("y", made, "int8", scales=[hidden], zero_points=[points[1]])
    clip = choices.pick([0.0, 0.0, 0.5, 10.0])
    operands = [x, *matrices, -1, -1, -1, *biases, -1, -1, h, c, -1, -1, -1, -1]
    builder.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        operands,
        [y],
        version=1,
        options="UnidirectionalSequenceLSTMOptions",
        cellClip=clip,
        fusedActivationFunction=_TANH,
    )
    text = f"LSTM {shape}->{units} cell 2^{exponent} clip {clip} zero points {points}"
    return _streamed(choices, case(choices, text, builder, [(x, shape, "int8", points[0])], y))


def _streamed(choices: Choices, first: GraphCase) -> GraphCase:
    """More vectors of the same kind, all one stream."""
    shape, dtype = first.inputs[0].shape, str(first.inputs[0].dtype)
    more = tuple((choices.bytes_of(shape, dtype),) for _ in range(RUNS - len(first.vectors)))
    return replace(first, vectors=first.vectors + more, remembers=True)


def _conv(
    builder: ModelBuilder, choices: Choices, x: int, sizes: tuple[int, int, int, int], rows: int, q: MacQuantisation
) -> int:
    window, width, channels, units = sizes
    shape = (units, window, width, channels)
    w = builder.tensor("w", shape, "int8", scales=q.weight_scales, data=choices.weights(shape))
    bias = -1
    if q.bias is not None:
        bias = builder.tensor("b", (units,), "int32", scales=q.bias_scales, data=q.bias)
    out = (1, rows - window + 1, 1, units)
    y = builder.tensor("y", out, "int8", scales=[q.output_scale], zero_points=[q.output_zero_point])
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, "padding": PADDINGS["VALID"]}
    activation = ACTIVATIONS[q.activation]
    builder.operator(
        "CONV_2D", [x, w, bias], [y], version=3, options="Conv2DOptions", **options, fusedActivationFunction=activation
    )
    return y
