# SPDX-License-Identifier: Apache-2.0
"""What each command of the command line does: call one function of `arenite`, print its report."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import arenite
from arenite import progress
from arenite._reports import print_json, write_json
from arenite._text import device as device_text
from arenite._text import firmware as firmware_text
from arenite._text import measurements as measurements_text
from arenite._text import models as models_text
from arenite.errors import CheckFailedError, UsageError
from arenite.labels import read_labels
from arenite.preprocess import pictures_in

if TYPE_CHECKING:
    from arenite.benchmark import BenchReport
    from arenite.energy_report import EnergyReport
    from arenite_converters import QuantiseOptions

__all__ = [
    "bench",
    "boards",
    "boards_add",
    "build",
    "bundle",
    "compare",
    "compare_models",
    "contract_check",
    "contract_set",
    "contract_show",
    "convert",
    "doctor",
    "energy",
    "estimate",
    "fit",
    "flash",
    "inspect",
    "profile",
    "skew",
    "update_keygen",
    "update_send",
    "update_show",
    "update_sign",
    "update_state",
    "verify",
]

_YES, _NO = 0, 1
# Options of the same name as an argument of the function behind the command.
_CONTRACT = ("normalisation", "colour", "crop", "crop_fraction", "filter", "meaning", "labels")
_CONVERT = (*_CONTRACT, "input_shape", "signature", "weights", "sensitivity", "min_sqnr_db", "min_top1")
_SAMPLES = ("calibration", "evaluation", "serving_sample")
_QUANTISING = (
    *("io", "backend", "ranges", "rounding", "bias_correction", "equalise"),
    *("keep_float", "max_drop", "search"),
)
_ONLY_TFLITE = ("serving_sample", "report", "sensitivity", "quantise", *_QUANTISING)
_ONLY_COREML = ("precision", "verify_on_mac")
_NEEDED = {"MODEL": "source", "--calibration": "calibration"}


def convert(arguments: argparse.Namespace) -> int:
    """`arenite convert MODEL -o FILE --calibration PATH...`: exit 1 when a recipe gives other bytes for no reason."""
    _check_writable(*arguments.report, arguments.save_recipe)
    options = {**_chosen(arguments, *_CONVERT), **{name: _samples(getattr(arguments, name)) for name in _SAMPLES}}
    options["quantisation"] = _quantisation(arguments)
    options = {name: value for name, value in options.items() if value is not None}
    missing = [option for option, name in _NEEDED.items() if getattr(arguments, name) is None]
    if missing and arguments.recipe is None:
        raise UsageError(f"{' and '.join(missing)} must be given", cure="Give it, or a --recipe that holds it.")
    is_package = Path(arguments.out).suffix == ".mlpackage"
    _refuse(arguments, *((_ONLY_TFLITE, "a .tflite file") if is_package else (_ONLY_COREML, "an .mlpackage")))
    options |= _chosen(arguments, *_ONLY_COREML)
    try:
        report = _converted(arguments, options)
    except CheckFailedError as error:
        if error.report is not None:
            _write_reports(arguments, error.report)
        raise
    _write_reports(arguments, report)
    if arguments.save_recipe is not None:
        from arenite_converters import save_recipe

        save_recipe(report, arguments.save_recipe)
    _show(arguments, report, models_text.coreml if is_package else models_text.conversion)
    repeat = report.repeat
    return _YES if repeat is None or repeat.identical or repeat.differences else _NO


def _refuse(arguments: argparse.Namespace, names: Sequence[str], wanted: str) -> None:
    """Options that another kind of output has."""
    for name in names:
        if getattr(arguments, name) not in (None, []):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} belongs to {wanted}", where=arguments.out, cure=f"Leave {option} away.")


def _converted(arguments: argparse.Namespace, options: dict[str, Any]) -> Any:
    if arguments.recipe is None:
        return arenite.convert(arguments.source, arguments.out, progress=_progress(), **options)
    if arguments.source is not None:
        options["model"] = arguments.source
    return arenite.reconvert(arguments.recipe, arguments.out, progress=_progress(), **options)


def _write_reports(arguments: argparse.Namespace, report: Any) -> None:
    from arenite_converters import conversion_page

    for path in map(Path, arguments.report):
        if path.suffix.lower() == ".json":
            write_json(report, path)
        else:
            path.write_text(conversion_page(report), encoding="utf-8")


def _chosen(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The options that were given."""
    given = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def _quantisation(arguments: argparse.Namespace) -> QuantiseOptions | None:
    from arenite_converters import QuantiseOptions

    chosen = _chosen(arguments, *_QUANTISING)
    if arguments.quantise is not None:
        chosen["precision"] = arguments.quantise
    return QuantiseOptions(**chosen) if chosen else None


def inspect(arguments: argparse.Namespace) -> int:
    """`arenite inspect MODEL`."""
    return _show(arguments, arenite.inspect(arguments.model, arguments.picture), models_text.inspection)


def contract_show(arguments: argparse.Namespace) -> int:
    """`arenite contract show MODEL`: exit 1 when it carries none."""
    from arenite.contract_check import show_contract

    report = show_contract(arguments.model)
    _show(arguments, report, models_text.contract)
    return _NO if report.contract is None else _YES


def contract_check(arguments: argparse.Namespace) -> int:
    """`arenite contract check MODEL`: exit 1 when something is wrong."""
    report = arenite.verify_contract(arguments.model)
    _show(arguments, report, models_text.contract_check)
    return _YES if report.valid else _NO


def contract_set(arguments: argparse.Namespace) -> int:
    """`arenite contract set MODEL -o FILE --set FIELD=VALUE...`."""
    fields = dict(arguments.set)
    if arguments.labels:
        fields["outputs[0].labels"] = list(read_labels(arguments.labels))
    merge = None if arguments.merge is None else _json_object(Path(arguments.merge))
    report = arenite.set_contract(arguments.model, arguments.out, fields, merge=merge)
    return _show(arguments, report, models_text.contract_edit)


def _json_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        problem = f"the file is not JSON ({error})"
        raise UsageError(problem, where=str(path), cure="Give a JSON object, such as a whole contract.") from error
    if not isinstance(content, dict):
        raise UsageError("the file holds no JSON object", where=str(path), cure="Give a contract, whole or in part.")
    # What `arenite contract show --json` prints may be given as it is.
    inside = content.get("contract")
    return inside if isinstance(inside, dict) else content


def skew(arguments: argparse.Namespace) -> int:
    """`arenite skew MODEL PICTURE`: exit 1 when a route leads to another answer."""
    report = arenite.skew(arguments.model, arguments.picture, engine=arguments.engine)
    _show(arguments, report, models_text.skew)
    return _YES if report.same_answer else _NO


def bundle(arguments: argparse.Namespace) -> int:
    """`arenite bundle MODEL... --board B -o DIR`."""
    report = arenite.bundle(
        arguments.models,
        arguments.board,
        arguments.out,
        arena_bytes=arguments.arena_bytes,
        float_ends=arguments.float_ends,
        row_fed=_row_fed(arguments),
        max_mac_factor=arguments.max_mac_factor,
        caller_inputs=_positions(arguments.caller_input),
        caller_outputs=_positions(arguments.caller_output),
        keep_input=arguments.keep_input,
        optimise=arguments.optimize,
        guards=arguments.guards,
        camera=arguments.camera,
        exports=arguments.export,
        app=arguments.app,
        baud=arguments.baud,
        slot=arguments.slot,
        model_slots=arguments.model_slots,
        update_key=_update_key(arguments.update_key),
        force=arguments.force,
        progress=_progress(),
    )
    return _show(arguments, report, firmware_text.bundle)


def boards(arguments: argparse.Namespace) -> int:
    """`arenite boards`."""
    return _show(arguments, arenite.boards(), firmware_text.boards)


def boards_add(arguments: argparse.Namespace) -> int:
    """`arenite boards add FILE`."""
    return _show(arguments, arenite.add_board(arguments.file), firmware_text.added_board)


def fit(arguments: argparse.Namespace) -> int:
    """`arenite fit MODEL`: exit 1 when the model fits none of the boards."""
    report = arenite.fit(arguments.model, arguments.boards, progress=_progress())
    _show(arguments, report, firmware_text.board_fits)
    return _YES if report.fits_somewhere else _NO


def _update_key(path: str | None) -> bytes | None:
    if path is None:
        return None
    from arenite.device.updating import read_public_key

    return read_public_key(Path(path))


def build(arguments: argparse.Namespace) -> int:
    """`arenite build DIR`; with --model-for its model alone, for a slot."""
    if arguments.model_for is not None:
        return _build_model(arguments)
    report = arenite.build(arguments.bundle, arguments.toolchain, optimise=arguments.optimize, progress=_progress())
    return _show(arguments, report, firmware_text.build)


def _build_model(arguments: argparse.Namespace) -> int:
    if arguments.slot is None:
        raise UsageError("--slot must be given with --model-for", cure="Give 0 or 1: `arenite update state` says which")
    report = arenite.build_model(arguments.bundle, arguments.model_for, arguments.slot)
    return _show(arguments, report, firmware_text.model_slot)


def verify(arguments: argparse.Namespace) -> int:
    """`arenite verify DIR --on emulator|PORT`: exit 1 when a byte differs."""
    options = _chosen(arguments, "random", "seed", "timeout_s", "baud")
    report = arenite.verify(arguments.bundle, on=arguments.on, progress=_progress(), **options)
    _show(arguments, report, device_text.verification)
    return _YES if report.identical else _NO


def profile(arguments: argparse.Namespace) -> int:
    """`arenite profile DIR --on emulator|PORT`."""
    _check_writable(arguments.html)
    options = {"model": arguments.model, "meter": arguments.meter, "baud": arguments.baud}
    report = arenite.profile(arguments.bundle, on=arguments.on, progress=_progress(), **options)
    if arguments.html is not None:
        from arenite.profile_page import profile_page

        Path(arguments.html).write_text(profile_page(report), encoding="utf-8")
    return _show(arguments, report, device_text.profiling)


def estimate(arguments: argparse.Namespace) -> int:
    """`arenite estimate MODEL --board B`."""
    options = {"row_fed": arguments.row_fed, "uw_per_mhz": arguments.uw_per_mhz}
    clock_hz = None if arguments.clock_mhz is None else round(arguments.clock_mhz * 1e6)
    report = arenite.estimate(arguments.model, arguments.board, clock_hz=clock_hz, progress=_progress(), **options)
    return _show(arguments, report, device_text.estimation)


def flash(arguments: argparse.Namespace) -> int:
    """`arenite flash DIR --port PORT`: exit 1 when it is the wrong chip, or a byte differs afterwards."""
    report = arenite.flash(
        arguments.bundle,
        arguments.port,
        reset=not arguments.no_reset,
        stub=not arguments.no_stub,
        dry_run=arguments.dry_run,
        check=not arguments.no_verify,
        verify_on=arguments.verify_on,
        image=None if arguments.image is None else Path(arguments.image).read_bytes(),
        progress=_progress(),
        **_chosen(arguments, "baud"),
    )
    _show(arguments, report, device_text.flashing)
    return _YES if report.verification is None or report.verification.identical else _NO


def update_keygen(arguments: argparse.Namespace) -> int:
    """`arenite update keygen FILE`."""
    from arenite.device import updating

    key = updating.make_key(Path(arguments.key))
    return _show(arguments, {"key": arguments.key, "public_key": key}, device_text.update_key)


def update_sign(arguments: argparse.Namespace) -> int:
    """`arenite update sign PAYLOAD --key KEY --board B --version N -o FILE`."""
    from arenite.device import updating

    payload, key = Path(arguments.payload), updating.read_private_key(Path(arguments.key))
    if payload.is_dir():
        image = updating.sign_bundle(payload, key, version=arguments.version)
    elif arguments.board is None:
        raise UsageError("--board must be given", where=arguments.payload, cure="Give it, or a bundle for a slot.")
    else:
        image = updating.sign_image(
            payload.read_bytes(),
            key,
            kind=updating.Kind[arguments.kind.upper()],
            version=arguments.version,
            board=arguments.board,
            address=arguments.address,
            **_chosen(arguments, "build"),
        )
    Path(arguments.out).write_bytes(image)
    return _show(arguments, updating.read_header(image), device_text.update_image)


def update_show(arguments: argparse.Namespace) -> int:
    """`arenite update show IMAGE [--key KEY]`: exit 1 when the image is damaged or signed by another key."""
    from arenite.device import updating

    key = None if arguments.key is None else updating.read_public_key(Path(arguments.key))
    header = updating.read_header(Path(arguments.image).read_bytes(), key)
    return _show(arguments, header, device_text.update_image)


def update_send(arguments: argparse.Namespace) -> int:
    """`arenite update send IMAGE --port PORT`: exit 1 when the board refuses it or goes back to what it ran before."""
    from arenite.device import open_device, updating

    image = Path(arguments.image).read_bytes()
    with open_device(arguments.port) as device:
        report = updating.send_image(device, image, confirm=not arguments.no_confirm, progress=_progress())
    return _show(arguments, report, device_text.update_report)


def update_state(arguments: argparse.Namespace) -> int:
    """`arenite update state --port PORT`."""
    from arenite.device import open_device, updating

    with open_device(arguments.port) as device:
        state = updating.read_state(device, updating.Kind[arguments.kind.upper()])
    return _show(arguments, state, device_text.update_state)


def bench(arguments: argparse.Namespace) -> int:
    """`arenite bench MODEL`: exit 0 for a short run too; its report says that it is no valid run of the scenario."""
    out = None if arguments.out is None else _folder(Path(arguments.out))
    kept = None if out is None else out / "bench.json"
    _check_writable(kept, arguments.html)
    report = arenite.bench(
        arguments.model,
        threads=arguments.threads,
        engine=arguments.engine,
        delegate=arguments.delegate,
        pictures=_pictures(arguments.picture, "benchmark"),
        scenario=arguments.scenario,
        min_duration_s=arguments.seconds,
        min_queries=arguments.count,
        driver=arguments.driver,
        log_dir=out,
        meter=arguments.meter,
        model_costs=arguments.energy_model,
        progress=_progress(),
    )
    try:
        return _show(arguments, report, measurements_text.benchmark)
    finally:
        if kept is not None:
            write_json(report, kept)
        _page(arguments, report)


def compare(arguments: argparse.Namespace) -> int:
    """`arenite compare BEFORE AFTER`: exit 1 when the second is slower than allowed."""
    report = arenite.compare(arguments.before, arguments.after, by=arguments.by, max_ratio=arguments.max_ratio)
    _show(arguments, report, measurements_text.comparison)
    return _YES if report.within_limit else _NO


def compare_models(arguments: argparse.Namespace) -> int:
    """`arenite compare-models A B --pictures PATH...`: exit 1 when the second does not agree with the first."""
    _check_writable(arguments.html)
    report = arenite.compare_models(
        arguments.first,
        arguments.second,
        pictures=_samples(arguments.pictures),
        progress=_progress(),
        **_chosen(arguments, *_CONTRACT, "min_sqnr_db", "min_top1"),
    )
    if arguments.html is not None:
        from arenite_converters import comparison_page

        Path(arguments.html).write_text(comparison_page(report), encoding="utf-8")
    _show(arguments, report, models_text.model_comparison)
    return _YES if report.agrees else _NO


def energy(arguments: argparse.Namespace) -> int:
    """`arenite energy MODEL`: exit 0 when the energy is unknown too; its report says why."""
    _check_writable(arguments.html)
    report = arenite.energy_of(
        arguments.model,
        threads=arguments.threads,
        engine=arguments.engine,
        delegate=arguments.delegate,
        against=arguments.against,
        pictures=_pictures(arguments.picture, "energy"),
        source=arguments.meter,
        model_costs=arguments.energy_model,
        duration_s=arguments.duration,
        battery_wh=arguments.battery_wh,
        progress=_progress(),
    )
    try:
        return _show(arguments, report, measurements_text.energy)
    finally:
        _page(arguments, report)


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _check_writable(*paths: Path | str | None) -> None:
    """Finds out before a long run whether its files can be written; leaves none behind.

    Raises:
        OSError: One cannot.
    """
    for path in (Path(path) for path in paths if path is not None):
        fresh = not path.exists()
        # A pipe or a device would not take it as nothing that it is opened.
        if fresh or path.is_file() or path.is_dir():
            path.open("ab").close()
        if fresh:
            path.resolve().unlink()


def _page(arguments: argparse.Namespace, report: BenchReport | EnergyReport) -> None:
    if arguments.html is not None:
        from arenite.report_page import report_page

        Path(arguments.html).write_text(report_page(report), encoding="utf-8")


def doctor(arguments: argparse.Namespace) -> int:
    """`arenite doctor`: exit 1 when some job cannot be done here."""
    report = arenite.doctor()
    _show(arguments, report, measurements_text.diagnosis)
    return _YES if report.healthy else _NO


def _row_fed(arguments: argparse.Namespace) -> list[bool]:
    """Which of the models are fed row by row."""
    unknown = set(arguments.row_fed_model) - set(arguments.models)
    if unknown:
        problem = f"--row-fed-model {min(unknown)} is none of the models to bundle"
        raise UsageError(problem, cure="Give the same path as MODEL.")
    return [arguments.row_fed or model in arguments.row_fed_model for model in arguments.models]


def _positions(chosen: list[int | None]) -> bool | list[int]:
    return None in chosen or [position for position in chosen if position is not None]


def _samples(paths: list[str] | None) -> str | list[str] | None:
    return paths[0] if paths is not None and len(paths) == 1 else paths


def _pictures(paths: list[str], what: str) -> list[str | Path]:
    found: list[str | Path] = []
    for path in paths:
        found.extend(pictures_in(Path(path), what) if Path(path).is_dir() else [path])
    return found


def _progress() -> progress.Progress:
    return progress.console() if sys.stderr.isatty() else progress.silent()


def _show(arguments: argparse.Namespace, report: Any, text: Callable[[Any], list[str]]) -> int:
    if arguments.json:
        print_json(report)
    else:
        print("\n".join(text(report)))
    return _YES
