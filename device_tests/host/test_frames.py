# SPDX-License-Identifier: Apache-2.0
"""Camera frames: the card of three colours in every format, and Y'CbCr against the standard's own definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from arenite.contract import InputSpec, Picture, Quantised, normalisation_for
from arenite.errors import UsageError
from arenite.frames import FRAME_FORMATS, Frame
from arenite.preprocess import Preprocessor

Pixels = npt.NDArray[Any]
# Weights of R and B in the brightness: ITU-R BT.601 and BT.709.
WEIGHTS = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}
CHROMA_FORMATS = ("NV12", "NV21", "YUYV", "UYVY")


def forward(rgb: Pixels, matrix: str, full_range: bool) -> Pixels:
    """The standard's definition from R, G, B to Y, Cb, Cr, as real numbers of the 8-bit scale."""
    kr, kb = WEIGHTS[matrix]
    red, green, blue = np.moveaxis(rgb / 255, -1, 0)
    luma = kr * red + (1 - kr - kb) * green + kb * blue
    cb, cr = (blue - luma) / (2 * (1 - kb)), (red - luma) / (2 * (1 - kr))
    if full_range:
        return np.stack([255 * luma, 128 + 255 * cb, 128 + 255 * cr], -1)
    return np.stack([16 + 219 * luma, 128 + 224 * cb, 128 + 224 * cr], -1)


def backward(ycc: Pixels, matrix: str, full_range: bool) -> Pixels:
    """The inverse of `forward`, found numerically: an affine map is known from four of its values."""
    corners = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255]], float)
    images = forward(corners, matrix, full_range)
    linear = np.linalg.inv((images[1:] - images[0]).T / 255)
    return (ycc - images[0]) @ linear.T


def packed(ycc: Pixels, format: str) -> Pixels:
    """Y'CbCr of whole pixels, chroma equal where pixels share it, as bytes [rows, bytes]."""
    luma, cb, cr = np.moveaxis(ycc, -1, 0)
    if format in ("NV12", "NV21"):
        pair = (cb, cr) if format == "NV12" else (cr, cb)
        chroma = np.stack([plane[::2, ::2] for plane in pair], -1)
        return np.concatenate([luma, chroma.reshape(luma.shape[0] // 2, -1)])
    out = np.empty((*luma.shape, 2), np.uint8)
    first = 0 if format == "YUYV" else 1
    out[:, :, first] = luma
    out[:, ::2, 1 - first], out[:, 1::2, 1 - first] = cb[:, ::2], cr[:, ::2]
    return out.reshape(luma.shape[0], -1)


def random_ycc(height: int, width: int, seed: int = 0) -> Pixels:
    """Any values, in blocks of 2×2 for the chroma."""
    generator = np.random.default_rng(seed)
    luma = generator.integers(0, 256, (height, width), dtype=np.uint8)
    chroma = generator.integers(0, 256, (height // 2, width // 2, 2), dtype=np.uint8)
    return np.concatenate([luma[..., None], chroma.repeat(2, 0).repeat(2, 1)], -1)


@pytest.mark.parametrize("format", CHROMA_FORMATS)
@pytest.mark.parametrize("matrix", ["bt601", "bt709"])
@pytest.mark.parametrize("full_range", [False, True])
def test_chroma_formats_are_the_standards(format: str, matrix: str, full_range: bool) -> None:
    ycc = random_ycc(64, 96)
    frame = Frame(packed(ycc, format).tobytes(), 96, 64, format, matrix=matrix, full_range=full_range)
    found = np.asarray(frame.image()).astype(float)
    exact = np.clip(backward(ycc.astype(float), matrix, full_range), 0, 255)
    # Rounded to the nearest: half a level, and what steps of 1/16384 in the matrix add to it.
    assert np.abs(found - exact).max() <= 0.5 + (239 + 128 + 128) / 2 / 16384


@pytest.mark.parametrize("format", ["NV12", "NV21", "YUYV", "UYVY"])
def test_chroma_formats_against_opencv(format: str) -> None:
    """OpenCV computes BT.601 of limited range in 20-bit fixed point, and takes brightness below black as black."""
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not here: pip install opencv-python-headless")
    ycc = random_ycc(64, 96, 1)
    ycc[..., 0] = np.maximum(ycc[..., 0], 16)
    data = packed(ycc, format)
    code = getattr(cv2, f"COLOR_YUV2RGB_{format}")
    expected = cv2.cvtColor(data if format.startswith("NV") else data.reshape(64, 96, 2), code)
    found = np.asarray(Frame(data.tobytes(), 96, 64, format).image()).astype(int)
    assert np.abs(found - expected).max() <= 2


def card() -> Pixels:
    """Red, green, blue and white, two pixels each."""
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]], np.uint8)
    return np.tile(colours.repeat(2, 0), (2, 1, 1))


def words565(rgb: Pixels, order: str) -> bytes:
    red, green, blue = (rgb[..., i].astype(np.uint16) for i in range(3))
    return (red >> 3 << 11 | green >> 2 << 5 | blue >> 3).astype(order + "u2").tobytes()


def with_alpha(rgb: Pixels) -> bytes:
    return np.dstack([rgb, np.full(rgb.shape[:2], 77, np.uint8)]).tobytes()


ENCODERS: dict[str, Callable[[Pixels], bytes]] = {
    "RGB": lambda rgb: rgb.tobytes(),
    "BGR": lambda rgb: rgb[..., ::-1].tobytes(),
    "RGBA": with_alpha,
    "BGRA": lambda rgb: with_alpha(rgb[..., ::-1]),
    "RGB565": lambda rgb: words565(rgb, "<"),
    "RGB565_BE": lambda rgb: words565(rgb, ">"),
    **{
        name: lambda rgb, name=name: packed(np.round(forward(rgb, "bt601", False)).astype(np.uint8), name).tobytes()
        for name in CHROMA_FORMATS
    },
}


@pytest.mark.parametrize("format", sorted(ENCODERS))
def test_three_colour_card(format: str) -> None:
    found = np.asarray(Frame(ENCODERS[format](card()), 8, 2, format).image())
    assert np.abs(found.astype(int) - card()).max() <= (2 if format in CHROMA_FORMATS else 0)


def test_every_format_has_a_card() -> None:
    assert set(ENCODERS) | {"GREY"} == set(FRAME_FORMATS)


def test_byte_swapped_565_reads_other_colours() -> None:
    """Red as (0, 28, 192) and its like: what a wrong memory order looks like."""
    found = np.asarray(Frame(words565(card(), ">"), 8, 2, "RGB565").image())[0, :6:2]
    assert (found & [0xF8, 0xFC, 0xF8]).tolist() == [[0, 28, 192], [224, 0, 56], [24, 224, 0]]


@pytest.mark.parametrize("format", sorted(FRAME_FORMATS))
def test_padded_rows(format: str) -> None:
    """Rows of 8 pixels, 40 bytes from one to the next, the last one cut off behind its pixels."""
    row_bytes = 8 * FRAME_FORMATS[format].pixel_bytes
    rows = 6 if format.startswith("NV") else 4
    data = np.random.default_rng(2).integers(0, 256, (rows, 40), dtype=np.uint8)
    whole = Frame(np.ascontiguousarray(data[:, :row_bytes]).tobytes(), 8, 4, format)
    for given in (data, data.tobytes()[: 40 * (rows - 1) + row_bytes], memoryview(data.tobytes() + b"tail")):
        padded = Frame(given, 8, 4, format, stride_bytes=40)
        assert np.array_equal(np.asarray(padded.image()), np.asarray(whole.image()))


def test_arrays_of_any_strides() -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (12, 10, 4), dtype=np.uint8)
    for view in (pixels[::2, ::-1, :3], pixels[:, :, ::-1][:6, :, 1:], np.asfortranarray(pixels[:6, :, :3])):
        height, width = view.shape[:2]
        found = np.asarray(Frame(view, width, height, "BGR").image())
        assert np.array_equal(found, view[..., ::-1])


def spec() -> InputSpec:
    picture = Picture("RGB", "exif", "none", 1.0, "bilinear", normalisation_for("raw", "RGB"))
    return InputSpec("x", (1, 8, 12, 3), "NHWC", "uint8", Quantised(1.0, 0), picture)


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_frames_are_pictures(mode: str) -> None:
    preprocessor = Preprocessor(spec(), mode)
    smooth = np.linspace(0, 255, 96).astype(np.uint8)[None, :, None] * np.ones((64, 1, 3), np.uint8)
    expected = preprocessor(smooth)
    for format in ENCODERS:
        found = preprocessor(Frame(ENCODERS[format](smooth), 96, 64, format))
        assert np.abs(found.astype(int) - expected).max() <= (8 if "565" in format else 3), format
    grey = preprocessor(Frame(np.ascontiguousarray(smooth[..., 0]), 96, 64, "GREY"))
    assert np.array_equal(grey, expected)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((b"", 4, 4, "YV12"), "no frame format 'YV12'"),
        ((b"", 5, 4, "YUYV"), "width of 5.*even"),
        ((b"", 4, 3, "NV12"), "height of 3.*even"),
        ((b"", 0, 4, "RGB"), "width of 0"),
        ((b"", True, 4, "RGB"), "width of True"),
        ((bytes(47), 4, 4, "RGB"), "47 bytes.*48 are needed"),
        ((bytes(23), 4, 4, "NV12"), "23 bytes.*24 are needed"),
        ((12, 4, 4, "RGB"), "int holds no bytes"),
    ],
)
def test_wrong_frames_are_named(arguments: tuple[Any, ...], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        Frame(*arguments)


def test_wrong_matrix_and_stride_are_named() -> None:
    with pytest.raises(UsageError, match="no matrix 'bt2020'"):
        Frame(bytes(48), 4, 4, "RGB", matrix="bt2020")
    with pytest.raises(UsageError, match=r"a stride of 11 bytes.*12"):
        Frame(bytes(48), 4, 4, "RGB", stride_bytes=11)
