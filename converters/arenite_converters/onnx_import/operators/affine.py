# SPDX-License-Identifier: Apache-2.0
"""Scales and offsets per channel that follow a convolution or a dense layer belong into its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.onnx_import.graph import Node
from arenite_converters.onnx_import.lowering import Lowering

__all__ = ["absorb_affine", "batch_normalisation"]

Array = npt.NDArray[Any]


def absorb_affine(to: Lowering, name: str, axis: int) -> tuple[Array, Array, str]:
    """What the nodes right behind a value do to each of its channels.

    Args:
        to: The import.
        name: A value.
        axis: Its channels.

    Returns:
        Scale and offset of each channel, float64, and the value behind the nodes, which are absorbed.
    """
    channels = to.shape(name)[axis]
    scale, offset = np.ones(channels), np.zeros(channels)
    while (node := to.only_reader(name)) is not None:
        step = _step(to, node, name, axis)
        if step is None:
            break
        scale, offset = scale * step[0], offset * step[0] + step[1]
        to.absorb(node)
        name = node.outputs[0]
    return scale, offset, name


def batch_normalisation(to: Lowering, node: Node) -> tuple[Array, Array]:
    """Scale and offset of each channel, float64."""
    parts = [to.required(node, position, "statistics").astype(np.float64) for position in range(1, 5)]
    gamma, beta, mean, variance = parts
    scale = gamma / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    return scale, beta - mean * scale


def _step(to: Lowering, node: Node, name: str, axis: int) -> tuple[Any, Any] | None:
    if node.kind == "BatchNormalization":
        return batch_normalisation(to, node) if axis == 1 else None
    if node.kind not in ("Add", "Div", "Mul", "Sub") or node.inputs[0] == node.inputs[1]:
        return None
    position = node.inputs.index(name)
    constant = _per_channel(to, node, node.inputs[1 - position], axis)
    if constant is None or (node.kind == "Div" and position == 1):
        return None
    return {
        "Add": (1.0, constant),
        "Div": (1.0 / constant if node.kind == "Div" else 1.0, 0.0),
        "Mul": (constant, 0.0),
        "Sub": (1.0, -constant) if position == 0 else (-1.0, constant),
    }[node.kind]


def _per_channel(to: Lowering, node: Node, name: str, axis: int) -> Array | None:
    """A constant that differs along one axis at most, as one number a channel."""
    constant = to.constant(name)
    shape = to.shape(node.outputs[0])
    if constant is None or shape != to.shape(node.inputs[1 - node.inputs.index(name)]):
        return None
    full: Array = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
    if any(extent != 1 for other, extent in enumerate(full.shape) if other != axis % len(shape)):
        return None
    found = np.broadcast_to(full.reshape(-1), (shape[axis],)).astype(np.float64)
    return None if node.kind == "Div" and (found == 0).any() else found
