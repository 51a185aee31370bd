# SPDX-License-Identifier: Apache-2.0
"""A network of three layers in float and INT8, and pictures with the colours of photographs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from support.builder import ModelBuilder

__all__ = ["CLASSES", "SIDE", "network", "photographs", "weights"]

SIDE, CLASSES = 12, 4
_CHANNELS = 8


def photographs(count: int = 40, seed: int = 0, contrast: float = 80) -> npt.NDArray[np.uint8]:
    """Smooth pictures that are redder than blue, as photographs are."""
    rng = np.random.default_rng(seed)
    coarse = rng.normal(0, contrast, (count, 4, 4, 3)) + np.array([150, 125, 95]) + rng.normal(0, 20, (count, 1, 1, 1))
    small = np.clip(coarse, 0, 255).astype(np.uint8)
    return np.stack([np.asarray(Image.fromarray(p).resize((SIDE, SIDE), Image.Resampling.BICUBIC)) for p in small])


def weights() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Of the convolution and of the dense layer."""
    rng = np.random.default_rng(5)
    kernel = rng.normal(0, 0.5, (_CHANNELS, 3, 3, 3)).astype(np.float32)
    return kernel, rng.normal(0, 4, (CLASSES, _CHANNELS)).astype(np.float32)


def network(int8_range: float | None = None) -> bytes:
    """Convolution, ReLU6, mean over the picture, dense; with an extent of the activations in INT8, else in float.

    The convolution spreads by about 1 over x/127.5-1.
    """
    kernel, dense = weights()
    build = ModelBuilder()

    def add(name: str, shape: tuple[int, ...], scale: float, data: Any = None, zero: int = 0) -> int:
        if int8_range is None:
            return build.tensor(name, shape, "float32", data=data)
        kind = "int32" if data is not None and data.ndim == 1 else "int8"
        stored = None if data is None else np.round(data / scale).astype(kind)
        return build.tensor(name, shape, kind, scales=[scale], zero_points=[zero], data=stored)

    step = (int8_range or 1) / 255
    x = add("x", (1, SIDE, SIDE, 3), 2 / 255)
    w = add("w", kernel.shape, 2 / 127, kernel)
    b = add("b", (_CHANNELS,), 2 / 255 * 2 / 127, np.zeros(_CHANNELS, np.float32))
    y = add("y", (1, SIDE, SIDE, _CHANNELS), step, zero=-128)
    axes = build.tensor("axes", (2,), "int32", data=np.array([1, 2], np.int32))
    m = add("m", (1, _CHANNELS), step, zero=-128)
    d = add("d", dense.shape, 16 / 127, dense)
    e = add("e", (CLASSES,), step * 16 / 127, np.zeros(CLASSES, np.float32))
    z = add("z", (1, CLASSES), 0.2)
    build.operator(
        "CONV_2D", [x, w, b], [y], options="Conv2DOptions", strideW=1, strideH=1, dilationWFactor=1,
        dilationHFactor=1, fusedActivationFunction=3,
    )  # fmt: skip
    build.operator("MEAN", [y, axes], [m], options="ReducerOptions")
    build.operator("FULLY_CONNECTED", [m, d, e], [z], options="FullyConnectedOptions")
    return build.finish([x], [z])
