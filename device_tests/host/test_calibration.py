# SPDX-License-Identifier: Apache-2.0
"""Calibration samples: made by the contract, and refused by name when they cannot be right."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from arenite.contract import NORMALISATIONS, Contract, make_contract
from arenite.errors import AreniteError, ContractError, UsageError
from arenite.progress import silent
from arenite.tflite_graph import parse_graph
from arenite_converters.calibration import SampleSet, halves, read_samples, spread
from support.builder import ModelBuilder


def float_contract(
    shape: tuple[int, ...] = (1, 8, 6, 3), normalisation: str | None = "symmetric"
) -> Contract:
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "float32")
    y = builder.tensor("y", shape, "float32")
    builder.operator("RELU", [x], [y])
    return make_contract(parse_graph(builder.finish([x], [y])), normalisation=normalisation)


def read(source: Any, contract: Contract | None = None, min_samples: int = 2) -> SampleSet:
    with silent().step("read") as step:
        return read_samples(
            source, contract or float_contract(), what="calibration", min_samples=min_samples, step=step
        )


def pixels(count: int = 4, height: int = 11, width: int = 13) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i, picture in enumerate(pixels()):
        (tmp_path / "sub").mkdir(exist_ok=True)
        Image.fromarray(picture).save(tmp_path / ("sub" if i % 2 else ".") / f"{i}.png")
    (tmp_path / "notes.txt").write_text("not a picture")
    return tmp_path


def expected_samples(pictures: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.float32]]:
    """The trainer's own formula on Pillow's resize."""
    resized = [np.asarray(Image.fromarray(p).resize((6, 8), Image.Resampling.BILINEAR)) for p in pictures]
    return [(r.astype(np.float64) / 127.5 - 1).astype(np.float32)[None] for r in resized]


def test_samples_are_the_contracts_preprocessing(folder: Path) -> None:
    found = read([folder / "0.png", folder / "sub" / "1.png", folder / "2.png", folder / "sub" / "3.png"])
    for sample, expected in zip(found.samples, expected_samples(pixels()), strict=True):
        np.testing.assert_allclose(sample, expected, atol=1e-7)
    content = b"".join(sample.tobytes() for sample in found.samples)
    calibration = found.calibration()
    assert calibration.digest == hashlib.sha256(content).hexdigest()
    assert calibration.samples == 4
    assert calibration.low == min(float(s.min()) for s in found.samples)
    assert calibration.high == max(float(s.max()) for s in found.samples)


def test_every_source_gives_the_same_samples(folder: Path, tmp_path: Path) -> None:
    sources = pixels()[[0, 2, 1, 3]]  # the order of a folder is that of its paths
    np.save(tmp_path / "pictures.npy", sources)
    np.savez(tmp_path / "pictures.npz", sources)
    ways: list[Any] = [
        folder,
        str(folder),
        [folder],
        sources,
        list(sources),
        [Image.fromarray(p) for p in sources],
        tmp_path / "pictures.npy",
        [str(tmp_path / "pictures.npz")],
    ]
    assert len({read(way).digest for way in ways}) == 1


def test_iterables_and_functions_give_samples() -> None:
    """Pictures one by one, the generators that TensorFlow's converter wants, and tensors of other libraries."""
    values = np.random.default_rng(1).uniform(-1, 1, (5, 8, 6, 3)).astype(np.float32)

    class Foreign:
        def __init__(self, array: npt.NDArray[np.float32]) -> None:
            self._array = array

        def numpy(self) -> npt.NDArray[np.float32]:
            return self._array

    assert read(picture for picture in pixels()).digest == read(pixels()).digest
    expected = read(values)
    ways: list[Any] = [
        (value for value in values),
        lambda: ([value[None]] for value in values),
        [value[None] for value in values],
        (Foreign(value) for value in values),
        iter([values[:2], values[2:]]),
    ]
    assert {read(way).digest for way in ways} == {expected.digest}
    assert read(value for value in values).names == tuple(f"calibration sample {i}" for i in range(5))
    refused((value for value in values[:0]), "0 distinct")
    refused(3, "cannot come from a int")
    refused((value[0] for value in values), "calibration sample 0", "[6, 3]")


def test_names_and_origin(folder: Path) -> None:
    found = read(folder)
    assert found.from_files and found.names[0] == str(folder / "0.png")
    assert not read(pixels()).from_files


def test_spread_takes_from_the_whole() -> None:
    assert spread(range(10), 4) == [0, 2, 5, 7]
    assert spread(range(3), 4) == [0, 1, 2]


def test_ready_made_tensors_are_taken_as_they_are() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, (5, 8, 6, 3)).astype(np.float32)
    found = read(values)
    assert np.array_equal(np.concatenate(found.samples), values)
    assert np.array_equal(np.concatenate(read(values[:, None]).samples), values)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, 255),  # never normalised
        (0, 1),  # by x/255 for a model that wants -1..1
        (-2.2, 2.6),  # by mean and std
        (-0.1, 0.1),
    ],
)
def test_tensors_that_contradict_the_contract(low: float, high: float) -> None:
    values = np.random.default_rng(1).uniform(low, high, (5, 8, 6, 3)).astype(np.float32)
    with pytest.raises(ContractError, match=r"calibration array: .* span .* gives -1 to 1"):
        read(values)


@pytest.mark.parametrize(
    ("made", "wanted", "named"),
    [
        ("raw", "symmetric", r"look like 8-bit values that nobody normalised \(raw\)"),
        ("unit", "symmetric", "look like the normalisation 'unit'"),
        ("symmetric", "unit", "look like the normalisation 'symmetric'"),
        ("imagenet", "symmetric", "look like the normalisation 'imagenet'"),
        ("imagenet", "imagenet", "look like BGR instead of RGB"),
    ],
)
def test_tensors_are_named_for_what_they_look_like(made: str, wanted: str, named: str) -> None:
    """The last row is normalised with the right numbers, its channels in the wrong order."""
    scale, mean, std = NORMALISATIONS[made]
    pictures = pixels(6, 8, 6).astype(np.float64)
    values = (pictures * scale - np.array(mean)) / np.array(std)
    values = values[..., ::-1] if made == wanted else values
    with pytest.raises(ContractError, match=named):
        read(values, float_contract(normalisation=wanted))
    if made != wanted:
        assert len(read(values, float_contract(normalisation=made)).samples) == 6


def test_mean_and_std_over_the_wrong_axis() -> None:
    """A square of three rows takes the channels' numbers along its rows without an error."""
    scale, mean, std = NORMALISATIONS["imagenet"]
    pictures = pixels(6, 3, 3).astype(np.float64)
    right = (pictures * scale - np.array(mean)) / np.array(std)
    wrong = (pictures * scale - np.array(mean)[:, None]) / np.array(std)[:, None]
    contract = float_contract((1, 3, 3, 3), "imagenet")
    assert len(read(right, contract).samples) == 6
    with pytest.raises(ContractError, match="each channel its own range"):
        read(wrong, contract)


def test_one_sample_scaled_twice_is_named() -> None:
    """The set as a whole spans 0 to 255, one sample 0 to 1."""
    values = np.random.default_rng(1).uniform(0, 255, (5, 8, 6, 3))
    values[3] /= 255
    with pytest.raises(UsageError, match=r"array\[3\]: .*nearly constant: it spans 0\.\d+ to 0\.\d+ of 0 to 255"):
        read(values, float_contract(normalisation="raw"))


def test_unit_range_for_a_raw_model() -> None:
    values = np.random.default_rng(1).uniform(0, 1, (5, 8, 6, 3)).astype(np.float32)
    with pytest.raises(ContractError, match="gives 0 to 255"):
        read(values, float_contract(normalisation="raw"))


def test_no_contract_means_no_range_check() -> None:
    values = np.random.default_rng(1).uniform(0, 1e4, (5, 8, 6, 3)).astype(np.float32)
    assert len(read(values, float_contract(normalisation=None)).samples) == 5


def test_pictures_without_normalisation_are_refused(folder: Path) -> None:
    with pytest.raises(ContractError, match="not how a picture becomes the input"):
        read(folder, float_contract(normalisation=None))


def refused(source: Any, *words: str, min_samples: int = 2) -> None:
    with pytest.raises(AreniteError) as caught:
        read(source, min_samples=min_samples)
    assert isinstance(caught.value, UsageError)
    for word in words:
        assert word in str(caught.value)


def test_empty_folder(tmp_path: Path) -> None:
    refused(tmp_path, str(tmp_path), "holds no picture, nothing")


def test_folder_without_pictures(tmp_path: Path) -> None:
    (tmp_path / "a.raw").write_bytes(b"x")
    (tmp_path / "b.csv").write_bytes(b"x")
    refused(tmp_path, "only .csv, .raw")
    refused([tmp_path, tmp_path], "holds no picture")


def test_path_that_is_not_there(tmp_path: Path) -> None:
    refused(tmp_path / "gone", "gone", "no calibration samples here")
    refused([tmp_path / "a.png", tmp_path / "b.png"], "a.png")


def test_empty_list_and_array() -> None:
    refused([], "list of calibration pictures is empty")
    refused(np.zeros((0, 8, 6, 3), np.float32), "0 distinct calibration samples are too few")
    refused(np.zeros((0, 8, 6, 3), np.uint8), "0 distinct")


def test_unreadable_picture_is_named(folder: Path) -> None:
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 and no more")
    refused(folder, "broken.jpg", "cannot decode")


def test_constant_picture_is_named(folder: Path) -> None:
    Image.new("RGB", (20, 20), (9, 9, 9)).save(folder / "black.png")
    refused(folder, "black.png", "constant")


def test_constant_and_not_finite_tensors_are_named() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, (5, 8, 6, 3)).astype(np.float32)
    flat = values.copy()
    flat[3] = 0.5
    refused(flat, "calibration array[3]", "constant", "0.5")
    for bad in (np.nan, np.inf, -np.inf):
        broken = values.copy()
        broken[2, 1, 1, 1] = bad
        refused(broken, "calibration array[2]", "NaN or infinity")


def test_wrong_shape_and_type() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, (5, 8, 6, 3))
    refused(values.transpose(0, 3, 1, 2), "[5, 3, 8, 6]", "[1, 8, 6, 3]")
    refused(values[0, 0], "[6, 3]")
    refused(np.array(3.0), "[]")
    refused(values.astype(np.int8), "int8")
    refused(values.astype(np.complex64), "complex64")


def test_too_few_and_repeated_samples() -> None:
    refused(pixels(), "4 distinct", "at least 20", min_samples=20)
    refused(np.repeat(pixels(1), 50, axis=0), "1 distinct", min_samples=2)


def test_damaged_arrays(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY and no more")
    refused(tmp_path / "a.npy", "a.npy", "cannot read")
    (tmp_path / "b.npz").write_bytes(b"PK\x03\x04 and no more")
    refused(tmp_path / "b.npz", "b.npz", "cannot read")
    np.save(tmp_path / "c.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    refused(tmp_path / "c.npy", "c.npy", "cannot read")
    np.savez(tmp_path / "d.npz", x=pixels(), y=pixels())
    refused(tmp_path / "d.npz", "2 arrays (x, y)")


def test_halves_hold_different_pictures_and_every_class() -> None:
    """Sixteen pictures of two classes, six crops of each one after the other."""
    crops = [(picture // 8, picture) for picture in range(16) for _ in range(6)]
    first, second = halves(crops)
    assert len(first) == len(second) == 48 and {*first}.isdisjoint(second)
    assert {kind for kind, _ in first} == {kind for kind, _ in second} == {0, 1}
    for count in range(2, 40):
        sides = halves(range(count))
        assert sorted(sides[0] + sides[1]) == list(range(count)) and all(sides)
