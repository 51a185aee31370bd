# SPDX-License-Identifier: Apache-2.0
"""Preprocessing: byte for byte Pillow's resize and the TFLite reference's QUANTIZE."""

from __future__ import annotations

import contextlib
import io
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from arenite.contract import InputSpec, Normalisation, Picture, Quantised, normalisation_for
from arenite.errors import ContractError, UsageError
from arenite.preprocess import Preprocessor, decode_picture, quantise, value_table
from support.builder import ModelBuilder
from support.tflm import TflmModel

SYMMETRIC = Quantised(float(np.float32(1 / 127.5)), -1)


def spec(
    size: tuple[int, int] = (12, 10),
    dtype: str = "int8",
    quantised: Quantised | None = SYMMETRIC,
    layout: str = "NHWC",
    normalisation: str | Normalisation = "symmetric",
    colour: str = "RGB",
    crop: str = "none",
    crop_fraction: float = 1.0,
    filter: str = "bilinear",
    orientation: str = "exif",
) -> InputSpec:
    """An input of `size` (width, height)."""
    channels = 1 if colour == "GREY" else 3
    width, height = size
    shape = (1, height, width, channels) if layout == "NHWC" else (1, channels, height, width)
    how = normalisation_for(normalisation, colour)
    picture = Picture(colour, orientation, crop, crop_fraction, filter, how)
    return InputSpec("x", shape, layout, dtype, quantised, picture)


def noise(width: int = 37, height: int = 29, seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def reference_quantise(real: npt.NDArray[np.float32], scale: float, zero_point: int) -> npt.NDArray[np.int8]:
    """float32 -> int8 by tflite-micro's QUANTIZE."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, real.size), "float32")
    y = builder.tensor("y", (1, real.size), "int8", scales=[scale], zero_points=[zero_point])
    builder.operator("QUANTIZE", [x], [y], options="QuantizeOptions")
    return TflmModel(builder.finish([x], [y])).run([real.reshape(1, -1)])[0].reshape(real.shape)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=40),
    scale=st.floats(0.0009765625, 4, width=32),
    zero_point=st.integers(-128, 127),
)
def test_quantise_equals_the_reference(values: list[float], scale: float, zero_point: int) -> None:
    real = np.asarray(values, np.float32)
    expected = reference_quantise(real, scale, zero_point)
    assert np.array_equal(quantise(real, Quantised(scale, zero_point), "int8"), expected)


def test_quantise_rounds_half_away_from_zero() -> None:
    real = np.asarray([-2.5, -1.5, -0.5, 0.49999997, 0.5, 1.5, 2.5, 1e30, -1e30], np.float32)
    expected = np.asarray([-3, -2, -1, 0, 1, 2, 3, 127, -128], np.int8)
    assert np.array_equal(quantise(real, Quantised(1.0, 0), "int8"), expected)
    assert np.array_equal(reference_quantise(real[:7], 1.0, 0), expected[:7])


def test_value_tables_are_the_trainers_formulas() -> None:
    x = np.arange(256, dtype=np.float64)
    assert np.allclose(value_table(normalisation_for("symmetric", "RGB")), x / 127.5 - 1, atol=1e-7)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    expected = (x[None, :] / 255 - mean[:, None]) / std[:, None]
    assert np.allclose(value_table(normalisation_for("imagenet", "RGB")), expected, atol=1e-6)


@pytest.mark.parametrize("filter", ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(12, 10), (37, 29), (64, 64)])
def test_resize_is_pillows(filter: str, size: tuple[int, int]) -> None:
    picture = noise()
    found = Preprocessor(spec(size, filter=filter))(picture)
    resized = np.asarray(picture.resize(size, Image.Resampling[filter.upper()]))
    real = (resized.astype(np.float64) / 127.5 - 1).astype(np.float32)
    assert np.array_equal(found[0], reference_quantise(real, SYMMETRIC.scale, -1))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("colour", ["RGB", "BGR", "GREY"])
@pytest.mark.parametrize(
    ("dtype", "quantised"),
    [
        ("int8", SYMMETRIC),
        ("int8", Quantised(1 / 255, -128)),
        ("uint8", Quantised(float(np.float32(1 / 127.5)), 127)),
        ("int16", Quantised(1 / 32768, 0)),
        ("float32", None),
    ],
)
def test_every_layout_colour_and_type(
    layout: str, colour: str, dtype: str, quantised: Quantised | None
) -> None:
    how = Normalisation(
        1 / 255,
        (0.5, 0.25, 0.75)[: 1 if colour == "GREY" else 3],
        (0.5, 0.25, 1.0)[: 1 if colour == "GREY" else 3],
    )
    tensor = spec(layout=layout, colour=colour, dtype=dtype, quantised=quantised, normalisation=how)
    picture = noise()
    resized = picture.convert("L" if colour == "GREY" else "RGB").resize((12, 10), Image.Resampling.BILINEAR)
    pixels = np.atleast_3d(np.asarray(resized))[..., :: -1 if colour == "BGR" else 1]
    real = ((pixels / 255 - np.array(how.mean)) / np.array(how.std)).astype(np.float32)
    expected = real if quantised is None else quantise(real, quantised, dtype)
    found = Preprocessor(tensor)(picture)
    assert found.dtype == np.dtype(dtype)
    assert found.shape == tensor.shape
    found = found[0] if layout == "NHWC" else found[0].transpose(1, 2, 0)
    if quantised is None:
        assert np.allclose(found, expected, atol=1e-6)
    else:
        # One float32 rounding of the table may sit on the other side of a half.
        assert np.abs(found.astype(np.int64) - expected).max() <= (1 if dtype == "int16" else 0)


def test_real_values_quantise_to_the_tensor() -> None:
    preprocessor = Preprocessor(spec())
    fitted = preprocessor.fit(noise())
    out = np.empty((1, 10, 12, 3), np.int8)
    preprocessor.write(fitted, out)
    assert np.array_equal(quantise(preprocessor.real(fitted), SYMMETRIC, "int8"), out)


@settings(deadline=None)
@given(scale=st.floats(0.001, 0.02), zero_point=st.integers(-128, 127), unit=st.booleans())
def test_shortcut_only_where_exact(scale: float, zero_point: int, unit: bool) -> None:
    quantised = Quantised(float(np.float32(scale)), zero_point)
    preprocessor = Preprocessor(
        spec((16, 16), quantised=quantised, normalisation="unit" if unit else "symmetric")
    )
    ramp = np.tile(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), (1, 1, 3))
    expected = quantise(preprocessor.values, quantised, "int8")
    assert np.array_equal(preprocessor(ramp)[0].reshape(256, 3).T, expected)


def test_shortcut_is_taken_where_exact() -> None:
    exact = Preprocessor(spec(quantised=Quantised(float(np.float32(1 / 255)), -128), normalisation="unit"))
    assert exact._xor == 0x80
    assert Preprocessor(spec(normalisation="symmetric", quantised=Quantised(0.0078, 0)))._xor is None


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("colour", ["RGB", "BGR", "GREY"])
def test_channels_of_one_table_are_looked_up_in_one_pass(layout: str, colour: str) -> None:
    preprocessor = Preprocessor(spec(layout=layout, colour=colour))
    assert preprocessor._xor is None and preprocessor._translation is not None
    picture = noise()
    resized = picture.convert("L" if colour == "GREY" else "RGB").resize((12, 10), Image.Resampling.BILINEAR)
    pixels = np.atleast_3d(np.asarray(resized))[..., :: -1 if colour == "BGR" else 1]
    expected = reference_quantise((pixels / 127.5 - 1).astype(np.float32), SYMMETRIC.scale, -1)
    found = preprocessor(picture)[0]
    assert np.array_equal(found if layout == "NHWC" else found.transpose(1, 2, 0), expected)


def test_channels_of_different_tables_are_not() -> None:
    assert Preprocessor(spec(normalisation="imagenet"))._translation is None


@pytest.mark.parametrize(
    ("size", "fraction", "box"),
    [
        ((10, 10), 1.0, (4, 0, 33, 29)),
        ((10, 10), 0.5, (11.25, 7.25, 25.75, 21.75)),
        ((20, 10), 1.0, (0, 5.25, 37, 23.75)),
    ],
)
def test_centre_crop(size: tuple[int, int], fraction: float, box: tuple[float, ...]) -> None:
    picture = noise()
    found = Preprocessor(
        spec(
            size,
            crop="centre",
            crop_fraction=fraction,
            dtype="uint8",
            quantised=Quantised(1.0, 0),
            normalisation="raw",
        )
    )(picture)
    assert np.array_equal(found[0], np.asarray(picture.resize(size, Image.Resampling.BILINEAR, box=box)))


def test_three_colour_card() -> None:
    card = np.zeros((1, 3, 3), np.uint8)
    card[0, [0, 1, 2], [0, 1, 2]] = 255
    raw = {"dtype": "uint8", "quantised": Quantised(1.0, 0), "normalisation": "raw"}
    rgb = Preprocessor(spec((3, 1), colour="RGB", **raw))(card)
    bgr = Preprocessor(spec((3, 1), colour="BGR", **raw))(card)
    assert rgb[0, 0].tolist() == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
    assert bgr[0, 0].tolist() == [[0, 0, 255], [0, 255, 0], [255, 0, 0]]


def test_every_source_gives_the_same_tensor(tmp_path: Path) -> None:
    picture = noise()
    path = tmp_path / "picture.png"
    picture.save(path)
    preprocessor = Preprocessor(spec())
    tensors = [preprocessor(s) for s in (path, str(path), path.read_bytes(), picture, np.asarray(picture))]
    assert all(np.array_equal(t, tensors[0]) for t in tensors)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(orientation: int) -> None:
    picture = noise()
    exif = Image.Exif()
    exif[0x0112] = orientation
    stream = io.BytesIO()
    picture.save(stream, "PNG", exif=exif)
    turned = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}[orientation]
    upright = picture if turned is None else picture.transpose(Image.Transpose(turned))
    assert np.array_equal(np.asarray(decode_picture(stream.getvalue(), "exif")), np.asarray(upright))
    assert np.array_equal(np.asarray(decode_picture(stream.getvalue(), "stored")), np.asarray(picture))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"])
def test_every_eight_bit_mode(mode: str) -> None:
    assert decode_picture(noise().convert(mode)).mode in ("L", "RGB")


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_wide_pictures_are_refused(mode: str) -> None:
    picture = Image.fromarray(
        np.full((4, 4), 1000, {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode])
    )
    with pytest.raises(UsageError, match="more than 8 bits"):
        decode_picture(picture)


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_no_picture_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "holiday.jpg"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"holiday\.jpg.*cannot decode"):
        decode_picture(path)


@pytest.mark.filterwarnings("ignore::UserWarning:PIL", "ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("format", ["PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM"])
def test_truncated_pictures_are_refused_or_read(format: str) -> None:
    stream = io.BytesIO()
    noise().save(stream, format)
    content = stream.getvalue()
    for length in range(0, len(content), max(1, len(content) // 60)):
        try:
            decode_picture(content[:length])
        except UsageError:
            continue


@pytest.mark.filterwarnings("ignore::UserWarning:PIL", "ignore::PIL.Image.DecompressionBombWarning")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_corrupt_pictures_are_refused_or_read(data: st.DataObject) -> None:
    stream = io.BytesIO()
    noise(9, 7).save(stream, data.draw(st.sampled_from(["PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP"])))
    content = bytearray(stream.getvalue())
    for _ in range(3):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UsageError):
        decode_picture(bytes(content))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 4, 3), np.float32),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros(4, np.uint8),
        [[1, 2], [3, 4]],
        None,
    ],
)
def test_arrays_that_are_no_picture(array: object) -> None:
    with pytest.raises(UsageError, match="no picture"):
        decode_picture(array)  # type: ignore[arg-type]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.jpg"):
        decode_picture(tmp_path / "gone.jpg")


def test_input_that_is_no_picture_is_refused() -> None:
    with pytest.raises(ContractError, match="does not say how"):
        Preprocessor(replace(spec(), picture=None))


def test_wrong_buffer_is_refused() -> None:
    with pytest.raises(UsageError, match="shape"):
        Preprocessor(spec())(noise(), np.empty((1, 12, 10, 3), np.int8))


def picture_with_exif(entries: bytes, count: int) -> bytes:
    """A PNG file with this directory of 12-byte EXIF entries."""
    directory = b"MM\x00*\x00\x00\x00\x08" + struct.pack(">H", count) + entries
    stream = io.BytesIO()
    noise(5, 4).save(stream, "PNG", exif=b"Exif\x00\x00" + directory + b"\0\0\0\0")
    return stream.getvalue()


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
def test_odd_exif_turns_the_picture_or_is_named() -> None:
    """A tag of the wrong type beside a sound orientation is no reason to fail; no error but the named one."""
    width_as_text = struct.pack(">HHI4s", 0x0100, 2, 4, b"abc")
    turned = picture_with_exif(width_as_text + struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0), 2)
    expected = noise(5, 4).transpose(Image.Transpose.ROTATE_270)
    assert np.array_equal(np.asarray(decode_picture(turned)), np.asarray(expected))
    for entry in (
        struct.pack(">HHI4s", 0x0112, 2, 4, b"six"),
        struct.pack(">HHIHH", 0x0112, 3, 1, 99, 0),
        struct.pack(">HHI", 0x0112, 3, 1),
        struct.pack(">HHII", 0x0112, 5, 1, 0xFFFFFFF0),
        b"\xff" * 12,
    ):
        with contextlib.suppress(UsageError):
            assert decode_picture(picture_with_exif(entry, 1)).size == (5, 4)


@pytest.mark.parametrize("fault", [struct.error("odd"), TypeError("odd"), KeyError("odd"), ZeroDivisionError("odd")])
def test_every_fault_of_a_decoder_is_named(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Image.Image) -> Image.Exif:
        raise fault

    monkeypatch.setattr(Image.Image, "getexif", fail)
    with pytest.raises(UsageError, match=r"cannot decode the picture .*odd"):
        decode_picture(noise())


def photograph(size: tuple[int, int] = (800, 600), **options: object) -> bytes:
    """A smooth JPEG file."""
    coarse = Image.fromarray(np.random.default_rng(5).integers(0, 256, (9, 12, 3), dtype=np.uint8))
    stream = io.BytesIO()
    coarse.resize(size, Image.Resampling.BICUBIC).save(stream, "JPEG", quality=92, **options)
    return stream.getvalue()


@pytest.mark.parametrize("choices", [{}, {"colour": "BGR"}, {"colour": "GREY"}, {"layout": "NCHW"}, {"dtype": "uint8"}])
@pytest.mark.parametrize("crop", [{}, {"crop": "centre", "crop_fraction": 0.6}])
def test_fast_mode_is_near_the_exact_one(choices: dict[str, str], crop: dict[str, object]) -> None:
    quantised = Quantised(float(np.float32(1 / 127.5)), 127) if "dtype" in choices else SYMMETRIC
    tensor = spec((40, 32), quantised=quantised, **choices, **crop)  # type: ignore[arg-type]
    content = photograph()
    exact, fast = Preprocessor(tensor)(content), Preprocessor(tensor, "fast")(content)
    assert np.abs(exact.astype(int) - fast).max() <= 6
    assert np.abs(exact.astype(int) - fast).mean() < 1


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("size", [(100, 30), (30, 100)])
def test_fast_decode_still_holds_the_input(orientation: int, size: tuple[int, int]) -> None:
    """Turned or not, cropped or not, the decoded box has at least the input's extents."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = photograph((810, 350), exif=exif)
    for crop in ({}, {"crop": "centre", "crop_fraction": 0.7}):
        preprocessor = Preprocessor(spec(size, **crop), "fast")  # type: ignore[arg-type]
        decoded = preprocessor.decode(content)
        whole = decode_picture(content)
        assert decoded.width < whole.width and abs(decoded.width / decoded.height - whole.width / whole.height) < 0.03
        left, top, right, bottom = preprocessor.box(decoded.size)
        assert right - left >= size[0] * 0.999 and bottom - top >= size[1] * 0.999


def test_fast_mode_never_decodes_smaller_than_the_input() -> None:
    content = photograph((300, 200))
    assert Preprocessor(spec((299, 199)), "fast").decode(content).size == (300, 200)
    assert Preprocessor(spec((400, 400)), "fast")(content).shape == (1, 400, 400, 3)


@pytest.mark.parametrize("format", ["PNG", "BMP", "GIF", "WEBP"])
def test_fast_mode_takes_every_format(format: str) -> None:
    stream = io.BytesIO()
    Image.open(io.BytesIO(photograph())).save(stream, format)
    exact, fast = (Preprocessor(spec((40, 32)), mode)(stream.getvalue()) for mode in ("exact", "fast"))
    assert np.abs(exact.astype(int) - fast).max() <= 6


@pytest.mark.parametrize("format", ["BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP"])
def test_large_files_are_decoded_as_pillow_does(format: str) -> None:
    """In one piece, where Pillow takes them in pieces of 64 KiB."""
    stream = io.BytesIO()
    noise(640, 512).save(stream, format)
    assert len(stream.getvalue()) > 2 * 65536
    expected = Image.open(stream).convert("RGB")
    assert np.array_equal(np.asarray(decode_picture(stream.getvalue())), np.asarray(expected))


def test_unknown_mode_is_named() -> None:
    with pytest.raises(UsageError, match="no preprocessing 'quick'"):
        Preprocessor(spec(), "quick")


def test_arrays_of_any_strides() -> None:
    pixels = np.asarray(noise(64, 48))
    preprocessor = Preprocessor(spec())
    for view in (pixels[::2, ::-1], np.asfortranarray(pixels), pixels[:, :, ::-1], pixels[5:30, 3:40, 0]):
        assert not view.flags.c_contiguous
        assert np.array_equal(preprocessor(view), preprocessor(np.ascontiguousarray(view)))


def test_an_image_of_the_callers_is_left_as_it_is() -> None:
    """Pillow opens files lazily: the fast mode must not tell somebody else's image to decode at a fraction."""
    content = photograph()
    image = Image.open(io.BytesIO(content))
    Preprocessor(spec((40, 32)), "fast")(image)
    assert image.size == (800, 600)
    assert np.array_equal(np.asarray(image), np.asarray(Image.open(io.BytesIO(content))))
