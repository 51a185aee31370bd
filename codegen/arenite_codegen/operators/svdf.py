# SPDX-License-Identifier: Apache-2.0
"""SVDF: its activation state is a variable tensor of its own."""

from __future__ import annotations

import numpy as np

from arenite.graph import Tensor
from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import Context, bias_values, multiplier, quantisation, refuse

__all__ = ["lower", "state_read"]


def state_read(context: Context, tensor: Tensor, dtypes: tuple[str, ...]) -> Read:
    """A state that the operator alone reads and updates, as a whole."""
    if not tensor.is_variable or tensor.dtype not in dtypes:
        raise refuse(context, f"its state, {tensor}, is no variable of {' or '.join(dtypes)}")
    if context.batch != 1:
        raise refuse(context, f"it keeps state for a batch of {context.batch}", "Convert it with a batch of 1.")
    value = context.build.states.owned(tensor, context.operator.index)
    return Read(value, 1, tensor.bytes, stride=0, whole=True)


def lower(context: Context) -> Layer:
    """Each inference is one step in time."""
    source, output, state = context.input(0), context.output, context.input(4)
    features, times = context.constant(1), context.constant(2)
    rank = int(context.operator.attributes["rank"])
    if features.ndim != 2 or times.ndim != 2 or len(features) != len(times) or rank < 1 or len(features) % rank:
        raise refuse(context, f"its weights {features.shape} and {times.shape} do not suit a rank of {rank}")
    (filters, inputs), memory = features.shape, times.shape[1]
    units = filters // rank
    sizes = (source.elements, output.elements, state.elements)
    if sizes != (inputs, units, filters * memory):
        raise refuse(context, f"{source}, {output} or {state} does not suit its weights")
    quant_in, quant_state, quant_out = (
        quantisation(context, source),
        quantisation(context, state, ("int8", "int16")),
        quantisation(context, output),
    )
    if quant_state.zero_point:
        raise refuse(context, "a state with a zero point other than 0: versions of the reference disagree on it")
    by_feature, by_time = (quantisation(context, context.input(i), ("int8", "int16")) for i in (1, 2))
    if context.input(1).dtype != "int8" or context.input(2).dtype != state.dtype:
        raise refuse(context, f"weights {context.input(1)} and {context.input(2)} do not suit the state {state}")
    # Source: PrepareSvdf: products and quotients in float32.
    to_state = multiplier(context, float(quant_in.scale * by_feature.scale / quant_state.scale), "state")
    to_output = multiplier(context, float(quant_state.scale * by_time.scale / quant_out.scale), "output")
    return context.build.layer(
        context,
        kernel="svdf_s8" if state.dtype == "int8" else "svdf_s16",
        reads=(
            Read(context.build.value(source), 1, inputs, stride=0, whole=True),
            state_read(context, state, ("int8", "int16")),
        ),
        out_rows=1,
        macs=features.size + times.size,
        parameters={
            "feature_weights": features,
            "time_weights": times,
            "bias": bias_values(context, 3, units).astype(np.int32),
            "inputs": inputs,
            "units": units,
            "rank": rank,
            "memory": memory,
            "state_multiplier": to_state[0],
            "state_shift": to_state[1],
            "out_multiplier": to_output[0],
            "out_shift": to_output[1],
            "in_zero_point": quant_in.zero_point,
            "out_zero_point": quant_out.zero_point,
        },
    )
