# SPDX-License-Identifier: Apache-2.0
"""The kernels with the DSP extension equal TFLM: on an emulated Cortex-M, and as plain C under a sanitiser."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from arenite.device import verify
from arenite.errors import MissingToolError, UsageError
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.cortex_m import CortexMModels
from support.graphs import random_graph
from support.host_compiler import HostCompiler
from support.random_graphs_cli import check_graphs
from support.tflm import TflmModel

KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "PAD_CONV", "CONV_CHAIN", "WIDE_CHAIN")
GRAPHS = [(kind, 700 + seed) for kind in KINDS for seed in range(10)]


@pytest.mark.parametrize(("board", "toolchain"), [("qemu-mps2-an386", "gcc"), ("qemu-mps2-an500", "zig")])
def test_random_graphs_equal_tflm(board: str, toolchain: str, tmp_path: Path) -> None:
    cases = [random_graph(kind, seed) for kind, seed in GRAPHS]
    try:
        models = CortexMModels([case.model_bytes for case in cases], tmp_path, board, toolchain)
    except MissingToolError as error:
        pytest.skip(str(error))
    for index, case in enumerate(cases):
        oracle = TflmModel(case.model_bytes)
        for number, vector in enumerate(case.vectors):
            expected = oracle.run(vector)
            offset = 4 * ((index + number) % 4)
            found = models.run(index, vector, expected, offset)
            assert found[0].tobytes() == expected[0].tobytes(), f"{GRAPHS[index]}, {offset} bytes off"


def test_no_kernel_reads_beside_a_row(compiler: HostCompiler, prebuilt: list[Path]) -> None:
    """Each row in an allocation of its own, at an offset of 0 to 15, watched by the sanitiser."""
    wanted = [(kind, 500 + seed) for seed in range(12) for kind in KINDS] + [("MOBILE_BLOCKS", 500)]
    result = list(check_graphs(wanted, compiler, prebuilt, isa="dsp"))[-1]
    assert result.failures == []
    assert sum(result.compared.values()) == len(wanted)


# Millions of instructions, a little above what arm-none-eabi-gcc 12.2 gives; TFLM with CMSIS-NN takes 7.70 and 29.86.
CEILINGS = {"mlperf_tiny/kws_ref_model": 4.20, "mlperf_tiny/pretrainedResnet_quant": 15.20}


@pytest.mark.reference
@pytest.mark.parametrize("name", list(CEILINGS))
def test_instructions_stay_below_their_ceiling(name: str, shared_data: Path, tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("counts belong to arm-none-eabi-gcc, which is not on PATH")
    bundle(shared_data / f"{name}.tflite", "qemu-mps2-an386", tmp_path / "b", vectors=1)
    report = build(tmp_path / "b", "gcc")
    proof = verify(tmp_path / "b")
    assert proof.identical
    assert proof.instructions is not None and proof.instructions <= CEILINGS[name] * 1e6
    assert report.stack_is_bound and proof.stack_peak_bytes <= report.stack_bytes <= 1536


def test_size_and_speed_are_a_choice(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(random_graph("MOBILE_BLOCKS", 500).model_bytes)
    bundle(path, "qemu-mps2-an386", tmp_path / "b", vectors=1)
    sizes = []
    for optimise in ("size", "speed"):
        sizes.append(build(tmp_path / "b", optimise=optimise).code_bytes)
        assert verify(tmp_path / "b").identical
    assert sizes[0] < sizes[1]
    with pytest.raises(UsageError, match="not optimised for 'beauty'"):
        build(tmp_path / "b", optimise="beauty")
