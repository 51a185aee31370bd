# SPDX-License-Identifier: Apache-2.0
"""Quantised values and the `constexpr_…` operators that hold compressed weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.coreml.program import unpack

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]
_RANGES = {"int8": (-128, 127), "uint8": (0, 255)}


def _along(parameter: Array | None, axis: int | None, rank: int) -> Any:
    """A scale or zero point, one for each index of `axis` or one for all, ready to broadcast."""
    if parameter is None:
        return np.float32(0)
    if parameter.ndim == 0:
        return np.float32(parameter)
    shape = [1] * rank
    shape[0 if axis is None else int(axis)] = -1
    return parameter.astype(np.float32).reshape(shape)


def quantize(
    input: Array, scale: Array, output_dtype: str, zero_point: Array | None = None, axis: Array | None = None
) -> Array:
    """clamp(round_half_to_even(input / scale) + zero_point)."""
    place = None if axis is None else int(axis)
    steps = np.rint(input / _along(scale, place, input.ndim)) + _along(zero_point, place, input.ndim)
    return np.asarray(np.clip(steps, *_RANGES[output_dtype]), output_dtype)


def dequantize(input: Array, scale: Array, zero_point: Array | None = None, axis: Array | None = None) -> Array:
    """scale × (input - zero_point)."""
    place = None if axis is None else int(axis)
    steps = input.astype(np.float32) - _along(zero_point, place, input.ndim)
    return np.asarray(_along(scale, place, input.ndim) * steps)


def _affine(quantized_data: Array, zero_point: Array, scale: Array, axis: Array) -> Array:
    return dequantize(quantized_data, scale, zero_point, axis)


def _looked_up(indices: Array, lut: Array, shape: Array) -> Array:
    """Packed indices into a table of 2^bits values."""
    bits = len(lut).bit_length() - 1
    return lut[unpack(indices.tobytes(), bits, int(np.prod(shape)))].reshape(shape)


def _sparse(nonzero_data: Array, mask: Array, shape: Array) -> Array:
    dense = np.zeros(int(np.prod(shape)), nonzero_data.dtype)
    dense[unpack(mask.tobytes(), 1, dense.size).astype(bool)] = nonzero_data
    return dense.reshape(shape)


def _blockwise(data: Array, scale: Array, offset: Array | None = None) -> Array:
    """scale × (data - offset); a block of `data` shares one scale, along every axis."""
    steps = data.astype(np.float32) - (0 if offset is None else _spread(offset.astype(np.float32), data.shape))
    return np.asarray(_spread(scale.astype(np.float32), data.shape) * steps)


def _spread(parameter: Array, shape: tuple[int, ...]) -> Array:
    for axis, extent in enumerate(shape):
        parameter = parameter.repeat(extent // parameter.shape[axis], axis)
    return parameter


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "const": lambda val: val,
    "constexpr_affine_dequantize": _affine,
    "constexpr_blockwise_shift_scale": _blockwise,
    "constexpr_cast": lambda source_val, output_dtype: source_val,
    "constexpr_lut_to_dense": _looked_up,
    "constexpr_sparse_to_dense": _sparse,
    "dequantize": dequantize,
    "quantize": quantize,
}
