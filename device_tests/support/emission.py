# SPDX-License-Identifier: Apache-2.0
"""Generated C of many models side by side, named m0, m1, ..., with one table of them all.

One in three lies in one memory, one is spread over several of RAM and flash, one has its inputs and outputs in the
caller's memory besides.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from arenite.errors import UnsupportedOperatorError
from arenite.tflite_graph import parse_graph
from arenite_codegen.boards import load_board
from arenite_codegen.caller_memory import caller_memory
from arenite_codegen.emit import Emitted, emit
from arenite_codegen.legalise import legalise
from arenite_codegen.network import Network
from arenite_codegen.plan import make_plan
from arenite_codegen.regions import ANYWHERE, Memory
from arenite_codegen.schedule import make_schedule
from arenite_codegen.strips import Chain, chains_of, in_strips
from arenite_codegen.variants import VARIANTS, Choose, choose_for, portable_choice

__all__ = ["KERNELS", "RUNTIME", "Emission", "emit_models", "kernel_sources", "limits_header", "random_strips"]

FIRMWARE = Path(str(resources.files("arenite_firmware")))
RUNTIME, KERNELS = FIRMWARE / "runtime", FIRMWARE / "kernels"
MAX_POINTERS = 1024
ANYWHERE_SLOW = Memory("slow", ANYWHERE.capacity_bytes, 9)


@dataclass(frozen=True)
class Emission:
    """Files to compile.

    Attributes:
        sources: Generated C.
        includes: Folders of headers.
        numbers: For each model its place in `graph_models`; refused ones have none.
        refusals: The message of each model that codegen refuses by name.
    """

    sources: tuple[Path, ...]
    includes: tuple[Path, ...]
    numbers: dict[int, int]
    refusals: dict[int, str]


def kernel_sources() -> list[Path]:
    """All kernels."""
    return sorted(KERNELS.glob("*.c"))


def limits_header(guards: bool = False, max_pointers: int = MAX_POINTERS, board: str | None = None) -> str:
    """An `arenite_limits.h` that serves all models: chains may call every variant of a convolution that compiles."""
    has_mve = board is not None and load_board(board).features.mve
    kernels = ("conv_2d_s8", "depthwise_conv_2d_s8")
    compiled = [v for kernel in kernels for v in VARIANTS[kernel] if has_mve or v.feature != "mve"]
    functions = " ".join(f"X({v.function}, {v.kernel})" for v in compiled)
    lines = [f"#define ARENITE_MAX_POINTERS {max_pointers}", f"#define ARENITE_STAGE_KERNELS(X) {functions}"]
    return "\n".join([*lines, *(["#define ARENITE_GUARDS"] if guards else []), ""])


def emit_models(
    models: Sequence[bytes], folder: Path, guards: bool = False, board: str | None = None, spread: bool = True
) -> Emission:
    """Writes every model's C below `folder`; chains of convolutions run in strips.

    Args:
        guards: Watch a word behind every block.
        board: Whose variants of kernels to take; the portable ones without.
        spread: Two of three models lie in several memories, some of them the caller's; else each has one arena.
    """
    choose = choose_for(load_board(board)) if board else portable_choice
    sources: list[Path] = []
    includes: list[Path] = [folder, RUNTIME, KERNELS]
    numbers: dict[int, int] = {}
    alignments: list[int] = []
    refusals: dict[int, str] = {}
    for index, model in enumerate(models):
        try:
            emitted, alignment = _emit(model, len(numbers), guards, choose, spread)
        except UnsupportedOperatorError as error:
            refusals[index] = str(error)
            continue
        home = folder / f"m{len(numbers)}"
        sources += _write(emitted, home)
        includes.append(home)
        numbers[index] = len(numbers)
        alignments.append(alignment)
    (folder / "arenite_limits.h").write_text(limits_header(guards, board=board))
    sources.append(_write_table(folder, alignments))
    return Emission(tuple(sources), tuple(includes), numbers, refusals)


def _emit(model: bytes, number: int, guards: bool, choose: Choose, spread: bool) -> tuple[Emitted, int]:
    network = legalise(parse_graph(model))
    network = in_strips(network, random_strips(network, random.Random(network.model_sha256)))
    if spread and number % 3 == 2 and len(network.inputs) + len(network.outputs) <= 8:
        network = caller_memory(network, inputs=True, outputs=True)
    schedule = make_schedule(network)
    ram, flash = (_memories(number if spread else 0, words) for words in (100, 400))
    plan = make_plan(network, schedule, ram, guards)
    emitted = emit(network, schedule, plan, f"m{number}", flash, choose)
    if emitted.max_pointers > MAX_POINTERS:
        raise AssertionError(f"a step hands {emitted.max_pointers} rows to its kernel")
    return emitted, max(value.element_bytes for value in network.values)


def random_strips(network: Network, chance: random.Random) -> dict[Chain, int]:
    """Chains of convolutions, as many as fit beside each other, with any width of strips."""
    chains = chains_of(network)
    chance.shuffle(chains)
    taken: dict[Chain, int] = {}
    for chain in chains:
        if not any(set(chain) & set(other) for other in taken):
            taken[chain] = chance.randint(1, int(network.layers[chain[-1]].parameters["out_w"]))
    return taken


def _memories(number: int, words: int) -> tuple[Memory, ...]:
    """One that holds everything, and beside it for two of three models two that hold less and are faster."""
    if number % 3 == 0:
        return (ANYWHERE,)
    chance = random.Random(number)
    small, middle = (4 * chance.randint(1, words * times) for times in (1, 4))
    return ANYWHERE_SLOW, Memory("small", small), Memory("middle", middle, 2)


def _write(emitted: Emitted, home: Path) -> list[Path]:
    home.mkdir(parents=True)
    for name, text in emitted.files.items():
        (home / name).write_text(text)
    return [home / name for name in emitted.files if name.endswith(".c")]


def _write_table(folder: Path, alignments: Sequence[int]) -> Path:
    count = len(alignments)
    lines = ['#include "arenite.h"', "extern const arenite_model_t *const graph_models[];"]
    lines.append("extern const uint32_t graph_model_count;\nextern const uint8_t graph_model_alignments[];")
    lines += [f"extern const arenite_model_t m{number};" for number in range(count)]
    entries = "".join(f"&m{number}, " for number in range(count))
    lines.append(f"const arenite_model_t *const graph_models[] = {{{entries}0}};")
    lines.append(f"const uint32_t graph_model_count = {count}u;")
    lines.append(f"const uint8_t graph_model_alignments[] = {{{', '.join(map(str, alignments)) or 0}}};")
    table = folder / "table.c"
    table.write_text("\n".join(lines) + "\n")
    return table
