# SPDX-License-Identifier: Apache-2.0
"""A finished package, read back and run by our own executor, against the model that it was made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import CONTRACT_METADATA, Contract
from arenite.coreml_package import CoreMlFile, content_digest, eight_bit, read_package
from arenite.errors import ContractError
from arenite.preprocess import value_table
from arenite.progress import Progress
from arenite_converters.calibration import CalibrationSource, read_samples
from arenite_converters.checks import agreement, check_agreement
from arenite_converters.coreml.mil_executor import MilExecutor
from arenite_converters.coreml.program import program_of
from arenite_converters.coreml.report import CoreMlCheck
from arenite_converters.coreml.source import load_source
from arenite_converters.report import Check

__all__ = [
    "CONTENT_METADATA",
    "LEAST",
    "PRECISION_METADATA",
    "Runner",
    "check_coreml",
    "check_package",
    "package_contract",
    "real_values",
    "source_inputs",
]

Array = npt.NDArray[Any]
# Where a package keeps the digest of its program and weights, and its precision.
CONTENT_METADATA = "ARENITE_CONTENT_SHA256"
PRECISION_METADATA = "ARENITE_PRECISION"
# Least SQNR in decibels and least share of equal best classes, by precision.
LEAST: Mapping[str, tuple[float, float]] = {
    "float16": (40.0, 0.98),
    "w8": (20.0, 0.9),
    "w8a8": (17.0, 0.89),
    "palettised": (17.0, 0.89),
}


def check_coreml(
    package: Path | str,
    model: Any,
    *,
    samples: CalibrationSource,
    input_shape: Sequence[int] | None = None,
    weights: Path | str | None = None,
    min_sqnr_db: float | None = None,
    min_top1: float | None = None,
    progress: Progress | None = None,
) -> CoreMlCheck:
    """Run a package on this machine, Mac or not, and compare it with its trained model.

    Args:
        package: A .mlpackage that `convert_coreml` wrote.
        model: The trained model, as for `convert_coreml`, and so `input_shape` and `weights`.
        samples: Pictures or tensors to compare on; see `read_samples`.
        min_sqnr_db: Outputs noisier than this fail; by default what the package's precision must reach.
        min_top1: So does a smaller share of samples with the model's best class.
        progress: Where to report.

    Returns:
        All checks, passed or not.

    Raises:
        ModelError: The package or the model cannot be read.
        UnsupportedOperatorError: The executor has no kernel for an operation.
        ContractError: The package carries no contract.
    """
    progress = progress or Progress()
    file = read_package(Path(package))
    contract = package_contract(file)
    source = load_source(model, input_shape, weights=weights)
    with progress.step("read samples") as step:
        chosen = read_samples(samples, contract, what="evaluation", min_samples=1, step=step).samples
    precision = file.metadata.get(PRECISION_METADATA, "float16")
    least = LEAST.get(precision, LEAST["float16"])
    limits = (least[0] if min_sqnr_db is None else min_sqnr_db, least[1] if min_top1 is None else min_top1)
    real = [real_values(sample, contract) for sample in chosen]
    references = [source.run(sample) for sample in source_inputs(real, source.channels_first, contract)]
    with progress.step("check the package", len(real)) as step:
        return check_package(file, contract, real, references, limits, True, step.advance)


def check_package(
    file: CoreMlFile,
    contract: Contract,
    samples: Sequence[Array],
    references: Sequence[Array],
    limits: tuple[float, float],
    held_out: bool,
    advance: Callable[[], None],
) -> CoreMlCheck:
    """Compare a package's outputs with the trained model's.

    Args:
        file: The package, as it was read back.
        contract: What it must carry.
        samples: Real values in the contract's shape.
        references: The trained model's output for each.
        limits: Least SQNR in decibels, least share of equal best classes.
        held_out: No sample was used for calibration.
        advance: Called after each sample.
    """
    runner = Runner(file, contract)
    outputs = []
    for sample in samples:
        outputs.append(runner.run(sample))
        advance()
    finite = all(np.isfinite(output).all() for output in outputs)
    agreed = agreement(references, outputs, contract.outputs[0], held_out)
    kept = file.metadata.get(CONTENT_METADATA)
    varied = len({output.tobytes() for output in outputs}) > 1 or len(outputs) == 1
    checks = (
        Check("program and weights are as they were written", kept == content_digest(file), kept or "no digest"),
        Check("every output is finite", finite, f"over {len(outputs)} samples"),
        Check("the output is not constant", varied, f"over {len(outputs)} samples"),
        *check_agreement(agreed, *limits),
    )
    return CoreMlCheck(str(file.path), agreed, checks, runner.operators)


class Runner:
    """Runs a package's program on a contract's inputs.

    Args:
        file: The package.
        contract: Of the package.
    """

    def __init__(self, file: CoreMlFile, contract: Contract) -> None:
        self.executor = MilExecutor(program_of(file))
        self._contract = contract
        scores = [feature.name for feature in file.outputs if feature.kind != "text"]
        self._output = scores[0]
        kinds = Counter(op.kind for op in self.executor.program.operations)
        self.operators = {k: n for k, n in sorted(kinds.items()) if k != "const"}

    def inputs(self, sample: Array) -> dict[str, Array]:
        """The program's inputs for a sample in real values."""
        picture = self._contract.input.picture
        name = self.executor.program.inputs[0].name
        if picture is None:
            return {name: sample}
        return {name: eight_bit(sample, picture.normalisation).transpose(0, 3, 1, 2).astype(np.float32)}

    def run(self, sample: Array) -> Array:
        """The output, in the contract's shape."""
        answer = self.executor.run(self.inputs(sample))[self._output]
        return np.asarray(answer, np.float32).reshape(self._contract.outputs[0].shape)


def package_contract(file: CoreMlFile) -> Contract:
    """The contract that a package carries."""
    text = file.metadata.get(CONTRACT_METADATA)
    if text is None:
        raise ContractError("the package carries no contract", where=str(file.path), cure="Convert it with Arenite.")
    return Contract.from_json(text, str(file.path))


def real_values(sample: Array, contract: Contract) -> Array:
    """The sample as an 8-bit picture gives it: what no 8-bit value makes is rounded."""
    picture = contract.input.picture
    if picture is None:
        return sample
    values = eight_bit(sample, picture.normalisation)
    table = value_table(picture.normalisation)
    return np.stack([table[c][values[..., c]] for c in range(values.shape[-1])], axis=-1)


def source_inputs(samples: Sequence[Array], channels_first: bool, contract: Contract) -> list[Array]:
    """Samples in the order of axes of the trained model; pictures of a contract are channel-last."""
    if contract.input.picture is None or not channels_first:
        return list(samples)
    return [np.ascontiguousarray(sample.transpose(0, 3, 1, 2)) for sample in samples]
