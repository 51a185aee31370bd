# SPDX-License-Identifier: Apache-2.0
"""A bundle around a model of ten lines of C, for tests of the firmware application alone."""

from __future__ import annotations

import json
import random
import shutil
from importlib import resources
from pathlib import Path

from arenite_codegen.boards import copy_support, load_board

MIRROR_SHA256 = bytes([0xEF]) + bytes(30) + bytes([0x99])
SHA256 = bytes([0xAB, 1, 2, 3]) + bytes(27) + bytes([0xCD])
A_BYTES, B_BYTES = 3000, 37
ARENA_BYTES = 6104
# Place and bytes of each tensor and of the counters of rows: what a run may write. The mirror's lie within the first.
TENSOR_PLACES = ((0, A_BYTES), (3008, B_BYTES), (3056, A_BYTES), (6056, B_BYTES), (6096, 6))
_WEIGHTS = [int(c) for c in "3141592653589793238462643383279502884"]
_MODEL = Path(__file__).parent / "fake_model"
_RUNTIME = Path(str(resources.files("arenite_firmware"))) / "runtime"


def expected_outputs(inputs: list[bytes]) -> list[bytes]:
    """What the model makes of its two inputs."""
    a, b = inputs
    total = bytes((a[i] + b[i % B_BYTES] + _WEIGHTS[i % B_BYTES]) % 256 for i in range(A_BYTES))
    return [total, b[::-1]]


def random_inputs(seed: int) -> list[bytes]:
    """Two inputs, reproducible."""
    source = random.Random(seed)
    return [source.randbytes(A_BYTES), source.randbytes(B_BYTES)]


def make_fake_bundle(folder: Path, board_name: str | Path, vectors: int = 3) -> Path:
    """Writes the bundle to `folder`, made when it is missing, and returns `folder`."""
    board = load_board(board_name)
    for part, source in (("runtime", _RUNTIME), ("model", _MODEL)):
        shutil.copytree(source, folder / part, dirs_exist_ok=True)
    sources = ["model/model.c", "runtime/arenite.c", *copy_support(board, folder)]
    _write_vectors(folder / "vectors", vectors)
    manifest = {
        "format": 2,
        "board": board.name,
        "arena_bytes": ARENA_BYTES,
        "weights_bytes": 40,
        "models": [
            {
                "name": "fake",
                "symbol": "arenite_model",
                "sha256": SHA256.hex(),
                "inputs": [{"name": "a", "bytes": A_BYTES}, {"name": 'b, "quoted" */', "bytes": B_BYTES}],
                "outputs": [{"name": "sum", "bytes": A_BYTES}, {"name": "reversed", "bytes": B_BYTES}],
                "vectors": {"authority": "support/fake_bundle.py", "count": vectors, "folder": "vectors"},
            }
        ],
        "sources": sources,
        "defines": ["ARENITE_ON_STEP", "ARENITE_ON_ROW"],
        "include_dirs": ["runtime", "model", "app", "board"],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def _write_vectors(folder: Path, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for i in range(count):
        inputs = random_inputs(i)
        (folder / f"input_{i:03}.bin").write_bytes(b"".join(inputs))
        (folder / f"output_{i:03}.bin").write_bytes(b"".join(expected_outputs(inputs)))
