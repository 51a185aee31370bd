# SPDX-License-Identifier: Apache-2.0
"""Which boards a model fits, what the others lack, and the nearest change that would help.

A board's verdict is that of `bundle`: the same plan, the same weights as its kernels read them, the same allowance for
code, stack and variables. A plan that fits one memory by itself is not spread over several to find that out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.errors import UnsupportedOperatorError
from arenite.progress import Progress, silent
from arenite.tflite_graph import read_graph
from arenite_codegen.board_model import Board, Features
from arenite_codegen.boards import list_boards, load_board
from arenite_codegen.cycle_model import CYCLES_PER_INSTRUCTION, CyclesPerInstruction
from arenite_codegen.emit import SINGLE_SYMBOL, Emitted, emit
from arenite_codegen.fit import Shortfall, flash_of, nearest_network, ram_of, shortfalls
from arenite_codegen.legalise import legalise
from arenite_codegen.network import Network
from arenite_codegen.planning import Planned, plan_network
from arenite_codegen.regions import ANYWHERE, Memory, Region
from arenite_codegen.row_feed import feed_by_rows
from arenite_codegen.tables import table_bytes
from arenite_codegen.variants import choose_for

__all__ = ["BoardFit", "FitReport", "fit"]

# Instructions a multiply-accumulate, as emulators count them for ResNet-8 and MobileNetV2 with the kernels of each kind
# of core. `arenite estimate` counts those of the model itself.
INSTRUCTIONS_PER_MAC = {"mve": 0.6, "dsp": 1.4, "cortex-m0": 7.1, "cortex-m0plus": 7.1}
_OTHERS_PER_MAC = 4.0
_OTHER_CYCLES = CyclesPerInstruction(1.0, 1.25, 1.6)
RECOMPUTED = 1.4


@dataclass(frozen=True)
class _Change:
    """A way to bundle a model, with the words of its options."""

    words: str = ""
    row_fed: bool = False
    mac_factor: float = 1.0


_CHANGES = (
    _Change("--row-fed", row_fed=True),
    _Change(f"--max-mac-factor {RECOMPUTED}", mac_factor=RECOMPUTED),
    _Change(f"--row-fed --max-mac-factor {RECOMPUTED}", True, RECOMPUTED),
)


@dataclass(frozen=True)
class BoardFit:
    """One board's verdict.

    Attributes:
        board: Its name.
        fits: The model as it is.
        arena_bytes: Of the plan for this board.
        weights_bytes: As the board's kernels read them.
        missing: Memories that are too small.
        change: The nearest change with which it fits: options of `arenite bundle`, a network, or nothing known.
        latency_ms: Of one inference, modelled from multiply-accumulates, kind of core and clock.
        proven: How far the board itself is proven.
    """

    board: str
    fits: bool
    arena_bytes: int
    weights_bytes: int
    missing: tuple[Shortfall, ...]
    change: str | None
    latency_ms: float
    proven: str


@dataclass(frozen=True)
class FitReport:
    """What `arenite fit` found.

    Attributes:
        model: The file.
        macs: Multiply-accumulates of one inference.
        boards: In the order asked for.
        latency_source: What kind of figure the latencies are.
    """

    model: str
    macs: int
    boards: tuple[BoardFit, ...]
    latency_source: str = "modelled, within a factor of two"

    @property
    def fits_somewhere(self) -> bool:
        """On at least one board."""
        return any(board.fits for board in self.boards)


def fit(model: Path | str, boards: Sequence[str | Path] | None = None, progress: Progress | None = None) -> FitReport:
    """Try a model on boards.

    Args:
        model: A full-INT8 TFLite file.
        boards: Names or board files; None takes all that are real hardware.
        progress: Told of each board.

    Raises:
        ModelError, UnsupportedOperatorError: As for `bundle`.
        UsageError: There is no such board.
    """
    path = Path(model)
    chosen = [load_board(board) for board in (boards or hardware_boards())]
    trial = _Trial(legalise(read_graph(path)), str(path))
    found = []
    with (progress or silent()).step(f"fit {path.name}", len(chosen)) as step:
        for board in chosen:
            found.append(trial.on(board))
            step.advance()
    return FitReport(str(path), trial.network.macs, tuple(found))


def hardware_boards() -> list[str]:
    """Boards that are no emulator's."""
    return [name for name in list_boards() if load_board(name).proven != "emulated"]


def cycles_per_mac(board: Board) -> float:
    """Core cycles a multiply-accumulate, modelled, where no memory makes the core wait."""
    kind = next((name for name in ("mve", "dsp") if getattr(board.features, name)), board.cpu)
    cycles = CYCLES_PER_INSTRUCTION.get(board.cpu, _OTHER_CYCLES).usual
    return INSTRUCTIONS_PER_MAC.get(kind, _OTHERS_PER_MAC) * cycles


class _Trial:
    """A model with the plans made of it so far."""

    def __init__(self, network: Network, where: str) -> None:
        self.network, self._where = network, where
        self._plans: dict[tuple[_Change, tuple[Memory, ...]], Planned] = {}
        self._c: dict[tuple[int, str, Features, tuple[Memory, ...]], Emitted] = {}

    def on(self, board: Board) -> BoardFit:
        planned, emitted, missing = self._tried(board, _Change())
        return BoardFit(
            board=board.name,
            fits=not missing,
            arena_bytes=planned.plan.arena_bytes,
            weights_bytes=emitted.weights_bytes,
            missing=missing,
            change=self._change(board, missing) if missing else None,
            latency_ms=1e3 * cycles_per_mac(board) * self.network.macs / board.clock_hz,
            proven=board.proven,
        )

    def _change(self, board: Board, missing: tuple[Shortfall, ...]) -> str | None:
        if all(short.kind == "ram" for short in missing):
            for change in _CHANGES:
                try:
                    if not self._tried(board, change)[2]:
                        return change.words
                except UnsupportedOperatorError:  # this input cannot come row by row
                    continue
        network = nearest_network(board)
        return None if network is None else network.name

    def _tried(self, board: Board, change: _Change) -> tuple[Planned, Emitted, tuple[Shortfall, ...]]:
        planned = self._planned(board, change)
        emitted = self._emitted(board, planned)
        return planned, emitted, shortfalls(board, [*planned.plan.regions, *emitted.flash], emitted.table_bytes)

    def _planned(self, board: Board, change: _Change) -> Planned:
        memories = ram_of(board)
        whole = self._plan(change, (ANYWHERE,))
        largest = max(memories, key=lambda memory: memory.capacity_bytes)
        if len(memories) == 1 or whole.plan.arena_bytes <= largest.capacity_bytes:
            return _in_one(whole, largest)
        return self._plan(change, memories)

    def _plan(self, change: _Change, memories: tuple[Memory, ...]) -> Planned:
        key = (change, memories)
        if key not in self._plans:
            network = feed_by_rows(self.network, self._where) if change.row_fed else self.network
            self._plans[key] = plan_network(network, change.mac_factor, memories)
        return self._plans[key]

    def _emitted(self, board: Board, planned: Planned) -> Emitted:
        """The model's C for a board. Where there is one flash its size plays no part: boards of a kind share it."""
        schedule, plan = planned.schedule, planned.plan
        several = len(board.flashes) > 1
        flash = flash_of(board, table_bytes(planned.network, schedule, plan)) if several else (ANYWHERE,)
        key = (id(schedule), board.architecture, board.features, flash)
        if key not in self._c:
            self._c[key] = emit(planned.network, schedule, plan, SINGLE_SYMBOL, flash, choose_for(board))
        emitted = self._c[key]
        return emitted if several else replace(emitted, flash=_renamed(emitted.flash, board.flash.name))


def _in_one(planned: Planned, memory: Memory) -> Planned:
    """A plan for one memory, which is this one."""
    arena = (replace(part, capacity_bytes=memory.capacity_bytes) for part in _renamed(planned.plan.arena, memory.name))
    others = planned.plan.regions[len(planned.plan.arena) :]
    return replace(planned, plan=replace(planned.plan, regions=(*arena, *others)))


def _renamed(regions: Sequence[Region], name: str) -> tuple[Region, ...]:
    return tuple(replace(region, name=name) for region in regions)
