# SPDX-License-Identifier: Apache-2.0
"""Convolutions of types and shapes without a kernel of their own, over the one struct of arenite_mac_any.h."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arenite.graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, activation_range, bias_values, quantisation, refuse

__all__ = ["MAC_DTYPES", "is_plain", "lower_any"]

MAC_DTYPES = ("int8", "int16")
_BIAS_DTYPES = {"int8": ("int32",), "int16": ("int32", "int64")}
# The reference's rule for int64 sums is defined below these.
_MAX_WIDE_SHIFT = 7
_MAX_WIDE_SUM = 1 << 47
_ROUND_TWICE, _ROUND_WIDE, _ROUND_ONCE = range(3)


def is_plain(source: Tensor, weights: Tensor) -> bool:
    """Whether the int8 kernels take it: int8 activations, symmetric weights."""
    zero = weights.quantisation is None or not any(weights.quantisation.zero_points)
    return source.dtype != "int16" and zero


def lower_any(
    context: Context,
    kernel: str,
    source: Tensor,
    read: Read,
    by_channel: Array,
    scales: tuple[Array, Array],
    geometry: Mapping[str, int],
    weights: Tensor,
    bias: int = 2,
    macs: int | None = None,
    out_rows: int | None = None,
    always_wide: bool = False,
    rounds_once: bool = False,
) -> Layer:
    """A layer over `arenite_mac_any_t`.

    Args:
        kernel: Its name without the type.
        by_channel: int8 weights, output channel first.
        scales: Multipliers and shifts, one for each output channel or one for all.
        geometry: The struct's fields that say where the window goes.
        weights: The tensor of the weights.
        bias: Position of the bias among the inputs.
        always_wide: The reference sums int16 in int64 whatever the bias is.
        rounds_once: The reference does not round int8 twice.
    """
    quant_in, quant_out = (quantisation(context, t, MAC_DTYPES) for t in (source, context.output))
    if source.dtype != context.output.dtype:
        raise refuse(context, f"{source} and {context.output} differ in type")
    wide = source.dtype == "int16" and (always_wide or _has_wide_bias(context, bias))
    if source.dtype == "int16":
        if quant_in.zero_point or quant_out.zero_point:
            raise refuse(context, "int16 activations with a zero point other than 0 have no kernel")
        if scales[1].max(initial=0) > _MAX_WIDE_SHIFT:
            raise refuse(context, f"a multiplier of 2^{_MAX_WIDE_SHIFT} or more is beyond the reference's range")
    addend = bias_values(context, bias, len(by_channel), _BIAS_DTYPES[source.dtype])
    if wide:
        _check_wide_sums(context, addend, by_channel)
    act_min, act_max = activation_range(context, context.output)
    rows_out = context.rows(context.output)
    count = rows_out.height * rows_out.width * by_channel.size if macs is None else macs
    return context.build.layer(
        context,
        kernel=f"{kernel}_s16" if source.dtype == "int16" else f"{kernel}_s8",
        reads=(read,),
        macs=count,
        out_rows=out_rows,
        parameters={
            "weights": by_channel,
            "bias": addend,
            "multiplier": scales[0],
            "shift": scales[1],
            "per_channel": int(scales[0].size > 1),
            "in_zero_point": quant_in.zero_point,
            "out_zero_point": quant_out.zero_point,
            "weight_zero_point": weights.quantisation.zero_point if weights.quantisation else 0,
            "act_min": act_min,
            "act_max": act_max,
            "rounding": _ROUND_WIDE if wide else _ROUND_ONCE if rounds_once else _ROUND_TWICE,
            "out_c": len(by_channel),
            "stride_h": 1,
            "dilation_w": 1,
            "pad_top": 0,
            **geometry,
        },
    )


def _check_wide_sums(context: Context, bias: Array, by_channel: Array) -> None:
    """No input may bring a sum beyond the rule's range."""
    largest_int16 = 1 << 15
    products = largest_int16 * np.abs(by_channel.reshape(len(by_channel), -1).astype(np.int64)).sum(axis=1)
    # Of bounds that cannot overflow: the bias may be any int64.
    if np.any(bias >= _MAX_WIDE_SUM - products) or np.any(bias <= products - _MAX_WIDE_SUM):
        raise refuse(context, "its bias brings sums of 2^47 or more, beyond the reference's range")


def _has_wide_bias(context: Context, position: int) -> bool:
    """Without a bias the reference sums in int64 too."""
    tensor = context.optional_input(position)
    return tensor is None or tensor.dtype == "int64"
