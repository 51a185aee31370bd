# SPDX-License-Identifier: Apache-2.0
"""From instructions to time: a declared model, with the published figures that it can be held against.

Cycles an instruction of a convolution loop on each core, from the instruction timings of Arm's technical reference
manuals (one a data-processing or multiply instruction, one to two a load, two to four a taken branch; a Cortex-M7
issues two at once) and, for RISC-V, of a five-stage pipeline that issues one. The band is from code that never waits to
code that misses branches and waits for flash now and then. Nothing was measured here: the emulators have no pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CYCLES_PER_INSTRUCTION", "CyclesPerInstruction", "PUBLISHED", "Published", "published_for"]


@dataclass(frozen=True)
class CyclesPerInstruction:
    """Least, usual and most."""

    low: float
    usual: float
    high: float


CYCLES_PER_INSTRUCTION = {
    "cortex-m0": CyclesPerInstruction(1.2, 1.4, 1.8),
    "cortex-m0plus": CyclesPerInstruction(1.1, 1.3, 1.7),
    "cortex-m3": CyclesPerInstruction(1.05, 1.25, 1.6),
    "cortex-m4": CyclesPerInstruction(1.05, 1.25, 1.6),
    "cortex-m7": CyclesPerInstruction(0.55, 0.75, 1.1),
    "cortex-m33": CyclesPerInstruction(1.0, 1.2, 1.5),
    "cortex-m55": CyclesPerInstruction(1.0, 1.4, 2.0),
    "rv32imc": CyclesPerInstruction(1.0, 1.25, 1.6),
    "rv32imac": CyclesPerInstruction(1.0, 1.25, 1.6),
}


@dataclass(frozen=True)
class Published:
    """A latency that others measured, with other software, on a core of the same kind.

    Attributes:
        network: Known by `macs` and `input_shape`.
        latency_ms: At `clock_mhz`.
    """

    network: str
    macs: int
    input_shape: tuple[int, ...]
    cpu: str
    clock_mhz: int
    latency_ms: float
    source: str


_TINY_M4 = "best of MLPerf Tiny v1.1 to v1.3 on a Cortex-M4 (STM32L4R5)"
_TINY_M7 = "best of MLPerf Tiny v1.1 to v1.3 on a Cortex-M7"
_IC = ("MLPerf Tiny IC", 12_501_632, (1, 32, 32, 3))
_VWW = ("MLPerf Tiny VWW", 7_489_664, (1, 96, 96, 3))
_KWS = ("MLPerf Tiny KWS", 2_656_768, (1, 49, 10, 1))
_AD = ("MLPerf Tiny AD", 264_192, (1, 640))
_MOBILENET_V2 = ("MobileNetV2 1.0/224", 300_774_272, (1, 224, 224, 3))
PUBLISHED = (
    Published(*_IC, "cortex-m4", 120, 165.0, _TINY_M4),
    Published(*_VWW, "cortex-m4", 120, 88.9, _TINY_M4),
    Published(*_KWS, "cortex-m4", 120, 43.2, _TINY_M4),
    Published(*_AD, "cortex-m4", 120, 4.05, _TINY_M4),
    Published(*_IC, "cortex-m7", 280, 40.8, _TINY_M7),
    Published(*_VWW, "cortex-m7", 280, 23.8, _TINY_M7),
    Published(*_KWS, "cortex-m7", 280, 11.3, _TINY_M7),
    Published(*_AD, "cortex-m7", 280, 1.08, _TINY_M7),
    Published(*_MOBILENET_V2, "cortex-m7", 400, 1118.0, "ST Edge AI 4.0 on STM32H747, stm32ai-modelzoo"),
)
_SAME = 0.01  # of the multiply-accumulates: some counts take the pads


def published_for(cpu: str, macs: int, input_shape: tuple[int, ...]) -> Published | None:
    """What is known of such a network on such a core."""
    for entry in PUBLISHED:
        same = entry.input_shape == input_shape and abs(macs - entry.macs) <= _SAME * entry.macs
        if same and entry.cpu == cpu:
            return entry
    return None
