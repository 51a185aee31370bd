# SPDX-License-Identifier: Apache-2.0
"""Pooling, with pads that neither change the result nor stretch a calibration's ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.onnx_import.graph import Node
from arenite_converters.onnx_import.lowering import Lowering
from arenite_converters.onnx_import.operators.reduction import reduce_axes
from arenite_converters.onnx_import.operators.windows import Window, from_plane, padded, to_plane, window_of

__all__ = ["average", "global_average", "global_max", "maximum"]

Array = npt.NDArray[Any]


def maximum(to: Lowering, node: Node) -> None:
    """MAX_POOL_2D.

    TFLite leaves what lies beyond the edges out of the maximum, by its own rule SAME alone. Other pads: zeros where no
    element is below zero; else a window of stride 1, whose pads do follow that rule, and every n-th of its results;
    else mirrored edges, whose elements the window holds anyway. Never the lowest float, which would be calibrated.
    """
    window = window_of(to, node, node.attributes["kernel_shape"])
    if set(window.dilations) != {1} or (len(node.outputs) > 1 and node.outputs[1]):
        raise to.refuse(node, "with dilations or indices")
    name = node.outputs[0]
    tensor, shape = to_plane(to, node.inputs[0])
    positive = to.values[node.inputs[0]].is_positive
    wanted = _plane_shape(to, name)
    if window.padding or positive:
        tensor = padded(to, tensor, shape, window, name)
    elif _is_centred(window):
        dense = replace(window, strides=(1, 1), padding="SAME")
        tensor = _pool(to, "MAX_POOL_2D", tensor, shape, dense, f"{name}/dense")
        window = replace(window, kernel=(1, 1), padding="VALID")
    else:
        tensor = _mirrored(to, tensor, shape, window, name)
    result = _pool(to, "MAX_POOL_2D", tensor, wanted, window, name)
    from_plane(to, name, result, is_positive=positive)


def _is_centred(window: Window) -> bool:
    """A window of stride 1 reaches as far before the first element by the rule SAME."""
    return all(start == (k - 1) // 2 for start, k in zip(window.before, window.kernel, strict=True)) and all(
        end <= k // 2 for end, k in zip(window.after, window.kernel, strict=True)
    )


def _mirrored(to: Lowering, tensor: int, shape: Sequence[int], window: Window, name: str) -> int:
    amounts = [(0, 0), *zip(window.before, window.after, strict=True), (0, 0)]
    result = [extent + sum(amount) for extent, amount in zip(shape, amounts, strict=True)]
    paddings = to.add(np.array(amounts, np.int32), f"{name}/pads")
    symmetric = 1
    return to.emit("MIRROR_PAD", [tensor, paddings], result, f"{name}/pad", "MirrorPadOptions", mode=symmetric)


def _pool(to: Lowering, kind: str, tensor: int, shape: Sequence[int], window: Window, name: str) -> int:
    options = {**window.options, "filterHeight": window.kernel[0], "filterWidth": window.kernel[1]}
    return to.emit(kind, [tensor], shape, name, "Pool2DOptions", **options)


def _plane_shape(to: Lowering, name: str) -> list[int]:
    batch, channels, *spatial = to.shape(name)
    return [batch, *(1,) * (2 - len(spatial)), *spatial, channels]


def average(to: Lowering, node: Node) -> None:
    """AVERAGE_POOL_2D; where it divides by another number than ONNX, a MUL mends that at the edges."""
    window = window_of(to, node, node.attributes["kernel_shape"])
    if set(window.dilations) != {1}:
        raise to.refuse(node, "with dilations")
    name = node.outputs[0]
    tensor, shape = to_plane(to, node.inputs[0])
    wanted = _plane_shape(to, name)
    counted = _counts(to, node, window, shape, wanted)
    if window.padding == "SAME" and (counted != _inside(window, shape, wanted, (0, 0), (0, 0))).any():
        window = replace(window, padding="")
    full = window.kernel[0] * window.kernel[1]
    factors = np.ones(1) if window.padding == "SAME" else full / counted
    result = _pool(to, "AVERAGE_POOL_2D", padded(to, tensor, shape, window, name), wanted, window, name)
    if (factors != 1).any():
        constant = to.add(factors.reshape(1, *factors.shape, 1), f"{name}/counts")
        result = to.emit("MUL", [result, constant], wanted, name, "MulOptions")
    from_plane(to, name, result, is_positive=to.values[node.inputs[0]].is_positive)


def _counts(to: Lowering, node: Node, window: Window, shape: Sequence[int], wanted: Sequence[int]) -> Array:
    """By how many elements ONNX divides at each position, H×W."""
    if not node.attributes.get("count_include_pad", 0):
        return _inside(window, shape, wanted, (0, 0), (0, 0))
    spatial = len(to.shape(node.inputs[0])) - 2
    pads = node.attributes.get("pads", (0,) * (2 * spatial))
    after = (0, *pads[spatial:])[-2:]
    return _inside(window, shape, wanted, window.before, (after[0], after[1]))


def _inside(
    window: Window, shape: Sequence[int], wanted: Sequence[int], before: tuple[int, int], after: tuple[int, int]
) -> Array:
    """Elements of each window that lie in the map with this much around it."""
    counts = []
    for axis in (0, 1):
        first = np.arange(wanted[axis + 1]) * window.strides[axis] - window.before[axis]
        last = np.minimum(first + window.kernel[axis], shape[axis + 1] + after[axis])
        counts.append(last - np.maximum(first, -before[axis]))
    return np.outer(counts[0], counts[1])


def global_average(to: Lowering, node: Node) -> None:
    """MEAN over height and width."""
    reduce_axes(to, node, "MEAN", range(2, len(to.shape(node.inputs[0]))), keep=True)


def global_max(to: Lowering, node: Node) -> None:
    """MAX_POOL_2D over the whole map."""
    name = node.outputs[0]
    tensor, shape = to_plane(to, node.inputs[0])
    window = Window((shape[1], shape[2]), (1, 1), (1, 1), (0, 0), (0, 0), "VALID")
    result = _pool(to, "MAX_POOL_2D", tensor, [shape[0], 1, 1, shape[3]], window, name)
    from_plane(to, name, result, is_positive=to.values[node.inputs[0]].is_positive)
