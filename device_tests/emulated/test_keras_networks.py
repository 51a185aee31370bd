# SPDX-License-Identifier: Apache-2.0
"""Networks from Keras: firmware on an emulated M4 equals the reference, in an arena near its bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from arenite.device import verify
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.keras_networks import converted

# Those that fit the board's 4 MB of flash.
NETWORKS = (
    "MobileNetV2 0.5/160",
    "MobileNetV2 0.35/96",
    "MobileNetV1 0.25/96",
    "residual",
    "inception",
    "two branches",
)


@pytest.mark.parametrize("name", NETWORKS)
def test_firmware_equals_the_reference(tmp_path: Path, name: str) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed: pip install 'arenite[convert]'")
    model = tmp_path / "model.tflite"
    model.write_bytes(converted(name))
    report = bundle(model, "qemu-mps2-an386", tmp_path / "b", vectors=2)
    # Rows at the end that nobody reads are not even made.
    assert report.mac_factor <= 1.0
    assert report.arena_bytes <= 1.10 * report.arena_lower_bound_bytes
    build(tmp_path / "b")
    proof = verify(tmp_path / "b")
    assert proof.identical
    assert proof.vectors == 2
