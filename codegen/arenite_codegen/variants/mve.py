# SPDX-License-Identifier: Apache-2.0
"""Kernels for Cortex-M with MVE (Helium): 16 bytes at once.

Constants of whole blocks of 16 channels lie in the order in which two narrowings make channel order of it.
"""

from __future__ import annotations

import numpy as np

from arenite_codegen.variants.base import Array, Parameters, Variant, per_channel

__all__ = ["ADD", "CONV_2D", "CONV_2D_PIXEL", "DEPTHWISE_CONV_2D", "DEPTHWISE_CONV_2D_COLUMN", "LOOKUP"]

BLOCK = 16  # as ARENITE_MVE_BLOCK
HALF = 1 << 30  # multiplier of one half
MAX_TAPS = 49  # as ARENITE_MVE_TAPS
MAX_COPIED_BYTES, MAX_RUNS, MAX_WHOLE_RUNS = 400, 21, 27  # as ARENITE_MVE_COPY, _RUNS, _WHOLE_RUNS
MAX_RESIDENT_BYTES = 128  # as ARENITE_MVE_RESIDENT_ALONE
MAX_COLUMN_TAPS = 10  # as ARENITE_MVE_COLUMN_TAPS
MAX_PIXEL_BYTES = 128  # as ARENITE_MVE_PIXEL_BYTES
POSITIVE, SIGNED, ANY = 1, 2, 3  # as arenite_mve_mode_t
_ARCHITECTURE, _FEATURE = "cortex-m", "mve"


def _order(channels: int) -> Array:
    """The channel at each position, as ARENITE_MVE_CHANNEL says; those of no whole block stay where they are."""
    order = np.arange(channels)
    whole = channels // BLOCK * BLOCK
    order[:whole] = order[:whole].reshape(-1, 4, 4).swapaxes(1, 2).ravel()
    return order


def _mode(parameters: Parameters) -> int:
    """How sums become bytes, as arenite_mve_mode_t says."""
    if np.max(parameters["shift"]) >= 0:
        return ANY
    return POSITIVE if parameters["act_min"] >= parameters["out_zero_point"] else SIGNED


def _by_channel(parameters: Parameters, in_order: bool = True) -> dict[str, Array | int]:
    """Bias, multiplier and shift in that order or as they are, with zeros up to a multiple of 4."""
    channels = len(parameters["weights"])
    order, rest = _order(channels) if in_order else np.arange(channels), (0, -channels % 4)
    return {
        "bias": np.pad(parameters["bias"][order], rest),
        "multiplier": np.pad(per_channel(parameters, "multiplier", channels)[order], rest),
        "shift": np.pad(per_channel(parameters, "shift", channels)[order], rest),
        "per_channel": _mode(parameters),
    }


def _window_bytes(parameters: Parameters) -> int:
    return int(parameters["kernel_h"] * parameters["kernel_w"] * parameters["in_c"])


def _refuse_conv(parameters: Parameters) -> str:
    taps, count = int(parameters["kernel_h"] * parameters["kernel_w"]), _window_bytes(parameters)
    runs = MAX_RUNS if parameters["in_c"] % 32 else MAX_WHOLE_RUNS
    if count > MAX_COPIED_BYTES and taps > runs:
        return f"its window has {taps} taps, more than {runs}, and {count} bytes, more than {MAX_COPIED_BYTES}"
    return ""


def _pack_conv(parameters: Parameters) -> Parameters:
    weights = parameters["weights"].reshape(len(parameters["weights"]), -1)
    window_bytes = _window_bytes(parameters)
    zeros = -window_bytes % BLOCK if window_bytes <= MAX_RESIDENT_BYTES else 0
    flat = np.pad(weights[_order(len(weights))], ((0, -len(weights) % 4), (0, zeros))).ravel()
    if window_bytes > MAX_COPIED_BYTES:
        outside = np.full(parameters["in_c"], parameters["in_zero_point"], np.int8)
        flat = np.concatenate([flat, outside])
    return {**parameters, "weights": flat, **_by_channel(parameters)}


def _refuse_without_saturation(parameters: Parameters) -> str:
    """Why the narrowing to bytes is not all that a layer's sums need, or an empty text."""
    if _mode(parameters) == ANY:
        return "a multiplier is 1/2 or more"
    if (parameters["act_min"], parameters["act_max"]) != (-128, 127):
        return "its activation clamps to less than all bytes"
    return ""


def _refuse_pixel(parameters: Parameters) -> str:
    if (parameters["out_w"], parameters["pad_left"], _window_bytes(parameters)) != (1, 0, parameters["in_c"]):
        return "its rows have more than one pixel, or its window has"
    if parameters["in_c"] > MAX_PIXEL_BYTES:
        return f"its pixel has {parameters['in_c']} channels, more than {MAX_PIXEL_BYTES}"
    return _refuse_without_saturation(parameters)


def _pack_pixel(parameters: Parameters) -> Parameters:
    """Four channels by turns of 16 bytes."""
    weights = parameters["weights"].reshape(len(parameters["weights"]), -1)
    padded = np.pad(weights, ((0, -len(weights) % 4), (0, -weights.shape[1] % BLOCK)))
    turns = padded.reshape(-1, 4, padded.shape[1] // BLOCK, BLOCK).swapaxes(1, 2)
    return {**parameters, "weights": np.ascontiguousarray(turns).ravel(), **_by_channel(parameters, in_order=False)}


def _refuse_depthwise(parameters: Parameters) -> str:
    if parameters["depth_multiplier"] != 1:
        return f"its channel multiplier is {parameters['depth_multiplier']}"
    taps = int(parameters["kernel_h"] * parameters["kernel_w"])
    if taps > MAX_TAPS:
        return f"its window has {taps} taps, more than {MAX_TAPS}"
    if parameters["weights"].min() == -128:
        return "a weight is -128"
    return ""


def _refuse_column(parameters: Parameters) -> str:
    if (parameters["out_w"], parameters["pad_left"], parameters["kernel_w"]) != (1, 0, 1):
        return "its rows have more than one pixel, or its window more than one column"
    if not 2 <= parameters["kernel_h"] <= MAX_COLUMN_TAPS:
        return f"its window has {parameters['kernel_h']} rows, not 2 to {MAX_COLUMN_TAPS}"
    if parameters["in_c"] < BLOCK:
        return f"it has {parameters['in_c']} channels, fewer than {BLOCK}"
    return _refuse_depthwise(parameters) or _refuse_without_saturation(parameters)


def _pack_column(parameters: Parameters) -> Parameters:
    """A last block that would not be full begins earlier."""
    channels = len(parameters["weights"])
    whole, rest = np.arange(channels // BLOCK * BLOCK), channels % BLOCK
    last = np.arange(channels - BLOCK, channels) if rest else whole[:0]
    return _pack_blocks(parameters, np.concatenate([whole, last]))


def _pack_depthwise(parameters: Parameters) -> Parameters:
    """Few channels are repeated until a block is full."""
    channels = len(parameters["weights"])
    repeated = np.tile(np.arange(channels), BLOCK // channels if BLOCK % channels == 0 else 1)
    return _pack_blocks(parameters, np.pad(repeated, (0, -len(repeated) % BLOCK), constant_values=-1))


def _pack_blocks(parameters: Parameters, channel_at: Array) -> Parameters:
    """Everything in blocks of channels, in the order of use.

    Args:
        channel_at: [blocks * BLOCK], -1 for zeros.
    """
    channels = len(parameters["weights"])

    def chosen(values: Array) -> Array:
        """The channels' values along the first axis."""
        taken: Array = np.pad(values, [(0, 1)] + [(0, 0)] * (values.ndim - 1))[channel_at]
        return taken

    def in_order(name: str) -> Array:
        """[blocks, BLOCK], as ARENITE_MVE_CHANNEL says."""
        values = chosen(per_channel(parameters, name, channels))
        ordered: Array = values[_order(len(values))].reshape(-1, BLOCK)
        return ordered

    def as_bytes(values: Array) -> Array:
        return np.ascontiguousarray(values, "<i4").view(np.int8)

    bias, multiplier = as_bytes(in_order("bias")), as_bytes(in_order("multiplier"))
    shift = in_order("shift").astype(np.int8)
    weights = chosen(parameters["weights"].reshape(channels, -1))
    weights = weights.reshape(-1, BLOCK, weights.shape[1]).swapaxes(1, 2)
    scales = np.concatenate([multiplier.reshape(-1, 4, 16), shift.reshape(-1, 4, 4)], axis=2)
    blocks = np.concatenate([part.reshape(len(bias), -1) for part in (bias, weights, scales)], axis=1)
    outside = np.full(channels, parameters["in_zero_point"], np.int8)
    packed = {name: value for name, value in parameters.items() if name not in ("bias", "multiplier", "shift")}
    return {**packed, "weights": np.concatenate([blocks.ravel(), outside]), "per_channel": _mode(parameters)}


def _refuse_add(parameters: Parameters) -> str:
    if parameters["a_channel_step"] != 1 or parameters["b_channel_step"] != 1:
        return "a side is broadcast over channels"
    sides = [(parameters[f"{side}_multiplier"], parameters[f"{side}_right_shift"]) for side in "ab"]
    if (HALF, 0) not in sides or any(shift == 0 and multiplier not in (0, HALF) for multiplier, shift in sides):
        return "no side is just halved"
    if parameters["out_right_shift"] < 1:
        return "its sum is scaled up"
    return ""


ADD = Variant("add_s8", "mve", "add_s8_mve", (), _ARCHITECTURE, _FEATURE, _refuse_add)
CONV_2D = Variant(
    "conv_2d_s8", "mve", "conv_2d_s8_mve", ("conv_2d_mve_tile",), _ARCHITECTURE, _FEATURE, _refuse_conv, _pack_conv
)
CONV_2D_PIXEL = Variant(
    "conv_2d_s8", "mve-pixel", "conv_2d_s8_mve_pixel", (), _ARCHITECTURE, _FEATURE, _refuse_pixel, _pack_pixel
)
DEPTHWISE_CONV_2D = Variant(
    "depthwise_conv_2d_s8",
    "mve",
    "depthwise_conv_2d_s8_mve",
    (),
    _ARCHITECTURE,
    _FEATURE,
    _refuse_depthwise,
    _pack_depthwise,
)
DEPTHWISE_CONV_2D_COLUMN = Variant(
    "depthwise_conv_2d_s8",
    "mve-column",
    "depthwise_conv_2d_s8_mve_column",
    (),
    _ARCHITECTURE,
    _FEATURE,
    _refuse_column,
    _pack_column,
)
LOOKUP = Variant("lookup_s8", "mve", "lookup_s8_mve", (), _ARCHITECTURE, _FEATURE)
