# SPDX-License-Identifier: Apache-2.0
"""The conversion, step by step: load, float, calibrate, INT8, check, golden vectors, contract, write."""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import (
    CONTRACT_METADATA,
    GOLDEN_METADATA,
    Contract,
    Normalisation,
    contract_of,
    make_contract,
)
from arenite.engines.litert import LiteRt
from arenite.errors import CheckFailedError, ContractError, OutputError, UsageError
from arenite.labels import read_labels
from arenite.preprocess import quantise
from arenite.progress import Progress
from arenite.tflite_graph import Graph, parse_graph, read_graph
from arenite_converters.calibration import CalibrationSource, SampleSet, read_samples
from arenite_converters.checks import (
    agreement,
    check_graph,
    check_outputs,
    check_tensors,
    last_computing_operator,
    refuse_wrong_meaning,
)
from arenite_converters.golden import golden_vectors, pack_vectors
from arenite_converters.layers import compare_activations
from arenite_converters.loaders import FloatModel, load, package_version
from arenite_converters.metadata import with_metadata
from arenite_converters.quantisation import QuantiseOptions
from arenite_converters.quantiser import quantise as quantise_model
from arenite_converters.quantiser import to_float
from arenite_converters.quiet import quiet
from arenite_converters.report import Check, ConversionReport

__all__ = ["convert"]

Array = npt.NDArray[Any]
_LAYER_SAMPLES = 4
_WORST = 5


def convert(
    model: Path | str,
    out: Path | str,
    *,
    calibration: CalibrationSource,
    evaluation: CalibrationSource | None = None,
    name: str | None = None,
    normalisation: str | Normalisation | None = None,
    colour: str | None = None,
    crop: str = "none",
    crop_fraction: float = 1.0,
    filter: str = "bilinear",
    orientation: str = "exif",
    meaning: str | None = None,
    labels: Sequence[str] | Path | str | None = None,
    input_shape: Sequence[int] | None = None,
    min_samples: int = 20,
    min_sqnr_db: float = 5.0,
    golden: int = 3,
    quantisation: QuantiseOptions | None = None,
    progress: Progress | None = None,
) -> ConversionReport:
    """Convert a trained model to full-INT8 TFLite, check it, and write it with its contract.

    The same inputs and package versions give the same bytes. Nothing is written unless every check passed.

    Args:
        model: .keras or .h5 file, or SavedModel folder; one input, one output.
        out: The .tflite file to write; its folder must exist.
        calibration: Folder or list of pictures, .npy or .npz file, or array; see `read_samples`.
        evaluation: Held-out samples for the comparison with float; by default the calibration samples. When
            one of them is a calibration sample too, the report does not call them held out.
        name: What to call the model; by default the source's name.
        normalisation: How the model was trained: `symmetric` (x/127.5-1), `unit` (x/255), `imagenet`,
            `raw`, or numbers. Needed when the input is a picture.
        colour: RGB, BGR or GREY; see `arenite.contract.Picture`, as for `crop`, `crop_fraction`, `filter` and
            `orientation`.
        meaning: logits, probabilities or values; probabilities by itself when the model ends in a softmax.
        labels: One text for each class, or a text file with one a line.
        input_shape: Without the batch, for models that leave dimensions open.
        min_samples: Fewer distinct calibration samples are refused.
        min_sqnr_db: Outputs noisier than this against float are a failed check.
        golden: Reference vectors to write into the file, at least 1; none are written without tflite-micro.
        quantisation: How to quantise; by default full INT8, see `QuantiseOptions`.
        progress: Where to report.

    Raises:
        ModelError: The trained model cannot be loaded or converted.
        UsageError: A sample or an argument is wrong; it is named.
        ContractError: The contract's arguments contradict the model or the samples.
        CheckFailedError: The converted model is not good; every failed check is listed.
        OutputError: The file cannot be written.
    """
    source, target = Path(model), Path(out).resolve()
    progress = progress or Progress()
    if golden < 1 or min_samples < 1:
        raise UsageError("golden and min_samples must be at least 1")
    options: dict[str, Any] = {
        "name": name or source.stem,
        "normalisation": normalisation,
        "colour": colour,
        "crop": crop,
        "crop_fraction": crop_fraction,
        "filter": filter,
        "orientation": orientation,
        "labels": _labels(labels),
    }
    _check_target(target, source)
    with tempfile.TemporaryDirectory(prefix="arenite-") as scratch:
        job = _Job(source, Path(scratch), options, meaning, progress)
        job.load(input_shape)
        samples = job.samples(calibration, "calibration", min_samples)
        job.quantise(samples, quantisation or QuantiseOptions())
        held_out = None if evaluation is None else job.samples(evaluation, "evaluation", 1)
        return job.finish(target, samples, held_out, min_sqnr_db, golden)


def _labels(labels: Sequence[str] | Path | str | None) -> tuple[str, ...]:
    if isinstance(labels, (str, Path)):
        return read_labels(labels)
    return tuple(labels or ())


def _check_target(target: Path, source: Path) -> None:
    cure = "Give the path of a new .tflite file in a folder that exists and can be written."
    if target.suffix != ".tflite":
        raise UsageError(f"the output must be named *.tflite, not {target.name!r}", cure=cure)
    if target == source.resolve() or source.resolve() in target.parents:
        raise UsageError("the output would replace the model that is converted", where=str(target), cure=cure)
    if target.exists() and not target.is_file() and not target.is_dir():
        raise OutputError("the output is a device", where=str(target), cure=cure)
    if target.is_dir():
        raise OutputError("the output is a folder", where=str(target), cure=cure)
    if not target.parent.is_dir():
        raise OutputError("the output's folder does not exist", where=str(target.parent), cure=cure)
    if not os.access(target.parent, os.W_OK):
        raise OutputError("the output's folder cannot be written", where=str(target.parent), cure=cure)


@dataclass
class _Job:
    """State of one conversion; each method is one step of it."""

    source: Path
    scratch: Path
    options: dict[str, Any]
    meaning: str | None
    progress: Progress

    def load(self, input_shape: Sequence[int] | None) -> None:
        """The trained model, as a function and as float TFLite; the contract's arguments are checked here."""
        with self.progress.step("load the trained model") as step:
            with quiet():
                self.model: FloatModel = load(self.source, input_shape)
                content = to_float(self.model, str(self.source))
            step.note(self.model.loader)
        self.float_path = self.scratch / "float.tflite"
        self.float_path.write_bytes(content)
        self.float_graph = read_graph(self.float_path)
        self.options["meaning"] = self._meaning(self.float_graph)
        self.float_contract = self._contract(self.float_graph)

    def _contract(self, graph: Graph) -> Contract:
        # The scratch file's name would say nothing to the user.
        return make_contract(replace(graph, path=str(self.source)), **self.options)

    def _meaning(self, graph: Graph) -> str:
        last = last_computing_operator(graph)
        if last == "SOFTMAX":
            if self.meaning == "values":
                return self.meaning
            if self.meaning not in (None, "probabilities"):
                raise ContractError(
                    f"the model ends in a softmax, so its output is probabilities, not {self.meaning}",
                    where=str(self.source),
                    cure="Leave meaning away, or give values for the plain numbers.",
                )
            return "probabilities"
        if self.meaning is None and self.options["labels"]:
            raise ContractError(
                f"the model ends in {last or 'no operator'} and has labels, but what its scores mean is not given",
                where=str(self.source),
                cure="Give meaning: logits, probabilities or values.",
            )
        return self.meaning or "values"

    def samples(self, source: CalibrationSource, what: str, min_samples: int) -> SampleSet:
        """Samples made by the contract."""
        with self.progress.step(f"read {what} samples") as step:
            return read_samples(source, self.float_contract, what=what, min_samples=min_samples, step=step)

    def quantise(self, samples: SampleSet, options: QuantiseOptions) -> None:
        """The quantised model, and its contract without golden vectors."""
        with self.progress.step(f"quantise to {options.precision}") as step, quiet():
            self.int8, self.quantisation = quantise_model(
                self.float_path.read_bytes(),
                samples.samples,
                options,
                function=self.model.function,
                where=str(self.source),
                step=step,
            )
        self.int8_path = self.scratch / "int8.tflite"
        self.int8_path.write_bytes(self.int8)
        self.graph = read_graph(self.int8_path)
        _raise_failed(self._check_graph(), self.source)
        contract = self._contract(self.graph)
        self.contract = replace(contract, calibration=samples.calibration(), tools=self._tools())

    def _check_graph(self) -> list[Check]:
        done = self.quantisation
        return check_graph(self.graph, done.options.ends, done.kept_float if done.options.is_integer else None)

    def _tools(self) -> dict[str, str]:
        packages = ("arenite", "numpy", "pillow", "tensorflow", "ai-edge-litert", "litert-quantizer")
        tools = {name: package_version(name) for name in packages}
        return {**tools, "loader": self.model.loader, "machine": platform.machine()}

    def finish(
        self,
        target: Path,
        samples: SampleSet,
        held_out: SampleSet | None,
        min_sqnr_db: float,
        golden: int,
    ) -> ConversionReport:
        """Check, add the golden vectors and the contract, write."""
        chosen = (held_out or samples).samples
        with self.progress.step("check float against INT8", len(chosen)) as step, quiet():
            floats, quantised = self._answers(chosen, step.advance)
            qualities = compare_activations(self.float_path, self.int8_path, chosen[:_LAYER_SAMPLES])
            spec = self.contract.outputs[0]
            refuse_wrong_meaning(floats, spec, str(self.source))
            agreed = agreement(floats, quantised, spec, held_out is not None and not held_out.shares(samples))
            checks = [
                *self._check_graph(),
                self._check_float(chosen[0], floats[0]),
                *check_outputs(floats, quantised, spec),
                check_tensors(qualities),
                Check(
                    f"SQNR is at least {min_sqnr_db:g} dB",
                    agreed.sqnr_db >= min_sqnr_db,
                    f"{agreed.sqnr_db:.1f} dB over {agreed.samples} samples",
                ),
            ]
        _raise_failed(checks, self.source)
        with self.progress.step("golden vectors") as step, quiet():
            content, difference = self._golden(chosen, quantised, golden)
            step.note(self.contract.golden.authority if self.contract.golden else "none, tflite-micro is missing")
        _write(target, content)
        worst = sorted(qualities, key=lambda quality: quality.sqnr_db)[:_WORST]
        return ConversionReport(
            path=str(target),
            model_sha256=hashlib.sha256(content).hexdigest(),
            file_bytes=len(content),
            float_bytes=self.float_path.stat().st_size,
            loader=self.model.loader,
            contract=self.contract,
            agreement=agreed,
            worst_tensors=tuple(worst),
            tensors_compared=len(qualities),
            engine_difference=difference,
            checks=tuple(checks),
            quantisation=self.quantisation,
        )

    def _answers(self, samples: Sequence[Array], advance: Any) -> tuple[list[Array], list[Array]]:
        engines = LiteRt(self.float_graph), LiteRt(self.graph)
        floats: list[Array] = []
        quantised: list[Array] = []
        for sample in samples:
            for engine, value, found in (
                (engines[0], sample, floats),
                (engines[1], self._quantised(sample), quantised),
            ):
                engine.inputs[0][...] = value
                engine.invoke()
                found.append(engine.outputs[0].copy())
            advance()
        return floats, quantised

    def _quantised(self, sample: Array) -> Array:
        quantised = self.contract.input.quantised
        if quantised is None:
            return sample
        return quantise(sample, quantised, self.contract.input.dtype)

    def _check_float(self, sample: Array, converted: Array) -> Check:
        """The float TFLite model, which everything is compared with, is itself the trained model."""
        trained = self.model.run(sample)
        difference = float(np.abs(trained.reshape(-1) - converted.reshape(-1)).max())
        allowed = 1e-3 * max(1.0, float(np.abs(trained).max()))
        return Check(
            "float TFLite equals the trained model", difference <= allowed, f"differs by {difference:.1e}"
        )

    def _golden(
        self, samples: Sequence[Array], quantised: Sequence[Array], count: int
    ) -> tuple[bytes, int | None]:
        """The file's bytes, and the difference between host engine and authority."""
        inputs = [self._quantised(sample) for sample in samples[:count]]
        # The reference's float kernels are no authority: each machine's sums differ.
        found = golden_vectors(self.int8_path, inputs) if self.quantisation.is_full_integer else None
        if found is None:
            return self._with_contract({}), None
        outputs, authority = found
        difference = max(
            int(np.abs(a.astype(np.int32) - b).max()) for a, b in zip(outputs, quantised, strict=False)
        )
        packed, entry = pack_vectors(inputs, outputs, authority)
        self.contract = replace(self.contract, golden=entry)
        return self._with_contract({GOLDEN_METADATA: packed}), difference

    def _with_contract(self, entries: dict[str, bytes]) -> bytes:
        content = with_metadata(self.int8, {CONTRACT_METADATA: self.contract.to_json().encode(), **entries})
        # What a reader will see is what was meant.
        assert contract_of(parse_graph(content)) == self.contract
        return content


def _raise_failed(checks: Sequence[Check], source: Path) -> None:
    failed = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    if failed:
        raise CheckFailedError(
            "the converted model failed " + "; ".join(failed),
            where=str(source),
            cure="Nothing was written. Check the calibration samples and the operators that are named.",
        )


def _write(target: Path, content: bytes) -> None:
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise OutputError(
            f"cannot write the model ({error.strerror or error})",
            where=str(target),
            cure="Free some space or choose another folder.",
        ) from error
