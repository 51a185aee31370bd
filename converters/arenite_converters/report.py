# SPDX-License-Identifier: Apache-2.0
"""What a conversion says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arenite.contract import Contract
from arenite.graph import printable
from arenite.labels import Label
from arenite_converters.quantisation import Quantisation, Sensitivity

__all__ = [
    "Agreement",
    "Caution",
    "Check",
    "ConversionReport",
    "PictureQuality",
    "Recipe",
    "Repeat",
    "ServingDrift",
    "TensorDrift",
    "TensorQuality",
]

_LABEL = 56


@dataclass(frozen=True)
class Check:
    """One check of the converted model."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Caution:
    """Something that may be wrong and fails nothing.

    Attributes:
        name: What, in a few words.
        detail: The figures.
        cure: What to do.
    """

    name: str
    detail: str
    cure: str


@dataclass(frozen=True)
class TensorQuality:
    """How near an activation is to its float original, over a few samples.

    Attributes:
        name: Of the tensor in both models.
        operator: Kind of the operator that computes it.
        sqnr_db: Signal to quantisation noise in decibels.
        cosine: Cosine of the angle between the two, 1 is equal.
        low: Lowest float value.
        high: Highest float value.
        range: What its quantised form can hold; None when it is not quantised.
        clipped: Share of the float values outside that range by more than half a step.
    """

    name: str
    operator: str
    sqnr_db: float
    cosine: float
    low: float
    high: float
    range: tuple[float, float] | None
    clipped: float

    @property
    def label(self) -> str:
        """The name in short: the end of the first of those that a converter joined with semicolons."""
        first = self.name.split(";")[0]
        first = printable(first, len(first))
        return first if len(first) <= _LABEL else "…" + first[1 - _LABEL :]


@dataclass(frozen=True)
class Agreement:
    """One model against another, the first being what is right: float against INT8, or any two.

    Attributes:
        samples: How many were compared.
        held_out: Evaluation samples were given, and none of them is a calibration sample.
        sqnr_db: Over all outputs.
        sqnr_interval_db: Its 95 % interval.
        top1: Share with the same highest class.
        top1_interval: Its 95 % interval.
        top1_confident: The same among samples where the first model's best leads by more than 0.3; None without such
            samples, or when the output holds no probabilities.
        confident_samples: How many those are.
    """

    samples: int
    held_out: bool
    sqnr_db: float
    sqnr_interval_db: tuple[float, float]
    top1: float
    top1_interval: tuple[float, float]
    top1_confident: float | None
    confident_samples: int


@dataclass(frozen=True)
class PictureQuality:
    """One sample on which two models were compared.

    Attributes:
        name: Its file, or its place in the set.
        sqnr_db: Of its output.
        expected: The first model's best class.
        found: The second model's.
        thumbnail: A small JPEG as `data:` address; empty when the input is no picture.
    """

    name: str
    sqnr_db: float
    expected: Label
    found: Label
    thumbnail: str

    @property
    def same(self) -> bool:
        """True when both models name the same class."""
        return self.expected.index == self.found.index


@dataclass(frozen=True)
class TensorDrift:
    """One activation of serving samples against calibration.

    Attributes:
        name: Of the tensor.
        clipped: Share of its serving values outside the range of its quantised form by more than half a step.
        calibration_clipped: The same of calibration samples.
        drift: As `ServingDrift.drift`, of this tensor alone.
    """

    name: str
    clipped: float
    calibration_clipped: float
    drift: float


@dataclass(frozen=True)
class ServingDrift:
    """How far the samples of serving are from those of calibration.

    Attributes:
        samples: How many serving samples.
        drift: 0 for one distribution to 1 for nothing in common, of mean and spread of every activation; see
            `arenite_converters.statistics.energy_distance`.
        p_value: How often samples of one distribution seem as far apart.
        clipped: Share of all serving values that are clipped.
        calibration_clipped: The same of calibration samples.
        tensors: Each activation, in the model's order.
    """

    samples: int
    drift: float
    p_value: float
    clipped: float
    calibration_clipped: float
    tensors: tuple[TensorDrift, ...]


@dataclass(frozen=True)
class Recipe:
    """The whole choice of a conversion.

    Attributes:
        arguments: Of `convert`, defaults filled in.
        versions: Of Python and of each package that has a say.
        model_sha256: Of the trained model's file, or of all files of its folder.
        samples_sha256: Of calibration, evaluation and serving samples, as they were fed.
        result_sha256: Of the file that was written; of a Core ML package, of its program and weights.
    """

    arguments: Mapping[str, Any]
    versions: Mapping[str, str]
    model_sha256: str
    samples_sha256: Mapping[str, str]
    result_sha256: str


@dataclass(frozen=True)
class Repeat:
    """A recipe that was run again.

    Attributes:
        identical: The file has the bytes of the first time.
        differences: What is not as it was: name, then, now.
    """

    identical: bool
    differences: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class ConversionReport:
    """Result of a conversion.

    Attributes:
        path: The file written; empty when a check failed, so that none was.
        model_sha256: Of the file.
        file_bytes: Its size.
        float_bytes: Size of the float TFLite model.
        loader: Library that loaded the trained model, with its version.
        contract: Written into the file.
        operators: How many of each kind.
        agreement: Float against INT8.
        tensors: Each activation that both models name alike, in the model's order.
        worst_pictures: Samples with the noisiest outputs, wrong classes first.
        engine_difference: Largest difference in output steps between the host engine and the golden
            authority; None when tflite-micro is not installed, so that the file holds no golden vectors.
        checks: All passed, or there is no file.
        quantisation: How it was quantised.
        cautions: What may be wrong all the same.
        serving: Serving samples against calibration, when some were given.
        sensitivity: What each layer costs, when that was computed.
        recipe: What makes the same file again.
        repeat: Against the recipe that was given, if one was.
    """

    path: str
    model_sha256: str
    file_bytes: int
    float_bytes: int
    loader: str
    contract: Contract
    operators: Mapping[str, int]
    agreement: Agreement
    tensors: tuple[TensorQuality, ...]
    worst_pictures: tuple[PictureQuality, ...]
    engine_difference: int | None
    checks: tuple[Check, ...]
    quantisation: Quantisation
    cautions: tuple[Caution, ...]
    serving: ServingDrift | None
    sensitivity: tuple[Sensitivity, ...]
    recipe: Recipe
    repeat: Repeat | None = None

    @property
    def worst_tensors(self) -> tuple[TensorQuality, ...]:
        """The activations by SQNR, worst first."""
        return tuple(sorted(self.tensors, key=lambda quality: quality.sqnr_db))
