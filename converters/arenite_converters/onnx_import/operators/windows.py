# SPDX-License-Identifier: Apache-2.0
"""Windows that slide over a map: strides, dilations and what lies beyond the edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arenite_converters.onnx_import.axes import channel_last
from arenite_converters.onnx_import.graph import Node
from arenite_converters.onnx_import.lowering import Lowering, Value

__all__ = ["Pair", "Window", "from_plane", "padded", "to_plane", "window_of"]

Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """A window over height and width.

    Attributes:
        kernel: Its extents.
        strides: Steps between its positions.
        dilations: Distances between its taps.
        before: Rows and columns that it reaches beyond the first.
        after: The same beyond the last; less than the file states where the last position ends earlier.
        padding: `SAME` or `VALID` where TFLite's own rule gives exactly these; "" where a PAD must come first.
    """

    kernel: Pair
    strides: Pair
    dilations: Pair
    before: Pair
    after: Pair
    padding: str

    @property
    def options(self) -> dict[str, Any]:
        """Fields that all TFLite operators with a window have."""
        return {"strideH": self.strides[0], "strideW": self.strides[1], "padding": self.padding or "VALID"}


def to_plane(to: Lowering, name: str) -> tuple[int, tuple[int, int, int, int]]:
    """A map as N×H×W×C; a sequence as a map of height 1.

    Returns:
        The tensor and its shape.
    """
    shape = to.memory_shape(name, channel_last(len(to.shape(name))))
    tensor = to.map(name)
    if len(shape) == 4:
        return tensor, (shape[0], shape[1], shape[2], shape[3])
    plane = (shape[0], 1, shape[1], shape[2])
    return to.reshape(tensor, plane, f"{name}/plane"), plane


def from_plane(to: Lowering, name: str, tensor: int, *, is_positive: bool) -> None:
    """The result of an operator over N×H×W×C, as the value that it is."""
    order = channel_last(len(to.shape(name)))
    if len(order) == 3:
        tensor = to.reshape(tensor, to.memory_shape(name, order), name)
    to.values[name] = Value(tensor, order, None, is_positive)


def window_of(to: Lowering, node: Node, kernel: Sequence[int]) -> Window:
    """The window of a convolution or pooling node.

    Raises:
        UnsupportedOperatorError: Three or more dimensions, or negative pads.
    """
    spatial = len(kernel)
    if spatial not in (1, 2) or len(to.shape(node.inputs[0])) != spatial + 2:
        raise to.refuse(node, f"over {spatial} dimensions")
    flat = (1,) * (2 - spatial)
    extents = (*flat, *to.shape(node.inputs[0])[2:])
    outputs = (*flat, *to.shape(node.outputs[0])[2:])
    strides = (*flat, *node.attributes.get("strides", (1,) * spatial))
    dilations = (*flat, *node.attributes.get("dilations", (1,) * spatial))
    reaches = [(k - 1) * d + 1 for k, d in zip((*flat, *kernel), dilations, strict=True)]
    axes = list(zip(extents, outputs, strides, reaches, strict=True))
    totals = [max((out - 1) * stride + reach - size, 0) for size, out, stride, reach in axes]
    before = (*(0 for _ in flat), *_before(to, node, totals[2 - spatial :]))
    after = [
        max((out - 1) * stride + reach - size - start, 0)
        for (size, out, stride, reach), start in zip(axes, before, strict=True)
    ]
    same = all(
        start == total // 2 and out == -(-size // stride)
        for start, total, (size, out, stride, _) in zip(before, totals, axes, strict=True)
    )
    padding = "VALID" if not any((*before, *after)) else "SAME" if same else ""
    return Window(
        _pair((*flat, *kernel)), _pair(strides), _pair(dilations), _pair(before), _pair(after), padding
    )


def _before(to: Lowering, node: Node, totals: Sequence[int]) -> list[int]:
    rule = node.attributes.get("auto_pad", "NOTSET")
    if rule == "SAME_UPPER":
        return [total // 2 for total in totals]
    if rule == "SAME_LOWER":
        return [total - total // 2 for total in totals]
    pads = node.attributes.get("pads", (0,) * (2 * len(totals)))
    if min(pads) < 0:
        raise to.refuse(node, "with negative pads")
    return list(pads[: len(totals)]) if rule == "NOTSET" else [0] * len(totals)


def _pair(values: Sequence[int]) -> Pair:
    return int(values[0]), int(values[1])


def padded(to: Lowering, tensor: int, shape: Sequence[int], window: Window, name: str) -> int:
    """The map with zeros around it, where the window's own rule does not add them."""
    if window.padding:
        return tensor
    amounts = [(0, 0), *zip(window.before, window.after, strict=True), (0, 0)]
    result = [extent + sum(amount) for extent, amount in zip(shape, amounts, strict=True)]
    paddings = to.add(np.array(amounts, np.int32), f"{name}/pads")
    return to.emit("PAD", [tensor, paddings], result, f"{name}/pad", "PadOptions")
