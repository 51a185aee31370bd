# SPDX-License-Identifier: Apache-2.0
"""Calibration samples: read, preprocessed by the contract, refused by name when they cannot be right."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from arenite.contract import Calibration, Contract
from arenite.errors import ContractError, UsageError
from arenite.preprocess import PictureSource, Preprocessor, pictures_in
from arenite.progress import Step

__all__ = ["CalibrationSource", "SampleSet", "read_samples"]

Floats = npt.NDArray[np.float32]
CalibrationSource: TypeAlias = str | Path | npt.NDArray[Any] | Sequence[PictureSource]

# Ready-made samples must use this part of the range that the contract's normalisation gives.
_MIN_COVERAGE = 0.6
_MIN_SAMPLES_CURE = "Give more, and varied, samples: a hundred or more is usual."


@dataclass(frozen=True)
class SampleSet:
    """Input tensors in real values.

    Attributes:
        samples: float32 of the model's input shape each.
        digest: SHA-256 over all of them in order.
        digests: SHA-256 of each, once for equal ones.
    """

    samples: tuple[Floats, ...]
    digest: str
    digests: frozenset[bytes]

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
        source: Folder or list of pictures, .npy or .npz file, or array. Integer arrays are pictures
            (N×H×W×3, 8 bits); float arrays are input tensors in real values, N × the model's input.
        contract: Of the float model; says how a picture becomes the input.
        what: `calibration` or `evaluation`, for messages.
        min_samples: Fewer distinct samples are refused.
        step: Told about each sample.

    Raises:
        UsageError: Nothing there, unreadable, constant, not finite, wrong shape or too few.
        ContractError: The values contradict the contract's normalisation.
    """
    samples: list[Floats] = []
    seen: set[bytes] = set()
    digest = hashlib.sha256()
    for name, sample in _named_samples(source, contract, what):
        _check_sample(name, sample, what)
        content = np.ascontiguousarray(sample, dtype="<f4").tobytes()
        digest.update(content)
        seen.add(hashlib.sha256(content).digest())
        samples.append(sample)
        step.advance()
    if len(seen) < min_samples:
        raise UsageError(
            f"{len(seen)} distinct {what} samples are too few, at least {min_samples} are needed",
            cure=_MIN_SAMPLES_CURE,
        )
    return SampleSet(tuple(samples), digest.hexdigest(), frozenset(seen))


def _named_samples(source: CalibrationSource, contract: Contract, what: str) -> Iterator[tuple[str, Floats]]:
    if isinstance(source, np.ndarray):
        return _from_array(f"{what} array", source, contract, what)
    if isinstance(source, (str, Path)):
        return _from_path(Path(source), contract, what)
    sources = list(source)
    if len(sources) == 1 and isinstance(sources[0], (str, Path)):
        return _from_path(Path(sources[0]), contract, what)
    return _from_list(sources, contract, what)


def _from_list(sources: list[PictureSource], contract: Contract, what: str) -> Iterator[tuple[str, Floats]]:
    if not sources:
        raise UsageError(f"the list of {what} pictures is empty", cure=_MIN_SAMPLES_CURE)
    flat: list[PictureSource] = []
    for source in sources:
        is_folder = isinstance(source, (str, Path)) and Path(source).is_dir()
        flat.extend(pictures_in(Path(str(source)), what) if is_folder else [source])
    return _from_pictures(flat, contract, what)


def _from_path(path: Path, contract: Contract, what: str) -> Iterator[tuple[str, Floats]]:
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
    pictures: Iterable[PictureSource], contract: Contract, what: str
) -> Iterator[tuple[str, Floats]]:
    if contract.input.picture is None:
        raise ContractError(
            f"{what} pictures were given, but not how a picture becomes the input",
            cure="Give the normalisation that the model was trained with: symmetric, unit, imagenet or raw.",
        )
    preprocessor = Preprocessor(contract.input)
    for i, picture in enumerate(pictures):
        name = str(picture) if isinstance(picture, (str, Path)) else f"{what} picture {i}"
        image = preprocessor.decode(picture, name)
        yield name, preprocessor.real(preprocessor.fit(image))


def _from_array(
    name: str, array: npt.NDArray[Any], contract: Contract, what: str
) -> Iterator[tuple[str, Floats]]:
    if array.dtype == np.uint8 and array.ndim >= 3 and contract.input.picture is not None:
        return _from_pictures(list(array), contract, what)
    wanted = contract.input.shape
    if array.dtype not in (np.float32, np.float64):
        raise UsageError(
            f"the {what} array holds {array.dtype}",
            where=name,
            cure="Give real values as float32, or uint8 pictures and a normalisation.",
        )
    if array.shape[1:] == wanted:
        array = array.reshape(-1, *wanted[1:])
    if array.shape[1:] != wanted[1:]:
        raise UsageError(
            f"the {what} array is {list(array.shape)}, the model's input {list(wanted)}",
            where=name,
            cure=f"Give an array N×{'×'.join(map(str, wanted[1:]))}.",
        )
    if array.size:
        _check_range(name, array, contract, what)
    return ((f"{name}[{i}]", array[i : i + 1].astype(np.float32)) for i in range(len(array)))


def _check_sample(name: str, sample: Floats, what: str) -> None:
    if not np.isfinite(sample).all():
        raise UsageError(f"the {what} sample holds NaN or infinity", where=name, cure="Remove or mend it.")
    if sample.min() == sample.max() and sample.size > 1:
        raise UsageError(
            f"the {what} sample is constant (every value is {float(sample.flat[0]):g})",
            where=name,
            cure="Remove it; a sample of one value says nothing about ranges.",
        )


def _check_range(name: str, array: npt.NDArray[Any], contract: Contract, what: str) -> None:
    """Ready-made tensors of a picture model must look as if its normalisation had made them."""
    if contract.input.picture is None or not np.isfinite(array).all():
        return
    low, high = contract.input.picture.normalisation.range()
    seen_low, seen_high = float(array.min()), float(array.max())
    slack = (high - low) * 1e-3
    inside = low - slack <= seen_low and seen_high <= high + slack
    if inside and seen_high - seen_low >= _MIN_COVERAGE * (high - low):
        return
    raise ContractError(
        f"the {what} values span {seen_low:g} to {seen_high:g}, "
        f"the contract's normalisation gives {low:g} to {high:g}",
        where=name,
        cure="Normalise the samples as the model was trained, or give uint8 pictures.",
    )
