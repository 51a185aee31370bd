# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs in memory of the caller's, and inputs that a run leaves as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from arenite.errors import UsageError
from arenite_codegen.network import IoTensor, Network

__all__ = ["caller_memory", "keep_inputs"]

# A place in the generated C has 4 bits for its region; one is for states, the rest for the arena's parts.
MOST_CALLER_REGIONS = 7


def caller_memory(
    network: Network, inputs: bool | Sequence[int] = False, outputs: bool | Sequence[int] = False
) -> Network:
    """Let the caller give the memory of some inputs and outputs at run time.

    Args:
        inputs, outputs: All, none, or their positions.

    Raises:
        UsageError: There is no such input or output, there are too many, or the input is fed row by row.
    """
    if network.row_fed and (inputs if isinstance(inputs, bool) else len(inputs) > 0):
        raise UsageError(
            "an input that is fed row by row lies in no memory", cure="Leave out --row-fed or --caller-input"
        )
    chosen = _chosen(network.inputs, inputs, "input") | _chosen(network.outputs, outputs, "output")
    if len(chosen) > MOST_CALLER_REGIONS:
        problem = f"{len(chosen)} inputs and outputs are to lie in the caller's memory"
        raise UsageError(problem, cure=f"At most {MOST_CALLER_REGIONS} may: name some of them by position")
    return replace(network, caller_values=chosen)


def keep_inputs(network: Network) -> Network:
    """Let every input be as it was when a run ends.

    Raises:
        UsageError: The input is fed row by row.
    """
    if network.row_fed:
        raise UsageError("an input that is fed row by row is not kept", cure="Leave out --row-fed or --keep-input")
    return replace(network, keep_input=True)


def _chosen(tensors: tuple[IoTensor, ...], positions: bool | Sequence[int], kind: str) -> frozenset[int]:
    wanted = positions if not isinstance(positions, bool) else range(len(tensors)) if positions else ()
    for position in wanted:
        if not 0 <= position < len(tensors):
            last = f"the last is {len(tensors) - 1}" if len(tensors) > 1 else "the only one is 0"
            raise UsageError(f"the model has no {kind} {position}", cure=f"Positions count from 0; {last}")
    return frozenset(tensors[position].value for position in wanted)
