# SPDX-License-Identifier: Apache-2.0
"""Kernels for computers: x86-64 with what its processor has at run time, AArch64.

They compute 16 channels at once and 4 input bytes in each. One packing serves every level of instructions.
"""

from __future__ import annotations

import numpy as np

from arenite_codegen.variants.base import Array, Parameters, Variant, per_channel
from arenite_codegen.variants.linear_addition import linear_addition

__all__ = ["ADD", "ADD_LINEAR", "CONV_2D", "CONV_2D_TAPS", "DEPTHWISE_CONV_2D"]

BLOCK, WORD = 16, 4  # as ARENITE_BLOCK, ARENITE_WORD
MAX_TAPS = 128  # as ARENITE_HOST_TAPS
MAX_RUNS, MAX_COPIED_BYTES = 64, 32768  # as ARENITE_HOST_RUNS, ARENITE_HOST_COPIES
TILE_PIXELS = 8  # as ARENITE_LARGE_TILE_PIXELS
MAX_HALVES_SHIFT = 24  # as ARENITE_MAX_HALVES_SHIFT
MAX_ROWS = 12  # as ARENITE_HOST_ROWS
_ALIGNMENT_BYTES = 64
_ADD_SOURCES = ("add_run", "add_run_avx2", "add_run_avx512", "host_isa")
_ADD_LINEAR_SOURCES = ("add_linear_avx2", "add_linear_avx512", "host_isa")
_CONV_SOURCES = (
    "conv_2d_row_avx512",
    "conv_2d_tile",
    "conv_2d_tile_avx2",
    "conv_2d_tile_avxvnni",
    "conv_2d_tile_avx512",
    "conv_2d_tile_neon",
    "host_isa",
)
_DEPTHWISE_SOURCES = ("depthwise_row", "depthwise_row_avx2", "depthwise_row_avx512", "depthwise_row_neon", "host_isa")


def _up_to(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def _in_blocks(weights: Array) -> Array:
    """Weights [out_c, bytes] as [blocks][words][BLOCK][WORD], zeros where there is none."""
    out_c, count = weights.shape
    padded = np.zeros((_up_to(out_c, BLOCK), _up_to(count, WORD)), np.int8)
    padded[:out_c, :count] = weights
    return np.ascontiguousarray(padded.reshape(-1, BLOCK, padded.shape[1] // WORD, WORD).swapaxes(1, 2))


def _by_block(parameters: Parameters) -> dict[str, Array | int]:
    """Bias, multiplier and shift of every channel of whole blocks, as arenite_host_blocks.h says."""
    weights, bias = parameters["weights"], parameters["bias"]
    out_c = weights.shape[0]
    sums = weights.reshape(out_c, -1).sum(axis=1, dtype=np.int64)
    moved = (bias.astype(np.int64) - 128 * sums).astype(np.uint64).astype(np.uint32).view(np.int32)
    rest = (0, _up_to(out_c, BLOCK) - out_c)
    multiplier = np.pad(per_channel(parameters, "multiplier", out_c), rest)
    # Channels that are not there are shifted as most are: their block is requantised the fast way.
    shift = np.pad(per_channel(parameters, "shift", out_c), rest, constant_values=-1)
    constants = _rounding_constants(shift.astype(np.int64))
    halves = _constants_of_halves(shift.astype(np.int64), int(parameters["out_zero_point"]))
    return {
        "bias": np.concatenate([np.pad(bias, rest), np.pad(moved, rest)]),
        "multiplier": np.concatenate([multiplier, constants.view(np.int32), halves]),
        "shift": shift,
        "per_channel": 1,
    }


def _rounding_constants(shift: Array) -> Array:
    """int64[blocks][rounding, right, sign][even, odd][BLOCK / 2] for a requantisation in one shift, flat."""
    right = np.maximum(0, -shift)
    rounding = (1 << 30) + np.where(right > 0, np.int64(1) << (30 + right), 0)
    sign = np.where(right > 0, np.int64(1) << 31, 0)
    table = np.stack([rounding, 31 + right, sign]).astype(np.int64)
    by_block: Array = table.reshape(3, -1, BLOCK // 2, 2).transpose(1, 0, 3, 2)
    return np.ascontiguousarray(by_block).ravel()


def _constants_of_halves(shift: Array, zero_point: int) -> Array:
    """int32 of int64[blocks][even, odd][BLOCK / 2] and int32[BLOCK], for a shift of the products' high halves, flat.

    Means something for blocks whose channels are all shifted right by 1 .. MAX_HALVES_SHIFT.
    """
    right = np.clip(-shift, 1, MAX_HALVES_SHIFT)
    rounding = (1 << 30) + (np.int64(1) << (30 + right)) + (np.int64(zero_point) << (31 + right))
    by_block = rounding.reshape(-1, BLOCK // 2, 2).swapaxes(1, 2).reshape(-1, BLOCK)
    words = np.ascontiguousarray(by_block).view(np.int32)
    joined: Array = np.concatenate([words, (right - 1).astype(np.int32).reshape(-1, BLOCK)], axis=1)
    return joined.ravel()


def _taps(parameters: Parameters) -> int:
    return int(parameters["kernel_h"] * parameters["kernel_w"])


def _refuse_conv(parameters: Parameters) -> str:
    kernel_h, kernel_w, in_c = (int(parameters[name]) for name in ("kernel_h", "kernel_w", "in_c"))
    if kernel_w > 1 and parameters["dilation_w"] > 1:
        return "its window is dilated"
    if kernel_h > MAX_RUNS:
        return f"its window has {kernel_h} rows, more than {MAX_RUNS}"
    pixels = (min(TILE_PIXELS, parameters["out_w"]) - 1) * parameters["stride_w"] + kernel_w
    copied = kernel_h * (pixels * in_c + WORD)
    return f"its windows have {copied} bytes, more than {MAX_COPIED_BYTES}" if copied > MAX_COPIED_BYTES else ""


def _refuse_taps(parameters: Parameters) -> str:
    if parameters["in_c"] % WORD:
        return f"its {parameters['in_c']} input channels do not fill words of {WORD} bytes"
    if _taps(parameters) > MAX_TAPS:
        return f"its window has {_taps(parameters)} taps, more than {MAX_TAPS}"
    return ""


def _pack_conv(parameters: Parameters) -> Parameters:
    weights = parameters["weights"]
    rows = weights.reshape(*weights.shape[:2], -1)
    padded = np.pad(rows, ((0, 0), (0, 0), (0, -rows.shape[2] % WORD)))
    return {**parameters, "weights": _in_blocks(padded.reshape(len(weights), -1)), **_by_block(parameters)}


def _pack_taps(parameters: Parameters) -> Parameters:
    packed = _pack_conv(parameters)
    outside = np.full(parameters["in_c"], parameters["in_zero_point"], np.int8)
    return {**packed, "weights": np.concatenate([packed["weights"].ravel(), outside])}


def _refuse_depthwise(parameters: Parameters) -> str:
    if parameters["depth_multiplier"] != 1:
        return f"its channel multiplier is {parameters['depth_multiplier']}"
    if parameters["kernel_h"] > MAX_ROWS:
        return f"its window has {parameters['kernel_h']} rows, more than {MAX_ROWS}"
    return ""


def _pack_depthwise(parameters: Parameters) -> Parameters:
    weights = parameters["weights"]
    out_c, kernel_h, kernel_w = weights.shape
    columns = np.zeros((out_c, kernel_w, _up_to(kernel_h, WORD)), np.int8)
    columns[:, :, :kernel_h] = weights.swapaxes(1, 2)
    packed = _in_blocks(columns.reshape(out_c, -1))
    outside = np.full(_up_to(out_c, BLOCK), parameters["in_zero_point"], np.int8)
    return {**parameters, "weights": np.concatenate([packed.ravel(), outside]), **_by_block(parameters)}


def _refuse_add(parameters: Parameters) -> str:
    if parameters["a_channel_step"] != 1 or parameters["b_channel_step"] != 1:
        return "a side is broadcast over channels"
    return ""


def _refuse_add_linear(parameters: Parameters) -> str:
    refusal = _refuse_add(parameters)
    return refusal or ("" if linear_addition(parameters) else "no linear function was found that gives its bytes")


def _pack_add_linear(parameters: Parameters) -> Parameters:
    linear = linear_addition(parameters)
    assert linear is not None
    return {
        **parameters,
        "a_multiplier": linear.a_factor,
        "b_multiplier": linear.b_factor,
        "out_multiplier": linear.offset,
        "out_right_shift": linear.right_shift,
    }


ADD = Variant("add_s8", "host", "add_s8_host", _ADD_SOURCES, "host", "", _refuse_add)
ADD_LINEAR = Variant(
    "add_s8",
    "host-linear",
    "add_s8_host_linear",
    _ADD_LINEAR_SOURCES,
    "host",
    "",
    _refuse_add_linear,
    _pack_add_linear,
)
CONV_2D = Variant(
    "conv_2d_s8", "host", "conv_2d_s8_host", _CONV_SOURCES, "host", "", _refuse_conv, _pack_conv, _ALIGNMENT_BYTES
)
CONV_2D_TAPS = Variant(
    "conv_2d_s8",
    "host-taps",
    "conv_2d_s8_host_taps",
    _CONV_SOURCES,
    "host",
    "",
    _refuse_taps,
    _pack_taps,
    _ALIGNMENT_BYTES,
)
DEPTHWISE_CONV_2D = Variant(
    "depthwise_conv_2d_s8",
    "host",
    "depthwise_conv_2d_s8_host",
    _DEPTHWISE_SOURCES,
    "host",
    "",
    _refuse_depthwise,
    _pack_depthwise,
    _ALIGNMENT_BYTES,
)
