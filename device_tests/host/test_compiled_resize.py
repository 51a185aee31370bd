# SPDX-License-Identifier: Apache-2.0
"""The compiled resize: byte for byte Pillow's, whatever the picture, or Pillow's own."""

from __future__ import annotations

import ctypes
import mmap
import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL
import pytest
from PIL import Image

import arenite
from arenite import compiled_resize
from arenite.compiled import resize_library
from arenite.contract import FILTERS, Normalisation, Quantised
from arenite.errors import UsageError
from arenite.preprocess import Preprocessor
from arenite_codegen import host_resize
from arenite_codegen import toolchain as toolchains
from arenite_codegen.host_resize import build_resize
from support.camera_cases import picture_spec
from support.colour_model import colour_model

Array = npt.NDArray[Any]
OTHER_MEAN = Normalisation(1 / 127.5, (0.9, 1.0, 1.2), (1.0, 1.1, 0.8))
USED = "compiled C ("


def noise(width: int, height: int, seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def compiled(spec: Any, mode: str = "exact") -> Preprocessor:
    preprocessor = Preprocessor(spec, mode)
    preprocessor.compile_resize()
    assert preprocessor.resized_by.startswith(USED)
    return preprocessor


def pillow_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The extents of what Pillow resizes from now on."""
    calls: list[tuple[int, int]] = []
    resize = Image.Image.resize

    def counted(self: Image.Image, *arguments: Any, **more: Any) -> Image.Image:
        if self.mode == "RGB":
            calls.append(self.size)
        return resize(self, *arguments, **more)

    monkeypatch.setattr(Image.Image, "resize", counted)
    return calls


def random_spec(chance: random.Random) -> Any:
    crop = chance.choice(["none", "centre"])
    return picture_spec(
        chance.randint(1, 40),
        chance.randint(1, 40),
        chance.choice(["RGB", "BGR"]),
        chance.choice(["NHWC", "NHWC", "NCHW"]),
        *chance.choice([("int8", Quantised(float(np.float32(1 / 127.5)), -1)), ("uint8", Quantised(0.0078125, 128))]),
        normalisation=chance.choice([OTHER_MEAN, "symmetric"]),
        crop=crop,
        crop_fraction=1.0 if crop == "none" else chance.choice([1.0, 0.875, chance.uniform(0.1, 1)]),
        filter=chance.choice(FILTERS),
    )


@pytest.mark.parametrize("seed", range(60))
def test_every_picture_of_some_extents_is_pillows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any extents and contract, smaller and larger than the input. From the third picture on Pillow has no part."""
    chance = random.Random(seed)
    spec = random_spec(chance)
    ours, pillow = compiled(spec), Preprocessor(spec)
    size = chance.randint(1, 90), chance.randint(1, 90)
    # Taps that the picture has no pixels for: Pillow goes on.
    possible = compiled_resize._Table.of
    none_fits: list[bool] = []

    def table(*arguments: Any) -> Any:
        found = possible(*arguments)
        none_fits.append(found is None)
        return found

    monkeypatch.setattr(compiled_resize._Table, "of", table)
    for number in range(4):
        picture = noise(*size, 10 * seed + number)
        expected = pillow(picture)
        with pytest.MonkeyPatch.context() as patch:
            calls = pillow_calls(patch)
            assert np.array_equal(ours(picture), expected)
        assert bool(calls) == (number < 2 or any(none_fits))


def test_both_orders_are_there() -> None:
    """Pillow 13 takes rows first where that is cheaper; older ones never do."""
    orders = set()
    for seed in range(60):
        chance = random.Random(seed)
        ours = compiled(random_spec(chance))
        size = chance.randint(1, 90), chance.randint(1, 90)
        for number in range(2):
            ours(noise(*size, number))
        assert ours._compiled is not None
        (known,) = ours._compiled._known.values()
        assert known is not None
        orders |= {passes._rows_first for passes in known}
    newer = int(PIL.__version__.split(".")[0]) >= 13
    assert orders == ({False, True} if newer else {False})


def test_pictures_of_other_extents_each_go_through_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is prepared for extents that come once."""
    spec = picture_spec(20, 16)
    ours, pillow = compiled(spec), Preprocessor(spec)
    monkeypatch.setattr(compiled_resize, "axis_of", None)
    for width in range(30, 130):
        assert np.array_equal(ours(noise(width, 40, width)), pillow(noise(width, 40, width)))
    assert ours._compiled is not None
    assert len(ours._compiled._known) == 64


def test_a_picture_of_one_colour_decides_nothing() -> None:
    spec = picture_spec(20, 16, filter="lanczos")
    ours, pillow = compiled(spec), Preprocessor(spec)
    flat = Image.new("RGB", (64, 48), (40, 50, 60))
    for _ in range(3):
        assert np.array_equal(ours(flat), pillow(flat))
    assert ours._compiled is not None
    assert len(ours._compiled._known[64, 48] or ()) == 2
    for seed in range(3):
        assert np.array_equal(ours(noise(64, 48, seed)), pillow(noise(64, 48, seed)))
    assert len(ours._compiled._known[64, 48] or ()) == 1


def test_what_pillow_does_otherwise_stays_pillows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One weight that is off by a little, as another version's could be."""
    spec = picture_spec(20, 16)
    ours, pillow = compiled(spec), Preprocessor(spec)
    right = compiled_resize.axis_of

    def wrong(*arguments: Any) -> Any:
        axis = right(*arguments)
        axis.weights[0, int(axis.weights[0].argmax())] += 1 << 14
        return axis

    monkeypatch.setattr(compiled_resize, "axis_of", wrong)
    for seed in range(4):
        assert np.array_equal(ours(noise(64, 48, seed)), pillow(noise(64, 48, seed)))
    assert ours._compiled is not None
    assert ours._compiled._known[64, 48] == ()


def test_the_mode_fast_averages_no_blocks_where_it_is_compiled() -> None:
    """Of a picture that cannot be decoded at a fraction it makes what the exact mode makes, the first one too."""
    spec = picture_spec(20, 16)
    ours = compiled(spec, "fast")
    for seed in range(4):
        picture = noise(320, 240, seed)
        assert np.array_equal(ours(picture), Preprocessor(spec)(picture))
        assert not np.array_equal(ours(picture), Preprocessor(spec, "fast")(picture))


def test_an_image_that_is_not_lent_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow before 11.2 lends no memory, newer ones none that lies in several pieces."""
    spec = picture_spec(20, 16)
    ours, pillow = compiled(spec), Preprocessor(spec)

    def pieces(self: Image.Image) -> None:
        raise ValueError("Image is in multiple array blocks")

    monkeypatch.setattr(Image.Image, "__arrow_c_array__", pieces, raising=False)
    for seed in range(3):
        assert np.array_equal(ours(noise(50, 40, seed)), pillow(noise(50, 40, seed)))
    assert ours._compiled is not None
    assert len(ours._compiled._known[50, 40] or ()) == 1


def test_grey_pictures_of_a_colour_model() -> None:
    spec = picture_spec(20, 16)
    ours, pillow = compiled(spec), Preprocessor(spec)
    for seed in range(3):
        grey = noise(50, 40, seed).convert("L")
        assert np.array_equal(ours(grey), pillow(grey))


@pytest.mark.parametrize("rows_first", [False, True])
@pytest.mark.parametrize(("width", "height"), [(33, 21), (8, 7), (2, 1), (40, 2)])
def test_nothing_outside_of_the_picture_is_read(width: int, height: int, rows_first: bool) -> None:
    """The picture ends where its process's memory ends: a byte further is a fault that kills."""
    library, _ = resize_library(soon=False)
    compiled_resize._declared(library)
    tables = []
    for source, out, multiple in ((width, 9, 2), (height, 5, 1)):
        table = compiled_resize._Table.of(compiled_resize.axis_of(source, out, 0, source, "bilinear"), multiple)
        assert table is not None
        tables.append(table)
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 4), dtype=np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(-1, 2 * mmap.PAGESIZE) as memory:
        place = np.frombuffer(memory, np.uint8)
        end = place.ctypes.data + mmap.PAGESIZE
        assert libc.mprotect(ctypes.c_void_p(end), mmap.PAGESIZE, 0) == 0
        start = mmap.PAGESIZE - pixels.size
        place[start : mmap.PAGESIZE] = pixels.ravel()
        passes = compiled_resize._Passes(library, width, *tables, rows_first)
        found = passes.run(end - pixels.size)
        assert np.array_equal(found, passes.run(pixels.ctypes.data))
        del place


def test_a_session_of_the_compiled_model_resizes_so(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(colour_model(16))
    contract = arenite.make_contract(arenite.read_graph(model), normalisation="unit")
    aot = arenite.open(model, engine="aot", contract=contract)
    litert = arenite.open(model, engine="litert", contract=contract)
    for seed in range(4):
        answers = [session.classify(noise(50, 40, seed)).labels for session in (aot, litert)]
        assert answers[0] == answers[1]
    assert aot.preprocessor.resized_by.startswith(USED)
    assert aot.preprocessor._compiled is not None
    assert len(aot.preprocessor._compiled._known[50, 40] or ()) == 1
    assert litert.preprocessor.resized_by == "Pillow"


def test_without_a_compiler_pillow_goes_on_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path / "cache"))
    spec = picture_spec(20, 16)
    ours = Preprocessor(spec, "fast")
    ours.compile_resize(soon=True)
    assert ours.resized_by.startswith("Pillow (no compiler")
    assert np.array_equal(ours(noise(50, 40, 0)), Preprocessor(spec, "fast")(noise(50, 40, 0)))


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path / "file"))
    ours = Preprocessor(picture_spec(20, 16))
    ours.compile_resize()
    assert ours.resized_by.startswith("Pillow (the cache of what is compiled")


@pytest.mark.parametrize("spec", [picture_spec(8, 8, "GREY"), picture_spec(8, 8, dtype="int16")])
def test_other_inputs_stay_pillows(spec: Any) -> None:
    ours = Preprocessor(spec)
    ours.compile_resize()
    assert "three channels of a byte" in ours.resized_by
    assert np.array_equal(ours(noise(50, 40, 0)), Preprocessor(spec)(noise(50, 40, 0)))


def test_a_wrong_buffer_is_refused() -> None:
    ours = compiled(picture_spec(12, 10))
    for seed in range(3):
        ours(noise(50, 40, seed))
    for wrong in (np.empty((1, 12, 10, 3), np.int8), np.empty((1, 10, 12, 3), np.float32)):
        with pytest.raises(UsageError, match="cannot write a picture"):
            ours(noise(50, 40, 0), wrong)


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
def test_every_compiler_takes_it(toolchain: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_resize, "find_toolchain", lambda board: toolchains.find_toolchain(board, toolchain))
        build_resize(tmp_path / "lib.so")
    assert ctypes.CDLL(str(tmp_path / "lib.so")).arenite_resize_runs_here() in (0, 1)
