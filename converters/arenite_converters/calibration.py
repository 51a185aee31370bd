# SPDX-License-Identifier: Apache-2.0
"""Calibration samples: read, preprocessed by the contract, refused by name when they cannot be right."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from arenite.contract import NORMALISATIONS, Calibration, Contract, Picture, normalisation_for
from arenite.errors import ContractError, UsageError
from arenite.preprocess import PictureSource, Preprocessor, pictures_in
from arenite.progress import Step

__all__ = ["CalibrationSource", "SampleSet", "halves", "read_samples", "spread"]

Floats = npt.NDArray[np.float32]
Item = TypeVar("Item")
CalibrationSource: TypeAlias = str | Path | npt.NDArray[Any] | Iterable[PictureSource] | Callable[[], Iterable[Any]]

# Ready-made samples must use this part of the range that the contract's normalisation gives, all together and each.
_MIN_COVERAGE, _MIN_SPAN = 0.6, 0.01
# Of neighbours, when samples are halved.
_BLOCKS = 8
_MIN_SAMPLES_CURE = "Give more, and varied, samples: a hundred or more is usual."


@dataclass(frozen=True)
class SampleSet:
    """Input tensors in real values.

    Attributes:
        samples: float32 of the model's input shape each.
        digest: SHA-256 over all of them in order.
        digests: SHA-256 of each, once for equal ones.
        names: File or place of each.
        from_files: All of them are picture files, whose order of colours is known.
    """

    samples: tuple[Floats, ...]
    digest: str
    digests: frozenset[bytes]
    names: tuple[str, ...] = ()
    from_files: bool = False

    def shares(self, other: SampleSet) -> bool:
        """True when a sample of this set is one of the other's too."""
        return not self.digests.isdisjoint(other.digests)

    def calibration(self) -> Calibration:
        """The contract's record of this set."""
        low = min(float(s.min()) for s in self.samples)
        high = max(float(s.max()) for s in self.samples)
        return Calibration(self.digest, len(self.samples), low, high)


def read_samples(
    source: CalibrationSource, contract: Contract, *, what: str, min_samples: int, step: Step
) -> SampleSet:
    """Read samples and check each.

    Args:
        source: Folder or list of pictures, .npy or .npz file, array, or any iterable or function that gives one.
            Integer arrays are pictures (N×H×W×3, 8 bits); float arrays are input tensors in real values, N × the
            model's input. An iterable's items are pictures or such tensors.
        contract: Of the float model; says how a picture becomes the input.
        what: `calibration` or `evaluation`, for messages.
        min_samples: Fewer distinct samples are refused.
        step: Told about each sample.

    Raises:
        UsageError: Nothing there, unreadable, constant, not finite, wrong shape or too few.
        ContractError: The values contradict the contract's normalisation.
    """
    samples: list[Floats] = []
    names: list[str] = []
    seen: set[bytes] = set()
    digest = hashlib.sha256()
    ready, files = False, 0
    for item in _items(source, contract, what):
        _check_sample(item.name, item.sample, what)
        content = np.ascontiguousarray(item.sample, dtype="<f4").tobytes()
        digest.update(content)
        seen.add(hashlib.sha256(content).digest())
        samples.append(item.sample)
        names.append(item.name)
        ready, files = ready or item.is_ready, files + item.is_file
        step.advance()
    if ready:
        _check_ranges(str(source) if isinstance(source, (str, Path)) else f"{what} array", samples, contract, what)
    for name, sample in zip(names, samples, strict=True):
        _check_span(name, sample, contract, what)
    if len(seen) < min_samples:
        raise UsageError(
            f"{len(seen)} distinct {what} samples are too few, at least {min_samples} are needed",
            cure=_MIN_SAMPLES_CURE,
        )
    return SampleSet(tuple(samples), digest.hexdigest(), frozenset(seen), tuple(names), files == len(samples))


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many of them, evenly spread and in order."""
    count = min(most, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def halves(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Alternate blocks of neighbours, at least one item in each half of two or more.

    Crops of one picture, frames of one clip and pictures of one day lie side by side as a rule: what is tried on one
    half is then compared on other pictures, while both halves still hold something of every class of a sorted folder.
    """
    width = max(1, len(items) // _BLOCKS)
    sides: tuple[list[Item], list[Item]] = ([], [])
    for i, item in enumerate(items):
        sides[i // width % 2].append(item)
    return sides


@dataclass(frozen=True)
class _Item:
    """One sample on its way in; `is_ready` when the caller made the tensor, `is_file` when it was a picture file."""

    name: str
    sample: Floats
    is_ready: bool = False
    is_file: bool = False


def _items(source: CalibrationSource, contract: Contract, what: str) -> Iterator[_Item]:
    if isinstance(source, np.ndarray):
        return _from_array(f"{what} array", source, contract, what)
    if isinstance(source, (str, Path)):
        return _from_path(Path(source), contract, what)
    given = source() if callable(source) else source
    if not isinstance(given, Iterable):
        raise UsageError(
            f"{what} samples cannot come from a {type(given).__name__}",
            cure="Give a folder, a list of pictures, an array, an .npy or .npz file, or an iterable.",
        )
    if not isinstance(given, Sequence):
        return _from_iterable(given, contract, what)
    sources = list(given)
    if len(sources) == 1 and isinstance(sources[0], (str, Path)):
        return _from_path(Path(sources[0]), contract, what)
    return _from_list(sources, contract, what)


def _from_list(sources: list[PictureSource], contract: Contract, what: str) -> Iterator[_Item]:
    if not sources:
        raise UsageError(f"the list of {what} pictures is empty", cure=_MIN_SAMPLES_CURE)
    flat: list[PictureSource] = []
    for source in sources:
        is_folder = isinstance(source, (str, Path)) and Path(source).is_dir()
        flat.extend(pictures_in(Path(str(source)), what) if is_folder else [source])
    return _from_iterable(flat, contract, what)


def _from_iterable(given: Iterable[Any], contract: Contract, what: str) -> Iterator[_Item]:
    for i, item in enumerate(given):
        # As the generators that TensorFlow's converter wants yield it, and as tensors of other libraries come.
        item = item[0] if isinstance(item, (list, tuple)) and len(item) == 1 else item
        item = np.asarray(item.numpy()) if hasattr(item, "numpy") else item
        if isinstance(item, np.ndarray) and item.dtype in (np.float32, np.float64):
            yield from _from_array(f"{what} sample {i}", item, contract, what, only=True)
        else:
            yield from _from_pictures([item], contract, what, i)


def _from_path(path: Path, contract: Contract, what: str) -> Iterator[_Item]:
    if path.is_dir():
        return _from_pictures(pictures_in(path, what), contract, what)
    if not path.exists():
        raise UsageError(f"there are no {what} samples here", where=str(path), cure="Check the path.")
    if path.suffix.lower() in (".npy", ".npz"):
        return _from_array(str(path), _load_array(path, what), contract, what)
    return _from_pictures([path], contract, what)


def _load_array(path: Path, what: str) -> npt.NDArray[Any]:
    cure = "Save one array with numpy.save: N × the model's input."
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            arrays = {name: loaded[name] for name in sorted(loaded.files)}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(f"cannot read the {what} array ({error})", where=str(path), cure=cure) from error
    if len(arrays) != 1:
        names = ", ".join(list(arrays)[:5])
        raise UsageError(f"the file holds {len(arrays)} arrays ({names})", where=str(path), cure=cure)
    return np.asarray(next(iter(arrays.values())))


def _from_pictures(
    pictures: Iterable[PictureSource], contract: Contract, what: str, first: int = 0
) -> Iterator[_Item]:
    if contract.input.picture is None:
        raise ContractError(
            f"{what} pictures were given, but not how a picture becomes the input",
            cure="Give the normalisation that the model was trained with: symmetric, unit, imagenet or raw.",
        )
    preprocessor = Preprocessor(contract.input)
    for i, picture in enumerate(pictures, first):
        is_file = isinstance(picture, (str, Path))
        name = str(picture) if is_file else f"{what} picture {i}"
        image = preprocessor.decode(picture, name)
        yield _Item(name, preprocessor.real(preprocessor.fit(image)), is_file=is_file)


def _from_array(
    name: str, array: npt.NDArray[Any], contract: Contract, what: str, only: bool = False
) -> Iterator[_Item]:
    """Pictures or input tensors; `only` when the array is one of many."""
    if array.dtype == np.uint8 and array.ndim >= 3 and contract.input.picture is not None:
        return _from_pictures(list(array), contract, what)
    wanted = contract.input.shape
    if array.dtype not in (np.float32, np.float64):
        raise UsageError(
            f"the {what} array holds {array.dtype}",
            where=name,
            cure="Give real values as float32, or uint8 pictures and a normalisation.",
        )
    if array.shape[1:] == wanted or (only and array.shape == wanted[1:]):
        array = array.reshape(-1, *wanted[1:])
    if array.shape[1:] != wanted[1:]:
        raise UsageError(
            f"the {what} array is {list(array.shape)}, the model's input {list(wanted)}",
            where=name,
            cure=f"Give an array N×{'×'.join(map(str, wanted[1:]))}.",
        )
    alone = only and len(array) == 1
    return (
        _Item(name if alone else f"{name}[{i}]", array[i : i + 1].astype(np.float32), is_ready=True)
        for i in range(len(array))
    )


def _check_sample(name: str, sample: Floats, what: str) -> None:
    if not np.isfinite(sample).all():
        raise UsageError(f"the {what} sample holds NaN or infinity", where=name, cure="Remove or mend it.")
    if sample.min() == sample.max() and sample.size > 1:
        raise UsageError(
            f"the {what} sample is constant (every value is {float(sample.flat[0]):g})",
            where=name,
            cure="Remove it; a sample of one value says nothing about ranges.",
        )


def _check_span(name: str, sample: Floats, contract: Contract, what: str) -> None:
    """A picture that uses next to nothing of the range is dark to the last pixel, or normalised twice."""
    if contract.input.picture is None:
        return
    least, most = contract.input.picture.normalisation.range()
    low, high = float(sample.min()), float(sample.max())
    if high - low < _MIN_SPAN * (most - least):
        raise UsageError(
            f"the {what} sample is nearly constant: it spans {low:g} to {high:g} of {least:g} to {most:g}",
            where=name,
            cure="Remove it, or normalise it as the others.",
        )


def _check_ranges(name: str, samples: Sequence[Floats], contract: Contract, what: str) -> None:
    """Ready-made tensors of a picture model must look as if its normalisation had made them."""
    picture = contract.input.picture
    if picture is None:
        return
    axis = 3 if contract.input.layout == "NHWC" else 1
    others = tuple(i for i in range(4) if i != axis)
    lows = np.min([sample.min(axis=others) for sample in samples], axis=0)
    highs = np.max([sample.max(axis=others) for sample in samples], axis=0)
    if _could_be(picture, lows, highs):
        return
    low, high = picture.normalisation.range()
    alike = [f"; they look like {named}" for named, other in _candidates(picture) if _could_be(other, lows, highs)]
    raise ContractError(
        f"the {what} values span {lows.min():g} to {highs.max():g}, the contract's normalisation gives {low:g} to "
        f"{high:g}, each channel its own range" + next(iter(alike), ""),
        where=name,
        cure="Normalise the samples as the model was trained, or give uint8 pictures.",
    )


def _candidates(picture: Picture) -> Iterator[tuple[str, Picture]]:
    """What else ready-made tensors may be: the other order of colours, another normalisation."""
    if picture.colour == "GREY":
        names = [name for name in NORMALISATIONS if name != "imagenet"]
        orders = ["GREY"]
    else:
        names, orders = list(NORMALISATIONS), [picture.colour, "BGR" if picture.colour == "RGB" else "RGB"]
    swapped = replace(picture.normalisation, mean=picture.normalisation.mean[::-1], std=picture.normalisation.std[::-1])
    if picture.colour != "GREY":
        yield f"{orders[1]} instead of {orders[0]}", replace(picture, normalisation=swapped)
    for colour in orders:
        for name in names:
            text = {"raw": "8-bit values that nobody normalised (raw)"}.get(name, f"the normalisation '{name}'")
            yield text, replace(picture, normalisation=normalisation_for(name, colour))


def _could_be(picture: Picture, lows: npt.NDArray[Any], highs: npt.NDArray[Any]) -> bool:
    """Each channel lies in the range that the normalisation gives it, and together they use much of it."""
    how = picture.normalisation
    least, most = (
        np.array([(x * how.scale - m) / s for m, s in zip(how.mean, how.std, strict=True)]) for x in (0, 255)
    )
    whole = float(most.max() - least.min())
    slack = whole * 1e-3
    inside = bool((lows >= least - slack).all() and (highs <= most + slack).all())
    return inside and float(highs.max() - lows.min()) >= _MIN_COVERAGE * whole
