# SPDX-License-Identifier: Apache-2.0
"""A bundle on its way: what was asked for, and each model with what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arenite.contract import Contract
from arenite.graph import Graph
from arenite_codegen.board_update import Slotted
from arenite_codegen.boards import Board
from arenite_codegen.camera import Camera, Preprocessing
from arenite_codegen.emit import Emitted
from arenite_codegen.ends import BoardModel
from arenite_codegen.network import Network
from arenite_codegen.plan import Plan
from arenite_codegen.schedule import Schedule
from arenite_codegen.variants import Choose, choose_for

__all__ = ["EmittedModel", "Options", "PlannedModel", "camera_bytes", "chooser"]


@dataclass(frozen=True)
class PlannedModel:
    """One model before anything is known of the others."""

    model: Path
    symbol: str
    read: BoardModel
    network: Network
    schedule: Schedule
    plan: Plan
    contract: Contract | None
    camera: Preprocessing | None

    @property
    def graph(self) -> Graph:
        """Of the model as the board runs it."""
        return self.read.graph

    @property
    def camera_bytes(self) -> int:
        """RAM of the preprocessing."""
        return 0 if self.camera is None else self.camera.memory_bytes

    @property
    def camera_table_bytes(self) -> int:
        """Its flash."""
        return 0 if self.camera is None else self.camera.table_bytes


@dataclass(frozen=True)
class EmittedModel(PlannedModel):
    """One model as it goes into the bundle."""

    emitted: Emitted


@dataclass(frozen=True)
class Options:
    """What holds for each model of a bundle."""

    board: Board
    float_ends: bool
    caller_inputs: bool | Sequence[int]
    caller_outputs: bool | Sequence[int]
    keep_input: bool
    max_mac_factor: float
    optimise: str
    guards: bool
    camera: Camera | None
    exports: tuple[str, ...]
    app: str
    baud: int | None
    slotted: Slotted | None


def camera_bytes(models: Sequence[PlannedModel]) -> int:
    """RAM of the preprocessing of models that take turns."""
    return max(one.camera_bytes for one in models)


def chooser(models: Sequence[PlannedModel], options: Options) -> Choose:
    """How layers of the bundle get their variants."""
    return choose_for(options.board, options.optimise, [layer for one in models for layer in one.network.layers])
