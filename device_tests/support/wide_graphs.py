# SPDX-License-Identifier: Apache-2.0
"""Random graphs of element-wise operators on int16."""

from __future__ import annotations

from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import GraphCase, case

__all__ = ["logistic_s16", "tanh_s16"]


def logistic_s16(choices: Choices) -> GraphCase:
    """LOGISTIC of int16, scales that are powers of two or not."""
    return _curve(choices, "LOGISTIC")


def tanh_s16(choices: Choices) -> GraphCase:
    """TANH of int16, the same."""
    return _curve(choices, "TANH")


def _curve(choices: Choices, kind: str) -> GraphCase:
    shape = (choices.batch(), choices.integer(1, 9), choices.channels())
    scale = choices.pick([2.0**-12, 2.0**-11, 2.0 ** -choices.integer(8, 15), choices.real(1e-5, 1e-2)])
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int16", scales=[scale], zero_points=[0])
    y = builder.tensor("y", shape, "int16", scales=[2.0**-15], zero_points=[0])
    builder.operator(kind, [x], [y], version=3)
    return case(choices, f"{kind}_S16 {shape} scale {scale:.6g}", builder, [(x, shape, "int16", 0)], y)
