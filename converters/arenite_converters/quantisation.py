# SPDX-License-Identifier: Apache-2.0
"""How a model is quantised, and what was done."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Fidelity", "IO_TYPES", "PRECISIONS", "Quantisation", "QuantiseOptions", "Sensitivity", "Trial"]

PRECISIONS = ("int8", "int16x8", "float16", "dynamic")
IO_TYPES = ("int8", "uint8")


@dataclass(frozen=True)
class QuantiseOptions:
    """How to quantise.

    Attributes:
        precision: `int8` (weights and activations), `int16x8` (activations of 16 bits), `float16` or `dynamic` (weights
            of 8 bits, activations float).
        io: Type of input and output of an `int8` model.
        backend: `litert` (litert-quantizer) or `tensorflow` (TFLiteConverter, for models that TensorFlow loaded);
            None takes litert, and tensorflow where that leaves an operator float.
        ranges: Estimator of the activations' ranges; None takes percentile, for 16 bits min-max.
        rounding: Round weights by least squares.
        bias_correction: Take each channel's mean error out by its bias.
        equalise: Cross-layer equalisation first.
        keep_float: Layers that stay float: `first`, `last`, or part of the name of what a layer writes.
        max_drop: Let the most sensitive layers stay float until at most this percentage of the top-1 answers on the
            calibration split's other half differ from float's.
        search: Try `CANDIDATES`, choose by agreement on the calibration split's other half.
    """

    precision: str = "int8"
    io: str = "int8"
    backend: str | None = None
    ranges: str | None = None
    rounding: bool = True
    bias_correction: bool = True
    equalise: bool = False
    keep_float: tuple[str, ...] = ()
    max_drop: float | None = None
    search: bool = False

    @property
    def is_integer(self) -> bool:
        """True when activations are integers."""
        return self.precision in ("int8", "int16x8")

    @property
    def ends(self) -> str:
        """Type of input and output."""
        return {"int8": self.io, "int16x8": "int16"}.get(self.precision, "float32")

    @property
    def estimator(self) -> str:
        """The estimator of ranges that is used."""
        return self.ranges or ("percentile" if self.precision == "int8" else "min-max")


@dataclass(frozen=True)
class Fidelity:
    """How near a quantised model's answers are to the float model's.

    Attributes:
        samples: How many were compared.
        sqnr_db: Signal to quantisation noise over all outputs, in decibels.
        top1: Share of samples with the same largest output.
    """

    samples: int
    sqnr_db: float
    top1: float


@dataclass(frozen=True)
class Trial:
    """One setting that was tried, and how it agreed with float on samples that it was not calibrated on."""

    options: QuantiseOptions
    fidelity: Fidelity


@dataclass(frozen=True)
class Quantisation:
    """What was done to quantise a model.

    Attributes:
        options: What was done, with everything that was searched for filled in.
        backend: Library that quantised, with its version.
        kept_float: Names of what the layers write that stay float.
        trials: What was tried; empty without a search.
    """

    options: QuantiseOptions
    backend: str
    kept_float: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()

    @property
    def is_full_integer(self) -> bool:
        """True when nothing computes in float."""
        return self.options.is_integer and not self.kept_float

    @property
    def runs_on(self) -> str:
        """Where the model runs."""
        if self.is_full_integer and self.options.precision == "int8":
            return "every target: sessions and firmware"
        return "sessions with LiteRT; no firmware, whose kernels are INT8"


@dataclass(frozen=True)
class Sensitivity:
    """What quantising one layer alone does to the model's answers.

    Attributes:
        layer: Name of what the layer writes.
        kind: Its operator.
        sqnr_db: Of the model's output, in decibels; inf when nothing changed.
        top1: Share of samples with the same largest output as float.
    """

    layer: str
    kind: str
    sqnr_db: float
    top1: float
