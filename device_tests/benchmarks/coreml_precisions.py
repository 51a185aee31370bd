# SPDX-License-Identifier: Apache-2.0
"""Two trained networks as Core ML packages in every precision, against the trained models.

    PYTHONPATH=device_tests python device_tests/benchmarks/coreml_precisions.py [--crops 60] [NETWORK...]

Random crops of every other photograph calibrate, crops of those between are compared. Prints a line for each package;
exits 1 when one is refused. Needs arenite[convert,coreml,torch], the networks' packages and ../shared/data.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from arenite.coreml_package import PRECISIONS
from arenite.errors import CheckFailedError
from arenite_converters.coreml import convert_coreml
from arenite_converters.quiet import quiet
from support.photographs import photographs, random_crops
from support.trained_networks import TRAINED_NETWORKS

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def line(network: str, precision: str, crops: int) -> str:
    """Converts and checks one."""
    trained = TRAINED_NETWORKS[network]()
    files = photographs(DATA)
    with tempfile.TemporaryDirectory() as folder, quiet():
        report = convert_coreml(
            trained.model,
            Path(folder) / "model.mlpackage",
            calibration=random_crops(files[::2], crops, trained.size, 0),
            evaluation=random_crops(files[1::2], crops, trained.size, 1),
            precision=precision,
            **trained.options,
        )
    found = report.check.agreement
    half = f"{len(report.kept_float)} of {report.layers}"
    return f"{found.sqnr_db:5.1f} dB  {found.top1:.3f}  {report.package_bytes:>10,} bytes  {half:>9} layers in float16"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Core ML packages against the trained models.")
    parser.add_argument("networks", nargs="*", default=list(TRAINED_NETWORKS), help="some of them (default: all)")
    parser.add_argument("--crops", type=int, default=60, help="that calibrate, and that are compared")
    arguments = parser.parse_args()
    refused = 0
    for network in arguments.networks:
        for precision in PRECISIONS:
            try:
                said = line(network, precision, arguments.crops)
            except CheckFailedError as error:
                refused += 1
                said = f"refused: {error}"
            print(f"{network:7} {precision:10} {said}", flush=True)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
