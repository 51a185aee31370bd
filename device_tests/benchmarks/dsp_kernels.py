# SPDX-License-Identifier: Apache-2.0
"""Instructions and code of the kernels with the DSP extension, beside TFLM's with CMSIS-NN.

    python device_tests/benchmarks/dsp_kernels.py

Needs the reference models beside the checkout (../shared/data), arm-none-eabi-gcc and QEMU or Unicorn.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import arenite

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
BOARDS = ("qemu-mps2-an386", "qemu-mps2-an500")
# Millions of instructions of one Invoke on M4 and M7: the better of TFLM's -O3 and default builds (August 2026), with
# CMSIS-NN, arm-none-eabi-gcc 12.2, only the model's operators registered.
RIVALS = {
    "mlperf_tiny/pretrainedResnet_quant": ("MLPerf Tiny IC", (29.86, 29.93)),
    "mlperf_tiny/kws_ref_model": ("MLPerf Tiny KWS", (7.70, 7.64)),
    "mlperf_tiny/vww_96_int8": ("MLPerf Tiny VWW", (24.10, 24.03)),
    "mlperf_tiny/str_ww_ref_model": ("MLPerf Tiny SWW", (2.226, 2.187)),
    "mlperf_tiny/ad01_int8": ("MLPerf Tiny AD", (0.5823, 0.5825)),
    "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq": ("MobileNetV2 1.0/224", (797.1, 788.4)),
    "mobilenet_v2/mobilenet_v2_quantized_1x3x224x224": ("MobileNetV2, planar (from PyTorch)", (812.8, 801.0)),
}


def row(name: str, folder: Path) -> str:
    """One network on both boards."""
    title, rivals = RIVALS[name]
    cells, code, limit = [], 0, 0.0
    for board, rival in zip(BOARDS, rivals, strict=True):
        out = folder / "out"
        report = arenite.bundle(DATA / f"{name}.tflite", board, out, vectors=1, force=True)
        built = arenite.build(out, "gcc")
        proof = arenite.verify(out)
        assert proof.identical and proof.instructions is not None
        cells.append(f"{proof.instructions / 1e6:.2f} | {rival} | {proof.instructions / 1e6 / rival:.2f}")
        if board == BOARDS[0]:
            code, limit = built.code_bytes, proof.instructions / (report.macs / 2)
            stack = built.stack_bytes
    return f"| {title} | {' | '.join(cells)} | {limit:.1f} | {code:,} | {stack:,} |"


def main() -> int:
    """Prints the table of docs/kernels.md."""
    if not DATA.is_dir():
        print("the reference models (../shared/data) are not beside this checkout", file=sys.stderr)
        return 2
    print("| network | M4, M instructions | TFLM | ratio | M7 | TFLM | ratio | M4: × limit | code | stack |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in RIVALS:
        with tempfile.TemporaryDirectory() as folder:
            print(row(name, Path(folder)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
