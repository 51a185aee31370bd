# SPDX-License-Identifier: Apache-2.0
"""The compiled resize: byte for byte Pillow's, whatever the picture, or Pillow's own."""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
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
from arenite.frames import Frame
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


def random_size(chance: random.Random) -> tuple[int, int]:
    return chance.randint(1, 90), chance.randint(1, 90)


def known(preprocessor: Preprocessor, size: tuple[int, int]) -> Any:
    """What is proven for pictures of this size; None after the first of them."""
    assert preprocessor._compiled is not None
    return preprocessor._compiled._known[size]


@pytest.mark.parametrize("seed", range(60))
def test_every_picture_of_some_extents_is_pillows(seed: int) -> None:
    """Any extents and contract, smaller and larger than the input. From the third picture on Pillow has no part."""
    chance = random.Random(seed)
    spec = random_spec(chance)
    ours, pillow = compiled(spec), Preprocessor(spec)
    size = random_size(chance)
    for number in range(4):
        picture = noise(*size, 10 * seed + number)
        expected = pillow(picture)
        with pytest.MonkeyPatch.context() as patch:
            calls = pillow_calls(patch)
            assert np.array_equal(ours(picture), expected)
        assert bool(calls) == (number < 2 or known(ours, size) == ())


def test_both_orders_are_there_and_few_extents_are_pillows() -> None:
    """Pillow 13 takes rows first where that is cheaper; older ones never do."""
    orders, refused = set(), []
    for seed in range(60):
        chance = random.Random(seed)
        ours = compiled(random_spec(chance))
        size = random_size(chance)
        for number in range(2):
            ours(noise(*size, number))
        if known(ours, size):
            orders.add(known(ours, size)[0]._rows_first)
        else:
            refused.append(min(size))
    newer = int(PIL.__version__.split(".")[0]) >= 13
    assert orders == ({False, True} if newer else {False})
    assert max(refused, default=0) < 5  # fewer pixels than taps


def test_pictures_of_other_extents_each_go_through_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is prepared for extents that come once; those that keep coming are not forgotten."""
    spec = picture_spec(20, 16)
    ours, pillow = compiled(spec), Preprocessor(spec)
    for seed in range(3):
        ours(noise(50, 40, seed))
    monkeypatch.setattr(compiled_resize, "axis_of", None)
    for width in range(60, 160):
        assert np.array_equal(ours(noise(width, 40, width)), pillow(noise(width, 40, width)))
        ours(noise(50, 40, width))
    assert len(known(ours, (50, 40))) == 1
    assert ours._compiled is not None
    assert len(ours._compiled._known) == 64


def test_what_pillow_does_otherwise_stays_pillows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One weight that is off by a little, as another version's could be; flat pictures would not show it."""
    spec = picture_spec(20, 16)
    ours, pillow = compiled(spec), Preprocessor(spec)
    right = compiled_resize.axis_of

    def wrong(*arguments: Any) -> Any:
        axis = right(*arguments)
        axis.weights[0, int(axis.weights[0].argmax())] += 1 << 14
        return axis

    monkeypatch.setattr(compiled_resize, "axis_of", wrong)
    for picture in (Image.new("RGB", (64, 48)), *(noise(64, 48, seed) for seed in range(4))):
        assert np.array_equal(ours(picture), pillow(picture))
    assert known(ours, (64, 48)) == ()


def test_the_mode_fast_is_the_same_compiled_or_not() -> None:
    spec = picture_spec(40, 30)
    ours, pillow = compiled(spec, "fast"), Preprocessor(spec, "fast")
    stream = io.BytesIO()
    noise(400, 300, 0).save(stream, "JPEG")
    pictures = [stream.getvalue(), Frame(bytes(640 * 480 * 2), 640, 480, "YUYV"), noise(320, 240, 0)]
    for _ in range(3):
        for picture in pictures:
            assert np.array_equal(ours(picture), pillow(picture))
    assert ours._compiled is not None
    assert [len(passes or ()) for passes in ours._compiled._known.values()] == [1, 1, 1]


@pytest.mark.parametrize("lends", ["yes", "pieces", "alignment", "version"])
def test_pixels_are_read_in_pillows_memory_or_copied(lends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old versions lend no memory, or lose it; newer ones lend none that lies in pieces, or name another place."""
    spec = picture_spec(20, 16)
    ours, pillow = compiled(spec), Preprocessor(spec)
    copies: list[Image.Image] = []
    tobytes = Image.Image.tobytes

    def copied(self: Image.Image, *arguments: Any) -> bytes:
        copies.extend([self] * (arguments == ("raw", "RGBX")))
        return tobytes(self, *arguments)

    def pieces(self: Image.Image) -> None:
        raise ValueError("Image is in multiple array blocks")

    if lends == "pieces":
        monkeypatch.setattr(Image.Image, "__arrow_c_array__", pieces, raising=False)
    if lends == "version":
        monkeypatch.setattr(PIL, "__version__", "12.3.0")
    if lends == "alignment":
        Image.core.set_alignment(64)  # type: ignore[attr-defined]
    monkeypatch.setattr(Image.Image, "tobytes", copied)
    try:
        for seed in range(5):
            assert np.array_equal(ours(noise(48, 40, seed)), pillow(noise(48, 40, seed)))
    finally:
        Image.core.set_alignment(1)  # type: ignore[attr-defined]
    assert len(known(ours, (48, 40))) == 1
    newer = int(PIL.__version__.split(".")[0]) >= 13
    assert bool(copies) == (lends != "yes" or not newer)


def test_a_borrowed_image_is_copied() -> None:
    """Some versions of Pillow crash when they lend what was lent to them."""
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 4), dtype=np.uint8)
    borrowed = Image.frombuffer("RGBX", (50, 40), pixels.data, "raw", "RGBX", 0, 1)
    assert borrowed.readonly
    assert not compiled_resize._lends(borrowed)


def test_lent_memory_comes_back() -> None:
    """A thousand pictures of 1.2 MB."""
    statistics = Path("/proc/self/statm")
    if not statistics.exists():
        pytest.skip("this system does not say how much memory a process has")
    picture = noise(640, 480, 0)
    ours = compiled(picture_spec(20, 16))
    for _ in range(20):
        ours(picture.copy())
    before = int(statistics.read_text().split()[1])
    for _ in range(1000):
        ours(picture.copy())
    assert mmap.PAGESIZE * (int(statistics.read_text().split()[1]) - before) < 100 << 20


def test_threads_share_a_preprocessor() -> None:
    """Sources of a multi-stream do: sizes come and go under each other's hands."""
    spec = picture_spec(20, 16)
    ours, pillow = compiled(spec), Preprocessor(spec)
    pictures = [noise(width, 30, width) for width in range(30, 130)]
    expected = [pillow(picture) for picture in pictures]

    def all_of_them(start: int) -> int:
        order = [(start + 7 * i) % len(pictures) for i in range(3 * len(pictures))]
        return sum(np.array_equal(ours(pictures[i]), expected[i]) for i in order)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(all_of_them, range(8))) == [3 * len(pictures)] * 8


def test_grey_pictures_of_a_colour_model() -> None:
    spec = picture_spec(20, 16)
    ours, pillow = compiled(spec), Preprocessor(spec)
    for seed in range(3):
        grey = noise(50, 40, seed).convert("L")
        assert np.array_equal(ours(grey), pillow(grey))


@pytest.mark.parametrize("rows_first", [False, True])
@pytest.mark.parametrize("at_its_end", [False, True])
@pytest.mark.parametrize(("width", "height"), [(33, 21), (8, 7), (2, 1), (40, 2)])
def test_nothing_outside_of_the_picture_is_read(width: int, height: int, at_its_end: bool, rows_first: bool) -> None:
    """The picture lies where its process's memory begins, or ends: a byte further is a fault that kills."""
    library, _ = resize_library(soon=False)
    tables = []
    for source, out, multiple in ((width, 9, 2), (height, 5, 1)):
        table = compiled_resize._Table.of(compiled_resize.axis_of(source, out, 0, source, "bilinear"), multiple)
        assert table is not None
        tables.append(table)
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 4), dtype=np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    page = mmap.PAGESIZE
    with mmap.mmap(-1, 3 * page) as memory:
        place = np.frombuffer(memory, np.uint8)
        start = 2 * page - pixels.size if at_its_end else page
        place[start : start + pixels.size] = pixels.ravel()
        for guard in (0, 2 * page):
            assert protect(ctypes.c_void_p(place.ctypes.data + guard), page, 0) == 0
        passes = compiled_resize._Passes(library, width, *tables, rows_first)
        found = passes.run(place.ctypes.data + start)
        assert np.array_equal(found, passes.run(pixels.ctypes.data))
        del place


@pytest.mark.parametrize(("engine", "preprocessing"), [("aot", "exact"), ("litert", "fast")])
def test_sessions_resize_so(engine: str, preprocessing: str, tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(colour_model(16))
    contract = arenite.make_contract(arenite.read_graph(model), normalisation="unit")
    session = arenite.open(model, engine=engine, contract=contract, preprocessing=preprocessing)
    plain = arenite.open(model, engine="litert", contract=contract)
    for seed in range(4):
        answers = [one.classify(noise(50, 40, seed)).labels for one in (session, plain)]
        assert answers[0] == answers[1]
    assert session.preprocessor.resized_by.startswith(USED)
    assert len(known(session.preprocessor, (50, 40))) == 1
    assert plain.preprocessor.resized_by == "Pillow"


def test_a_computer_is_prepared_by_opening_the_model_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no compiler afterwards, the resize is there."""
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model.tflite").write_bytes(colour_model(16))
    arenite.open(tmp_path / "model.tflite", engine="aot")
    monkeypatch.setenv("PATH", str(tmp_path))
    anew(monkeypatch)
    compiled(picture_spec(20, 16))


def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in another process: nothing is known of the library."""
    fresh = lru_cache(maxsize=1)(compiled_resize.usable_library.__wrapped__)
    monkeypatch.setattr(compiled_resize, "usable_library", fresh)


def built() -> Path:
    """The compiled resize in the cache."""
    compiled(picture_spec(20, 16))
    return Path(compiled_resize.usable_library()[0]._name)  # type: ignore[union-attr]


def stays_pillows(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    anew(monkeypatch)
    spec = picture_spec(20, 16)
    ours = Preprocessor(spec)
    ours.compile_resize()
    assert ours.resized_by.startswith(f"Pillow ({reason}")
    for seed in range(3):
        assert np.array_equal(ours(noise(50, 40, seed)), Preprocessor(spec)(noise(50, 40, seed)))


def test_without_a_compiler_pillow_goes_on_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path / "cache"))
    stays_pillows("no compiler", monkeypatch)


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path / "file"))
    stays_pillows("the cache of what is compiled", monkeypatch)


def test_an_installation_without_the_generator_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "arenite_codegen.host_resize", None)
    stays_pillows("ModuleNotFoundError", monkeypatch)


def test_a_library_that_lacks_a_function_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path))
    anew(monkeypatch)
    library = built()
    source = tmp_path / "other.c"
    source.write_text("int arenite_resize_runs_here(void) { return 1; }")
    other = tmp_path / "other.so"
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(other)], check=True)
    other.replace(library)
    anew(monkeypatch)
    compiled(picture_spec(20, 16))


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


@pytest.mark.parametrize("toolchain", ["gcc", "zig", "clang"])
def test_every_compiler_makes_pillows_bytes(toolchain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if toolchain != "zig" and shutil.which(toolchain) is None:
        pytest.skip(f"{toolchain} is not on PATH")
    right = toolchains.find_toolchain
    monkeypatch.setattr(host_resize, "find_toolchain", lambda board: right(board, toolchain))
    library, said = build_resize(tmp_path)
    assert toolchain in said
    monkeypatch.setattr(
        compiled_resize, "usable_library", lambda: (compiled_resize.declared(ctypes.CDLL(str(library))), said)
    )
    for seed in range(20):
        chance = random.Random(100 + seed)
        spec = random_spec(chance)
        ours, pillow = compiled(spec), Preprocessor(spec)
        size = random_size(chance)
        for number in range(3):
            assert np.array_equal(ours(noise(*size, number)), pillow(noise(*size, number)))


def test_a_quick_compiler_is_gcc_or_clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a computer with Clang alone."""
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("clang is not on PATH")
    (tmp_path / "clang").write_text(f'#!/bin/sh\nPATH="{os.environ["PATH"]}" exec {clang} "$@"\n')
    (tmp_path / "clang").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "clang" in host_resize._quick_toolchain().version
