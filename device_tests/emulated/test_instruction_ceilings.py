# SPDX-License-Identifier: Apache-2.0
"""No network takes more instructions than it did, nor more stack than is promised: exact counts on emulated boards.

The counts belong to the compilers named; docs/kernels.md has them beside those of TFLM.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from arenite.device import verify
from arenite.errors import MissingToolError
from arenite_codegen import bundle
from arenite_codegen.build import build

KWS, IC, SWW = (
    f"mlperf_tiny/{name}.tflite" for name in ("kws_ref_model", "pretrainedResnet_quant", "str_ww_ref_model")
)
HELIUM, RISCV = "qemu-mps3-an547", "qemu-riscv32"
COMPILERS = {HELIUM: "arm-none-eabi-gcc 12.2.1", RISCV: "riscv64-unknown-elf-gcc 12.2.0"}
STACK_BYTES = 1536
CEILINGS = {
    (HELIUM, KWS): 979_000,
    (HELIUM, IC): 2_640_000,
    (HELIUM, SWW): 223_000,
    (RISCV, KWS): 13_700_000,
    (RISCV, IC): 44_900_000,
}


@pytest.mark.reference
@pytest.mark.parametrize(("board", "name"), CEILINGS)
def test_instructions_stay_below_their_ceiling(shared_data: Path, tmp_path: Path, board: str, name: str) -> None:
    bundle(shared_data / name, board, tmp_path / "b", vectors=1)
    try:
        report = build(tmp_path / "b", "gcc")
        proof = verify(tmp_path / "b", on="qemu")
    except MissingToolError as error:
        pytest.skip(str(error))
    assert proof.identical
    assert proof.stack_peak_bytes is not None
    assert proof.stack_peak_bytes <= report.stack_bytes <= STACK_BYTES
    if report.toolchain != COMPILERS[board]:
        pytest.skip(f"the ceiling is that of {COMPILERS[board]}, this is {report.toolchain}")
    ceiling = CEILINGS[board, name]
    assert proof.instructions is not None
    assert 0.95 * ceiling < proof.instructions <= ceiling, "lower the ceiling with the count"
