# SPDX-License-Identifier: Apache-2.0
"""A model's contract as a person reads it, and all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arenite._contract_reader import read_contract_text
from arenite.contract import (
    CONTRACT_METADATA,
    Contract,
    InputSpec,
    contract_json,
    contradictions,
    read_contract,
)
from arenite.coreml_package import coreml_metadata
from arenite.errors import AreniteError, ContractError
from arenite.golden import GoldenVectors, golden_of
from arenite.graph import Graph
from arenite.model_file import COREML_SUFFIXES, read_model
from arenite.preprocess import Preprocessor, quantise
from arenite.reference import reference_available, reference_name, reference_outputs

__all__ = ["ContractCheck", "ContractReport", "show_contract", "verify_contract"]

# Of the 8-bit values of a picture: more of them outside the input's range than a calibrated one leaves out.
_MOST_CLIPPED = 0.1
# Of the input's 256 steps: fewer of them in use than any trained normalisation leaves.
_FEWEST_STEPS = 64


@dataclass(frozen=True)
class ContractReport:
    """What a model carries.

    Attributes:
        contract: As JSON values, None when it carries none.
    """

    path: str
    contract: Mapping[str, Any] | None


@dataclass(frozen=True)
class ContractCheck:
    """All that is wrong with a contract.

    Attributes:
        problems: One sentence each; none when it is valid.
        valid: There is a contract, and no problem.
        golden: What became of the golden vectors.
    """

    path: str
    valid: bool
    problems: tuple[str, ...]
    golden: str


def show_contract(path: Path | str) -> ContractReport:
    """The contract in a model file; see `arenite.read_contract`."""
    contract = read_contract(path)
    return ContractReport(str(path), None if contract is None else contract_json(contract))


def verify_contract(path: Path | str) -> ContractCheck:
    """Find everything that is wrong with the contract in a model file.

    Each field, the contract against the model's tensors, whether the input can hold what its normalisation gives and
    what it was calibrated on, and the golden vectors, which run again where the reference is installed.

    Args:
        path: As for `arenite.read_contract`; of a Core ML model the fields alone are checked.

    Raises:
        ModelError: The file is no such model.
    """
    path = Path(path)
    coreml = path.suffix.lower() in COREML_SUFFIXES
    graph = None if coreml else read_model(path)
    text = (coreml_metadata(path) if graph is None else graph.metadata).get(CONTRACT_METADATA)
    if text is None:
        return _check(path, ["the model carries no contract"], "none")
    read = read_contract_text(text, str(path))
    if not isinstance(read, Contract):
        return _check(path, [problem.what for problem in read], "not looked at: the contract cannot be read")
    problems = [] if graph is None else [problem.what for problem in contradictions(read, graph)]
    problems += _picture_problems(read)
    golden = "none"
    if read.golden is not None and graph is not None:
        golden, wrong = _golden(read, graph, Path(path))
        problems += wrong
    return _check(path, problems, golden)


def _check(path: Path, problems: list[str], golden: str) -> ContractCheck:
    return ContractCheck(str(path), not problems, tuple(dict.fromkeys(problems)), golden)


def _picture_problems(contract: Contract) -> Iterator[str]:
    spec = contract.input
    if spec.picture is None:
        return
    try:
        preprocessor = Preprocessor(spec)
    except AreniteError as error:
        yield error.what
        return
    low, high = spec.picture.normalisation.range()
    calibration = contract.calibration
    slack = 1e-3 * (high - low)
    if calibration is not None and (calibration.low < low - slack or calibration.high > high + slack):
        yield (
            f"it was calibrated on {calibration.low:g}..{calibration.high:g}, "
            f"but 'input.picture.normalisation' gives {low:g}..{high:g}"
        )
    if spec.quantised is not None:
        yield from _range_problems(spec, preprocessor)


def _range_problems(spec: InputSpec, preprocessor: Preprocessor) -> Iterator[str]:
    assert spec.quantised is not None
    low, high = (float(preprocessor.values.min()), float(preprocessor.values.max()))
    limits = np.iinfo(spec.dtype)
    scale, zero = spec.quantised.scale, spec.quantised.zero_point
    holds = f"the input holds {scale * (int(limits.min) - zero):g}..{scale * (int(limits.max) - zero):g}"
    gives = f"'input.picture.normalisation' gives {low:g}..{high:g}, {holds}"
    steps = preprocessor.values.astype(np.float64) / scale + zero
    clipped = float(((steps < int(limits.min) - 1) | (steps > int(limits.max) + 1)).mean())
    if clipped > _MOST_CLIPPED:
        yield f"{gives}: {clipped:.0%} of the 8-bit values are clipped"
        return
    used = len(np.unique(quantise(preprocessor.values, spec.quantised, spec.dtype)))
    if used < _FEWEST_STEPS:
        yield f"{gives}: a picture uses {used} of its steps"


def _golden(contract: Contract, graph: Graph, path: Path) -> tuple[str, list[str]]:
    """What became of the golden vectors, and what is wrong with them."""
    try:
        golden = golden_of(graph)
    except ContractError as error:
        return "damaged", [error.what]
    if golden is None:
        return "none", []
    count = f"{len(golden.inputs)} vectors by {golden.authority}"
    if contract.rounding != "double":
        return f"{count}; not run again: the reference does not round by the rule '{contract.rounding}'", []
    if not reference_available():
        return f"{count}; not run again: tflite-micro is not installed (pip install 'arenite[firmware]')", []
    try:
        wrong = _differing(golden, path)
    except AreniteError as error:
        return f"{count}; the reference refuses the model", [error.what]
    return f"{count}; run again by {reference_name()}", wrong


def _differing(golden: GoldenVectors, path: Path) -> list[str]:
    found = reference_outputs(path.read_bytes(), [[value] for value in golden.inputs], str(path))
    wrong = []
    for i, (outputs, expected) in enumerate(zip(found, golden.outputs, strict=True)):
        count = int((outputs[0].reshape(-1) != expected.reshape(-1)).sum())
        if count:
            wrong.append(f"golden vector {i} differs in {count} of {expected.size} elements from {reference_name()}")
    return wrong
