# SPDX-License-Identifier: Apache-2.0
"""One picture through calibration, session, a Core ML package and firmware: the same input, byte for byte.

The firmware is row-fed: a camera's rows go in as they come; neither the frame nor the input is ever whole in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import arenite
from arenite.contract import CONTRACT_METADATA, Contract, Normalisation, make_contract
from arenite.coreml_package import read_package
from arenite.device.emulators import start_emulator
from arenite.frames import FRAME_FORMATS, Frame
from arenite.preprocess import quantise
from arenite.progress import silent
from arenite.reference import reference_outputs
from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from arenite_codegen.build import build
from arenite_converters.calibration import read_samples
from arenite_converters.coreml.checking import Runner
from arenite_converters.metadata import with_metadata
from arenite_converters.quiet import quiet
from support.camera_cases import encoded
from support.residual_network import residual_network

WIDTH, HEIGHT, SIDE = 64, 48, 24
HARNESS = Path(__file__).parents[1] / "support" / "camera_app.c"
# On the network's grid of 0.04 no 8-bit value comes near the middle of two steps: what a package's float16 rounds away
# changes none.
MEANS = Normalisation(0.02, (1.89, 1.805, 1.61), (1.0, 0.5, 2.0))
# For each camera one contract; they differ in one field each.
CHANGES: dict[str, dict[str, Any]] = {
    "RGB565_BE": {},
    "NV12": {"colour": "BGR"},
    "BGR": {"crop": "centre", "crop_fraction": 0.75},
}
Array = npt.NDArray[Any]


def picture() -> Array:
    """Colours and edges of every direction, with some noise."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    waves = [127 + 120 * np.sin(x / 5 + y / 9), 4 * x, 255 * ((x // 6 + y // 4) % 2)]
    noise = np.random.default_rng(0).integers(0, 8, (HEIGHT, WIDTH, 3))
    return np.clip(np.stack(waves, 2) + noise, 0, 255).astype(np.uint8)


def model_with(folder: Path, changes: dict[str, Any]) -> Path:
    """A network of residual blocks that carries a contract."""
    network = residual_network(SIDE, 4, blocks=1, expansion=3)
    made = make_contract(parse_graph(network), normalisation=MEANS, filter="bicubic", labels=list("abcdefghij"))
    assert made.input.picture is not None
    contract = replace(made, input=replace(made.input, picture=replace(made.input.picture, **changes)))
    (folder / "model.tflite").write_bytes(with_metadata(network, {CONTRACT_METADATA: contract.to_json().encode()}))
    return folder / "model.tflite"


def rows_of(data: bytes, format: str) -> bytes:
    """A frame as the firmware takes it: each row followed by its chroma where that is a plane of its own."""
    if FRAME_FORMATS[format].chroma != (2, 2):
        return data
    rows = np.frombuffer(data, np.uint8).reshape(-1, WIDTH)
    chroma = rows[HEIGHT:].repeat(2, 0)
    return np.stack([rows[:HEIGHT], chroma], 1).tobytes()


def sample_of(contract: Contract, image: Array) -> Array:
    """What calibration makes of the picture, in real values."""
    floats = replace(contract, input=replace(contract.input, dtype="float32", quantised=None))
    with silent().step("read") as step:
        return read_samples([image, 255 - image], floats, what="calibration", min_samples=1, step=step).samples[0]


def calibrated(contract: Contract, image: Array) -> Array:
    """The same, quantised as the model's input is."""
    assert contract.input.quantised is not None
    return quantise(sample_of(contract, image), contract.input.quantised, contract.input.dtype)


@pytest.fixture(scope="module")
def keras_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with the other one's input, for Core ML, which takes no TFLite."""
    pytest.importorskip("coremltools", reason="needs coremltools (arenite[coreml])")
    path = tmp_path_factory.mktemp("keras") / "model.keras"
    with quiet():
        keras = import_module("keras")
        keras.utils.set_random_seed(0)
        layers = keras.layers
        inputs = keras.Input((SIDE, SIDE, 3))
        x = layers.GlobalAveragePooling2D()(layers.Conv2D(4, 3, 2, "same", activation="relu")(inputs))
        keras.Model(inputs, layers.Dense(10)(x)).save(path)
    return path


def in_a_package(keras_model: Path, folder: Path, changes: dict[str, Any], contract: Contract, image: Array) -> Array:
    """What the first layer of a Core ML package reads, on the grid of the contract's input.

    The package has its own contract, made of the same arguments; its program normalises the 8-bit picture, in float32
    and float16, and our executor runs it.
    """
    report = arenite.convert(
        keras_model, folder / "model.mlpackage", calibration=list(noise(24)), normalisation=MEANS, filter="bicubic",
        meaning="logits", **changes,
    )  # fmt: skip
    assert report.contract.input.picture == contract.input.picture and contract.input.quantised is not None
    runner = Runner(read_package(Path(report.path)), report.contract)
    program = runner.executor.program
    read = next(op for op in program.operations if op.kind == "conv").inputs["x"].name
    seen: dict[str, Array] = {}
    given = runner.inputs(sample_of(report.contract, image))
    runner.executor.run(given, lambda _, name, value: seen.update({name: value}))
    assert read not in given
    return quantise(seen[read].transpose(0, 2, 3, 1), contract.input.quantised, contract.input.dtype)


def noise(count: int) -> Array:
    return np.random.default_rng(1).integers(0, 256, (count, HEIGHT, WIDTH, 3), dtype=np.uint8)


def on_the_board(folder: Path, model: Path, format: str, data: bytes, board: str) -> tuple[Array, Array]:
    """The input and the output of the firmware."""
    camera = f"{WIDTH}x{HEIGHT}:{format}"
    report = bundle(model, board, folder / "firmware", row_fed=True, camera=camera, vectors=1)
    assert 0 < report.camera_bytes < len(data)
    shutil.copyfile(HARNESS, folder / "firmware" / "app" / "app.c")
    build(folder / "firmware")
    with closing(start_emulator(folder / "firmware")) as running:
        answer = running.stream.read(60)  # nothing: it starts, and drops what came before
        running.stream.write(rows_of(data, format))
        while len(answer) < SIDE * SIDE * 3 + 10 and (more := running.stream.read(60)):
            answer += more
    found = np.frombuffer(answer, np.int8)
    return found[:-10].reshape(1, SIDE, SIDE, 3), found[-10:].reshape(1, 10)


@pytest.mark.parametrize("format", CHANGES)
def test_one_picture_is_one_input_everywhere(tmp_path: Path, keras_model: Path, format: str) -> None:
    model = model_with(tmp_path, CHANGES[format])
    data = encoded(picture(), format)
    frame = Frame(data, WIDTH, HEIGHT, format)
    session = arenite.open(model)
    tensor = session.preprocessor(frame)

    assert np.array_equal(calibrated(session.known_contract, np.asarray(frame.image())), tensor)
    packaged = in_a_package(keras_model, tmp_path, CHANGES[format], session.known_contract, np.asarray(frame.image()))
    assert np.array_equal(packaged, tensor) and len(np.unique(tensor)) > 60
    given, output = on_the_board(tmp_path, model, format, data, "qemu-mps2-an386")
    assert np.array_equal(given, tensor)
    assert np.array_equal(output, reference_outputs(model.read_bytes(), [[tensor]])[0][0])


def test_each_changed_field_changes_the_input(tmp_path: Path) -> None:
    """So the test above would see a field that one of them does not read."""
    tensors: Sequence[Array] = [
        arenite.open(model_with(tmp_path, changes)).preprocessor(picture()) for changes in CHANGES.values()
    ]
    for i, tensor in enumerate(tensors):
        assert not any(np.array_equal(tensor, other) for other in tensors[:i])
