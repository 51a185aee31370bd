# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pooling and matrix products, over any number of spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS", "columns"]

Array = npt.NDArray[Any]
Pads = list[tuple[int, int]]


def _pads(pad_type: str, pad: Array | None, x: Array, kernel: Sequence[int], strides: Any, dilations: Any) -> Pads:
    """Padding before and after each spatial axis."""
    if pad_type == "valid":
        return [(0, 0)] * len(kernel)
    if pad_type == "custom":
        assert pad is not None
        return [(int(a), int(b)) for a, b in pad.reshape(-1, 2)]
    found = []
    for extent, taps, stride, dilation in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        total = max(0, (-(-extent // stride) - 1) * stride + (taps - 1) * dilation + 1 - extent)
        small, large = total // 2, total - total // 2
        found.append((small, large) if pad_type == "same" else (large, small))
    return [(int(a), int(b)) for a, b in found]


def _padded(x: Array, pads: Pads, fill: float = 0.0) -> Array:
    if not any(map(any, pads)):
        return x
    return np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)


def _taps(x: Array, kernel: Sequence[int], strides: Any, dilations: Any) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Each position in the kernel with the part of `x` that it meets, of the output's extents."""
    extents = [
        (extent - (taps - 1) * int(d) - 1) // int(s) + 1
        for extent, taps, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True)
    ]
    for place in product(*map(range, kernel)):
        starts = [p * int(d) for p, d in zip(place, dilations, strict=True)]
        steps = zip(starts, extents, map(int, strides), strict=True)
        cut = (slice(None), slice(None), *(slice(at, at + (e - 1) * s + 1, s) for at, e, s in steps))
        yield place, x[cut]


def conv(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    strides: Any = None,
    pad_type: str = "valid",
    pad: Array | None = None,
    dilations: Any = None,
    groups: Any = 1,
) -> Array:
    """Convolution; `weight` is [outputs, inputs / groups, kernel...]."""
    kernel = weight.shape[2:]
    parts = _parts(x, kernel, strides, pad_type, pad, dilations)
    if weight.shape[1] == 1 and int(groups) == x.shape[1]:
        y = _depthwise(parts, weight, x.shape[1])
    else:
        y = _grouped(parts, weight, int(groups))
    return y if bias is None else np.asarray(y + bias.reshape(-1, *[1] * len(kernel)))


def columns(
    x: Array,
    kernel: Sequence[int],
    strides: Any = None,
    pad_type: str = "valid",
    pad: Array | None = None,
    dilations: Any = None,
    groups: Any = 1,
) -> Array:
    """What the weights of a convolution of one picture are multiplied with: groups × terms × output positions.

    Terms lie as they do in the weights of one output channel: inputs of the group, then taps.
    """
    laid = np.stack([part for _, part in _parts(x, kernel, strides, pad_type, pad, dilations)], axis=2)
    return np.asarray(_by_group(laid, int(groups))[0])


def _parts(
    x: Array, kernel: Sequence[int], strides: Any, pad_type: str, pad: Array | None, dilations: Any
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """`_taps` of the padded input."""
    strides = np.ones(len(kernel), int) if strides is None else strides
    dilations = np.ones(len(kernel), int) if dilations is None else dilations
    return _taps(_padded(x, _pads(pad_type, pad, x, kernel, strides, dilations)), kernel, strides, dilations)


def _by_group(laid: Array, groups: int) -> Array:
    """Batch × groups × terms × positions, of batch × channels × taps × extents."""
    batch, channels, taps = laid.shape[:3]
    return laid.reshape(batch, groups, channels // groups * taps, -1)


def _depthwise(parts: Iterator[tuple[tuple[int, ...], Array]], weight: Array, channels: int) -> Array:
    """One multiply-add over the whole map for each tap."""
    total: Any = 0
    for place, part in parts:
        at: Any = (slice(None), 0, *place)
        taps = weight[at].reshape(channels, -1, *[1] * (part.ndim - 2))
        total = total + part[:, :, None] * taps
    return np.asarray(total.reshape(total.shape[0], -1, *total.shape[3:]))


def _grouped(parts: Iterator[tuple[tuple[int, ...], Array]], weight: Array, groups: int) -> Array:
    """Each group as one matrix product over the taps laid side by side."""
    laid = np.stack([part for _, part in parts], axis=2)
    rows = weight.reshape(groups, weight.shape[0] // groups, -1)
    made = np.matmul(rows, _by_group(laid, groups))
    return np.asarray(made.reshape(len(laid), weight.shape[0], *laid.shape[3:]))


def _conv_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    pad: Array | None = None,
    output_shape: Array | None = None,
    pad_type: str = "valid",
    strides: Any = None,
    dilations: Any = None,
    groups: Any = 1,
) -> Array:
    """Transposed convolution; `weight` is [inputs, outputs / groups, kernel...]."""
    kernel = weight.shape[2:]
    strides = np.ones(len(kernel), int) if strides is None else strides
    dilations = np.ones(len(kernel), int) if dilations is None else dilations
    whole = [
        (e - 1) * int(s) + (k - 1) * int(d) + 1
        for e, s, k, d in zip(x.shape[2:], strides, kernel, dilations, strict=True)
    ]
    count, split = weight.shape[1], x.reshape(x.shape[0], int(groups), -1, *x.shape[2:])
    rows = weight.reshape(int(groups), -1, *weight.shape[1:])
    # Room for an output padding, which lies behind what the taps reach.
    y = np.zeros((x.shape[0], int(groups) * count, *(e + int(s) for e, s in zip(whole, strides, strict=True))), "f4")
    reached: Any = (..., *(slice(extent) for extent in whole))
    for place, part in _taps(y[reached], kernel, strides, dilations):
        at: Any = (slice(None), slice(None), slice(None), *place)
        made = np.einsum("ngc...,gco->ngo...", split, rows[at])
        part += made.reshape(part.shape)
    wanted = None if output_shape is None else [int(e) for e in output_shape[2:]]
    kept: Any = (..., *_kept(whole, wanted, pad if pad_type == "custom" else None))
    y = y[kept]
    return y if bias is None else np.asarray(y + bias.reshape(-1, *[1] * len(kernel)))


def _kept(whole: list[int], wanted: list[int] | None, pad: Array | None) -> Iterator[slice]:
    """The part of a transposed convolution's whole output that remains."""
    for axis, extent in enumerate(whole):
        if pad is not None:
            start, end = int(pad[2 * axis]), extent - int(pad[2 * axis + 1])
        else:
            start, end = (0, extent) if wanted is None else (max(0, extent - wanted[axis]) // 2, 0)
        yield slice(start, end if wanted is None else start + wanted[axis])


def _whole_windows(x: Array, kernel: Sequence[int], strides: Any, pads: Pads) -> Pads:
    """Padding behind, so that a window that begins inside the input counts (ceil mode)."""
    return [(0, max(0, -(x.shape[2 + i] + sum(pads[i]) - k) % int(strides[i]))) for i, k in enumerate(kernel)]


def _pool(fill: float, reduce: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def run(
        x: Array,
        kernel_sizes: Array,
        strides: Any = None,
        pad_type: str = "valid",
        pad: Array | None = None,
        ceil_mode: Any = False,
        exclude_padding_from_average: Any = False,
    ) -> Array:
        kernel = [int(k) for k in kernel_sizes]
        ones = np.ones(len(kernel), int)
        strides = ones if strides is None else strides
        pads = _pads(pad_type, pad, x, kernel, strides, ones)
        more = _whole_windows(x, kernel, strides, pads) if ceil_mode else [(0, 0)] * len(kernel)
        there = np.ones_like(x[:1, :1])
        counted = _padded(_padded(there, pads, 0.0 if exclude_padding_from_average else 1.0), more)
        padded = _padded(_padded(x, pads, fill), more, fill)
        return reduce(*(np.stack([p for _, p in _taps(a, kernel, strides, ones)]) for a in (padded, counted)))

    return run


def _linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    y = x @ weight.T
    return y if bias is None else np.asarray(y + bias)


def _matmul(x: Array, y: Array, transpose_x: Any = False, transpose_y: Any = False) -> Array:
    left = x.swapaxes(-1, -2) if transpose_x else x
    return np.asarray(np.matmul(left, y.swapaxes(-1, -2) if transpose_y else y))


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "avg_pool": _pool(0.0, lambda values, counted: np.asarray(values.sum(axis=0) / counted.sum(axis=0))),
    "conv": conv,
    "conv_transpose": _conv_transpose,
    "einsum": lambda values, equation: np.einsum(equation, *values),
    "l2_pool": _pool(0.0, lambda values, _: np.sqrt(np.square(values).sum(axis=0))),
    "linear": _linear,
    "matmul": _matmul,
    "max_pool": _pool(-np.inf, lambda values, _: values.max(axis=0)),
}
