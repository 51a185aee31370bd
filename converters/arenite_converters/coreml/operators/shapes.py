# SPDX-License-Identifier: Apache-2.0
"""Operators that move or choose values, resize included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]


def _pad(x: Array, pad: Array, mode: str = "constant", constant_val: Any = 0.0) -> Array:
    """`pad` counts from the last axes."""
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + [(int(a), int(b)) for a, b in pad.reshape(-1, 2)]
    if mode == "constant":
        return np.pad(x, widths, constant_values=constant_val)
    return np.pad(x, widths, mode="edge" if mode == "replicate" else "reflect")


def _slice(
    x: Array,
    begin: Array,
    end: Array,
    stride: Array | None = None,
    begin_mask: Array | None = None,
    end_mask: Array | None = None,
    squeeze_mask: Array | None = None,
) -> Array:
    cut: list[Any] = []
    for axis in range(x.ndim):
        if squeeze_mask is not None and squeeze_mask[axis]:
            cut.append(int(begin[axis]))
            continue
        first = None if begin_mask is not None and begin_mask[axis] else int(begin[axis])
        last = None if end_mask is not None and end_mask[axis] else int(end[axis])
        cut.append(slice(first, last, 1 if stride is None else int(stride[axis])))
    return np.asarray(x[tuple(cut)])


def _slice_by_size(x: Array, begin: Array, size: Array) -> Array:
    return x[tuple(slice(int(b), None if s == -1 else int(b + s)) for b, s in zip(begin, size, strict=True))]


def _split(x: Array, axis: Array, num_splits: Any = None, split_sizes: Array | None = None) -> tuple[Array, ...]:
    parts: Any = int(num_splits) if split_sizes is None else np.cumsum(split_sizes)[:-1]
    return tuple(np.split(x, parts, int(axis)))


def _reshape(x: Array, shape: Array) -> Array:
    # 0 keeps the extent of the input's axis.
    return x.reshape([x.shape[i] if extent == 0 else int(extent) for i, extent in enumerate(shape)])


def _squeeze(x: Array, axes: Array | None = None) -> Array:
    return x.squeeze(None if axes is None else tuple(np.atleast_1d(axes).tolist()))


def _gather(x: Array, indices: Array, axis: Any = 0, batch_dims: Any = 0, validate_indices: Any = False) -> Array:
    if int(batch_dims):
        raise NotImplementedError("batch_dims")
    return np.take(x, indices, axis=int(axis))


def _topk(
    x: Array,
    k: Any = 1,
    axis: Any = -1,
    ascending: Any = False,
    sort: Any = True,
    return_indices: Any = True,
    output_indices_dtype: str = "int32",
) -> tuple[Array, ...]:
    order = np.argsort(x if ascending else -x, axis=int(axis), kind="stable")
    chosen = np.take(order, np.arange(int(k)), axis=int(axis))
    return (np.take_along_axis(x, chosen, int(axis)), chosen)[: 2 if return_indices else 1]


def _cumsum(x: Array, axis: Any = 0, exclusive: Any = False, reverse: Any = False) -> Array:
    y = np.flip(x, int(axis)) if reverse else x
    total = np.cumsum(y, axis=int(axis)) - (y if exclusive else 0)
    return np.asarray(np.flip(total, int(axis)) if reverse else total)


def _depth_to_space(x: Array, block_size: Any) -> Array:
    n, c, h, w = x.shape
    b = int(block_size)
    y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return np.asarray(y.reshape(n, c // b**2, h * b, w * b))


def _space_to_depth(x: Array, block_size: Any) -> Array:
    n, c, h, w = x.shape
    b = int(block_size)
    y = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return np.asarray(y.reshape(n, c * b**2, h // b, w // b))


def _pixel_shuffle(x: Array, upscale_factor: Any) -> Array:
    n, c, h, w = x.shape
    b = int(upscale_factor)
    y = x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return np.asarray(y.reshape(n, c // b**2, h * b, w * b))


def _nearest(x: Array, scale_factor_height: Any = 1, scale_factor_width: Any = 1) -> Array:
    for axis, factor in ((-2, float(scale_factor_height)), (-1, float(scale_factor_width))):
        places = np.floor(np.arange(int(x.shape[axis] * factor)) / factor).astype(int)
        x = np.take(x, places, axis)
    return x


def _resize_nearest(x: Array, target_size_height: Any, target_size_width: Any) -> Array:
    return _nearest(x, int(target_size_height) / x.shape[-2], int(target_size_width) / x.shape[-1])


def _upsample_bilinear(
    x: Array,
    scale_factor_height: Any = 1,
    scale_factor_width: Any = 1,
    align_corners: Any = True,
    half_pixel_centers: Any = None,
) -> Array:
    half = not align_corners if half_pixel_centers is None else bool(half_pixel_centers)
    mode = "STRICT_ALIGN_CORNERS" if align_corners else "UNALIGN_CORNERS" if half else "DEFAULT"
    sizes = (int(x.shape[-2] * float(scale_factor_height)), int(x.shape[-1] * float(scale_factor_width)))
    return _resize_bilinear(x, *sizes, mode)


def _resize_bilinear(
    x: Array, target_size_height: Any, target_size_width: Any, sampling_mode: str = "DEFAULT"
) -> Array:
    for axis, size in ((-2, int(target_size_height)), (-1, int(target_size_width))):
        places = _places(x.shape[axis], size, sampling_mode)
        low = np.floor(places).astype(int)
        shape = [1] * x.ndim
        shape[axis] = size
        part = (places - low).astype(np.float32).reshape(shape)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x


def _places(extent: int, size: int, mode: str) -> Array:
    """Where in the input each output lies."""
    steps = np.arange(size, dtype=np.float64)
    if mode in ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS"):
        return steps * ((extent - 1) / (size - 1) if size > 1 else 0)
    if mode in ("UNALIGN_CORNERS", "HALF_PIXEL"):
        return np.clip((steps + 0.5) * extent / size - 0.5, 0, extent - 1)
    if mode == "DEFAULT":
        return steps * extent / size
    raise NotImplementedError(f"sampling_mode {mode}")


def _classify(probabilities: Array, classes: Any) -> tuple[Any, Array]:
    """The best class and, as Core ML's dictionary has no order, the scores in the order of `classes`."""
    return classes[int(probabilities.argmax())], probabilities.reshape(-1)


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "classify": _classify,
    "concat": lambda values, axis, interleave=False: np.concatenate(values, int(axis)),
    "cumsum": _cumsum,
    "depth_to_space": _depth_to_space,
    "expand_dims": lambda x, axes: np.expand_dims(x, tuple(np.atleast_1d(axes).tolist())),
    "fill": lambda shape, value: np.full(shape, value),
    "gather": _gather,
    "identity": lambda x: x,
    "pad": _pad,
    "pixel_shuffle": _pixel_shuffle,
    "reshape": _reshape,
    "resize_bilinear": _resize_bilinear,
    "resize_nearest_neighbor": _resize_nearest,
    "reverse": lambda x, axes=None: np.flip(x, None if axes is None else tuple(np.atleast_1d(axes).tolist())),
    "shape": lambda x: np.array(x.shape, np.int32),
    "slice_by_index": _slice,
    "slice_by_size": _slice_by_size,
    "space_to_depth": _space_to_depth,
    "split": _split,
    "squeeze": _squeeze,
    "stack": lambda values, axis: np.stack(values, int(axis)),
    "tile": lambda x, reps: np.tile(x, reps),
    "topk": _topk,
    "transpose": lambda x, perm: x.transpose(perm),
    "upsample_bilinear": _upsample_bilinear,
    "upsample_nearest_neighbor": _nearest,
}
