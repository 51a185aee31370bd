# SPDX-License-Identifier: Apache-2.0
"""The conversion to Core ML: load, float16 program, statistics, compress, stamp, read back, check, write."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import CONTRACT_METADATA, Contract, Normalisation, make_contract
from arenite.coreml_package import PRECISIONS, content_digest, read_package
from arenite.errors import CheckFailedError, ContractError, MissingToolError, ModelError, OutputError, UsageError
from arenite.graph import Graph, Tensor
from arenite.progress import Progress
from arenite_converters.calibration import CalibrationSource, SampleSet, halves, read_samples, spread
from arenite_converters.checks import refuse_wrong_meaning
from arenite_converters.coreml.biases import mended_biases
from arenite_converters.coreml.checking import (
    CONTENT_METADATA,
    LEAST,
    PRECISION_METADATA,
    Runner,
    check_package,
    real_values,
    source_inputs,
)
from arenite_converters.coreml.compress import compressed, layer_values
from arenite_converters.coreml.input_statistics import InputStatistics, gather_statistics
from arenite_converters.coreml.mac import write_mac_folder
from arenite_converters.coreml.program import Program, Reference
from arenite_converters.coreml.report import UNKNOWN_OFF_A_MAC, CoreMlCheck, CoreMlReport
from arenite_converters.coreml.source import Source, load_source
from arenite_converters.float_model import tool_versions
from arenite_converters.meaning import default_name, label_texts, settled_meaning
from arenite_converters.quiet import quiet
from arenite_converters.recipe import make_recipe
from arenite_converters.statistics import sqnr_db
from arenite_converters.writing import check_folder

__all__ = ["convert_coreml"]

Array = npt.NDArray[Any]
_STATISTICS_SAMPLES, _TRIAL_SAMPLES = 64, 24
# Shares of layers that may read float16 in `w8a8`, the noisiest inputs first, until the calibration samples that the
# ranges are not of show this much more than the check asks for: other pictures are noisier.
_KEPT_SHARES, _MARGIN_DB, _MARGIN_TOP1 = (0.0, 0.25, 0.5, 0.75), 2.0, 0.03
_FORM_ONLY = ("cast", "identity", "reshape", "squeeze", "expand_dims")


def convert_coreml(
    model: Any,
    out: Path | str,
    *,
    calibration: CalibrationSource,
    evaluation: CalibrationSource | None = None,
    precision: str = "float16",
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
    min_sqnr_db: float | None = None,
    min_top1: float | None = None,
    verify_on_mac: bool = False,
    progress: Progress | None = None,
) -> CoreMlReport:
    """Convert a trained model to an ML Program for iOS 17 and macOS 14, check it here, and write it with its contract.

    With a `normalisation` the input is a picture of 8-bit values, which the program itself normalises. With labels and
    probabilities the package is a classifier. Nothing is written unless every check passed.

    Args:
        model: .keras, .h5 or .pt2 file, SavedModel folder, `package.module:factory` of PyTorch; or a Keras model, a
            torch.nn.Module or an exported program. One input, one output.
        out: The .mlpackage to write; its folder must exist, an earlier package is replaced.
        calibration: Samples; see `arenite_converters.calibration.read_samples`.
        evaluation: Held-out samples for the check; by default the calibration samples.
        precision: `float16`; `w8` (int8 weights); `w8a8` (and activations of 8 bits); `palettised` (6-bit weights).
        name: As for `arenite_converters.convert`, and so `normalisation` to `min_samples`. The input's shape of a
            PyTorch model is channels first.
        min_sqnr_db: Outputs noisier than this fail; by default 40 dB for float16, 20 for w8, 17 for the others.
        min_top1: So does a smaller share of samples with the trained model's best class; by default .98, .9 and .89.
            It is not looked at where the output is plain values.
        verify_on_mac: Write a folder beside the package with a script and golden vectors that a Mac runs.
        progress: Where to report.

    Raises:
        ModelError: The model cannot be loaded or converted.
        UnsupportedOperatorError: coremltools or the executor lacks an operation; it is named.
        UsageError: A sample or an argument is wrong; it is named.
        ContractError: The contract's arguments contradict the model or the samples.
        MissingToolError: coremltools or the model's framework is not installed.
        CheckFailedError: The package is not good; every failed check is listed.
        OutputError: It cannot be written.
    """
    arguments = {name: value for name, value in locals().items() if name not in ("out", "progress")}
    if precision not in PRECISIONS:
        raise UsageError(f"there is no precision '{precision}'", cure=f"Choose {', '.join(PRECISIONS)}.")
    target = Path(out).resolve()
    _check_target(target)
    least = LEAST[precision]
    limits = (least[0] if min_sqnr_db is None else min_sqnr_db, least[1] if min_top1 is None else min_top1)
    options: dict[str, Any] = {
        "normalisation": normalisation, "colour": colour, "crop": crop, "crop_fraction": crop_fraction,
        "filter": filter, "orientation": orientation, "labels": label_texts(labels),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="arenite-") as scratch:
        job = _Job(Path(scratch), precision, limits, meaning, progress or Progress())
        job.load(lambda: load_source(model, input_shape, signature, weights), name, options)
        job.read(calibration, evaluation, min_samples)
        job.build()
        job.compress()
        check = job.check()
        return job.write(target, check, arguments)


def _check_target(target: Path) -> None:
    cure = "Give the path of a new .mlpackage in a folder that exists and can be written."
    if target.suffix != ".mlpackage":
        raise UsageError(f"the output must be named *.mlpackage, not {target.name!r}", cure=cure)
    if target.exists() and not (target / "Manifest.json").is_file():
        raise OutputError("the output is there already and is no package", where=str(target), cure=cure)
    check_folder(target, cure)


@dataclass
class _Job:
    """State of one conversion; each method is one step of it."""

    scratch: Path
    precision: str
    limits: tuple[float, float]
    meaning: str | None
    progress: Progress
    kept_float: tuple[str, ...] = ()

    def load(self, load: Callable[[], Source], name: str | None, options: dict[str, Any]) -> None:
        """The trained model, and the contract as far as it is known before the conversion."""
        with self.progress.step("load the trained model") as step:
            with quiet():
                self.source = load()
                shape = np.shape(self.source.run(np.zeros(self.source.shape, np.float32)))
            step.note(self.source.loader)
        given = self.source.shape
        if options["normalisation"] is not None and self.source.channels_first and len(given) == 4:
            given = (given[0], *given[2:], given[1])
        ends = (("input", given), ("output", shape))
        tensors = tuple(Tensor(i, name, s, "float32", None, None) for i, (name, s) in enumerate(ends))
        self.graph = Graph(self.source.where, "", tensors, (), (0,), (1,), {})
        self.options = {"name": name or default_name(Path(self.source.where)), **options}
        self.contract = make_contract(self.graph, meaning=self.meaning or "values", **self.options)

    def read(self, calibration: CalibrationSource, evaluation: CalibrationSource | None, min_samples: int) -> None:
        """Samples, and what the trained model makes of those that the check compares."""
        with self.progress.step("read calibration samples") as step:
            self.samples = read_samples(
                calibration, self.contract, what="calibration", min_samples=min_samples, step=step
            )
        held_out: SampleSet | None = None
        if evaluation is not None:
            with self.progress.step("read evaluation samples") as step:
                held_out = read_samples(evaluation, self.contract, what="evaluation", min_samples=1, step=step)
        self.held_out = held_out is not None and not held_out.shares(self.samples)
        self.calibration = [real_values(s, self.contract) for s in self.samples.samples]
        sets = {"calibration": self.samples, **({} if held_out is None else {"evaluation": held_out})}
        self.digests = {name: samples.digest for name, samples in sets.items()}
        chosen = self.samples if held_out is None else held_out
        self.compared = [real_values(s, self.contract) for s in chosen.samples]
        self.references = self._references(self.compared)

    def _references(self, samples: Sequence[Array]) -> list[Array]:
        with quiet():
            inputs = source_inputs(samples, self.source.channels_first, self.contract)
            return [np.asarray(self.source.run(value), np.float32) for value in inputs]

    def build(self) -> None:
        """The float16 program, and the contract whole."""
        with self.progress.step("convert to an ML Program"), quiet(), _named_failures(self.source.where):
            self.float16 = _converted(self.source, self.contract, self._is_classifier(), "FLOAT16")
            self.exact = layer_values(_converted(self.source, self.contract, self._is_classifier(), "FLOAT32"))
        path = self.scratch / "float16.mlpackage"
        self.float16.save(str(path))
        _put_in_order(path)
        self.float16_bytes = _size(path)
        file = read_package(path)
        self.loaded = content_digest(file).encode()
        scores = next(feature.name for feature in file.outputs if feature.kind != "text")
        runner = Runner(file, self.contract)
        meaning = settled_meaning(
            last_computing(runner.executor.program, scores), self.meaning, self.options["labels"], self.source.where
        )
        names = (file.inputs[0].name, scores)
        tensors = tuple(replace(t, name=n) for t, n in zip(self.graph.tensors, names, strict=True))
        contract = make_contract(replace(self.graph, tensors=tensors), meaning=meaning, **self.options)
        refuse_wrong_meaning(self.references, contract.outputs[0], self.source.where)
        self.contract = replace(contract, calibration=self.samples.calibration(), tools=self._tools())
        self.runner = Runner(file, self.contract)

    def _is_classifier(self) -> bool:
        return bool(self.options["labels"]) and self.meaning in (None, "probabilities")

    def _tools(self) -> dict[str, str]:
        framework = "torch" if self.source.channels_first else "tensorflow"
        packages = ("arenite", "numpy", "pillow", "coremltools", framework)
        return tool_versions(packages, self.source.loader)

    def compress(self) -> None:
        """The program in the precision that was asked for, stamped and saved."""
        if self.precision == "w8a8":
            self._choose_kept_float()
        self.statistics = self._statistics_of(self.calibration)
        self._save(self.statistics, self.calibration)

    def _choose_kept_float(self) -> None:
        """As few layers as suffice, by what one half of the samples makes of the other."""
        tried, compared = halves(self.calibration)
        statistics = self._statistics_of(tried)
        noisy = sorted(statistics, key=lambda layer: -statistics[layer].noise())
        for share in _KEPT_SHARES:
            self.kept_float = tuple(noisy[: round(share * len(noisy))])
            if share == _KEPT_SHARES[-1]:
                break
            self._save(statistics, tried)
            if self._is_good(spread(compared or tried, _TRIAL_SAMPLES)):
                break

    def _statistics_of(self, samples: Sequence[Array]) -> dict[str, InputStatistics]:
        chosen = spread(samples, _STATISTICS_SAMPLES)
        with self.progress.step("gather ranges", len(chosen)) as step:
            moments = self.precision in ("w8", "w8a8")
            return gather_statistics(self.runner.executor, self._counted(chosen, step), moments)

    def _counted(self, samples: Sequence[Array], step: Any) -> Iterator[Mapping[str, Array]]:
        for sample in samples:
            yield self.runner.inputs(sample)
            step.advance()

    def _save(self, statistics: Mapping[str, InputStatistics], samples: Sequence[Array]) -> None:
        """The package, its biases mended; `statistics` are of these samples."""
        self._save_compressed(statistics)
        if self.precision == "w8a8":
            runner = Runner(read_package(self.package), self.contract)
            with self.progress.step("mend biases"):
                inputs = [runner.inputs(sample) for sample in spread(samples, _STATISTICS_SAMPLES)]
                biases = mended_biases(runner.executor, inputs, statistics, self.exact)
            self._save_compressed(statistics, biases)

    def _save_compressed(
        self, statistics: Mapping[str, InputStatistics], biases: Mapping[str, Array] | None = None
    ) -> None:
        self.package = self.scratch / "out" / "model.mlpackage"
        with self.progress.step(f"write {self.precision}"), quiet():
            made = compressed(self.float16, self.precision, statistics, self.exact, self.kept_float, biases)
            # coremltools says when it ran; the same model shall give the same package.
            made.user_defined_metadata.pop("com.github.apple.coremltools.conversion_date", None)
            made.user_defined_metadata[CONTRACT_METADATA] = self.contract.to_json()
            made.user_defined_metadata[PRECISION_METADATA] = self.precision
            made.save(str(self.package))
            _put_in_order(self.package)
            made.user_defined_metadata[CONTENT_METADATA] = content_digest(read_package(self.package))
            made.save(str(self.package))
            _put_in_order(self.package)

    def _is_good(self, chosen: Sequence[Array]) -> bool:
        """On these samples the package is better than the check asks for."""
        runner = Runner(read_package(self.package), self.contract)
        with self.progress.step("try it", len(chosen)) as step:
            found = []
            for sample in chosen:
                found.append(runner.run(sample).reshape(-1))
                step.advance()
        real, made = np.stack([r.reshape(-1) for r in self._references(chosen)]), np.stack(found)
        same = float((real.argmax(axis=1) == made.argmax(axis=1)).mean())
        least_db, least_top1 = self._limits()
        return sqnr_db(real, made) >= least_db + _MARGIN_DB and same >= min(1.0, least_top1 + _MARGIN_TOP1)

    def _limits(self) -> tuple[float, float]:
        return (self.limits[0], 0.0) if self.contract.outputs[0].meaning == "values" else self.limits

    def check(self) -> CoreMlCheck:
        """The package, read back, against the trained model."""
        with self.progress.step("check the package", len(self.compared)) as step:
            check = check_package(
                read_package(self.package), self.contract, self.compared, self.references, self._limits(),
                self.held_out, step.advance,
            )  # fmt: skip
        failed = [f"{c.name}: {c.detail}" for c in check.checks if not c.passed]
        if failed:
            raise CheckFailedError(
                "the Core ML package failed " + "; ".join(failed),
                where=self.source.where,
                cure="Nothing was written. Give more, and more varied, calibration samples, or another precision.",
            )
        return check

    def write(self, target: Path, check: CoreMlCheck, arguments: Mapping[str, Any]) -> CoreMlReport:
        """The package in its place, and the folder for a Mac beside it."""
        folder = target.with_name(f"{target.stem}_on_mac") if arguments["verify_on_mac"] else None
        try:
            _put(self.package, target)
            if folder is not None:
                write_mac_folder(folder, target, self.contract, self.compared, self.references, self._limits())
        except OSError as error:
            raise OutputError(
                f"cannot write the package ({error.strerror or error})",
                where=str(target),
                cure="Free some space or choose another folder.",
            ) from error
        digest = content_digest(read_package(target))
        return CoreMlReport(
            path=str(target),
            content_sha256=digest,
            package_bytes=_size(target),
            float16_bytes=self.float16_bytes,
            precision=self.precision,
            loader=self.source.loader,
            contract=self.contract,
            check=replace(check, path=str(target)),
            layers=len(self.statistics),
            kept_float=self.kept_float,
            unknown=UNKNOWN_OFF_A_MAC,
            mac_folder=None if folder is None else str(folder),
            recipe=make_recipe(
                arguments, self.contract.tools, Path(self.source.where), self.loaded, self.digests, digest
            ),
        )


def _converted(source: Source, contract: Contract, classifier: bool, precision: str) -> Any:
    """coremltools' model, its numbers of a precision that coremltools names."""
    ct = _coremltools()
    picture = contract.input.picture
    if picture is None:
        inputs: Any = ct.TensorType(name=_input_name(source), shape=source.shape, dtype=np.float32)
    else:
        norm = picture.normalisation
        alike = len(set(norm.std)) == 1
        # Core ML's image input has one scale and a bias for each channel; other divisors are a layer's work.
        source = source if alike else source.divided(norm.std)
        divisor = norm.std[0] if alike else 1.0
        bias = [-mean / divisor for mean in norm.mean]
        layouts = {"RGB": ct.colorlayout.RGB, "BGR": ct.colorlayout.BGR, "GREY": ct.colorlayout.GRAYSCALE}
        inputs = ct.ImageType(
            name=_input_name(source),
            shape=source.shape,
            scale=norm.scale / divisor,
            bias=bias if len(bias) > 1 else bias[0],
            color_layout=layouts[picture.colour],
        )
    program = source.model.run_decompositions({}) if source.channels_first else [source.model]
    return ct.convert(
        program,
        source=source.framework,
        convert_to="mlprogram",
        inputs=[inputs],
        outputs=[ct.TensorType(dtype=np.float32)],
        minimum_deployment_target=ct.target.iOS17,
        compute_precision=ct.precision[precision],
        classifier_config=ct.ClassifierConfig(_labels(contract)) if classifier else None,
        skip_model_load=True,
    )


def _labels(contract: Contract) -> list[str]:
    labels = list(contract.outputs[0].labels)
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ContractError(
            f"{len(twice)} labels name several classes each, as '{twice[0]}', and Core ML classifiers answer by label",
            cure="Make each label name one class.",
        )
    return labels


def _input_name(source: Source) -> str:
    return "image" if source.channels_first else str(source.model.inputs[0].name).split(":")[0]


def _coremltools() -> Any:
    try:
        return import_module("coremltools")
    except ImportError as error:
        raise MissingToolError(
            "coremltools, which makes ML Programs, is not installed", cure="pip install 'arenite[coreml]'"
        ) from error


@contextmanager
def _named_failures(where: str) -> Iterator[None]:
    """What coremltools raises, as an error that names the operation."""
    try:
        yield
    except (MissingToolError, ContractError):
        raise
    except Exception as error:  # its frontends raise whatever they stumble over
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        named = next((line for line in lines if "op" in line.lower()), lines[0] if lines else type(error).__name__)
        raise ModelError(
            f"coremltools cannot convert the model ({named[:200]})",
            where=where,
            cure="Replace the operation that it names.",
        ) from error


def last_computing(program: Program, name: str) -> str:
    """Kind of the operation that computes a value, behind those that only change its form."""
    made_by = {output.name: op for op in program.operations for output in op.outputs}
    op = made_by.get(name)
    while op is not None and op.kind in (*_FORM_ONLY, "classify"):
        x = op.inputs.get("x", op.inputs.get("probabilities"))
        op = made_by.get(x.name) if isinstance(x, Reference) else None
    return "" if op is None else op.kind


def _put_in_order(package: Path) -> None:
    """Writes the entries of every map of the program in one order: coremltools' own differs from process to process."""
    path = next(package.rglob("*.mlmodel"))
    model = import_module("coremltools.proto.Model_pb2").Model()
    model.ParseFromString(path.read_bytes())
    path.write_bytes(model.SerializeToString(deterministic=True))


def _size(package: Path) -> int:
    return sum(file.stat().st_size for file in package.rglob("*") if file.is_file())


def _put(package: Path, target: Path) -> None:
    """Moves a package into its place; an earlier one stays until the new one is whole."""
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        shutil.copytree(package, fresh / "new")
        if target.exists():
            target.rename(fresh / "old")
        (fresh / "new").rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
