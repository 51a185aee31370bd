# SPDX-License-Identifier: Apache-2.0
"""What a layer costs on each kind of core: fits the table of `arenite_codegen.instruction_model`.

    python device_tests/benchmarks/instruction_costs.py

Profiles the reference models on emulated boards, whose instructions are counted exactly, and fits for each kernel and
variant instructions a multiply-accumulate, an output byte and an output row. Prints the table's rows, each with how far
the fit is from what was counted. Needs the reference models beside the checkout (../shared/data), GCC and QEMU.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

import arenite
from arenite._manifest import read_manifest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
BOARDS = {
    "dsp": "qemu-mps2-an386",
    "mve": "qemu-mps3-an547",
    "riscv32": "qemu-riscv32",
}
MODELS = (
    "mlperf_tiny/pretrainedResnet_quant",
    "mlperf_tiny/kws_ref_model",
    "mlperf_tiny/vww_96_int8",
    "mlperf_tiny/str_ww_ref_model",
    "mlperf_tiny/ad01_int8",
    "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq",
)
Samples = dict[tuple[str, str], list[tuple[float, ...]]]


def samples(board: str) -> Samples:
    """(MACs, output bytes, rows, instructions) of each layer of one operator that has MACs, by kernel and variant."""
    found: Samples = defaultdict(list)
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "bundle"
            arenite.bundle(DATA / f"{name}.tflite", board, out, vectors=1)
            arenite.build(out, "gcc")
            report = arenite.profile(out)
            model = read_manifest(out)["models"][0]
        kernels = {row["index"]: row["kernel"] for row in model["operators"]}
        for layer, entry in zip(report.layers, model["layers"], strict=True):
            if len(layer.operators) == 1 and layer.macs:
                key = (kernels[layer.operators[0]], layer.variants[0])
                output_bytes = entry["rows"] * entry["row_bytes"]
                found[key].append((layer.macs, output_bytes, entry["rows"], layer.cost))
    return found


def fitted(rows: list[tuple[float, ...]]) -> tuple[npt.NDArray[np.float64], float]:
    """Non-negative costs that are nearest in proportion, and the median of how far they are off."""
    table = np.array(rows, np.float64)
    counted = table[:, 3]
    scaled = table[:, :3] / counted[:, None]
    costs = np.zeros(3)
    for kept in ((0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,)):
        some = np.linalg.lstsq(scaled[:, kept], np.ones(len(table)), rcond=None)[0]
        if (some >= 0).all():
            costs[list(kept)] = some
            break
    return costs, float(np.median(np.abs(scaled @ costs - 1)))


def main() -> int:
    """Prints the rows of the table."""
    if not DATA.is_dir():
        print("the reference models (../shared/data) are not beside this checkout", file=sys.stderr)
        return 2
    for core, board in BOARDS.items():
        for (kernel, variant), rows in sorted(samples(board).items()):
            (per_mac, per_byte, per_row), error = fitted(rows)
            print(
                f'    ("{core}", "{kernel}", "{variant}"): Costs({per_mac:.3g}, {per_byte:.3g}, {per_row:.3g}),'
                f"  # {len(rows)} layers, median error {error:.0%}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
