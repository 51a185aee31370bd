# SPDX-License-Identifier: Apache-2.0
"""A classifier that needs no training: which of red, green and blue is strongest in a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from arenite.contract import CONTRACT_METADATA, make_contract
from arenite.tflite_graph import parse_graph
from support.builder import ModelBuilder

__all__ = ["LABELS", "colour_means", "colour_model"]

LABELS = ("red", "green", "blue")


def colour_model(side: int = 4, labels: Sequence[str] = LABELS, orientation: str = "exif") -> bytes:
    """A TFLite file, contract inside.

    Args:
        side: Extents of the picture that it sees.
        labels: Of the three colours.
        orientation: See `arenite.make_contract`.

    Returns:
        int8 x = value - 128 in; as logits 16 times the mean of each channel, 0..16, out.
    """
    weights = np.zeros((3, side, side, 3), np.int8)
    for channel in range(3):
        weights[channel, :, :, channel] = 1
    scale = 16 / side**2
    builder = ModelBuilder()
    x = builder.tensor("x", (1, side, side, 3), "int8", scales=[1 / 255], zero_points=[-128])
    w = builder.tensor("w", (3, 3 * side**2), "int8", scales=[scale], data=weights.reshape(3, -1))
    b = builder.tensor("b", (3,), "int32", scales=[scale / 255], data=np.zeros(3, np.int32))
    y = builder.tensor("y", (1, 3), "int8", scales=[0.125], zero_points=[-128])
    builder.operator("FULLY_CONNECTED", [x, w, b], [y], options="FullyConnectedOptions")
    return _with_contract(builder, x, y, labels, orientation)


def colour_means(side: int, labels: Sequence[str] = LABELS) -> bytes:
    """The same question by MEAN, which takes its input row by row: the mean of each channel, 0..1, out."""
    builder = ModelBuilder()
    grid: dict[str, Any] = {"scales": [1 / 255], "zero_points": [-128]}
    x = builder.tensor("x", (1, side, side, 3), "int8", **grid)
    axes = builder.tensor("axes", (2,), "int32", data=np.array([1, 2], np.int32))
    y = builder.tensor("y", (1, 3), "int8", **grid)
    builder.operator("MEAN", [x, axes], [y], version=2, options="ReducerOptions", keepDims=False)
    return _with_contract(builder, x, y, labels, "exif")


def _with_contract(builder: ModelBuilder, x: int, y: int, labels: Sequence[str], orientation: str) -> bytes:
    how = {"normalisation": "unit", "filter": "nearest", "orientation": orientation}
    contract = make_contract(parse_graph(builder.finish([x], [y])), labels=labels, meaning="logits", **how)  # type: ignore[arg-type]
    builder.metadata(CONTRACT_METADATA, contract.to_json().encode())
    return builder.finish([x], [y])
