# SPDX-License-Identifier: Apache-2.0
"""Kernels for Cortex-M with MVE (Helium): 16 bytes at once.

Constants of whole blocks of 16 channels lie in the order in which two narrowings make channel order of it.
"""

from __future__ import annotations

import numpy as np

from arenite_codegen.variants.base import Array, Parameters, Variant, per_channel

__all__ = ["ADD", "CONV_2D", "DEPTHWISE_CONV_2D", "LOOKUP"]

BLOCK = 16  # as ARENITE_MVE_BLOCK
HALF = 1 << 30  # multiplier of one half
MAX_TAPS = 49  # as ARENITE_MVE_TAPS
MAX_COPIED_BYTES, MAX_RUNS, MAX_WHOLE_RUNS = 400, 21, 27  # as ARENITE_MVE_COPY, _RUNS, _WHOLE_RUNS
MAX_RESIDENT_BYTES = 128  # as ARENITE_MVE_RESIDENT_ALONE
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


def _by_channel(parameters: Parameters) -> dict[str, Array | int]:
    """Bias, multiplier and shift in that order, with zeros up to a multiple of 4."""
    channels = len(parameters["weights"])
    order, rest = _order(channels), (0, -channels % 4)
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


def _refuse_depthwise(parameters: Parameters) -> str:
    if parameters["depth_multiplier"] != 1:
        return f"its channel multiplier is {parameters['depth_multiplier']}"
    taps = int(parameters["kernel_h"] * parameters["kernel_w"])
    if taps > MAX_TAPS:
        return f"its window has {taps} taps, more than {MAX_TAPS}"
    if parameters["weights"].min() == -128:
        return "a weight is -128"
    return ""


def _pack_depthwise(parameters: Parameters) -> Parameters:
    """Everything in blocks of channels, in the order of use; few channels are repeated until a block is full."""
    channels = len(parameters["weights"])
    shift = per_channel(parameters, "shift", channels).astype(np.int8)
    repeats = BLOCK // channels if BLOCK % channels == 0 else 1
    rest = (0, -channels * repeats % BLOCK)

    def in_order(values: Array) -> Array:
        """[blocks, BLOCK], as ARENITE_MVE_CHANNEL says."""
        padded = np.pad(np.tile(values, repeats), rest)
        ordered: Array = padded[_order(len(padded))].reshape(-1, BLOCK)
        return ordered

    def as_bytes(values: Array) -> Array:
        return np.ascontiguousarray(values, "<i4").view(np.int8)

    bias = as_bytes(in_order(parameters["bias"]))
    weights = np.tile(parameters["weights"].reshape(channels, -1), (repeats, 1))
    weights = np.pad(weights, (rest, (0, 0)))
    weights = weights.reshape(-1, BLOCK, weights.shape[1]).swapaxes(1, 2)
    multiplier = as_bytes(in_order(per_channel(parameters, "multiplier", channels)))
    scales = np.concatenate([multiplier.reshape(-1, 4, 16), in_order(shift).reshape(-1, 4, 4)], axis=2)
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
LOOKUP = Variant("lookup_s8", "mve", "lookup_s8_mve", (), _ARCHITECTURE, _FEATURE)
