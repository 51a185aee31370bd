# SPDX-License-Identifier: Apache-2.0
"""The kernels with the DSP extension equal TFLM: on an emulated Cortex-M, and as plain C under a sanitiser."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from arenite.device import verify
from arenite.errors import MissingToolError, UsageError
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from arenite_codegen.network import Layer
from arenite_codegen.variants import choose_for
from support.choices import Choices
from support.cortex_m import CortexMModels
from support.graph_case import GraphCase, Window
from support.graphs import random_graph
from support.host_compiler import HostCompiler
from support.random_graphs_cli import check_cases, check_graphs
from support.spatial_graphs import conv_2d_of
from support.tflm import TflmModel

KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "PAD_CONV", "CONV_CHAIN", "WIDE_CHAIN")
GRAPHS = [(kind, 700 + seed) for kind in KINDS for seed in range(10)]
# Input, window and output channels. `dsp-rows` widens windows for 13 channels or more: up to 388 bytes where pointers
# have 32 bits, up to 780 where they have 64.
WIDENED = [
    *(((1, 1, 1, depth), (1, 1), units) for depth in (386, 388, 389, 391, 781, 783) for units in (12, 13, 18)),
    ((1, 4, 5, 44), (3, 3), 16),
    ((1, 4, 3, 88), (3, 3), 16),
    ((1, 8, 10, 8), (7, 9), 14),
    ((1, 9, 8, 12), (8, 8), 14),
]


def _widened_cases() -> list[tuple[str, GraphCase]]:
    cases = []
    for index, (shape, kernel, units) in enumerate(WIDENED):
        window = Window(kernel, (1, 1), (1, 1), "SAME")
        cases.append((f"{shape} {kernel} {units}", conv_2d_of(Choices.seeded(index), shape, window, units)))
    return cases


@pytest.mark.parametrize(("board", "toolchain"), [("qemu-mps2-an386", "gcc"), ("qemu-mps2-an500", "zig")])
def test_random_graphs_equal_tflm(board: str, toolchain: str, tmp_path: Path) -> None:
    cases = [(f"{kind}:{seed}", random_graph(kind, seed)) for kind, seed in GRAPHS] + _widened_cases()
    try:
        models = CortexMModels([case.model_bytes for _, case in cases], tmp_path, board, toolchain)
    except MissingToolError as error:
        pytest.skip(str(error))
    for index, (name, case) in enumerate(cases):
        oracle = TflmModel(case.model_bytes)
        for number, vector in enumerate(case.vectors):
            expected = oracle.run(vector)
            offset = 4 * ((index + number) % 4)
            found = models.run(index, vector, expected, offset)
            assert found[0].tobytes() == expected[0].tobytes(), f"{name}, {offset} bytes off"


def test_no_kernel_reads_beside_a_row(compiler: HostCompiler, prebuilt: list[Path]) -> None:
    """Each row in an allocation of its own, at an offset of 0 to 15, watched by the sanitiser."""
    wanted = [(kind, 500 + seed) for seed in range(12) for kind in KINDS] + [("MOBILE_BLOCKS", 500)]
    result = list(check_graphs(wanted, compiler, prebuilt, isa="dsp"))[-1]
    assert result.failures == []
    assert sum(result.compared.values()) == len(wanted)
    cases = [(name, index, case) for index, (name, case) in enumerate(_widened_cases())]
    assert check_cases(cases, compiler, prebuilt, isa="dsp").failures == []


# Millions of instructions, a little above what arm-none-eabi-gcc 12.2 gives; TFLM with CMSIS-NN takes 7.70, 29.86 and
# 2.23.
CEILINGS = {
    "mlperf_tiny/kws_ref_model": 4.20,
    "mlperf_tiny/pretrainedResnet_quant": 14.60,
    "mlperf_tiny/str_ww_ref_model": 1.09,
}


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
    sizes = []
    for optimise in ("size", "balanced", "speed"):
        bundle(path, "qemu-mps2-an386", tmp_path / "b", vectors=1, optimise=optimise)
        sizes.append(build(tmp_path / "b").code_bytes)
        assert verify(tmp_path / "b").identical
    assert sizes == sorted(set(sizes))
    assert build(tmp_path / "b", optimise="size").code_bytes < sizes[-1], "what `build` is told goes before the bundle"
    with pytest.raises(UsageError, match="not optimised for 'beauty'"):
        build(tmp_path / "b", optimise="beauty")
    with pytest.raises(UsageError, match="not optimised for 'beauty'"):
        bundle(path, "qemu-mps2-an386", tmp_path / "c", optimise="beauty")
    assert not (tmp_path / "c").exists()


def test_for_size_the_fewest_variants_run_all_layers() -> None:
    """A window that only one variant takes brings that one; the others' layers then go to it, or to the fastest."""
    board = load_board("qemu-mps2-an386")
    layers = [_conv(1, 1, 64, pixels=8), _conv(3, 3, 3, pixels=8), _conv(1, 1, 8, pixels=1)]

    def names(optimise: str, some: list[Layer]) -> list[str]:
        choose = choose_for(board, optimise, some)
        return [choose(layer).variant.name for layer in some]

    assert names("speed", layers) == ["dsp", "dsp", "dsp-rows"]
    assert names("size", layers) == ["dsp", "dsp", "dsp"]
    assert names("balanced", layers) == names("speed", layers)
    large = [_conv(1, 1, 512, pixels=8), *layers]
    assert names("size", large) == ["dsp-rows", "dsp", "dsp", "dsp-rows"], "no variant runs both: two are needed"
    without = [large[0], layers[0]]
    assert names("size", without) == ["dsp-rows", "dsp-rows"]
    why = choose_for(board, "size", without)(without[1]).passed_over
    assert why["dsp"] == "the firmware is for size, and fewer variants run all its layers"


def _conv(kernel_h: int, kernel_w: int, in_c: int, pixels: int) -> Layer:
    """A convolution to 4 channels, small weights, in the terms of the variants' predicates."""
    weights = np.ones((4, kernel_h, kernel_w, in_c), np.int8)
    parameters = {
        "weights": weights,
        "bias": np.zeros(4, np.int32),
        "multiplier": np.full(4, 1 << 30, np.int32),
        "shift": np.full(4, -8, np.int8),
        "kernel_h": kernel_h,
        "kernel_w": kernel_w,
        "in_c": in_c,
        "out_w": pixels,
        "act_min": -128,
        "act_max": 127,
        "out_zero_point": 0,
    }
    macs = pixels * weights.size
    return Layer(0, 0, "CONV_2D", "conv_2d_s8", (), 0, steps=1, parameters=parameters, macs=macs)
