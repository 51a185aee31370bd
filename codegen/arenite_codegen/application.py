# SPDX-License-Identifier: Apache-2.0
"""Which application a bundle holds: the serial link, or the serial protocol of MLPerf Tiny."""

from __future__ import annotations

from dataclasses import dataclass

from arenite.contract import Contract
from arenite.errors import UsageError
from arenite_codegen.board_model import Board
from arenite_codegen.network import IoTensor, Network

__all__ = ["Benchmark", "benchmark_defines", "benchmark_of"]

_APPLICATIONS = ("link", "mlperf", "mlperf-energy")

_PERFORMANCE_BAUD, _ENERGY_BAUD = 115_200, 9_600


@dataclass(frozen=True)
class _Task:
    """A test of MLPerf Tiny: bytes of the model's input and output, what the host sends, at which baud rate."""

    input_bytes: int
    output_bytes: int
    payload: str
    bytes_per_value: int = 1
    performance_baud: int = _PERFORMANCE_BAUD
    energy_baud: int = _ENERGY_BAUD


_TASKS = {
    "ic01": _Task(3_072, 10, "MLPERF_PIXELS"),
    "vww01": _Task(27_648, 2, "MLPERF_PIXELS"),
    "kws01": _Task(490, 12, "MLPERF_AS_IT_IS"),
    "ad01": _Task(640, 640, "MLPERF_FLOATS", bytes_per_value=4, performance_baud=921_600),
    "sww01": _Task(1_200, 3, "MLPERF_AS_IT_IS", energy_baud=115_200),
}
# Another network of the same test.
_TASKS["ic02"] = _TASKS["ic01"]


@dataclass(frozen=True)
class Benchmark:
    """What the benchmark application tells and takes.

    Attributes:
        model_id: By which the host program chooses the test: `ic01`, `vww01`, `kws01`, `ad01` or `sww01`.
        payload: How the host's bytes become the input, by its name in `mlperf.h`.
        payload_bytes: That the host sends for one inference.
        energy: A pin marks the time for a power monitor, instead of a line that tells it.
        baud: Of the serial port.
    """

    model_id: str
    payload: str
    payload_bytes: int
    energy: bool
    baud: int


def benchmark_of(
    app: str, networks: list[Network], contracts: list[Contract | None], board: Board, baud: int | None
) -> Benchmark | None:
    """The benchmark application of a bundle; None for the serial link.

    Args:
        app: `link`, `mlperf` or `mlperf-energy`.
        networks, contracts: Of the bundle's models. The test is the contract's `name` where that is a model id of
            MLPerf Tiny, else the one whose input and output have the model's sizes.
        board: Must have a counter that knows the time, and for energy a pin.
        baud: Of the serial port; None takes the test's own.

    Raises:
        UsageError: No such application, the bundle is not one model of such a test, or the board lacks what it needs.
    """
    if app == "link":
        return None
    if app not in _APPLICATIONS:
        raise UsageError(f"there is no application {app!r}", cure=f"Choose one of {', '.join(_APPLICATIONS)}")
    if len(networks) != 1:
        raise UsageError(f"a benchmark has one model, not {len(networks)}", cure="Bundle each model by itself")
    energy = app == "mlperf-energy"
    _check_board(board, energy)
    model_id = _model_id(networks[0], contracts[0])
    task = _TASKS[model_id]
    own_baud = task.energy_baud if energy else task.performance_baud
    payload_bytes = task.input_bytes * task.bytes_per_value
    return Benchmark(model_id, task.payload, payload_bytes, energy, baud or own_baud)


def benchmark_defines(board: Board) -> tuple[str, ...]:
    """What the benchmark needs of the runtime: nothing that costs time, unless a watchdog must be fed."""
    return ("ARENITE_ON_STEP",) if board.watchdog is not None else ()


def _check_board(board: Board, energy: bool) -> None:
    if board.counter.unit == "none" or board.counter.hz == 0:
        raise UsageError("the board has no counter that tells the time of a benchmark", where=board.name)
    if energy and board.marker is None:
        cure = "Add a [marker] table to the board file, or bundle with --app mlperf"
        problem = "the board names no pin that could mark the time for a power monitor"
        raise UsageError(problem, where=board.name, cure=cure)


def _model_id(network: Network, contract: Contract | None) -> str:
    if len(network.inputs) != 1 or len(network.outputs) != 1:
        found = f"{len(network.inputs)} and {len(network.outputs)}"
        raise UsageError(f"a benchmark's model has one input and one output, not {found}")
    named = contract.name if contract is not None and contract.name in _TASKS else None
    ids = [named] if named else [name for name, task in _TASKS.items() if _fits(task, network)]
    if not ids or not _fits(_TASKS[ids[0]], network):
        sizes = "; ".join(f"{name} {task.input_bytes} and {task.output_bytes}" for name, task in _TASKS.items())
        mine = f"{network.inputs[0].bytes} and {network.outputs[0].bytes} bytes"
        problem = f"the model is none of MLPerf Tiny: its input and output have {mine}"
        raise UsageError(problem, where=named, cure=f"Those of the benchmark have, in bytes: {sizes}")
    return ids[0]


def _fits(task: _Task, network: Network) -> bool:
    return (_size(network.inputs[0]), _size(network.outputs[0])) == (task.input_bytes, task.output_bytes)


def _size(io: IoTensor) -> int:
    return io.bytes if io.dtype in ("int8", "uint8") else 0
