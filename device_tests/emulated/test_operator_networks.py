# SPDX-License-Identifier: Apache-2.0
"""Networks beyond plain INT8 image classifiers: firmware on an emulated M4 and RV32 equals the authority."""

from __future__ import annotations

from pathlib import Path

import pytest

from arenite.device import verify
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.operator_networks import OPERATOR_NETWORKS

BOARDS = ("qemu-mps2-an386", "qemu-riscv32")
VECTORS = 3


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", OPERATOR_NETWORKS)
def test_firmware_equals_the_authority(tmp_path: Path, name: str, board: str) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(OPERATOR_NETWORKS[name]())
    report = bundle(model, board, tmp_path / "b", vectors=VECTORS)
    assert report.authority is not None
    assert report.authority.startswith("ai-edge-litert" if name == "uint8-born" else "tflite-micro")
    build(tmp_path / "b")
    proof = verify(tmp_path / "b")
    assert proof.identical, proof.first_difference
    assert proof.vectors == VECTORS


def test_what_a_model_remembers_lies_apart_from_the_arena(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(OPERATOR_NETWORKS["LSTM"]())
    report = bundle(model, BOARDS[0], tmp_path / "b", vectors=1)
    regions = {region.holds: region.bytes for region in report.regions}
    assert regions["state"] == 16 + 2 * 16  # hidden int8, cell int16
    header = (tmp_path / "b" / "model" / "arenite_model.h").read_text()
    assert "arenite_model_reset(" in header
