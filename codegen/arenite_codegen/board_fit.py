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
from arenite_codegen.board_hardware import FAMILIES
from arenite_codegen.board_model import Board, Features
from arenite_codegen.boards import list_boards, load_board
from arenite_codegen.cycle_model import CYCLES_PER_INSTRUCTION, CyclesPerInstruction
from arenite_codegen.emit import SINGLE_SYMBOL, Emitted, emit
from arenite_codegen.ends import read_for_board
from arenite_codegen.fit import CODE_BYTES, Shortfall, flash_of, nearest_network, ram_of, shortfalls
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
        latency_ms: Of one inference, modelled: multiply-accumulates by kind of core and clock, and `waiting_ms`.
        waiting_ms: Of that, what slow memories add: the board file's cycles of the words that an inference moves there.
        energy_mj: Of one inference, modelled: latency times what the running chip draws; None where that is unknown.
        power_source: Where the board file has that figure from; empty if it has none.
        proven: How far the board itself is proven.
    """

    board: str
    fits: bool
    arena_bytes: int
    weights_bytes: int
    missing: tuple[Shortfall, ...]
    change: str | None
    latency_ms: float
    waiting_ms: float
    energy_mj: float | None
    power_source: str
    proven: str


@dataclass(frozen=True)
class FitReport:
    """What `arenite fit` found.

    Attributes:
        model: The file.
        macs: Multiply-accumulates of one inference.
        boards: In the order asked for.
        latency_source: What kind of figure the latencies and energies are.
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
    trial = _Trial(legalise(read_for_board(path).graph), str(path))
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


def waiting_cycles(board: Board, used: Sequence[Region]) -> int:
    """Core cycles that arena and weights wait for memories that take longer than one cycle a word, modelled.

    Args:
        used: Parts of arena and weights, with the bytes that an inference moves there.
    """
    word_cycles = {region.name: region.word_cycles for region in board.memory}
    parts = (part for part in used if part.holds in ("arena", "weights"))
    return sum(-(-part.traffic_bytes // 4) * (word_cycles[part.name] - 1) for part in parts)


class _Trial:
    """A model with the plans made of it so far."""

    def __init__(self, network: Network, where: str) -> None:
        self.network, self._where = network, where
        self._plans: dict[tuple[_Change, tuple[Memory, ...]], Planned] = {}
        self._c: dict[tuple[int, str, Features, tuple[Memory, ...]], Emitted] = {}

    def on(self, board: Board) -> BoardFit:
        planned, emitted, missing = self._tried(board, _Change())
        waiting = waiting_cycles(board, [*planned.plan.regions, *emitted.flash])
        cycles = cycles_per_mac(board) * self.network.macs + waiting
        latency_ms = 1e3 * cycles / board.clock_hz
        return BoardFit(
            board=board.name,
            fits=not missing,
            arena_bytes=planned.plan.arena_bytes,
            weights_bytes=emitted.weights_bytes,
            missing=missing,
            change=self._change(board, missing, emitted.weights_bytes) if missing else None,
            latency_ms=latency_ms,
            waiting_ms=1e3 * waiting / board.clock_hz,
            energy_mj=board.power.energy_mj(board.clock_hz, latency_ms) if board.power else None,
            power_source=board.power.source if board.power else "",
            proven=board.proven,
        )

    def _change(self, board: Board, missing: tuple[Shortfall, ...], weights_bytes: int) -> str | None:
        """What comes nearest: options where RAM is short; where flash is, more of it, or another network."""
        if all(short.kind == "ram" for short in missing):
            for change in _CHANGES:
                if self._has_room(board, change, flash_too=True):
                    return change.words
            found = []
        else:
            found = self._with_more_flash(board, weights_bytes)
        network = nearest_network(board)
        return " or ".join([*found, *([network.name] if network else [])]) or None

    def _with_more_flash(self, board: Board, weights_bytes: int) -> list[str]:
        size = _external_flash_bytes(board, weights_bytes)
        if not size:
            return []
        for change in (_Change(), _CHANGES[0]):
            if self._has_room(board, change, flash_too=False):
                flash = f"{size >> 20} MB of external flash"
                return [f"{flash} with {change.words}" if change.words else flash]
        return []

    def _has_room(self, board: Board, change: _Change, flash_too: bool) -> bool:
        try:
            if flash_too:
                return not self._tried(board, change)[2]
            return not shortfalls(board, self._planned(board, change).plan.regions, 0)
        except UnsupportedOperatorError:  # this input cannot come row by row
            return False

    def _tried(self, board: Board, change: _Change) -> tuple[Planned, Emitted, tuple[Shortfall, ...]]:
        planned = self._planned(board, change)
        emitted = self._emitted(board, planned)
        return planned, emitted, shortfalls(board, [*planned.plan.regions, *emitted.flash], emitted.table_bytes)

    def _planned(self, board: Board, change: _Change) -> Planned:
        memories = ram_of(board)
        whole = self._plan(change, (ANYWHERE,))
        roomy = [memory for memory in memories if whole.plan.arena_bytes <= memory.capacity_bytes]
        if len(memories) > 1 and not roomy:
            return self._plan(change, memories)
        return _in_one(whole, min(roomy or memories, key=lambda memory: memory.word_cycles))

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
    regions = _renamed(planned.plan.regions, memory.name)
    held = tuple(replace(part, capacity_bytes=memory.capacity_bytes) for part in regions)
    return replace(planned, plan=replace(planned.plan, regions=held))


def _renamed(regions: Sequence[Region], name: str) -> tuple[Region, ...]:
    return tuple(replace(region, name=name) for region in regions)


def _external_flash_bytes(board: Board, weights_bytes: int) -> int:
    """The smallest chip of flash, a power of two, for weights and code; 0 if the board's C maps none so large."""
    size = max(1 << 20, 1 << (weights_bytes + CODE_BYTES - 1).bit_length())
    return size if size <= FAMILIES[board.hardware.family].mapped_flash_bytes else 0
