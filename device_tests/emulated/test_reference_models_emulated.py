# SPDX-License-Identifier: Apache-2.0
"""The trained models as firmware on emulated M4, M7 and RV32, over the serial link, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arenite.device import verify
from arenite.reference import reference_outputs
from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.reference_models import REFERENCE_MODELS, random_inputs, sample_inputs

BOARDS = ("qemu-mps2-an386", "qemu-mps2-an500", "qemu-riscv32")


@pytest.mark.reference
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_firmware_equals_the_reference(shared_data: Path, tmp_path: Path, name: str, board: str) -> None:
    folder = tmp_path / "b"
    bundle(shared_data / name, board, folder, vectors=0)
    build(folder)
    count = _write_vectors(shared_data, name, folder)
    report = verify(folder, on="emulator")
    assert report.vectors == count
    assert report.first_difference is None
    assert report.identical


def _write_vectors(shared_data: Path, name: str, folder: Path) -> int:
    """Replace the bundle's golden vectors by random and sample inputs with the reference's answers."""
    content = (shared_data / name).read_bytes()
    graph = parse_graph(content)
    tensor = graph.tensors[graph.inputs[0]]
    vectors = random_inputs(tensor, 3 if "mobilenet" in name else 20, seed=2) + sample_inputs(shared_data, name, tensor)
    outputs = reference_outputs(content, [[v] for v in vectors])
    (folder / "vectors").mkdir(exist_ok=True)
    for i, (vector, expected) in enumerate(zip(vectors, outputs, strict=True)):
        (folder / "vectors" / f"input_{i:03}.bin").write_bytes(vector.tobytes())
        (folder / "vectors" / f"output_{i:03}.bin").write_bytes(expected[0].tobytes())
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["models"][0]["vectors"]["count"] = len(vectors)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return len(vectors)
