# SPDX-License-Identifier: Apache-2.0
"""Kernels for Cortex-M with the DSP extension: M4, M7, M33 and later.

Two channels' weights are mixed into one int16, so that each word of weights is unpacked once instead of twice. The
kernels so rely on bounds of the sums, which are known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from arenite_codegen.rounding import multiply_by_quantised_multiplier, wrap_int32
from arenite_codegen.variants.base import Array, Parameters, Variant, as_they_are, never, per_channel

__all__ = ["ADD", "CONV_2D", "CONV_2D_ROWS", "DEPTHWISE_CONV_2D", "DEPTHWISE_CONV_2D_TAPS"]

MAX_TAPS = 160  # as ARENITE_DSP_TAPS
MAX_PIECES = 64  # as ARENITE_DSP_PIECES
MAX_DEPTHWISE_TAPS = 64  # as ARENITE_DSP_DEPTHWISE_TAPS
# Of 2^23 values that the upper sum of a mixed pair can have, and of the 31 bits of twice an accumulator.
_MIXED_LIMIT, _SUM_LIMIT = 1 << 23, 1 << 30
_MAX_SHIFT = 21
_ORDER = [0, 2, 1, 3]


def _refuse_sums(parameters: Parameters) -> str:
    """Why the sums of a layer are beyond what mixed weights, or the requantisation, can hold."""
    weights, *_ = _live(parameters)
    reach = 128 * np.abs(weights.astype(np.int64)).sum(axis=1)
    if (weights == -128).any():
        return "a weight is -128"
    if (reach >= _MIXED_LIMIT).any():
        return f"its sums reach {int(reach.max())}, more than {_MIXED_LIMIT}"
    return _refuse_scales(parameters)


def _refuse_scales(parameters: Parameters) -> str:
    """Why the kernels cannot requantise the sums of a layer."""
    weights, bias, _, shift = _live(parameters)
    reach = 128 * np.abs(weights.astype(np.int64)).sum(axis=1)
    if (reach + np.abs(bias) >= _SUM_LIMIT).any():
        return f"its sums with their bias reach 2^{_SUM_LIMIT.bit_length() - 1}"
    if (shift > -1).any():
        return "a multiplier is 1/2 or more"
    if (shift < -_MAX_SHIFT).any():
        return f"a multiplier is below 2^-{_MAX_SHIFT + 1}"
    return ""


def _live(parameters: Parameters) -> tuple[Array, Array, Array, Array]:
    """Weights [out_c, taps], bias, multiplier and shift, with simple ones for channels that never change."""
    out_c = len(parameters["weights"])
    weights = parameters["weights"].reshape(out_c, -1).copy()
    bias = parameters["bias"].astype(np.int64)
    multiplier = per_channel(parameters, "multiplier", out_c).astype(np.int64)
    shift = per_channel(parameters, "shift", out_c).astype(np.int64)
    reach_low, reach_high = _reach(weights)
    low, high = (_bytes(bias + reach, multiplier, shift, parameters) for reach in (reach_low, reach_high))
    # Sums that wrap around are not in order.
    left = np.maximum(shift, 0)
    fits = ((bias + reach_low) << left >= -(1 << 31)) & ((bias + reach_high) << left < 1 << 31)
    constant = (low == high) & fits
    # A sum of 4 times the distance from the zero point, halved by the multiplier and again by the shift.
    weights[constant] = 0
    bias = np.where(constant, 4 * (low - parameters["out_zero_point"]), bias)
    return weights, bias, np.where(constant, 1 << 30, multiplier), np.where(constant, -1, shift)


def _reach(weights: Array) -> tuple[Array, Array]:
    """The least and the greatest sum of products with input bytes."""
    wide = weights.astype(np.int64)
    up, down = np.maximum(wide, 0).sum(axis=1), np.minimum(wide, 0).sum(axis=1)
    return 127 * down - 128 * up, 127 * up - 128 * down


def _bytes(acc: Array, multiplier: Array, shift: Array, parameters: Parameters) -> Array:
    """The output bytes of accumulators."""
    low, high, zero_point = (int(parameters[name]) for name in ("act_min", "act_max", "out_zero_point"))
    return np.array(
        [
            min(max(wrap_int32(multiply_by_quantised_multiplier(wrap_int32(a), m, s) + zero_point), low), high)
            for a, m, s in zip(acc.tolist(), multiplier.tolist(), shift.tolist(), strict=True)
        ],
        np.int64,
    )


def _mixed(weights: Array, channels: int) -> Array:
    """Weights [out_c, taps] as int16[out_c / channels][taps / 4][channels / 2][4], rounded up with zeros."""
    out_c, taps = weights.shape
    padded = np.pad(weights.astype(np.int16), ((0, -out_c % channels), (0, -taps % 4)))
    mixed = padded[0::2] + 256 * padded[1::2]
    fours = mixed.reshape(-1, channels // 2, mixed.shape[1] // 4, 4)[..., _ORDER]
    return np.ascontiguousarray(fours.swapaxes(1, 2))


def _channels(scales: Sequence[Array], unit: int) -> Array:
    """`arenite_dsp_channel_t` of each channel, up to a whole number of units."""
    bias, multiplier, shift = scales
    table = np.stack([2 * bias, multiplier, -shift - 1], axis=1)
    return np.pad(table, ((0, -len(table) % unit), (0, 0))).astype(np.int32)


def _refuse_conv(parameters: Parameters) -> str:
    taps = int(parameters["kernel_h"] * parameters["kernel_w"] * parameters["in_c"])
    if taps > MAX_TAPS:
        return f"its window has {taps} bytes, more than {MAX_TAPS}"
    return _refuse_sums(parameters)


def _yield_conv(parameters: Parameters) -> str:
    if parameters["out_w"] == 1 and not _refuse_rows(parameters):
        return "its rows have one pixel, which needs no copy"
    return ""


def _pack_conv(parameters: Parameters) -> Parameters:
    weights, *scales = _live(parameters)
    return {**parameters, "weights": _bytes_of(_mixed(weights, 2)), "bias": _channels(scales, 2), **_NO_SCALES}


def _bytes_of(values: Array) -> Array:
    return values.astype("<i2").view(np.int8)


_NO_SCALES = {"multiplier": 0, "shift": 0, "per_channel": 1}


def _refuse_rows(parameters: Parameters) -> str:
    pixels = parameters["kernel_h"] * parameters["kernel_w"]
    if parameters["in_c"] % 4 and pixels > 1:
        return f"its {parameters['in_c']} input channels do not fill words of 4 bytes"
    if pixels > MAX_PIECES:
        return f"its window has {pixels} pixels, more than {MAX_PIECES}"
    return _refuse_sums(parameters)


def _pack_rows(parameters: Parameters) -> Parameters:
    weights, *scales = _live(parameters)
    outside = np.full(parameters["in_c"] + -parameters["in_c"] % 4, parameters["in_zero_point"], np.int8)
    packed = np.concatenate([_bytes_of(_mixed(weights, 4)).ravel(), outside])
    return {**parameters, "weights": packed, "bias": _channels(scales, 4), **_NO_SCALES}


def _refuse_depthwise_taps(parameters: Parameters) -> str:
    if parameters["depth_multiplier"] != 1:
        return f"its channel multiplier is {parameters['depth_multiplier']}"
    taps = parameters["kernel_h"] * parameters["kernel_w"]
    if taps > MAX_DEPTHWISE_TAPS:
        return f"its window has {taps} pixels, more than {MAX_DEPTHWISE_TAPS}"
    return _refuse_scales(parameters)


def _pack_depthwise_taps(parameters: Parameters) -> Parameters:
    weights, *scales = _live(parameters)
    padded = np.pad(weights, ((0, -len(weights) % 4), (0, 0)))
    lanes = padded.reshape(-1, 4, padded.shape[1]).swapaxes(1, 2)
    outside = np.full(len(padded), parameters["in_zero_point"], np.int8)
    packed = np.concatenate([lanes.ravel(), outside])
    return {**parameters, "weights": packed, "bias": _channels(scales, 4), **_NO_SCALES}


def _refuse_depthwise(parameters: Parameters) -> str:
    if (parameters["kernel_h"], parameters["kernel_w"]) != (3, 3):
        return f"its window is {parameters['kernel_h']}x{parameters['kernel_w']}, not 3x3"
    if parameters["dilation_w"] != 1:
        return "its window is dilated"
    return _refuse_depthwise_taps(parameters)


def _pack_depthwise(parameters: Parameters) -> Parameters:
    weights, *scales = _live(parameters)
    order = [0, 1, 3, 4, 2, 7, 5, 6, 8]
    words = np.ascontiguousarray(np.pad(weights[:, order], ((0, 0), (0, 3)))).view("<i4")
    table = np.concatenate([words, _channels(scales, 1)], axis=1)
    return {**parameters, "weights": table.view(np.int8), "bias": 0, **_NO_SCALES}


def _refuse_add(parameters: Parameters) -> str:
    if parameters["a_channel_step"] != 1 or parameters["b_channel_step"] != 1:
        return "a side is broadcast over channels"
    sides = [(parameters[f"{side}_multiplier"], parameters[f"{side}_right_shift"]) for side in "ab"]
    if sum(side == (1 << 30, 0) for side in sides) != 1:
        return "its sides do not differ in their scales"
    shifts = [shift for shift in (*(n for _, n in sides), parameters["out_right_shift"]) if shift]
    if len(shifts) != 2 or max(shifts) > _MAX_SHIFT:
        return f"a shift is not within 1 to {_MAX_SHIFT}"
    return ""


def _variant(
    kernel: str,
    name: str,
    refusal: Callable[[Parameters], str],
    pack: Callable[[Parameters], Parameters] = as_they_are,
    yields: Callable[[Parameters], str] = never,
) -> Variant:
    function = f"{kernel}_{name.replace('-', '_')}"
    return Variant(kernel, name, function, ("dsp_clamp",), "cortex-m", "dsp", refusal, pack, yields=yields)


ADD = _variant("add_s8", "dsp", _refuse_add)
CONV_2D = _variant("conv_2d_s8", "dsp", _refuse_conv, _pack_conv, _yield_conv)
CONV_2D_ROWS = _variant("conv_2d_s8", "dsp-rows", _refuse_rows, _pack_rows)
DEPTHWISE_CONV_2D = _variant("depthwise_conv_2d_s8", "dsp", _refuse_depthwise, _pack_depthwise)
DEPTHWISE_CONV_2D_TAPS = _variant("depthwise_conv_2d_s8", "dsp-taps", _refuse_depthwise_taps, _pack_depthwise_taps)
