# SPDX-License-Identifier: Apache-2.0
"""QUANTIZE, DEQUANTIZE and CAST: from one element type to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators import lookup
from arenite_codegen.operators.base import Context, multiplier, quantisation, refuse

__all__ = ["DTYPE_CODES", "elementwise_layer", "lower_cast", "lower_dequantize", "lower_quantize", "requantise_layer"]

DTYPE_CODES = {"int8": 0, "uint8": 1, "int16": 2, "int32": 3, "float32": 4, "bool": 5}
"""As arenite_io_t and arenite_element.h number them."""
_BYTES = ("int8", "uint8")
_GRIDS = (*_BYTES, "int16", "int32")
_CASTS = {
    "int8": ("int16", "int32", "float32"),
    "int16": ("int8", "int32", "float32"),
    "int32": ("int8", "int16", "float32"),
    "float32": ("int8", "int16", "int32"),
    "bool": ("float32", "int32", "int8"),
}


def elementwise_layer(context: Context, kernel: str, parameters: dict[str, Any]) -> Layer:
    """A layer that makes each element of one."""
    source, output = context.input(0), context.output
    rows = context.rows(source)
    in_place = (0,) if source.element_bytes == output.element_bytes else ()
    return context.build.layer(
        context,
        kernel=kernel,
        reads=(Read(context.build.value(source), rows.height, rows.row_bytes),),
        in_place=in_place,
        parameters={"count": rows.row_elements, **parameters},
    )


def lower_quantize(context: Context) -> Layer:
    """Between bytes a table does; from float32 it divides."""
    source, output = context.input(0), context.output
    if source.dtype in _BYTES and output.dtype in _BYTES:
        return lookup.lower_quantize(context)
    if source.dtype != "float32":
        limits = np.iinfo(output.dtype) if output.dtype in _GRIDS else np.iinfo("int8")
        return requantise_layer(context, int(limits.min), int(limits.max))
    quant = quantisation(context, output, ("int8", "int16"))
    rails = np.iinfo(output.dtype)
    parameters = {
        "scale": float(quant.scale),
        "zero_point": quant.zero_point,
        "low": int(rails.min),
        "high": int(rails.max),
        "to": DTYPE_CODES[output.dtype],
    }
    return elementwise_layer(context, "quantise", parameters)


def requantise_layer(context: Context, low: int, high: int) -> Layer:
    """Between two integer types, clamped."""
    source, output = context.input(0), context.output
    quant_in, quant_out = (quantisation(context, tensor, _GRIDS) for tensor in (source, output))
    factor, shift = multiplier(context, float(quant_in.scale) / float(quant_out.scale), "output")
    parameters = {
        "multiplier": factor,
        "shift": shift,
        "low": low,
        "high": high,
        "in_zero_point": quant_in.zero_point,
        "out_zero_point": quant_out.zero_point,
        "from": DTYPE_CODES[source.dtype],
        "to": DTYPE_CODES[output.dtype],
    }
    return elementwise_layer(context, "quantise_int", parameters)


def lower_dequantize(context: Context) -> Layer:
    """The first layer of a float island."""
    source, output = context.input(0), context.output
    quant = quantisation(context, source, (*_BYTES, "int16"))
    if output.dtype != "float32":
        raise refuse(context, f"{output} is not float32")
    parameters = {"scale": float(quant.scale), "zero_point": quant.zero_point, "from": DTYPE_CODES[source.dtype]}
    return elementwise_layer(context, "dequantise", parameters)


def lower_cast(context: Context) -> Layer:
    """The number stays, as far as the new type can hold it; scales play no part."""
    source, output = context.input(0), context.output
    if output.dtype not in _CASTS.get(source.dtype, ()):
        raise refuse(context, f"from {source.dtype} to {output.dtype} has no kernel")
    return elementwise_layer(context, "cast", {"from": DTYPE_CODES[source.dtype], "to": DTYPE_CODES[output.dtype]})
