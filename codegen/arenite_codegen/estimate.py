# SPDX-License-Identifier: Apache-2.0
"""How long a model takes on a board that is not here: its instructions, counted by an emulator, times a core's model.

The firmware is built for an emulated board of the same core and the same extensions, so every layer gets the kernel
that it gets on the board itself.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from arenite.device import verify
from arenite.errors import UsageError
from arenite.progress import Progress, silent
from arenite_codegen.board_model import Board, Power
from arenite_codegen.boards import list_boards, load_board
from arenite_codegen.build import build
from arenite_codegen.bundle import bundle
from arenite_codegen.cycle_model import CYCLES_PER_INSTRUCTION, Published, published_for

__all__ = ["Estimate", "estimate"]

# What executes the same code: a core of the same instruction set.
_SAME_CODE = {"rv32imac": "rv32imc", "cortex-m0plus": "cortex-m0"}


@dataclass(frozen=True)
class Estimate:
    """Latency and energy of an inference, modelled.

    Attributes:
        emulated_on: The board whose emulator counted the instructions, exactly.
        cycles_per_instruction: Least, usual and most of the core: the model.
        latency_ms: By the usual figure; `latency_band_ms` by the other two.
        energy_mj: Of the core and memories while it runs, from the power of the board file; None where that says none.
        published: What others measured of this network on this kind of core, at `published.clock_mhz`.
        published_at_clock_ms: The same in proportion at this clock.
    """

    model: str
    board: str
    cpu: str
    clock_hz: int
    emulated_on: str
    emulator: str | None
    instructions: int
    macs: int
    arena_bytes: int
    cycles_per_instruction: tuple[float, float, float]
    latency_ms: float
    latency_band_ms: tuple[float, float]
    energy_mj: float | None
    power_source: str
    published: Published | None
    published_at_clock_ms: float | None
    tag: str = "modelled"


def estimate(
    model: Path | str,
    board: str,
    *,
    clock_hz: int | None = None,
    row_fed: bool = False,
    uw_per_mhz: float | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """Bundle, build and run a model on an emulated board like this one, and reckon its time.

    Args:
        model: A full-INT8 TFLite file.
        board: Name or path of the board.
        clock_hz: Of the core; None takes the board's.
        row_fed: The input comes row by row.
        uw_per_mhz: Power of the running core, in µW/MHz; None takes that of the board file.
        progress: Told of each stage.

    Raises:
        ModelError, UnsupportedOperatorError: As for `bundle`.
        UsageError: There is no such board, no emulated board has its core, or its core has no model.
        DoesNotFitError: The model is too large for the emulated board.
        MissingToolError: A compiler, an emulator or tflite-micro is not installed.
    """
    path, target = Path(model), load_board(board)
    if target.cpu not in CYCLES_PER_INSTRUCTION:
        known = ", ".join(sorted(CYCLES_PER_INSTRUCTION))
        raise UsageError(f"no model is known of the core {target.cpu}", where=target.name, cure=f"Known are {known}")
    stand_in = _stand_in(target)
    words = f"estimate {path.name} on {target.name}"
    with (progress or silent()).step(words, 3) as step, tempfile.TemporaryDirectory() as at:
        folder = Path(at) / "bundle"
        made = bundle(path, stand_in.name, folder, row_fed=row_fed, vectors=1)
        step.advance()
        build(folder)
        step.advance()
        run = verify(folder)
        step.advance()
        shape = _input_shape(folder)
    if run.instructions is None:
        cure = "Install a C compiler for this computer: it builds the counting hook; or QEMU"
        raise UsageError("the emulator cannot count instructions here", where=stand_in.name, cure=cure)
    hz = clock_hz or target.clock_hz
    core = CYCLES_PER_INSTRUCTION[target.cpu]
    low, usual, high = (1e3 * run.instructions * factor / hz for factor in (core.low, core.usual, core.high))
    power = target.power if uw_per_mhz is None else Power(uw_per_mhz, "given")
    published = published_for(_SAME_CODE.get(target.cpu, target.cpu), made.macs, shape)
    return Estimate(
        model=str(path),
        board=target.name,
        cpu=target.cpu,
        clock_hz=hz,
        emulated_on=stand_in.name,
        emulator=run.emulator,
        instructions=run.instructions,
        macs=made.macs,
        arena_bytes=made.arena_bytes,
        cycles_per_instruction=(core.low, core.usual, core.high),
        latency_ms=usual,
        latency_band_ms=(low, high),
        energy_mj=None if power is None else power.energy_mj(hz, usual),
        power_source="" if power is None else power.source,
        published=published,
        published_at_clock_ms=None if published is None else published.latency_ms * published.clock_mhz * 1e6 / hz,
    )


def _stand_in(target: Board) -> Board:
    """The emulated board with the same core and extensions, the one with most RAM."""
    cpu = _SAME_CODE.get(target.cpu, target.cpu)
    fitting = [
        board
        for board in map(load_board, list_boards())
        if board.emulators
        and board.cpu == cpu
        and (board.features.dsp, board.features.mve) == (target.features.dsp, target.features.mve)
        and len(board.memory) == 2
    ]
    if not fitting:
        problem = f"no emulated board has a {target.cpu} with its extensions"
        raise UsageError(problem, where=target.name, cure="Estimate for a board of another core")
    return max(fitting, key=lambda board: board.ram_bytes)


def _input_shape(folder: Path) -> tuple[int, ...]:
    from arenite._manifest import read_manifest

    return tuple(read_manifest(folder)["models"][0]["inputs"][0]["shape"])
