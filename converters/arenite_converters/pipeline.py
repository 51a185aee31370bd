# SPDX-License-Identifier: Apache-2.0
"""The conversion, step by step: load, float, calibrate, INT8, check, golden vectors, contract, write."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
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
from arenite.engines import kinds_of
from arenite.engines.litert import LiteRt
from arenite.errors import CheckFailedError, OutputError, UsageError
from arenite.golden import pack_vectors
from arenite.graph import Graph
from arenite.preprocess import quantise
from arenite.progress import Progress, Step
from arenite.tflite_graph import parse_graph, read_graph
from arenite_converters.calibration import CalibrationSource, SampleSet, read_samples, spread
from arenite_converters.checks import (
    agreement,
    check_agreement,
    check_graph,
    check_outputs,
    check_tensors,
    concat_cautions,
    last_computing_operator,
    output_cautions,
    refuse_wrong_meaning,
)
from arenite_converters.drift import drift_cautions, measure_drift
from arenite_converters.equalise import equalised
from arenite_converters.float_model import tool_versions
from arenite_converters.golden import golden_vectors
from arenite_converters.guards import order_against, sample_cautions
from arenite_converters.layers import compare_activations
from arenite_converters.loaders import FloatModel, load
from arenite_converters.meaning import default_name, label_texts, settled_meaning
from arenite_converters.metadata import with_metadata
from arenite_converters.pictures import worst_pictures
from arenite_converters.quantisation import Quantisation, QuantiseOptions, Sensitivity
from arenite_converters.quantiser import layers_alone
from arenite_converters.quantiser import quantise as quantise_model
from arenite_converters.quiet import quiet
from arenite_converters.recipe import make_recipe
from arenite_converters.report import (
    Agreement,
    Caution,
    Check,
    ConversionReport,
    PictureQuality,
    ServingDrift,
    TensorQuality,
)
from arenite_converters.writing import check_folder, write_whole

__all__ = ["convert"]

Array = npt.NDArray[Any]
_LAYER_SAMPLES = 8
_SENSITIVITY_SAMPLES = 64
# Fewer say nothing about what the application sees.
_FEWEST_SERVING = 5


def convert(
    model: Path | str,
    out: Path | str,
    *,
    calibration: CalibrationSource,
    evaluation: CalibrationSource | None = None,
    serving_sample: CalibrationSource | None = None,
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
    signature: str | None = None,
    weights: Path | str | None = None,
    min_samples: int = 20,
    min_sqnr_db: float = 5.0,
    min_top1: float = 0.0,
    golden: int = 3,
    quantisation: QuantiseOptions | None = None,
    sensitivity: bool = False,
    progress: Progress | None = None,
) -> ConversionReport:
    """Convert a trained model to full-INT8 TFLite, check it, and write it with its contract.

    The same inputs and package versions give the same bytes. Nothing is written unless every check passed.

    Args:
        model: .keras, .h5, .onnx, .tflite or .pt2 file, SavedModel folder, or `package.module:factory` of a PyTorch
            module; one input, one output.
        out: The .tflite file to write; its folder must exist.
        calibration: Folder or list of pictures, .npy or .npz file, or array; see `read_samples`.
        evaluation: Held-out samples for the comparison with float; by default the calibration samples. When
            one of them is a calibration sample too, the report does not call them held out.
        serving_sample: What the application will see: the report says how far it is from calibration, and what the
            ranges cut off.
        name: What to call the model; by default the source's name.
        normalisation: How the model was trained: `symmetric` (x/127.5-1), `unit` (x/255), `imagenet`,
            `raw`, or numbers. Needed when the input is a picture.
        colour: RGB, BGR or GREY; see `arenite.contract.Picture`, as for `crop`, `crop_fraction`, `filter` and
            `orientation`.
        meaning: logits, probabilities or values; probabilities by itself when the model ends in a softmax.
        labels: One text for each class, or a text file with one a line.
        input_shape: Without the batch, in the source's own order, for models that leave dimensions open.
        signature: Function of a SavedModel; by default serving_default.
        weights: State dict for a PyTorch factory.
        min_samples: Fewer distinct calibration samples are refused.
        min_sqnr_db: Outputs noisier than this against float are a failed check.
        min_top1: So is a smaller share of samples with float's class.
        golden: Reference vectors to write into the file, at least 1; none are written without tflite-micro.
        quantisation: How to quantise; by default full INT8, see `QuantiseOptions`.
        sensitivity: Quantise each layer alone too, and report what that does to the answers.
        progress: Where to report.

    Raises:
        ModelError: The trained model cannot be loaded or converted.
        UsageError: A sample or an argument is wrong; it is named.
        ContractError: The contract's arguments contradict the model or the samples.
        CheckFailedError: The converted model is not good; every failed check is listed.
        OutputError: The file cannot be written.
    """
    quantisation = quantisation or QuantiseOptions()
    arguments = {name: value for name, value in locals().items() if name not in ("out", "progress")}
    source, target = Path(model), Path(out).resolve()
    progress = progress or Progress()
    if golden < 1 or min_samples < 1:
        raise UsageError("golden and min_samples must be at least 1")
    options: dict[str, Any] = {
        "name": name or default_name(source),
        "normalisation": normalisation,
        "colour": colour,
        "crop": crop,
        "crop_fraction": crop_fraction,
        "filter": filter,
        "orientation": orientation,
        "labels": label_texts(labels),
    }
    _check_target(target, source)
    with tempfile.TemporaryDirectory(prefix="arenite-") as scratch:
        job = _Job(source, Path(scratch), options, meaning, progress)
        job.load(input_shape, signature, None if weights is None else Path(weights))
        samples = job.samples(calibration, "calibration", min_samples)
        job.quantise(samples, quantisation)
        held_out = None if evaluation is None else job.samples(evaluation, "evaluation", 1)
        serving = None if serving_sample is None else job.samples(serving_sample, "serving", _FEWEST_SERVING)
        sets = _Sets(samples, held_out, serving)
        return job.finish(target, sets, arguments)


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
    check_folder(target, cure)


@dataclass(frozen=True)
class _Sets:
    """The samples of one conversion."""

    calibration: SampleSet
    evaluation: SampleSet | None
    serving: SampleSet | None

    @property
    def compared(self) -> SampleSet:
        """What float and INT8 are compared on."""
        return self.evaluation or self.calibration

    @property
    def held_out(self) -> bool:
        """There is an evaluation set, and it shares no sample with calibration."""
        return self.evaluation is not None and not self.evaluation.shares(self.calibration)

    def digests(self) -> dict[str, str]:
        """By the arguments of `convert` that gave them."""
        given = {"calibration": self.calibration, "evaluation": self.evaluation, "serving_sample": self.serving}
        return {name: samples.digest for name, samples in given.items() if samples is not None}


@dataclass(frozen=True)
class _Comparison:
    """Float against INT8 over the compared samples."""

    floats: list[Array]
    quantised: list[Array]
    tensors: tuple[TensorQuality, ...]
    agreement: Agreement
    checks: tuple[Check, ...]
    worst_pictures: tuple[PictureQuality, ...]


@dataclass
class _Job:
    """State of one conversion; each method is one step of it."""

    source: Path
    scratch: Path
    options: dict[str, Any]
    meaning: str | None
    progress: Progress

    def load(self, input_shape: Sequence[int] | None, signature: str | None, weights: Path | None) -> None:
        """The trained model as float TFLite; the contract's arguments are checked here."""
        with self.progress.step("load the trained model") as step:
            with quiet():
                self.model: FloatModel = load(self.source, input_shape, signature=signature, weights=weights)
            step.note(self.model.loader)
        self.float_path = self.scratch / "float.tflite"
        self.float_path.write_bytes(self.model.content)
        self.float_graph = read_graph(self.float_path)
        last = last_computing_operator(self.float_graph)
        self.options["meaning"] = settled_meaning(last, self.meaning, self.options["labels"], str(self.source))
        self.float_contract = self._contract(self.float_graph)

    def _contract(self, graph: Graph) -> Contract:
        # The scratch file's name would say nothing to the user.
        return make_contract(replace(graph, path=str(self.source)), **self.options)

    def samples(self, source: CalibrationSource, what: str, min_samples: int) -> SampleSet:
        """Samples made by the contract."""
        with self.progress.step(f"read {what} samples") as step:
            return read_samples(source, self.float_contract, what=what, min_samples=min_samples, step=step)

    def quantise(self, samples: SampleSet, options: QuantiseOptions) -> None:
        """The quantised model, and its contract without golden vectors."""
        with self.progress.step(f"quantise to {options.precision}") as step, quiet():
            self.int8, self.quantisation = self._quantised_model(samples, options, step)
        self.reference_path = self.float_path
        if self.quantisation.options.equalise:
            # Its activations have other scales than the model's own.
            self.reference_path = self.scratch / "equalised.tflite"
            self.reference_path.write_bytes(equalised(self.model.content))
        self.int8_path = self.scratch / "int8.tflite"
        self.int8_path.write_bytes(self.int8)
        self.graph = read_graph(self.int8_path)
        _raise_failed(self._check_graph(), self.source)
        contract = self._contract(self.graph)
        # Somebody else's file was calibrated on samples that nobody knows.
        calibration = None if self.model.quantised else samples.calibration()
        self.contract = replace(contract, calibration=calibration, tools=self._tools())

    def _quantised_model(self, samples: SampleSet, options: QuantiseOptions, step: Step) -> tuple[bytes, Quantisation]:
        if self.model.quantised is not None:
            if options != QuantiseOptions():
                problem = "the model is quantised already: options of quantising would change nothing"
                raise UsageError(problem, where=str(self.source), cure="Leave them away, or give the float model.")
            graph = parse_graph(self.model.quantised)
            ends = graph.tensors[graph.inputs[0]].dtype
            own = QuantiseOptions(io=ends, ranges="own", rounding=False, bias_correction=False)
            return self.model.quantised, Quantisation(own, "whoever made the file")
        return quantise_model(
            self.model.content,
            samples.samples,
            options,
            function=self.model.function,
            where=str(self.source),
            step=step,
        )

    def _check_graph(self) -> list[Check]:
        done = self.quantisation
        return check_graph(self.graph, done.options.ends, done.kept_float if done.options.is_integer else None)

    def _tools(self) -> dict[str, str]:
        packages = ("arenite", "numpy", "pillow", "tensorflow", "ai-edge-litert", "litert-quantizer")
        return tool_versions(packages, self.model.loader)

    def finish(self, target: Path, sets: _Sets, arguments: Mapping[str, Any]) -> ConversionReport:
        """Check, add the golden vectors and the contract, write."""
        found = self._compare(sets, arguments)
        drift = None if sets.serving is None else self._drift(sets.calibration, sets.serving)
        cautions = self._cautions(sets, found, drift)
        content, difference = self.int8, None
        if all(check.passed for check in found.checks):
            with self.progress.step("golden vectors") as step, quiet():
                content, difference = self._golden(sets.compared.samples, found.quantised, arguments["golden"])
                step.note(self.contract.golden.authority if self.contract.golden else "none, tflite-micro is missing")
        digest = hashlib.sha256(content).hexdigest()
        report = ConversionReport(
            path="",
            model_sha256=digest,
            file_bytes=len(content),
            float_bytes=self.float_path.stat().st_size,
            loader=self.model.loader,
            contract=self.contract,
            operators=kinds_of(self.graph),
            agreement=found.agreement,
            tensors=found.tensors,
            worst_pictures=found.worst_pictures,
            engine_difference=difference,
            checks=found.checks,
            cautions=cautions,
            serving=drift,
            sensitivity=self._sensitivity(sets.calibration) if arguments["sensitivity"] else (),
            recipe=make_recipe(
                arguments, self.contract.tools, self.source, self.model.content, sets.digests(), digest
            ),
            quantisation=self.quantisation,
        )
        _raise_failed(found.checks, self.source, report)
        write_whole(target, content)
        return replace(report, path=str(target))

    def _compare(self, sets: _Sets, arguments: Mapping[str, Any]) -> _Comparison:
        """Float against INT8: answers, activations and checks."""
        chosen, names = sets.compared.samples, sets.compared.names
        spec = self.contract.outputs[0]
        with self.progress.step("check float against INT8", len(chosen)) as step, quiet():
            answers = floats, quantised = self._answers(chosen, step.advance)
            refuse_wrong_meaning(floats, spec, str(self.source))
            tensors = compare_activations(self.reference_path, self.int8_path, spread(chosen, _LAYER_SAMPLES))
            agreed = agreement(floats, quantised, spec, sets.held_out)
            checks = (
                *self._check_graph(),
                self._check_float(chosen[0], floats[0]),
                *check_outputs(floats, quantised, spec),
                check_tensors(tensors),
                *check_agreement(agreed, arguments["min_sqnr_db"], arguments["min_top1"]),
            )
            specs = self.float_contract.outputs[0], spec
            worst = worst_pictures(names, chosen, self.float_contract.input, answers, specs)
        return _Comparison(floats, quantised, tuple(tensors), agreed, checks, worst)

    def _sensitivity(self, calibration: SampleSet) -> tuple[Sensitivity, ...]:
        with self.progress.step("quantise each layer alone") as step:
            samples = spread(calibration.samples, _SENSITIVITY_SAMPLES)
            return tuple(layers_alone(self.model.content, samples, self.quantisation.options, step))

    def _drift(self, calibration: SampleSet, serving: SampleSet) -> ServingDrift:
        with self.progress.step("serving against calibration") as step, quiet():
            return measure_drift(self.reference_path, self.int8_path, calibration.samples, serving.samples, step)

    def _cautions(self, sets: _Sets, found: _Comparison, drift: ServingDrift | None) -> tuple[Caution, ...]:
        """What may be wrong with the samples and the ranges."""
        engine, spec = LiteRt(self.float_graph), self.float_contract.input

        def run(sample: Array) -> Array:
            engine.inputs[0][...] = sample
            engine.invoke()
            output: Array = engine.outputs[0].copy()
            return output

        with self.progress.step("look for signs of wrong samples"), quiet():
            cautions = [*sample_cautions(sets.calibration, self.float_contract, self.float_graph, run)]
            for name, other in (("evaluation", sets.evaluation), ("serving", sets.serving)):
                if other is not None:
                    cautions += order_against(sets.calibration, other, spec, "calibration", name)
            cautions += concat_cautions(self.graph, {t.name: (t.low, t.high) for t in found.tensors})
            cautions += output_cautions(found.floats, self.contract.outputs[0])
            return (*cautions, *(() if drift is None else drift_cautions(drift)))

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


def _raise_failed(checks: Sequence[Check], source: Path, report: ConversionReport | None = None) -> None:
    failed = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    if failed:
        error = CheckFailedError(
            "the converted model failed " + "; ".join(failed),
            where=str(source),
            cure="Nothing was written. Check the calibration samples and the operators that are named.",
        )
        error.report = report
        raise error
