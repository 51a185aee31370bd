# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED: a 1×1 convolution over rows of one pixel, with the reference's own way to form the multiplier."""

from __future__ import annotations

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import (
    Array,
    Context,
    channel_multipliers,
    mac_parameters,
    multiplier,
    quantisation,
    refuse,
    weight_scales,
)
from arenite_codegen.operators.mac_any import MAC_DTYPES, is_plain, lower_any
from arenite_codegen.uint8 import FROM_UINT8

__all__ = ["lower"]


def lower(context: Context) -> Layer:
    """Each run of `accumulation depth` input bytes is a row of its own, whatever the input's shape."""
    weights = context.constant(1)
    if weights.ndim != 2 or int(context.operator.attributes["weights_format"]) != 0:
        raise refuse(context, "its weights are not a plain matrix")
    out_c, depth = weights.shape
    source, output = context.input(0), context.output
    item_elements = source.elements // context.batch
    rows = item_elements // depth
    if rows * depth != item_elements or output.elements != context.batch * rows * out_c:
        raise refuse(context, f"{source} does not divide into rows of {depth}, or {output} into rows of {out_c}")
    if not is_plain(source, context.input(1)) or context.operator.attributes.get(FROM_UINT8):
        return _lower_any(context, weights, rows)
    return context.build.layer(
        context,
        kernel="conv_2d_s8",
        reads=(Read(value=context.build.value(source), rows=rows, row_bytes=depth),),
        out_rows=rows,
        macs=rows * weights.size,
        parameters={
            "weights": weights.reshape(out_c, 1, 1, depth),
            **mac_parameters(context, source, weights, _multipliers(context, out_c)),
            "in_w": 1,
            "in_c": depth,
            "out_w": 1,
            "out_c": out_c,
            "kernel_h": 1,
            "kernel_w": 1,
            "stride_w": 1,
            "dilation_w": 1,
            "pad_left": 0,
        },
    )


def _lower_any(context: Context, weights: Array, rows: int) -> Layer:
    """The same with int16 activations, weights that have a zero point, or uint8, which LiteRT rounds once."""
    source = context.input(0)
    out_c, depth = weights.shape
    kernel = "conv_2d" if source.dtype == "int16" else "conv_2d_any"
    read = Read(context.build.value(source), rows, depth * source.element_bytes)
    geometry = dict.fromkeys(("in_w", "out_w", "kernel_h", "kernel_w", "stride_w"), 1)
    geometry |= {"in_c": depth, "group_in": depth, "group_out": out_c, "pad_left": 0}
    by_channel, scales = weights.reshape(out_c, 1, 1, depth), _multipliers(context, out_c)
    return lower_any(
        context,
        kernel,
        source,
        read,
        by_channel,
        scales,
        geometry,
        context.input(1),
        macs=rows * weights.size,
        out_rows=rows,
        rounds_once=bool(context.operator.attributes.get(FROM_UINT8)),
    )


def _multipliers(context: Context, channels: int) -> tuple[Array, Array]:
    source, weights, output = context.input(0), context.input(1), context.output
    scales = weight_scales(context, weights, channels)
    if len(scales) > 1:
        return channel_multipliers(context, source, weights, output, channels)
    # Source: GetQuantizedConvolutionMultipler: here the product of the scales is a float32, unlike in a convolution.
    product = float(quantisation(context, source, MAC_DTYPES).scale * np.float32(scales[0]))
    found = multiplier(context, product / float(quantisation(context, output, MAC_DTYPES).scale), "output")
    return np.array([found[0]], np.int32), np.array([found[1]], np.int8)
