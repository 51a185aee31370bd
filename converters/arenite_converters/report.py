# SPDX-License-Identifier: Apache-2.0
"""What a conversion says about itself."""

from __future__ import annotations

from dataclasses import dataclass

from arenite.contract import Contract
from arenite_converters.quantisation import Quantisation

__all__ = ["Agreement", "Check", "ConversionReport", "TensorQuality"]


@dataclass(frozen=True)
class Check:
    """One check of the converted model."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class TensorQuality:
    """How near an INT8 activation is to its float original, over a few samples.

    Attributes:
        name: Of the tensor in the INT8 model.
        sqnr_db: Signal to quantisation noise in decibels.
        cosine: Cosine of the angle between the two, 1 is equal.
    """

    name: str
    sqnr_db: float
    cosine: float


@dataclass(frozen=True)
class Agreement:
    """Float model against INT8 model.

    Attributes:
        samples: How many were compared.
        held_out: Evaluation samples were given, and none of them is a calibration sample.
        sqnr_db: Over all outputs.
        top1: Share with the same highest class.
        top1_confident: The same among samples where float's best leads by more than 0.3; None without such
            samples, or when the output holds no probabilities.
        confident_samples: How many those are.
    """

    samples: int
    held_out: bool
    sqnr_db: float
    top1: float
    top1_confident: float | None
    confident_samples: int


@dataclass(frozen=True)
class ConversionReport:
    """Result of a conversion.

    Attributes:
        path: The file written.
        model_sha256: Of the file.
        file_bytes: Its size.
        float_bytes: Size of the float TFLite model.
        loader: Library that loaded the trained model, with its version.
        contract: Written into the file.
        agreement: Float against INT8.
        worst_tensors: Activations with the lowest SQNR, worst first.
        tensors_compared: How many activations were compared.
        engine_difference: Largest difference in output steps between the host engine and the golden
            authority; None when tflite-micro is not installed, so that the file holds no golden vectors.
        checks: All passed, or there would be no file.
        quantisation: How it was quantised.
    """

    path: str
    model_sha256: str
    file_bytes: int
    float_bytes: int
    loader: str
    contract: Contract
    agreement: Agreement
    worst_tensors: tuple[TensorQuality, ...]
    tensors_compared: int
    engine_difference: int | None
    checks: tuple[Check, ...]
    quantisation: Quantisation
