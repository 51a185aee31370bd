# SPDX-License-Identifier: Apache-2.0
"""Random graphs of one operator or a few, by seed or as a hypothesis strategy."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from hypothesis import strategies as st

from support import element_graphs, mac_graphs, spatial_graphs, state_graphs
from support.arithmetic_graphs import ARITHMETIC
from support.choices import Choices
from support.curve_graphs import CURVES
from support.graph_case import GraphCase
from support.int16_graphs import INT16
from support.moving_graphs import MOVEMENTS
from support.reduction_graphs import REDUCTIONS
from support.uint8_graphs import UINT8
from support.wide_graphs import WIDE

__all__ = ["KINDS", "GraphCase", "graph_cases", "random_graph", "random_graphs"]

KINDS: dict[str, Callable[[Choices], GraphCase]] = {
    "CONV_2D": spatial_graphs.conv_2d,
    "DEPTHWISE_CONV_2D": spatial_graphs.depthwise_conv_2d,
    "FULLY_CONNECTED": element_graphs.fully_connected,
    "CONCATENATION": element_graphs.concatenation,
    "AVERAGE_POOL_2D": spatial_graphs.average_pool_2d,
    "MAX_POOL_2D": spatial_graphs.max_pool_2d,
    "SOFTMAX": element_graphs.softmax,
    "PAD": spatial_graphs.pad,
    "PAD_CONV": spatial_graphs.pad_conv,
    "PACK": element_graphs.pack,
    "RESHAPE": element_graphs.reshape,
    "EXPAND_DIMS": element_graphs.expand_dims,
    "SQUEEZE": element_graphs.squeeze,
    "UNPACK": element_graphs.unpack,
    "TRANSPOSE": element_graphs.transpose,
    "QUANTIZE": element_graphs.quantize,
    "RELU": element_graphs.relu,
    "RELU6": element_graphs.relu6,
    "CONV_CHAIN": spatial_graphs.conv_chain,
    "MOBILE_BLOCKS": spatial_graphs.mobile_blocks,
    **ARITHMETIC,
    **CURVES,
    **MOVEMENTS,
    **REDUCTIONS,
    **WIDE,
    **INT16,
    **UINT8,
    "STREAM": state_graphs.stream,
    "SVDF": state_graphs.svdf,
    "LSTM": state_graphs.lstm,
    "BATCH_MATMUL": mac_graphs.batch_matmul,
    "TRANSPOSE_CONV": mac_graphs.transpose_conv,
    "GROUPED_CONV_2D": mac_graphs.grouped_conv_2d,
    "CONV_2D_S16": mac_graphs.conv_2d_s16,
    "DEPTHWISE_CONV_2D_S16": mac_graphs.depthwise_conv_2d_s16,
    "FULLY_CONNECTED_S16": mac_graphs.fully_connected_s16,
    "DILATED_TRIPLE": mac_graphs.dilated_triple,
    "CONV_2D_F32": mac_graphs.conv_2d_f32,
    "DEPTHWISE_CONV_2D_F32": mac_graphs.depthwise_conv_2d_f32,
    "LOG_SOFTMAX": element_graphs.log_softmax,
    "WIDE_CHAIN": spatial_graphs.wide_chain,
}
# Operators with many parameters are drawn more often.
_SHARES = {"CONV_2D": 5, "DEPTHWISE_CONV_2D": 5, "FULLY_CONNECTED": 4, "ADD": 4, "PAD_CONV": 2, "CONV_CHAIN": 4}


def random_graph(kind: str, seed: int) -> GraphCase:
    """The graph of this kind and seed; the same on every machine, whatever other kinds there are."""
    return KINDS[kind](Choices.seeded(seed, zlib.crc32(kind.encode())))


def random_graphs(count: int, seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> list[tuple[str, int]]:
    """`count` pairs of kind and seed for `random_graph`, kinds in turn by their shares."""
    turn = [kind for kind in kinds for _ in range(_SHARES.get(kind, 1))]
    return [(turn[index % len(turn)], seed + index) for index in range(count)]


@st.composite
def graph_cases(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> GraphCase:
    """A hypothesis strategy over the same graphs, which shrinks shapes, windows and channels."""
    kind = draw(st.sampled_from(kinds))
    return KINDS[kind](Choices(lambda low, high: draw(st.integers(low, high))))
