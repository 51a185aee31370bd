# SPDX-License-Identifier: Apache-2.0
"""What a conversion to Core ML says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arenite.contract import Contract
from arenite_converters.report import Agreement, Check, Recipe, Repeat

__all__ = ["CoreMlCheck", "CoreMlReport", "UNKNOWN_OFF_A_MAC"]

UNKNOWN_OFF_A_MAC = (
    "whether Core ML compiles the program",
    "which of its operations run on the Neural Engine, the GPU and the CPU",
    "how fast it runs, and in what energy",
    "what the hardware's arithmetic changes: the check computes float32 and rounds where the program does",
)


@dataclass(frozen=True)
class CoreMlCheck:
    """A package against the model that it was made of.

    Attributes:
        path: The package.
        agreement: Its outputs against the model's, over all samples.
        checks: What was looked at.
        operators: Kinds of its operations and how many of each, constants left out.
    """

    path: str
    agreement: Agreement
    checks: tuple[Check, ...]
    operators: Mapping[str, int]

    @property
    def passed(self) -> bool:
        """Every check passed."""
        return all(check.passed for check in self.checks)


@dataclass(frozen=True)
class CoreMlReport:
    """Result of a conversion to Core ML.

    Attributes:
        path: The package written.
        content_sha256: Of its program and weights.
        package_bytes: Size of its files.
        float16_bytes: Size that they have in float16.
        precision: float16, w8, w8a8 or palettised.
        loader: Library that loaded the trained model, with its version.
        contract: Written into the package.
        check: The package, read back, against the trained model.
        layers: How many layers have weights of their own.
        kept_float: Layers that read float16 although activations were to be 8 bits.
        unknown: What nobody knows before a Mac runs it.
        mac_folder: Script and golden vectors for a Mac, or None.
        recipe: What makes the same package again; its result is `content_sha256`.
        repeat: Against the recipe that was given, if one was.
    """

    path: str
    content_sha256: str
    package_bytes: int
    float16_bytes: int
    precision: str
    loader: str
    contract: Contract
    check: CoreMlCheck
    layers: int
    kept_float: tuple[str, ...]
    unknown: tuple[str, ...]
    mac_folder: str | None
    recipe: Recipe
    repeat: Repeat | None = None
