# SPDX-License-Identifier: Apache-2.0
"""A network whose input comes row by row, as a camera or a serial port delivers it, and is never whole in memory."""

from __future__ import annotations

from dataclasses import replace

from arenite.errors import UnsupportedOperatorError
from arenite_codegen.network import FEED, Layer, Network, Role
from arenite_codegen.schedule import read_as_a_whole

__all__ = ["feed_by_rows"]


def feed_by_rows(network: Network, path: str) -> Network:
    """Let the caller be the layer that makes the input's rows.

    Raises:
        UnsupportedOperatorError: There are several inputs, or the input is read as a whole.
    """
    if len(network.inputs) != 1:
        raise UnsupportedOperatorError(
            f"the model has {len(network.inputs)} inputs; only one can be fed row by row",
            where=path,
            cure="Leave out --row-fed.",
        )
    index = network.inputs[0].value
    value = network.values[index]
    shape = network.inputs[0].shape
    flattened = len(shape) == 4 and value.rows != shape[1]
    if flattened or read_as_a_whole(network, index):
        raise UnsupportedOperatorError(
            "the input cannot be fed row by row: it is planar, or an operator reads it as a whole",
            where=path,
            cure="Leave out --row-fed, or export the model channel-last.",
        )
    feed = Layer(
        index=0,
        operator=-1,
        kind="FEED",
        kernel=FEED,
        reads=(),
        output=index,
        steps=value.rows,
        parameters={},
    )
    values = list(network.values)
    values[index] = replace(value, role=Role.INTERNAL, items=1)
    layers = (feed, *(replace(layer, index=layer.index + 1) for layer in network.layers))
    return replace(network, values=tuple(values), layers=layers)
