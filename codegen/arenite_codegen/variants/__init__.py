# SPDX-License-Identifier: Apache-2.0
"""The variants of kernels, and which one a layer gets. To add one: its C, a row in this table, a test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from arenite_codegen.board_model import Board
from arenite_codegen.network import Layer
from arenite_codegen.variants import dsp, host, mve, portable
from arenite_codegen.variants.base import PORTABLE, Parameters, Variant

__all__ = ["Choice", "Choose", "VARIANTS", "Variant", "choose_for", "portable_choice"]

# Fastest first, the portable one last; a kernel that is not here has only that.
VARIANTS: Mapping[str, tuple[Variant, ...]] = {
    "add_s8": (mve.ADD, dsp.ADD, host.ADD_LINEAR, host.ADD, portable.ADD),
    "conv_2d_s8": (
        mve.CONV_2D_PIXEL,
        mve.CONV_2D,
        dsp.CONV_2D,
        dsp.CONV_2D_ROWS,
        host.CONV_2D,
        host.CONV_2D_TAPS,
        portable.CONV_2D,
    ),
    "curve_f32": (portable.CURVE_F32,),
    "depthwise_conv_2d_s8": (
        mve.DEPTHWISE_CONV_2D_COLUMN,
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


def choose_for(board: Board, optimise: str = "speed", layers: Sequence[Layer] = ()) -> Choose:
    """How layers get their variants on a board.

    Args:
        optimise: With `speed` and `balanced` each layer gets the fastest variant that board and layer allow; with
            `size` the fastest of the fewest that can run all layers, the portable one only where no other can.
        layers: All layers of the firmware.
    """
    kept = _fewest(board, layers) if optimise == "size" else None

    def why_not(variant: Variant, layer: Layer) -> str:
        why = _refusal(variant, board, layer)
        if not why and kept is not None and variant.name != PORTABLE and variant not in kept:
            return "the firmware is for size, and fewer variants run all its layers"
        return why

    def choose(layer: Layer) -> Choice:
        passed_over: dict[str, str] = {}
        yielding: Choice | None = None
        for variant in _on(board, layer):
            why = why_not(variant, layer)
            yields = "" if why else variant.yields(layer.parameters)
            if not (why or yields):
                return yielding if yielding and variant.name == PORTABLE else Choice(variant, passed_over)
            if yields and not yielding:
                yielding = Choice(variant, dict(passed_over))
            passed_over[variant.name] = why or yields
        raise AssertionError(f"{layer.kernel} has no portable variant")

    return choose


def _best(able: Sequence[Variant], layer: Layer) -> Variant:
    """The first that does not yield to another, or just the first."""
    return next((variant for variant in able if not variant.yields(layer.parameters)), able[0])


def _fewest(board: Board, layers: Sequence[Layer]) -> frozenset[Variant]:
    """The fewest variants that run every layer which needs no portable one; of several sets the fastest."""
    able: dict[str, list[tuple[Layer, tuple[Variant, ...]]]] = {}
    for part in (part for layer in layers for part in layer.parts):
        can = tuple(variant for variant in _on(board, part) if not _refusal(variant, board, part))
        if can[0].name != PORTABLE:
            able.setdefault(part.kernel, []).append((part, can[:-1]))
    return frozenset(variant for choices in able.values() for variant in _cover(choices))


def _cover(choices: Sequence[tuple[Layer, tuple[Variant, ...]]]) -> tuple[Variant, ...]:
    """The smallest set that has a variant of each layer, with the most multiply-accumulates in layers' fastest ones."""
    fastest: Counter[Variant] = Counter()
    for layer, can in choices:
        fastest[_best(can, layer)] += layer.macs
    table = list(dict.fromkeys(variant for _, can in choices for variant in can))
    for count in range(1, len(table) + 1):
        sets = [some for some in combinations(table, count) if all(set(some) & set(can) for _, can in choices)]
        if sets:
            return max(sets, key=lambda some: sum(fastest[variant] for variant in some))
    return ()


def _on(board: Board, layer: Layer) -> tuple[Variant, ...]:
    """The variants of a layer's kernel for a kind of board, fastest first."""
    return tuple(variant for variant in _variants(layer) if variant.architecture in (None, board.architecture))


def _variants(layer: Layer) -> tuple[Variant, ...]:
    return VARIANTS.get(layer.kernel) or (Variant(layer.kernel, PORTABLE, layer.kernel),)


def _refusal(variant: Variant, board: Board, layer: Layer) -> str:
    """Why a variant cannot run a layer on a board, or an empty text."""
    if variant.feature and not getattr(board.features, variant.feature):
        return f"{board.name} has no {variant.feature}"
    return variant.refusal(layer.parameters)
