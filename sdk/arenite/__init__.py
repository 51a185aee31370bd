# SPDX-License-Identifier: Apache-2.0
"""Arenite: one trained model to every place without a server.

    session = arenite.open("model.tflite")
    print(session.classify("cat.jpg").best)

Nothing heavy is imported before the function that needs it: a missing package is a `MissingToolError` that
names its extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from arenite.errors import (
    AreniteError,
    CheckFailedError,
    ConcurrentUseError,
    ContractError,
    DoesNotFitError,
    FallbackWarning,
    FrameError,
    LinkError,
    MemoryDamageError,
    MeterError,
    MissingToolError,
    ModelError,
    OutputError,
    ToolchainError,
    UnsupportedOperatorError,
    UsageError,
)

if TYPE_CHECKING:
    from pathlib import Path

    from arenite.benchmark import BenchReport
    from arenite.boxes import Boxes
    from arenite.comparison import ComparisonReport
    from arenite.contract import Contract, Normalisation, make_contract, read_contract
    from arenite.contract_check import ContractCheck, verify_contract
    from arenite.degrade import AdaptiveSize, Cascade
    from arenite.detection import Detection, Detections
    from arenite.device import ProfileReport, VerifyReport
    from arenite.device.flashing import FlashReport
    from arenite.diagnosis import DoctorReport
    from arenite.energy import Energy, EnergyModel
    from arenite.energy_report import EnergyReport
    from arenite.frames import Frame
    from arenite.graph import Graph
    from arenite.inspection import InspectReport
    from arenite.labels import Label
    from arenite.metering import Recording
    from arenite.model_file import read_model
    from arenite.multistream import MultiStream, MultiStreamReport, SetAnswer
    from arenite.output_view import OutputView, StaleOutputError
    from arenite.pipeline import Pipeline
    from arenite.pipeline_report import PipelineReport
    from arenite.preparing import FrameAnswer
    from arenite.preprocess import PictureSource, Preprocessor
    from arenite.progress import Progress
    from arenite.serving_skew import SkewReport
    from arenite.session import Classification, Session
    from arenite.sources import FrameSource, Named, PictureFolder, open_source
    from arenite.tflite_graph import read_graph
    from arenite.thermal import ThermalWatch
    from arenite.timing import Timing
    from arenite_codegen import BundleReport
    from arenite_codegen.board_fit import FitReport
    from arenite_codegen.board_list import AddedBoard, BoardsReport
    from arenite_codegen.build import BuildReport
    from arenite_codegen.estimate import Estimate
    from arenite_codegen.model_slot import ModelSlotReport
    from arenite_converters import ConversionReport, ModelComparison
    from arenite_converters.contract_edit import ContractEdit
    from arenite_converters.coreml import CoreMlReport

__version__ = "0.1.0"

__all__ = [
    "AdaptiveSize",
    "AreniteError",
    "Boxes",
    "Cascade",
    "CheckFailedError",
    "Classification",
    "ConcurrentUseError",
    "Contract",
    "ContractCheck",
    "ContractError",
    "Detection",
    "Detections",
    "DoesNotFitError",
    "Energy",
    "EnergyModel",
    "EnergyReport",
    "FallbackWarning",
    "Frame",
    "FrameAnswer",
    "FrameError",
    "FrameSource",
    "Graph",
    "Label",
    "LinkError",
    "MemoryDamageError",
    "MeterError",
    "MissingToolError",
    "ModelError",
    "MultiStream",
    "MultiStreamReport",
    "Named",
    "Normalisation",
    "OutputError",
    "OutputView",
    "PictureFolder",
    "Pipeline",
    "PipelineReport",
    "Preprocessor",
    "Progress",
    "Recording",
    "Session",
    "SetAnswer",
    "StaleOutputError",
    "ThermalWatch",
    "Timing",
    "ToolchainError",
    "UnsupportedOperatorError",
    "UsageError",
    "__version__",
    "add_board",
    "bench",
    "boards",
    "build",
    "build_model",
    "bundle",
    "compare",
    "compare_models",
    "convert",
    "doctor",
    "energy_of",
    "estimate",
    "fit",
    "flash",
    "inspect",
    "make_contract",
    "meter",
    "open",
    "open_source",
    "profile",
    "read_contract",
    "read_graph",
    "read_model",
    "reconvert",
    "set_contract",
    "skew",
    "verify",
    "verify_contract",
]

# Public name: the module that is imported when it is first used.
_LAZY = {
    "AdaptiveSize": "arenite.degrade",
    "Boxes": "arenite.boxes",
    "Cascade": "arenite.degrade",
    "Classification": "arenite.session",
    "Contract": "arenite.contract",
    "ContractCheck": "arenite.contract_check",
    "Detection": "arenite.detection",
    "Detections": "arenite.detection",
    "Energy": "arenite.energy",
    "EnergyModel": "arenite.energy",
    "EnergyReport": "arenite.energy_report",
    "Frame": "arenite.frames",
    "FrameAnswer": "arenite.preparing",
    "FrameSource": "arenite.sources",
    "Graph": "arenite.graph",
    "Label": "arenite.labels",
    "MultiStream": "arenite.multistream",
    "MultiStreamReport": "arenite.multistream",
    "Named": "arenite.sources",
    "Normalisation": "arenite.contract",
    "OutputView": "arenite.output_view",
    "PictureFolder": "arenite.sources",
    "Pipeline": "arenite.pipeline",
    "PipelineReport": "arenite.pipeline_report",
    "Preprocessor": "arenite.preprocess",
    "Progress": "arenite.progress",
    "Recording": "arenite.metering",
    "Session": "arenite.session",
    "SetAnswer": "arenite.multistream",
    "StaleOutputError": "arenite.output_view",
    "ThermalWatch": "arenite.thermal",
    "Timing": "arenite.timing",
    "make_contract": "arenite.contract",
    "open_source": "arenite.sources",
    "read_contract": "arenite.contract",
    "read_graph": "arenite.tflite_graph",
    "read_model": "arenite.model_file",
    "verify_contract": "arenite.contract_check",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'arenite' has no attribute '{name}'")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def open(
    model: Path | str,
    *,
    engine: str | None = None,
    threads: int = 1,
    kernels: str = "fast",
    delegate: str | None = None,
    delegate_options: Mapping[str, str] | None = None,
    contract: Contract | None = None,
    preprocessing: str = "exact",
    mmap: bool = True,
    lock: bool = False,
    cpus: Sequence[int] | None = None,
    warm_up: int = 0,
) -> Session:
    """Open a model in this process.

    What is refused of all this and can be done in another way is a `FallbackWarning` and stands in `session.report`;
    how long each part took stands in `session.cold_start`.

    Args:
        model: A .tflite, .onnx or (on macOS) .mlpackage file.
        engine: `litert`, `tflite-runtime`, `aot` (compiled for this computer on first use, kept in the user's cache),
            `onnxruntime` or `coreml`; None takes the first that is installed for the file. A named one is never
            replaced.
        threads: Engine threads.
        kernels: Of LiteRT: `fast` (XNNPACK where it can), `builtin`, or `reference` (slow; rounds as TFLite's
            reference).
        delegate: Accelerator: for LiteRT the path of a delegate's library; for ONNX Runtime `cuda`, `tensorrt`,
            `coreml`, `qnn` or a provider's full name; for Core ML `all`, `cpu`, `gpu` or `ane`.
        delegate_options: Its own options.
        contract: For a model that carries none; see `make_contract`.
        preprocessing: `exact` makes of a picture what calibration made of it, byte for byte; `fast` decodes a JPEG at a
            fraction of its size and is a few levels off (`arenite skew` says how many).
        mmap: Map the model's file where the engine can; False reads it, so that it may be replaced.
        lock: Lock the process's memory in RAM once the model is open.
        cpus: Numbers of the CPUs that this thread and the engine's threads may run on.
        warm_up: Runs on zeros before the session is given out.

    Raises:
        ModelError: The file is no model that the engine can run.
        ContractError: The contract is malformed or contradicts the model.
        MissingToolError: No engine is installed, or not the named one.
        UsageError: An argument is wrong, or the named engine does not read this format.
    """
    from arenite.opening import open_session

    return open_session(
        model,
        engine=engine,
        threads=threads,
        kernels=kernels,
        delegate=delegate,
        delegate_options=delegate_options,
        contract=contract,
        preprocessing=preprocessing,
        mmap=mmap,
        lock=lock,
        cpus=cpus,
        warm_up=warm_up,
    )


def convert(model: Any, out: Path | str, **options: Any) -> ConversionReport | CoreMlReport:
    """Convert a trained model to full-INT8 TFLite, or to a Core ML package, with its contract inside.

    Args:
        model: .keras, .h5, .onnx, .tflite or .pt2 file, SavedModel folder, or `package.module:factory` of PyTorch.
        out: The .tflite file or the .mlpackage to write.
        options: See `arenite_converters.convert`, for a package `arenite_converters.coreml.convert_coreml`;
            `calibration` is required.
    """
    from pathlib import Path

    if Path(out).suffix == ".mlpackage":
        from arenite_converters.coreml import convert_coreml

        return convert_coreml(model, out, **options)
    from arenite_converters import convert as convert_model

    return convert_model(model, out, **options)


def set_contract(
    model: Path | str,
    out: Path | str,
    fields: Mapping[str, Any] | None = None,
    *,
    merge: Mapping[str, Any] | None = None,
) -> ContractEdit:
    """Write a copy of a model with other values in its contract; see `arenite_converters.contract_edit`."""
    from arenite_converters.contract_edit import set_contract as change_contract

    return change_contract(model, out, fields, merge=merge)


def reconvert(recipe: Path | str, out: Path | str, **changes: Any) -> ConversionReport | CoreMlReport:
    """Run a recipe that `arenite convert --save-recipe` wrote; see `arenite_converters.convert_again`."""
    from arenite_converters import convert_again

    return convert_again(recipe, out, **changes)


def compare_models(
    first: Path | str, second: Path | str, *, pictures: Any, **options: Any
) -> ModelComparison:
    """Run any two models on the same pictures: agreement, noise, worst pictures.

    Args:
        first: What is right: any file that `open` takes.
        second: The one in question.
        pictures: As the samples of `convert`.
        options: See `arenite_converters.compare_models`.
    """
    from arenite_converters import compare_models as compare

    return compare(first, second, pictures=pictures, **options)


def bundle(model: Path | str | Sequence[Path | str], board: str, out_dir: Path | str, **options: Any) -> BundleReport:
    """Compile one or more full-INT8 .tflite files to a C firmware bundle; see `arenite_codegen.bundle`."""
    from arenite_codegen import bundle as bundle_model

    return bundle_model(model, board, out_dir, **options)


def boards() -> BoardsReport:
    """Every board that comes with Arenite or was added: cores, memories and what each is good for, how far proven."""
    from arenite_codegen.board_list import describe_boards

    return describe_boards()


def add_board(path: Path | str) -> AddedBoard:
    """Check a board file of your own and keep it under its name; see `arenite_codegen.board_list.add_board`."""
    from arenite_codegen.board_list import add_board as add

    return add(path)


def fit(
    model: Path | str, boards: Sequence[str | Path] | None = None, *, progress: Progress | None = None
) -> FitReport:
    """Try a model on boards: fits or not, what is short, what would help; see `arenite_codegen.board_fit.fit`."""
    from arenite_codegen.board_fit import fit as fit_boards

    return fit_boards(model, boards, progress)


def build(
    bundle_dir: Path | str,
    toolchain: str | None = None,
    *,
    optimise: str | None = None,
    progress: Progress | None = None,
) -> BuildReport:
    """Compile a bundle to firmware; see `arenite_codegen.build.build`."""
    from pathlib import Path

    from arenite_codegen.build import build as build_bundle

    return build_bundle(Path(bundle_dir), toolchain, progress, optimise)


def build_model(bundle_dir: Path | str, firmware_dir: Path | str, slot: int) -> ModelSlotReport:
    """Link a bundle's model for a slot of a board; see `arenite_codegen.model_slot.build_model`."""
    from pathlib import Path

    from arenite_codegen.model_slot import build_model as build_for_slot

    return build_for_slot(Path(bundle_dir), Path(firmware_dir), slot)


def _build_resize(folder: Path, soon: bool) -> tuple[Path, str]:
    from arenite_codegen.host_resize import build_resize

    return build_resize(folder, soon)


def verify(
    bundle_dir: Path | str, on: str = "emulator", *, progress: Progress | None = None, **options: Any
) -> VerifyReport:
    """Run a built bundle's golden vectors and compare every output byte; see `arenite.device.verify`."""
    from pathlib import Path

    from arenite.device import verify as verify_bundle

    return verify_bundle(Path(bundle_dir), on=on, progress=progress, **options)


def profile(
    bundle_dir: Path | str, on: str = "emulator", *, progress: Progress | None = None, **options: Any
) -> ProfileReport:
    """Say where an inference on a board spends its time; see `arenite.device.profile.profile`."""
    from pathlib import Path

    from arenite.device import profile as profile_bundle

    return profile_bundle(Path(bundle_dir), on=on, progress=progress, **options)


def estimate(
    model: Path | str, board: str, *, progress: Progress | None = None, **options: Any
) -> Estimate:
    """Say how long a model takes on a board that is not here, modelled; see `arenite_codegen.estimate.estimate`."""
    from arenite_codegen.estimate import estimate as estimate_time

    return estimate_time(model, board, progress=progress, **options)


def flash(bundle_dir: Path | str, port: str, **options: Any) -> FlashReport:
    """Flash a built bundle onto its board and prove it there; see `arenite.device.flashing.flash`."""
    from arenite.device.flashing import flash as flash_bundle

    return flash_bundle(bundle_dir, port, **options)


def bench(
    model: Path | str | Session,
    *,
    threads: int = 1,
    engine: str | None = None,
    delegate: str | None = None,
    pictures: Sequence[PictureSource] = (),
    model_costs: EnergyModel | Path | str | None = None,
    **options: Any,
) -> BenchReport:
    """Time a model in this process by a scenario of MLPerf Inference: SingleStream unless another is named.

    Args:
        model: A file that `open` takes, or an open session.
        threads: Engine threads for a file.
        engine: What runs a file, as for `open`.
        delegate: Its accelerator, as for `open`.
        pictures: Time the whole pipeline on these; without them the model alone.
        model_costs: Declared costs, or a TOML file of them, for a machine without a meter.
        options: See `arenite.benchmark.bench_session`.
    """
    from arenite.benchmark import bench_session

    session = _opened(model, threads, engine, delegate)
    return bench_session(session, pictures=pictures, model_costs=_costs(model_costs), **options)


def _opened(model: Path | str | Session, threads: int, engine: str | None, delegate: str | None) -> Session:
    from arenite.session import Session

    if isinstance(model, Session):
        return model
    return open(model, threads=threads, engine=engine, delegate=delegate)


def _costs(model_costs: EnergyModel | Path | str | None) -> EnergyModel | None:
    from arenite.energy import EnergyModel, read_energy_model

    if model_costs is None or isinstance(model_costs, EnergyModel):
        return model_costs
    return read_energy_model(model_costs)


def compare(
    before: BenchReport | Path | str | Sequence[BenchReport | Path | str],
    after: BenchReport | Path | str | Sequence[BenchReport | Path | str],
    *,
    by: str = "p50",
    max_ratio: float = 1.0,
) -> ComparisonReport:
    """Compare two benchmarks of one model on one kind of machine: ratios with their 95 % intervals, and a verdict.

    Args:
        before: A report, its JSON file, a folder of such files, or several reports or files.
        after: As `before`. With several runs of each side the interval holds what differs between processes too.
        by: What the verdict is about: `mean`, `p50`, `p90` or `p99`.
        max_ratio: `after` may be so many times `before`.

    Raises:
        UsageError: A file is no such report, the two are not comparable, or an argument is wrong.
    """
    from arenite.comparison import compare_reports

    return compare_reports(before, after, by=by, max_ratio=max_ratio)


def meter(source: str | None = None, *, idle_s: float | None = None, fallback: Energy | None = None) -> Recording:
    """Record an energy meter over a `with` block; see `arenite.metering`.

    Args:
        source: The meter's name, see `arenite.meters`; None takes the best of this machine.
        idle_s: How long to measure idle first; None takes what the meter needs, 0 does not.
        fallback: The figure when this machine has no meter, such as `EnergyModel(...).energy(...)`.

    Raises:
        UsageError: There is no such meter.
        MeterError: The named meter cannot measure; without a name the figures say so instead.
    """
    from arenite.energy_report import open_recording

    return open_recording(source, idle_s, fallback)


def energy_of(
    model: Path | str | Session,
    *,
    threads: int = 1,
    engine: str | None = None,
    delegate: str | None = None,
    against: str | Session | None = None,
    pictures: Sequence[PictureSource] = (),
    model_costs: EnergyModel | Path | str | None = None,
    **options: Any,
) -> EnergyReport:
    """Measure the energy of a model in this process, whole and stage by stage; on two processors, side by side.

    Args:
        model: A .tflite file, or an open session.
        threads: Engine threads for a file.
        engine: What runs a file, as for `open`.
        delegate: Its accelerator, as for `open`.
        against: What runs it for comparison: `ENGINE`, `ENGINE:DELEGATE` (`coreml:cpu`), or an open session.
        pictures: Measure the whole pipeline on these; without them the model alone.
        model_costs: Declared costs, or a TOML file of them, for a machine without a meter.
        options: See `arenite.energy_report.measure_energy`.
    """
    from arenite.energy_report import measure_energy

    session = _opened(model, threads, engine, delegate)
    if isinstance(against, str):
        other, _, accelerator = against.partition(":")
        against = open(session.path, threads=threads, engine=other, delegate=accelerator or None)
    return measure_energy(session, against=against, pictures=pictures, model=_costs(model_costs), **options)


def inspect(model: Path | str, picture: Path | str | None = None) -> InspectReport:
    """What a .tflite file holds: inputs, outputs, operators, weights and contract.

    Args:
        model: The file.
        picture: Where the skew of the preprocessing `fast` is measured; by default on a synthetic picture.
    """
    from arenite.inspection import inspect_model

    return inspect_model(model, picture)


def skew(model: Path | str | Session, picture: Path | str | bytes, *, engine: str | None = None) -> SkewReport:
    """Take one picture to the answer by Pillow, OpenCV and TensorFlow, where installed, and by both modes of ours.

    Args:
        model: A file with a contract, or an open session.
        picture: A picture file, or its bytes.
        engine: What runs the model, as for `open`.
    """
    from arenite.serving_skew import measure_skew
    from arenite.session import Session

    return measure_skew(model if isinstance(model, Session) else open(model, engine=engine), picture)


def doctor() -> DoctorReport:
    """Which engines, compilers, emulators and meters are here, and how to get the others."""
    from arenite.diagnosis import examine

    return examine()
