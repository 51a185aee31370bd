# SPDX-License-Identifier: Apache-2.0
"""UNIDIRECTIONAL_SEQUENCE_LSTM, int8: a row of the input is a step in time, so it fuses with its neighbours."""

from __future__ import annotations

import numpy as np

from arenite.graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Array, Context, bias_values, folded_bias, multiplier, quantisation, refuse
from arenite_codegen.operators.curve_16 import curve_table, log2_of
from arenite_codegen.operators.svdf import state_read

__all__ = ["lower"]

# Positions of inputs; gates in the file's order: input, forget, candidate, output.
_WEIGHTS, _RECURRENT, _BIAS = range(1, 5), range(5, 9), range(12, 16)
_HIDDEN, _CELL = 18, 19
_VARIANTS = (*range(9, 12), *range(16, 18), *range(20, 24))
_GATE_SCALE = np.float32(2.0**-12)
_CURVE_SCALE = 2.0**-15
_TANH = 4


def lower(context: Context) -> Layer:
    """The standard cell, as Keras has it."""
    source, output, hidden, cell = context.input(0), context.output, context.input(_HIDDEN), context.input(_CELL)
    attributes = context.operator.attributes
    if any(context.optional_input(position) is not None for position in _VARIANTS):
        raise refuse(context, "peepholes, projections and layer normalisation have no kernel")
    if int(attributes["fused_activation_function"]) != _TANH:
        raise refuse(context, "only tanh has a kernel as its activation")
    weights, recurrent = ([context.constant(i) for i in positions] for positions in (_WEIGHTS, _RECURRENT))
    units, inputs = weights[0].shape if weights[0].ndim == 2 else (0, 0)
    steps = source.elements // max(1, inputs)
    _check(context, weights, recurrent, units, inputs)
    if (source.elements, output.elements) != (steps * inputs, steps * units):
        raise refuse(context, f"{source} and {output} do not suit {inputs} inputs and {units} units")
    if (hidden.elements, cell.elements) != (units, units):
        raise refuse(context, f"{hidden} or {cell} is not the state of {units} units")
    quant_in, quant_hidden = quantisation(context, source), quantisation(context, hidden)
    pairs = [_gate(context, source, i) for i in _WEIGHTS] + [_gate(context, hidden, i) for i in _RECURRENT]
    biases = [bias_values(context, i, units) for i in _BIAS]
    nothing = np.zeros(units, np.int64)
    return context.build.layer(
        context,
        kernel="lstm_s8",
        reads=(
            Read(context.build.value(source), steps, inputs),
            state_read(context, hidden, ("int8",)),
            state_read(context, cell, ("int16",)),
        ),
        out_rows=steps,
        macs=steps * (sum(w.size for w in weights) + sum(r.size for r in recurrent)),
        parameters={
            "weights": np.stack(weights),
            "recurrent": np.stack(recurrent),
            "bias": np.stack([folded_bias(b, w, quant_in.zero_point) for b, w in zip(biases, weights, strict=True)]),
            "recurrent_bias": np.stack([folded_bias(nothing, r, quant_hidden.zero_point) for r in recurrent]),
            "multiplier": np.array([m for m, _ in pairs], np.int32),
            "shift": np.array([s for _, s in pairs], np.int8),
            "table": curve_table(),
            "inputs": inputs,
            "units": units,
            **_cell_parameters(context, hidden, cell),
        },
    )


def _check(context: Context, weights: list[Array], recurrent: list[Array], units: int, inputs: int) -> None:
    tensors = [context.input(i) for i in (*_WEIGHTS, *_RECURRENT)]
    shapes = [w.shape for w in (*weights, *recurrent)]
    if not units or shapes != [(units, inputs)] * 4 + [(units, units)] * 4 or any(t.dtype != "int8" for t in tensors):
        raise refuse(context, f"its weights are not int8[{units}×{inputs}] and int8[{units}×{units}]")


def _gate(context: Context, source: Tensor, position: int) -> tuple[int, int]:
    """Source: CreateGateParams: the product of the scales is a float32, the gate is in Q3.12."""
    weights = quantisation(context, context.input(position))
    if weights.zero_point:
        raise refuse(context, f"its weights, {context.input(position)}, have a zero point other than 0")
    product = float(quantisation(context, source).scale * weights.scale)
    return multiplier(context, product / float(_GATE_SCALE), "gate")


def _cell_parameters(context: Context, hidden: Tensor, cell: Tensor) -> dict[str, int]:
    """Source: PrepareGateParametersInteger, CreateLstmCellStateInfo."""
    quant_hidden, quant_cell = quantisation(context, hidden), quantisation(context, cell, ("int16",))
    cell_scale = float(quant_cell.scale)
    exponent = log2_of(cell_scale)
    if exponent is None or not -15 <= exponent <= 0 or quant_cell.zero_point:
        raise refuse(context, f"its cell state, {cell}, has the scale {cell_scale}; it must be a power of two below 1")
    forget = multiplier(context, _CURVE_SCALE * cell_scale / cell_scale, "forget")
    added = multiplier(context, _CURVE_SCALE * _CURVE_SCALE / cell_scale, "cell")
    out = multiplier(context, _CURVE_SCALE * _CURVE_SCALE / float(quant_hidden.scale), "hidden")
    clip = float(np.float32(context.operator.attributes["cell_clip"]))
    shift = 12 + exponent
    return {
        "forget_multiplier": forget[0],
        "forget_shift": forget[1],
        "input_multiplier": added[0],
        "input_shift": added[1],
        "hidden_multiplier": out[0],
        "hidden_shift": out[1],
        "tanh_multiplier": 3 if shift < 0 else 3 << shift,
        "tanh_right_shift": -shift if shift < 0 else 0,
        "cell_clip": int(max(-32768.0, min(32767.0, clip / cell_scale))) if clip > 0 else 0,
        "hidden_zero_point": quant_hidden.zero_point,
    }
