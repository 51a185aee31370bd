# SPDX-License-Identifier: Apache-2.0
"""What layers cost, as far as that can be told before anything runs: a declared model.

`COSTS` are fits to exact counts of emulated boards on the reference models
(`python device_tests/benchmarks/instruction_costs.py`), arm-none-eabi-gcc 12.2 and riscv64-unknown-elf-gcc 12.2 at -O3.
`arenite profile` counts the model at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from arenite_codegen.board_model import Board
from arenite_codegen.network import FEED, Layer, Network
from arenite_codegen.variants import Choose, Variant

__all__ = ["COSTS", "Costs", "busy_kernels", "modelled_instructions"]


@dataclass(frozen=True)
class Costs:
    """Instructions of a kernel: for each multiply-accumulate, byte that it writes, and row that it writes."""

    per_mac: float
    per_byte: float
    per_row: float


# By kind of core, kernel and variant; kernels that multiply and accumulate alone.
COSTS: dict[tuple[str, str, str], Costs] = {
    ("dsp", "conv_2d_s8", "dsp"): Costs(0.84, 8.26, 4640),
    ("dsp", "conv_2d_s8", "dsp-rows"): Costs(0.957, 9.45, 509),
    ("dsp", "depthwise_conv_2d_s8", "dsp"): Costs(3.02, 0.336, 2570),
    ("dsp", "depthwise_conv_2d_s8", "dsp-taps"): Costs(3, 10.1, 376),
    ("mve", "conv_2d_s8", "mve"): Costs(0.131, 4.99, 658),
    ("mve", "conv_2d_s8", "mve-pixel"): Costs(0.122, 4.14, 268),
    ("mve", "depthwise_conv_2d_s8", "mve"): Costs(0.832, 0, 1200),
    ("mve", "depthwise_conv_2d_s8", "mve-column"): Costs(0.581, 1.91, 409),
    ("riscv32", "conv_2d_s8", "portable"): Costs(3.05, 47, 963),
    ("riscv32", "depthwise_conv_2d_s8", "portable"): Costs(8.77, 21.7, 1450),
}

# Of the work of all kernels: one that has less is compiled for size.
_LEAST_SHARE = 0.002
# An output byte beside a multiply-accumulate, for that comparison: requantised, or moved.
_MACS_PER_BYTE = 8


def modelled_instructions(board: Board, variant: Variant, layer: Layer, network: Network) -> int | None:
    """Instructions of one inference in a layer, for the whole batch.

    None where the layer multiplies and accumulates nothing or the model does not know the kernel on this kind of core.
    """
    costs = COSTS.get((_core(board), variant.kernel, variant.name))
    if costs is None or not layer.macs:
        return None
    rows = layer.steps
    item = layer.macs * costs.per_mac + rows * (network.values[layer.output].row_bytes * costs.per_byte + costs.per_row)
    return round(network.batch * item)


def busy_kernels(networks: Iterable[Network], choose: Choose) -> frozenset[str]:
    """C files of kernels, without prefix and suffix, that have a share in the work for which speed is worth flash."""
    work: Counter[str] = Counter()
    for network in networks:
        for layer in network.layers:
            if layer.kernel != FEED:
                for part in (layer, *(stage.layer for stage in layer.stages)):
                    bytes_written = part.steps * network.values[part.output].row_bytes
                    work.update(dict.fromkeys(choose(part).variant.files, part.macs + _MACS_PER_BYTE * bytes_written))
    return frozenset(file for file, done in work.items() if done >= _LEAST_SHARE * max(work.values()))


def _core(board: Board) -> str:
    return next((name for name in ("mve", "dsp") if getattr(board.features, name)), board.architecture)
