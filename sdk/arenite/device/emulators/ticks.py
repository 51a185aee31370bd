# SPDX-License-Identifier: Apache-2.0
"""Instructions from the ticks of an emulated clock that advances by a fixed time an instruction."""

from __future__ import annotations

__all__ = ["instructions_to_ticks", "ticks_to_instructions"]

_NS = 1_000_000_000


def instructions_to_ticks(instructions: int, hz: int, instruction_ns_log2: int) -> int:
    """Ticks of an `hz` clock after so many instructions of 2**`instruction_ns_log2` ns each."""
    return (instructions << instruction_ns_log2) * hz // _NS


def ticks_to_instructions(ticks: int, hz: int, instruction_ns_log2: int) -> int | None:
    """The nearest number of instructions; None without a clock.

    Exact for the difference of two readings when an instruction lasts more than two ticks: the difference is
    then less than half an instruction off.
    """
    step = hz << instruction_ns_log2
    return (ticks * _NS + step // 2) // step if hz else None
