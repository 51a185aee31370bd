# SPDX-License-Identifier: Apache-2.0
"""Validation builds on emulated chips: guards intact, and a byte written too far found and named over the link."""

from __future__ import annotations

from pathlib import Path

import pytest

from arenite.device import verify
from arenite.errors import MemoryDamageError
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.damage import damage_kernel
from support.graphs import random_graph

BOARDS = ("qemu-mps2-an386", "qemu-riscv32")


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("board", BOARDS)
def test_a_kernel_that_writes_one_byte_too_far_is_named(tmp_path: Path, board: str, fed: bool) -> None:
    """The second of two models, so that the damage is told in its words."""
    models = [tmp_path / "pool.tflite", tmp_path / "conv.tflite"]
    for path, kind in zip(models, ("MAX_POOL_2D", "CONV_2D"), strict=True):
        path.write_bytes(random_graph(kind, 1).model_bytes)
    bundle(models, board, tmp_path / "b", guards=True, row_fed=fed)
    build(tmp_path / "b")
    assert verify(tmp_path / "b").identical
    damage_kernel(tmp_path / "b", "conv_2d_s8", past_the_end=0)
    build(tmp_path / "b")
    with pytest.raises(MemoryDamageError, match=r"conv: operator 0 CONV_2D, .* wrote past the end of .* in step \d+"):
        verify(tmp_path / "b")


@pytest.mark.reference
def test_a_layer_in_the_middle_of_a_network_is_named(shared_data: Path, tmp_path: Path) -> None:
    """DS-CNN has five convolutions: only one of them writes too far."""
    bundle(shared_data / "mlperf_tiny" / "kws_ref_model.tflite", "qemu-riscv32", tmp_path / "b", guards=True, vectors=1)
    build(tmp_path / "b")
    assert verify(tmp_path / "b").identical
    damage_kernel(tmp_path / "b", "conv_2d_s8", past_the_end=0, only_if="p == &params_of_the_third")
    source = tmp_path / "b" / "model" / "model.c"
    text = source.read_text()
    third = [line.split()[-3] for line in text.splitlines() if "const arenite_conv_2d_s8_t params_" in line][2]
    operator = text[: text.index(f"{third} = ")].rsplit("/* operator ", 1)[1].split(":")[0]
    source.write_text(
        text.replace(f"static const arenite_conv_2d_s8_t {third} ", f"const arenite_conv_2d_s8_t {third} ")
    )
    kernel = tmp_path / "b" / "kernels" / "arenite_conv_2d_s8.c"
    spoilt = kernel.read_text().replace("params_of_the_third", third)
    kernel.write_text(f'#include "arenite_conv_2d_s8.h"\nextern const arenite_conv_2d_s8_t {third};\n{spoilt}')
    build(tmp_path / "b")
    with pytest.raises(MemoryDamageError, match=rf"operator {operator} CONV_2D"):
        verify(tmp_path / "b")
