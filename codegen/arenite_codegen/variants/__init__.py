# SPDX-License-Identifier: Apache-2.0
"""The variants of kernels, and which one a layer gets. To add one: its C, a row in this table, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from arenite_codegen.board_model import Board
from arenite_codegen.network import Layer
from arenite_codegen.variants import dsp, host, mve, portable
from arenite_codegen.variants.base import PORTABLE, Parameters, Variant

__all__ = ["Choice", "Choose", "VARIANTS", "Variant", "choose_for", "portable_choice"]

# Fastest first, the portable one last; a kernel that is not here has only that.
VARIANTS: Mapping[str, tuple[Variant, ...]] = {
    "add_s8": (mve.ADD, dsp.ADD, host.ADD, portable.ADD),
    "conv_2d_s8": (
        mve.CONV_2D,
        dsp.CONV_2D,
        dsp.CONV_2D_ROWS,
        host.CONV_2D,
        host.CONV_2D_TAPS,
        portable.CONV_2D,
    ),
    "curve_f32": (portable.CURVE_F32,),
    "depthwise_conv_2d_s8": (
        mve.DEPTHWISE_CONV_2D,
        dsp.DEPTHWISE_CONV_2D,
        dsp.DEPTHWISE_CONV_2D_TAPS,
        host.DEPTHWISE_CONV_2D,
        portable.DEPTHWISE_CONV_2D,
    ),
    "log_softmax_f32": (portable.LOG_SOFTMAX_F32,),
    "lookup_s8": (mve.LOOKUP, portable.LOOKUP),
    "softmax_f32": (portable.SOFTMAX_F32,),
}


@dataclass(frozen=True)
class Choice:
    """The variant that a layer gets.

    Attributes:
        passed_over: Faster variants by name, and why they cannot run the layer.
    """

    variant: Variant
    passed_over: Mapping[str, str]

    def pack(self, layer: Layer) -> Parameters:
        """The layer's parameters as the variant reads them."""
        return self.variant.pack(layer.parameters)


Choose = Callable[[Layer], Choice]


def portable_choice(layer: Layer) -> Choice:
    """The portable variant, which every board has."""
    return Choice(_variants(layer)[-1], {})


def choose_for(board: Board) -> Choose:
    """How layers get their variants on a board: each the fastest that board and layer allow."""

    def choose(layer: Layer) -> Choice:
        passed_over: dict[str, str] = {}
        for variant in _variants(layer):
            if variant.architecture not in (None, board.architecture):
                continue
            why = _missing(variant, board) or variant.refusal(layer.parameters)
            if not why:
                return Choice(variant, passed_over)
            passed_over[variant.name] = why
        raise AssertionError(f"{layer.kernel} has no portable variant")

    return choose


def _variants(layer: Layer) -> tuple[Variant, ...]:
    return VARIANTS.get(layer.kernel) or (Variant(layer.kernel, PORTABLE, layer.kernel),)


def _missing(variant: Variant, board: Board) -> str:
    if variant.feature and not getattr(board.features, variant.feature):
        return f"{board.name} has no {variant.feature}"
    return ""
