# SPDX-License-Identifier: Apache-2.0
"""The figures of the README, measured.

    python device_tests/benchmarks/figures.py            prints them
    python device_tests/benchmarks/figures.py --update   writes them into README.md

Needs the reference models beside the checkout (../shared/data). Sizes of arenas and weights are the same on
every machine; sizes of code and numbers of instructions belong to the compiler that is named beside them.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import arenite
from arenite.graph import Graph

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
BOARDS = ("qemu-mps2-an386", "qemu-mps2-an500", "qemu-mps3-an547", "qemu-riscv32")
MOBILENET = "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq.tflite"
TINY_NETWORKS = tuple(
    f"mlperf_tiny/{name}.tflite" for name in ("vww_96_int8", "pretrainedResnet_quant", "kws_ref_model", "ad01_int8")
)
FACTORS = (1.0, 1.1, 1.2, 2.0)
NETWORKS = {
    MOBILENET: "MobileNetV2 1.0/224",
    "mobilenet_v2/mobilenet_v2_quantized_1x3x224x224.tflite": "MobileNetV2 1.0/224, planar (from PyTorch)",
    "mlperf_tiny/vww_96_int8.tflite": "MLPerf Tiny VWW, MobileNetV1 0.25/96",
    "mlperf_tiny/pretrainedResnet_quant.tflite": "MLPerf Tiny IC, ResNet-8",
    "mlperf_tiny/kws_ref_model.tflite": "MLPerf Tiny KWS, DS-CNN",
    "mlperf_tiny/str_ww_ref_model.tflite": "MLPerf Tiny SWW",
    "mlperf_tiny/ad01_int8.tflite": "MLPerf Tiny AD, autoencoder",
    "tflm/micro_speech_quantized.tflite": "micro_speech",
    "tflm/hello_world_int8.tflite": "hello_world",
}


def layer_by_layer_bytes(graph: Graph) -> int:
    """What running one operator after the other needs at least: the widest operator's inputs and outputs."""
    return max(
        sum(
            graph.tensors[index].elements
            for index in {*operator.inputs, *operator.outputs}
            if index >= 0 and not graph.tensors[index].is_constant
        )
        for operator in graph.operators
    )


def arena_table(data: Path) -> list[str]:
    """Networks and their arenas, the same on every machine; weights as a microcontroller stores them."""
    lines = [
        "| network, full INT8 | weights | layer by layer | **arena** | lower bound | rows fed | MACs | ×MACs |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for path, title in NETWORKS.items():
            report = arenite.bundle(data / path, BOARDS[1], Path(folder) / "out", vectors=0)
            whole = layer_by_layer_bytes(arenite.read_graph(data / path))
            lines.append(
                f"| {title} | {report.weights_bytes:,} | {whole:,} | **{report.arena_bytes:,}** "
                f"| {report.arena_lower_bound_bytes:,} | {row_fed_arena(data / path, Path(folder))} "
                f"| {report.macs:,} | {report.mac_factor:.2f} |"
            )
    return lines


def factor_table(data: Path, factors: tuple[float, ...] = FACTORS) -> list[str]:
    """MobileNetV2 when multiply-accumulates may run again."""
    lines = [
        "| `--max-mac-factor` | arena, frame inside | ×MACs | arena, rows fed | ×MACs |",
        "|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for factor in factors:
            cells = [f"| {factor:.2f} "]
            for row_fed in (False, True):
                report = arenite.bundle(
                    data / MOBILENET,
                    "host",
                    Path(folder) / "out",
                    row_fed=row_fed,
                    max_mac_factor=factor,
                    vectors=0,
                    force=True,
                )
                cells.append(f"| **{report.arena_bytes:,}** | {report.mac_factor:.2f} ")
            lines.append("".join(cells) + "|")
    return lines


def row_fed_arena(model: Path, folder: Path) -> str:
    """Arena of a model whose input comes row by row, or a dash where it cannot."""
    try:
        return f"{arenite.bundle(model, 'host', folder / 'fed', row_fed=True, vectors=0).arena_bytes:,}"
    except arenite.UnsupportedOperatorError:
        return "–"


def promises(data: Path) -> dict[str, str]:
    """The numbers in the README's sentences."""
    model = data / MOBILENET
    with tempfile.TemporaryDirectory() as folder:
        report = arenite.bundle(model, "host", Path(folder) / "out", vectors=0)
        fed = row_fed_arena(model, Path(folder))
        tiny = [data / path for path in TINY_NETWORKS]
        shared = arenite.bundle(tiny, "host", Path(folder) / "tiny", vectors=0).arena_bytes
    return {
        "shared": f"{shared:,}",
        "arena": f"{report.arena_bytes:,}",
        "fed": fed,
        "whole": f"{layer_by_layer_bytes(arenite.read_graph(model)):,}",
        "factor": f"{report.mac_factor:.2f}",
    }


def firmware_table(data: Path) -> list[str]:
    """MobileNetV2 as firmware on each emulated board."""
    lines = ["| board | compiler | code | stack used | instructions |", "|---|---|--:|--:|--:|"]
    with tempfile.TemporaryDirectory() as folder:
        for board in BOARDS:
            out = Path(folder) / board
            arenite.bundle(data / MOBILENET, board, out, vectors=1)
            for toolchain in ("gcc", "zig"):
                try:
                    built = arenite.build(out, toolchain)
                except arenite.MissingToolError:
                    continue
                proof = arenite.verify(out)
                assert proof.identical
                lines.append(
                    f"| `{board}` | {built.toolchain} | {built.code_bytes:,} "
                    f"| {proof.stack_peak_bytes:,} | {proof.instructions:,} |"
                )
    return lines


def snippet_output(readme: str, data: Path) -> list[str]:
    """What the README's first Python lines print, run as they stand."""
    code = readme.split("```python\n")[1].split("```")[0]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(data / MOBILENET, Path(folder) / "mobilenet_v2.tflite")
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return [f"    {line}" for line in done.stdout.splitlines()]


def replace_block(text: str, name: str, lines: list[str]) -> str:
    """Puts lines between `<!-- name -->` and `<!-- /name -->`."""
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    head, _, rest = text.partition(start)
    _, found, tail = rest.partition(end)
    if not found:
        raise SystemExit(f"README.md has no block {name}")
    return head + start + "\n".join(lines) + "\n" + found + tail


def replace_words(text: str, words: dict[str, str]) -> str:
    """Puts each number between its `<!-- name -->` and `<!-- /name -->`."""
    for name, word in words.items():
        text, count = re.subn(rf"(<!-- {name} -->).*?(<!-- /{name} -->)", rf"\g<1>{word}\g<2>", text)
        if count == 0:
            raise SystemExit(f"README.md has no number {name}")
    return text


def main() -> int:
    """Prints or updates."""
    parser = argparse.ArgumentParser(description="Measures the figures of the README.")
    parser.add_argument("--update", action="store_true", help="write them into README.md")
    arguments = parser.parse_args()
    if not DATA.is_dir():
        print("the reference models (../shared/data) are not beside this checkout", file=sys.stderr)
        return 2
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    for name, lines in (
        ("arenas", arena_table(DATA)),
        ("factors", factor_table(DATA)),
        ("firmware", firmware_table(DATA)),
        ("output", snippet_output(text, DATA)),
    ):
        print("\n".join(lines) + "\n")
        if arguments.update:
            text = replace_block(text, name, lines)
    if arguments.update:
        text = replace_words(text, promises(DATA))
        readme.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
