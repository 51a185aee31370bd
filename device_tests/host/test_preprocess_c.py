# SPDX-License-Identifier: Apache-2.0
"""The C that makes an input of a camera's frame: every byte is that of the session's preprocessing, which is Pillow."""

from __future__ import annotations

import ctypes
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

import arenite
from arenite._library import fresh_library
from arenite.cli import main
from arenite.contract import CONTRACT_METADATA, FILTERS, Normalisation, Quantised
from arenite.errors import ContractError, DoesNotFitError, UsageError
from arenite.frames import FRAME_FORMATS, MATRICES, MATRIX_ONE, Frame, ycc_matrix
from arenite.host_model import HostModel
from arenite.preprocess import Preprocessor
from arenite.reference import reference_outputs
from arenite.resize import ONE, axis_of
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from arenite_codegen.camera import MOST_PIXELS, Camera, make_preprocessing
from arenite_codegen.network import IoTensor
from arenite_converters.metadata import with_metadata
from support.camera_cases import CameraCase, CameraProgram, encoded, picture_spec, random_frame
from support.colour_model import colour_model
from support.host_compiler import HostCompiler

COLOURS = ("RGB", "BGR", "GREY")
OTHER_MEAN = Normalisation(1 / 127.5, (0.9, 1.0, 1.2), (1.0, 1.1, 0.8))


def random_case(seed: int) -> CameraCase:
    """Any extents, format and contract: smaller and larger than the input, flat and tall, cropped or not."""
    chance = random.Random(seed)
    side = lambda most: chance.randint(1, most) * 2  # noqa: E731
    crop = chance.choice(["none", "centre"])
    colour = chance.choice(COLOURS)
    spec = picture_spec(
        chance.randint(1, 40),
        chance.randint(1, 40),
        colour,
        chance.choice(["NHWC", "NHWC", "NCHW"]),
        *chance.choice([("int8", Quantised(float(np.float32(1 / 127.5)), -1)), ("uint8", Quantised(0.0078125, 128))]),
        normalisation=OTHER_MEAN if colour != "GREY" and chance.random() < 0.5 else "symmetric",
        crop=crop,
        crop_fraction=1.0 if crop == "none" else chance.choice([1.0, 0.875, chance.uniform(0.1, 1)]),
        filter=FILTERS[seed % len(FILTERS)],
    )
    camera = Camera(
        side(40),
        side(40),
        sorted(FRAME_FORMATS)[seed % len(FRAME_FORMATS)],
        chance.choice(sorted(MATRICES)),
        chance.random() < 0.5,
    )
    return CameraCase(spec, camera, chance.choice([0, 0, 5]))


# One contract, and the same with one field changed.
BASE = CameraCase(picture_spec(20, 16, filter="bicubic"), Camera(48, 36, "RGB"))
CHANGES: dict[str, dict[str, Any]] = {
    "colour": {"colour": "BGR"},
    "filter": {"filter": "lanczos"},
    "crop": {"crop": "centre", "crop_fraction": 0.8},
    "mean": {"normalisation": Normalisation(1 / 127.5, (0.5, 1.0, 1.0), (1.0, 1.0, 1.0))},
    "std": {"normalisation": Normalisation(1 / 127.5, (1.0, 1.0, 1.0), (1.0, 2.0, 1.0))},
}
# The input holds the 8-bit values themselves.
RAW = picture_spec(8, 2, "RGB", "NHWC", "uint8", Quantised(1.0, 0), "raw")
CARDS = [CameraCase(RAW, Camera(8, 2, format)) for format in sorted(FRAME_FORMATS)]
CASES = [*map(random_case, range(66)), BASE, *(BASE.with_picture(**change) for change in CHANGES.values()), *CARDS]


def card() -> Any:
    """Red, green, blue and white, two pixels each."""
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]], np.uint8)
    return np.tile(colours.repeat(2, 0), (2, 1, 1))


def frames() -> list[bytes]:
    """One for each case: noise, for cases that are compared the same, and the card."""
    noise = [random_frame(case, i) for i, case in enumerate(CASES[:66])]
    same = [random_frame(BASE)] * (1 + len(CHANGES))
    return noise + same + [encoded(card(), case.camera.format) for case in CARDS]


@pytest.fixture(scope="module")
def made(compiler: HostCompiler, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What the C makes of each case's frame."""
    return CameraProgram(CASES, compiler, tmp_path_factory.mktemp("cameras")).inputs(frames())


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_input_is_the_sessions(made: list[Any], number: int) -> None:
    case = CASES[number]
    expected = Preprocessor(case.spec)(case.frame(frames()[number]))
    assert np.array_equal(made[number], expected)


def test_both_orders_of_the_resize_are_there() -> None:
    """Pillow 13 resizes rows first where that is cheaper; older ones never do."""
    newer = int(PIL.__version__.split(".")[0]) >= 13
    assert {case.code.rows_first for case in CASES} == ({False, True} if newer else {False})
    assert {case.code.channels for case in CASES} == {1, 3}
    assert max(case.code.rows.ring for case in CASES) > 8


@pytest.mark.parametrize("field", CHANGES)
def test_one_changed_field_changes_the_input(made: list[Any], field: str) -> None:
    number = 67 + list(CHANGES).index(field)
    assert not np.array_equal(made[66], made[number])


@pytest.mark.parametrize("case", CARDS, ids=lambda case: case.camera.format)
def test_three_colour_card(made: list[Any], case: CameraCase) -> None:
    """Red, green, blue and white as they are; two levels for what a byte of chroma cannot hold."""
    found = made[CASES.index(case)][0].astype(int)
    expected = np.full_like(card(), 85) if case.camera.format == "GREY" else card()
    white = 6
    assert np.abs(found - expected)[:, :white].max() <= (2 if case.camera.is_ycc else 0)
    assert found[:, white:].min() >= (253 if case.camera.is_ycc else 255)


@pytest.mark.parametrize("filter", FILTERS)
def test_weights_are_pillows_in_both_directions(filter: str) -> None:
    """One line of noise by the table alone: an independent use of the weights."""
    resample = getattr(Image.Resampling, filter.upper())
    for source, out, low, high in ((97, 20, 0, 97), (20, 97, 0, 20), (50, 50, 3.25, 41.5), (33, 33, 0, 33)):
        line = np.random.default_rng(source).integers(0, 256, (1, source), dtype=np.uint8)
        axis = axis_of(source, out, low, high, filter)
        expected = np.asarray(Image.fromarray(line).resize((out, 1), resample, (low, 0, high, 1)))
        at = 0
        for x, (first, count) in enumerate(axis.taps):
            pixels = line[0, axis.first[0] + first :][:count].astype(int).tolist()
            weights = axis.flat_weights[at : at + count]
            total = sum(p * w for p, w in zip(pixels, weights, strict=True))
            assert min(max((total + ONE // 2) >> 22, 0), 255) == expected[0, x]
            at += count
        assert at == len(axis.flat_weights)
        assert axis.first == sorted(axis.first)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("full_range", [False, True])
def test_chroma_in_integers_is_pillows_float(matrix: str, full_range: bool) -> None:
    """Every Cb and Cr at some Y: float32 sums of such steps are exact."""
    factors = np.array(ycc_matrix(matrix, full_range)).reshape(3, 4)
    grid = np.indices((256, 256)).astype(np.uint8)
    for luma in (0, 1, 15, 16, 100, 235, 254, 255):
        ycc = np.stack([np.full((256, 256), luma, np.uint8), *grid], 2)
        image = Image.merge("RGB", [Image.fromarray(np.ascontiguousarray(ycc[..., i])) for i in range(3)])
        found = np.asarray(image.convert("RGB", tuple(float(f) / MATRIX_ONE for f in factors.ravel())))
        sums = ycc.astype(int) @ factors[:, :3].T + factors[:, 3] + MATRIX_ONE // 2
        assert np.array_equal(np.clip(sums >> 14, 0, 255), found)


def test_memory_is_a_line_a_row_and_the_ring() -> None:
    """320×240 to 96×96, bilinear over 2.5 rows to each side: five rows at once."""
    code = CameraCase(picture_spec(96, 96), Camera(320, 240, "RGB565")).code
    assert not code.rows_first
    assert code.rows.ring == 5
    assert code.memory_bytes == 3 * 320 + 3 * 96 + 5 * 3 * 96


def test_one_table_where_all_channels_are_the_same() -> None:
    assert CameraCase(picture_spec(4, 4), Camera(4, 4, "RGB")).code.tables.shape == (1, 256)
    other = CameraCase(picture_spec(4, 4, normalisation=OTHER_MEAN), Camera(4, 4, "RGB"))
    assert other.code.tables.shape == (3, 256)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("320x240:rgb565", Camera(320, 240, "RGB565")),
        ("320x240:RGB565_BE", Camera(320, 240, "RGB565_BE")),
        ("640x480:yuyv:full:bt709", Camera(640, 480, "YUYV", "bt709", True)),
        ("640x480:NV12:limited", Camera(640, 480, "NV12")),
    ],
)
def test_a_camera_is_read_and_shown(text: str, expected: Camera) -> None:
    assert Camera.parse(text) == expected
    assert Camera.parse(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "'' describes no camera"),
        ("320:RGB", "describes no camera"),
        ("320x240", "describes no camera"),
        ("320x240:YUYV:bt2020", "describes no camera"),
        ("320x240:YUYV:full:limited", "describes no camera"),
        ("320x240:YV12", "no frame format 'YV12'"),
        ("321x240:YUYV", "width of 321"),
        ("320x241:NV12", "height of 241"),
        ("0x240:RGB", "width of 0"),
        (f"{MOST_PIXELS + 1}x2:RGB", "camera frame of 8193"),
    ],
)
def test_a_wrong_camera_is_named(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        Camera.parse(text)


def test_a_batch_is_no_picture() -> None:
    batch = IoTensor("x", 0, (2, 4, 4, 3), "int8", 1.0, 0)
    with pytest.raises(ContractError, match=r"input\.shape\[0\]"):
        make_preprocessing(replace(picture_spec(4, 4), shape=batch.shape), batch, Camera(4, 4, "RGB"), "model.tflite")


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of colours for this computer, with a camera."""
    folder = tmp_path_factory.mktemp("bundled")
    (folder / "model.tflite").write_bytes(colour_model(16))
    frame = ["--camera", "40x30:yuyv:bt709:full"]
    assert main(["bundle", str(folder / "model.tflite"), "--board", "host", "-o", str(folder / "b"), *frame]) == 0
    return folder


def test_a_bundle_says_what_its_camera_needs(bundled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((bundled / "b" / "manifest.json").read_text())
    entry = manifest["models"][0]["camera"]
    assert entry["frame"] == "40x30:YUYV:bt709:full"
    assert manifest["camera_bytes"] == entry["memory_bytes"] == manifest["models"][0]["camera_bytes"]
    header = (bundled / "b" / "model" / "arenite_model_camera.h").read_text()
    assert f"_CAMERA_BYTES {entry['memory_bytes']}u" in header
    names = sorted(path.name for path in (bundled / "b" / "camera").iterdir())
    assert names == ["arenite_camera.c", "arenite_camera.h", "arenite_pixels.h", "arenite_pixels_ycc.c"]
    assert {f"camera/{name}" for name in names} < set(manifest["files"])
    assert "arenite_picture_frame(&arenite_model_camera" in (bundled / "b" / "README.md").read_text()


def test_without_a_camera_nothing_else_changes(bundled: Path) -> None:
    plain = bundle(bundled / "model.tflite", "host", bundled / "plain")
    with_camera = json.loads((bundled / "b" / "manifest.json").read_text())["files"]
    without = json.loads((bundled / "plain" / "manifest.json").read_text())["files"]
    assert plain.camera_bytes == 0
    added = {name for name in with_camera if name not in without}
    assert {name.split("/")[0] for name in added} == {"camera", "model"}
    changed = {name for name in without if with_camera[name] != without[name]}
    assert changed == {"README.md", "CMakeLists.txt", "arena.txt", "arena.html"}  # the last two: RAM that is left


def test_a_frame_to_an_answer_in_the_compiled_model(bundled: Path) -> None:
    """Frame -> input -> output, all of it the bundle's own C, against the session."""
    library = fresh_library(build(bundled / "b").elf)
    model = HostModel(library)
    rows = (ctypes.c_uint8 * json.loads((bundled / "b" / "manifest.json").read_text())["camera_bytes"])()
    pixels = np.random.default_rng(3).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    data = encoded(pixels, "YUYV", "bt709", True)
    session = arenite.open(bundled / "model.tflite")
    tensor = session.preprocessor(Frame(data, 40, 30, "YUYV", matrix="bt709", full_range=True))

    camera = ctypes.byref(ctypes.c_uint8.in_dll(library, "arenite_model_camera"))
    input_at = ctypes.c_void_p(model.inputs[0].ctypes.data)
    library.arenite_picture_frame(camera, rows, data, ctypes.c_uint32(80), input_at)
    assert np.array_equal(model.inputs[0].view(np.int8), tensor.ravel())
    model.invoke()
    expected = reference_outputs((bundled / "model.tflite").read_bytes(), [[tensor]])[0][0]
    assert np.array_equal(model.outputs[0].view(np.int8), expected.ravel())


def test_the_rows_of_a_camera_are_part_of_what_must_fit(bundled: Path, tmp_path: Path) -> None:
    """RAM of a board for the arena and the stack to the byte: a camera has no room."""
    board = load_board("qemu-mps2-an386")
    plain = bundle(bundled / "model.tflite", "qemu-mps2-an386", tmp_path / "b", vectors=0)
    text = (board.directory / "board.toml").read_text().replace("length = 655360", "length = {}")
    tight = tmp_path / "board.toml"
    tight.write_text(text.format(plain.arena_bytes + board.stack_bytes))
    bundle(bundled / "model.tflite", tight, tmp_path / "fits", vectors=0)
    with pytest.raises(DoesNotFitError, match=r"camera's rows [\d,]+\), [\d,]+ too few"):
        bundle(bundled / "model.tflite", tight, tmp_path / "c", camera="64x48:RGB", vectors=0)
    assert not (tmp_path / "c").exists()


def test_of_several_models_those_of_pictures_get_the_camera(bundled: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.tflite").write_bytes(with_metadata(colour_model(), {CONTRACT_METADATA: None}))
    models = [bundled / "model.tflite", tmp_path / "plain.tflite"]
    report = bundle(models, "host", tmp_path / "b", camera="64x48:RGB", vectors=0)
    assert [model.camera_bytes for model in report.models] == [report.camera_bytes, 0]
    files = {path.name for path in (tmp_path / "b" / "model").iterdir()}
    assert {"arenite_model_2_camera.c", "arenite_plain_camera.c"} & files == {"arenite_model_2_camera.c"}


def test_a_wrong_camera_leaves_nothing(bundled: Path, tmp_path: Path) -> None:
    arguments = ["bundle", str(bundled / "model.tflite"), "--board", "host", "-o", str(tmp_path / "b")]
    assert main([*arguments, "--camera", "64x48"]) == 2
    assert list(tmp_path.iterdir()) == []
