# SPDX-License-Identifier: Apache-2.0
"""Small models, one good and the others each wrong in one way, for tests of messages and exit codes."""

from __future__ import annotations

import numpy as np

from support.builder import ModelBuilder

__all__ = [
    "HOSTILE_NAMES",
    "dynamic_range_model",
    "float_model",
    "good_model",
    "large_frame_model",
    "large_weights_model",
    "moved_batch_model",
    "unknown_extent_model",
    "unsupported_model",
]

HOSTILE_NAMES = (
    '"; } int main(void) { system("id"); /*',
    "*/ #include <stdlib.h>\n#define x",
    "../../../outside",
    "C:\\windows\\..\\nul??/",
    "int",
    "ein schöner Tensor 🏜",
    "%s%n{{ 7 * 7 }}{% raw %}",
    "n" * 5000,
)


def good_model(input_name: str = "input", middle_name: str = "middle", output_name: str = "output") -> bytes:
    """A convolution and a softmax over 6x6x3, with these tensor names."""
    builder = ModelBuilder()
    rng = np.random.default_rng(7)
    x = builder.tensor(input_name, (1, 6, 6, 3), "int8", scales=[0.02], zero_points=[-1])
    data = rng.integers(-127, 127, (4, 6, 6, 3), dtype=np.int8, endpoint=True)
    w = builder.tensor(f"{middle_name}/w", data.shape, "int8", scales=[0.004] * 4, data=data)
    b = builder.tensor(f"{middle_name}/b", (4,), "int32", scales=[8e-5] * 4, data=np.zeros(4, np.int32))
    middle = builder.tensor(middle_name, (1, 1, 1, 4), "int8", scales=[0.05], zero_points=[2])
    y = builder.tensor(output_name, (1, 1, 1, 4), "int8", scales=[1 / 256], zero_points=[-128])
    builder.operator(
        "CONV_2D", [x, w, b], [middle], version=3, options="Conv2DOptions", padding=1, strideH=1, strideW=1
    )
    builder.operator("SOFTMAX", [middle], [y], version=2, options="SoftmaxOptions", beta=1.0)
    return builder.finish([x], [y])


def float_model() -> bytes:
    """One convolution that nobody quantised."""
    builder = ModelBuilder()
    x = builder.tensor("input", (1, 4, 4, 1), "float32")
    w = builder.tensor("w", (2, 3, 3, 1), "float32", data=np.ones((2, 3, 3, 1), np.float32))
    y = builder.tensor("output", (1, 2, 2, 2), "float32")
    builder.operator("CONV_2D", [x, w, -1], [y], options="Conv2DOptions", padding=1, strideH=1, strideW=1)
    return builder.finish([x], [y])


def dynamic_range_model() -> bytes:
    """One dense layer with INT8 weights between float tensors."""
    builder = ModelBuilder()
    x = builder.tensor("input", (1, 4), "float32")
    w = builder.tensor("dense/w", (2, 4), "int8", scales=[0.1], data=np.ones((2, 4), np.int8))
    y = builder.tensor("output", (1, 2), "float32")
    builder.operator("FULLY_CONNECTED", [x, w, -1], [y], version=4, options="FullyConnectedOptions")
    return builder.finish([x], [y])


def unsupported_model() -> bytes:
    """RELU and then COS, which no kernel covers."""
    builder = ModelBuilder()
    tensors = [
        builder.tensor(name, (1, 8), "int8", scales=[0.1], zero_points=[0])
        for name in ("input", "middle", "y")
    ]
    builder.operator("RELU", tensors[:1], tensors[1:2], version=2)
    builder.operator("COS", tensors[1:2], tensors[2:])
    return builder.finish(tensors[:1], tensors[2:])


def unknown_extent_model() -> bytes:
    """A shape with -1, as a model converted without a fixed batch has it."""
    builder = ModelBuilder()
    x = builder.tensor("input", (-1, 8), "int8", scales=[0.1], zero_points=[0])
    y = builder.tensor("output", (-1, 8), "int8", scales=[0.1], zero_points=[0])
    builder.operator("RELU", [x], [y], version=2)
    return builder.finish([x], [y])


def moved_batch_model() -> bytes:
    """A TRANSPOSE that moves the batch, which no kernel covers."""
    builder = ModelBuilder()
    x = builder.tensor("input", (2, 3, 4, 5), "int8", scales=[0.1], zero_points=[0])
    order = builder.tensor("order", (4,), "int32", data=np.array([1, 0, 2, 3], np.int32))
    y = builder.tensor("output", (3, 2, 4, 5), "int8", scales=[0.1], zero_points=[0])
    builder.operator("TRANSPOSE", [x, order], [y], version=2, options="TransposeOptions")
    return builder.finish([x], [y])


def large_frame_model() -> bytes:
    """A picture of 1200x1200x3 that no small board can hold: 4,320,000 bytes."""
    builder = ModelBuilder()
    x = builder.tensor("camera", (1, 1200, 1200, 3), "int8", scales=[0.1], zero_points=[0])
    axes = builder.tensor("axes", (2,), "int32", data=np.array([1, 2], np.int32))
    y = builder.tensor("mean", (1, 3), "int8", scales=[0.1], zero_points=[0])
    builder.operator("MEAN", [x, axes], [y], version=2, options="ReducerOptions", keepDims=False)
    return builder.finish([x], [y])


def large_weights_model() -> bytes:
    """A dense layer of 8 MiB of weights."""
    builder = ModelBuilder()
    depth, units = 4096, 2048
    x = builder.tensor("input", (1, depth), "int8", scales=[0.1], zero_points=[0])
    data = np.ones((units, depth), np.int8)
    w = builder.tensor("weights", data.shape, "int8", scales=[0.01], data=data)
    y = builder.tensor("output", (1, units), "int8", scales=[1.0], zero_points=[0])
    builder.operator("FULLY_CONNECTED", [x, w, -1], [y], version=4, options="FullyConnectedOptions")
    return builder.finish([x], [y])
