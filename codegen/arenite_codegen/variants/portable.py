# SPDX-License-Identifier: Apache-2.0
"""The plain C of the kernels that have other variants too, and how its weights lie."""

from __future__ import annotations

import numpy as np

from arenite_codegen.variants.base import PORTABLE, Array, Parameters, Variant

__all__ = ["ADD", "CONV_2D", "CURVE_F32", "DEPTHWISE_CONV_2D", "LOG_SOFTMAX_F32", "LOOKUP", "SOFTMAX_F32"]

# Output channels whose weights conv_2d_s8 reads interleaved; as ARENITE_CONV_2D_S8_LANES.
CONV_LANES = 4


def _interleaved(weights: Array) -> Array:
    """Weights [out_c, taps...] as [out_c/4][taps][4], the channels left over as they are."""
    flat = weights.reshape(weights.shape[0], -1)
    whole = flat.shape[0] // CONV_LANES * CONV_LANES
    blocks = flat[:whole].reshape(-1, CONV_LANES, flat.shape[1]).transpose(0, 2, 1)
    packed: Array = np.concatenate((blocks.ravel(), flat[whole:].ravel()))
    return packed


def _pack_conv(parameters: Parameters) -> Parameters:
    return {**parameters, "weights": _interleaved(parameters["weights"])}


def _pack_depthwise(parameters: Parameters) -> Parameters:
    return {**parameters, "weights": np.moveaxis(parameters["weights"], 0, -1)}


ADD = Variant("add_s8", PORTABLE, "add_s8")
CONV_2D = Variant("conv_2d_s8", PORTABLE, "conv_2d_s8", pack=_pack_conv)
CURVE_F32 = Variant("curve_f32", PORTABLE, "curve_f32", ("real",))
SOFTMAX_F32 = Variant("softmax_f32", PORTABLE, "softmax_f32", ("real",))
DEPTHWISE_CONV_2D = Variant("depthwise_conv_2d_s8", PORTABLE, "depthwise_conv_2d_s8", pack=_pack_depthwise)
LOG_SOFTMAX_F32 = Variant("log_softmax_f32", PORTABLE, "log_softmax_f32", ("real",))
LOOKUP = Variant("lookup_s8", PORTABLE, "lookup_s8")
