# SPDX-License-Identifier: Apache-2.0
"""The C examples around an exported model, compiled with all warnings and run on sensors that play back known data."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from arenite.contract import read_contract
from arenite.frames import Frame
from arenite.graph import Tensor
from arenite.preprocess import Preprocessor
from arenite.reference import reference_outputs
from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from support.colour_model import LABELS, colour_means
from support.dense_network import dense_network
from support.graphs import random_graph
from support.tflm import TflmModel

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "firmware_sensors"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror")
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs GCC for the host")
Floats = npt.NDArray[np.float32]


Decision = tuple[int, str, float]


def decisions(example: str, model: Path, played: bytes, *defines: str, **options: object) -> list[Decision]:
    """Exports a model with portable kernels, builds an example around it and runs it on what the sensor plays."""
    folder = model.parent
    bundle(model, "rpi-pico", folder / "b", exports=["single-file"], vectors=0, **options)  # type: ignore[arg-type]
    component = folder / "b" / "exports" / "single-file"
    sources = [EXAMPLES / f"{example}.c", *component.glob("*.c"), ROOT / "device_tests/support/played_sensors.c"]
    command = ["gcc", *STRICT, *defines, f"-I{component}", f"-I{EXAMPLES}", *sources, "-o", folder / "run"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    said = subprocess.run([folder / "run"], input=played, capture_output=True, check=True).stdout.decode()
    words = [line.split() for line in said.splitlines()]
    return [(int(best), label, float(value)) for best, label, value in words]


def real(stored: npt.NDArray[np.integer], tensor: Tensor) -> Floats:
    assert tensor.quantisation is not None
    scale, zero_point = np.float32(tensor.quantisation.scales[0]), tensor.quantisation.zero_points[0]
    return scale * (stored.astype(np.int32) - zero_point).astype(np.float32)


def test_rows_of_a_camera_become_the_class_of_each_frame(tmp_path: Path) -> None:
    path = tmp_path / "person.tflite"
    path.write_bytes(colour_means(8))
    pixels = [0xF800, 0x07E0, 0x001F, 0x07E0]  # red, green, blue, green in RGB565
    frames = [np.full(16 * 12, pixel, "<u2").tobytes() for pixel in pixels]
    found = decisions("camera_rows", path, b"".join(frames), camera="16x12:RGB565", row_fed=True)
    contract = read_contract(path)
    assert contract is not None
    seen = [Preprocessor(contract.input)(Frame(np.frombuffer(f, np.uint8), 16, 12, "RGB565")) for f in frames]
    wanted = [o[0].reshape(-1) for o in reference_outputs(path.read_bytes(), [[x] for x in seen])]
    assert [best for best, _, _ in found] == [int(out.argmax()) for out in wanted] == [0, 1, 2, 1]
    assert [label for _, label, _ in found] == [LABELS[i] for i in (0, 1, 2, 1)]
    output = parse_graph(path.read_bytes()).tensors[parse_graph(path.read_bytes()).outputs[0]]
    assert [value for *_, value in found] == pytest.approx([float(real(out, output).max()) for out in wanted])


def test_frames_of_a_microphone_are_remembered_by_a_streaming_model(tmp_path: Path) -> None:
    case = random_graph("STREAM", 3)
    path = tmp_path / "wake_word.tflite"
    path.write_bytes(case.model_bytes)
    graph = parse_graph(case.model_bytes)
    x, y = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    inputs = [vector[0] for vector in case.vectors]
    features = int(np.prod(x.shape[2:]))
    played = b"".join(real(vector, x).tobytes() for vector in inputs)
    found = decisions("microphone_frames", path, played, f"-DFEATURES={features}")
    oracle, average, wanted = TflmModel(case.model_bytes), np.float32(0), []
    for vector in inputs:
        average += (real(oracle.run([vector], 1)[0].reshape(-1)[:1], y)[0] - average) / np.float32(5)
        wanted.append(float(average))
    assert len(set(wanted)) > 3, "the runs do not tell one answer from another"
    assert [value for *_, value in found] == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_windows_of_an_accelerometer_overlap_by_half(tmp_path: Path) -> None:
    samples = 16
    path = tmp_path / "gestures.tflite"
    path.write_bytes(dense_network(3 * samples, 4))
    graph = parse_graph(path.read_bytes())
    x, y = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    stored = np.random.default_rng(2).integers(-128, 128, (5 * samples, 3)).astype(np.int8)
    found = decisions("imu_window", path, real(stored, x).tobytes())
    windows = [stored[at : at + samples].reshape(1, -1) for at in range(0, len(stored) - samples + 1, samples // 2)]
    wanted = [o[0].reshape(-1) for o in reference_outputs(path.read_bytes(), [[w] for w in windows])]
    assert len(windows) == 9
    assert [best for best, _, _ in found] == [int(out.argmax()) for out in wanted]
    assert [value for *_, value in found] == pytest.approx([float(real(out, y).max()) for out in wanted])
