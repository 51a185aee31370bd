# SPDX-License-Identifier: Apache-2.0
"""What the commands for models, contracts and conversions do."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import arenite
from arenite._commands.shared import NO, YES, check_writable, chosen, show, shown_progress
from arenite._reports import write_json
from arenite._text import models as models_text
from arenite.errors import CheckFailedError, UsageError
from arenite.labels import read_labels

if TYPE_CHECKING:
    from arenite_converters import QuantiseOptions

__all__ = [
    "compare_models",
    "contract_check",
    "contract_set",
    "contract_show",
    "convert",
    "inspect",
    "skew",
]

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
    check_writable(*arguments.report, arguments.save_recipe)
    options = {**chosen(arguments, *_CONVERT), **{name: _samples(getattr(arguments, name)) for name in _SAMPLES}}
    options["quantisation"] = _quantisation(arguments)
    options = {name: value for name, value in options.items() if value is not None}
    missing = [option for option, name in _NEEDED.items() if getattr(arguments, name) is None]
    if missing and arguments.recipe is None:
        raise UsageError(f"{' and '.join(missing)} must be given", cure="Give it, or a --recipe that holds it.")
    is_package = Path(arguments.out).suffix == ".mlpackage"
    _refuse(arguments, *((_ONLY_TFLITE, "a .tflite file") if is_package else (_ONLY_COREML, "an .mlpackage")))
    options |= chosen(arguments, *_ONLY_COREML)
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
    show(arguments, report, models_text.coreml if is_package else models_text.conversion)
    repeat = report.repeat
    return YES if repeat is None or repeat.identical or repeat.differences else NO


def _refuse(arguments: argparse.Namespace, names: Sequence[str], wanted: str) -> None:
    """Options that another kind of output has."""
    for name in names:
        if getattr(arguments, name) not in (None, []):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} belongs to {wanted}", where=arguments.out, cure=f"Leave {option} away.")


def _converted(arguments: argparse.Namespace, options: dict[str, Any]) -> Any:
    if arguments.recipe is None:
        return arenite.convert(arguments.source, arguments.out, progress=shown_progress(), **options)
    if arguments.source is not None:
        options["model"] = arguments.source
    return arenite.reconvert(arguments.recipe, arguments.out, progress=shown_progress(), **options)


def _write_reports(arguments: argparse.Namespace, report: Any) -> None:
    from arenite_converters import conversion_page

    for path in map(Path, arguments.report):
        if path.suffix.lower() == ".json":
            write_json(report, path)
        else:
            path.write_text(conversion_page(report), encoding="utf-8")


def _quantisation(arguments: argparse.Namespace) -> QuantiseOptions | None:
    from arenite_converters import QuantiseOptions

    options = chosen(arguments, *_QUANTISING)
    if arguments.quantise is not None:
        options["precision"] = arguments.quantise
    return QuantiseOptions(**options) if options else None


def inspect(arguments: argparse.Namespace) -> int:
    """`arenite inspect MODEL`."""
    return show(arguments, arenite.inspect(arguments.model, arguments.picture), models_text.inspection)


def contract_show(arguments: argparse.Namespace) -> int:
    """`arenite contract show MODEL`: exit 1 when it carries none."""
    from arenite.contract_check import show_contract

    report = show_contract(arguments.model)
    show(arguments, report, models_text.contract)
    return NO if report.contract is None else YES


def contract_check(arguments: argparse.Namespace) -> int:
    """`arenite contract check MODEL`: exit 1 when something is wrong."""
    report = arenite.verify_contract(arguments.model)
    show(arguments, report, models_text.contract_check)
    return YES if report.valid else NO


def contract_set(arguments: argparse.Namespace) -> int:
    """`arenite contract set MODEL -o FILE --set FIELD=VALUE...`."""
    fields = dict(arguments.set)
    if arguments.labels:
        fields["outputs[0].labels"] = list(read_labels(arguments.labels))
    merge = None if arguments.merge is None else _json_object(Path(arguments.merge))
    report = arenite.set_contract(arguments.model, arguments.out, fields, merge=merge)
    return show(arguments, report, models_text.contract_edit)


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
    show(arguments, report, models_text.skew)
    return YES if report.same_answer else NO


def compare_models(arguments: argparse.Namespace) -> int:
    """`arenite compare-models A B --pictures PATH...`: exit 1 when the second does not agree with the first."""
    check_writable(arguments.html)
    report = arenite.compare_models(
        arguments.first,
        arguments.second,
        pictures=_samples(arguments.pictures),
        progress=shown_progress(),
        **chosen(arguments, *_CONTRACT, "min_sqnr_db", "min_top1"),
    )
    if arguments.html is not None:
        from arenite_converters import comparison_page

        Path(arguments.html).write_text(comparison_page(report), encoding="utf-8")
    show(arguments, report, models_text.model_comparison)
    return YES if report.agrees else NO


def _samples(paths: list[str] | None) -> str | list[str] | None:
    return paths[0] if paths is not None and len(paths) == 1 else paths
