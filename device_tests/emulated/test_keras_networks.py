# SPDX-License-Identifier: Apache-2.0
"""Networks from Keras: firmware on an emulated M4 equals the reference, in an arena near its bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from arenite.device import verify
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.keras_networks import converted

SMALL, LARGE = "qemu-mps2-an386", "emulated-m4-external-flash"
# The last two have more weights than 4 MB of flash hold.
NETWORKS = {
    "MobileNetV2 0.5/160": SMALL,
    "MobileNetV2 0.35/96": SMALL,
    "MobileNetV1 0.25/96": SMALL,
    "MobileNetV3-small 1.0/224": SMALL,
    "residual": SMALL,
    "inception": SMALL,
    "two branches": SMALL,
    "MobileNetV1 1.0/224": LARGE,
    "EfficientNet-Lite0": LARGE,
}


@pytest.mark.parametrize(("name", "board"), NETWORKS.items())
def test_firmware_equals_the_reference(tmp_path: Path, name: str, board: str) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed: pip install 'arenite[convert]'")
    model = tmp_path / "model.tflite"
    model.write_bytes(converted(name))
    vectors = 1 if board == LARGE else 2
    report = bundle(model, board, tmp_path / "b", vectors=vectors)
    assert (report.weights_bytes > 4 << 20) == (board == LARGE)
    # Rows at the end that nobody reads are not even made.
    assert report.mac_factor <= 1.0
    assert report.arena_bytes <= 1.10 * report.arena_lower_bound_bytes
    build(tmp_path / "b")
    proof = verify(tmp_path / "b")
    assert proof.identical
    assert proof.vectors == vectors
