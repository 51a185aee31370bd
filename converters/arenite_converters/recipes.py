# SPDX-License-Identifier: Apache-2.0
"""A conversion's whole choice as JSON: saved, compared line by line, run again to the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from inspect import signature
from pathlib import Path
from typing import Any

from arenite.contract import Normalisation
from arenite.errors import OutputError, UsageError
from arenite_converters.coreml.pipeline import convert_coreml
from arenite_converters.coreml.report import CoreMlReport
from arenite_converters.pipeline import convert
from arenite_converters.quantisation import QuantiseOptions
from arenite_converters.report import ConversionReport, Recipe, Repeat

__all__ = ["FORMAT", "convert_again", "read_recipe", "save_recipe"]

FORMAT = "arenite-recipe-1"
_CURE = "Give a file that `arenite convert --save-recipe` wrote."
# What a recipe cannot hold when it was given as values.
_SAMPLES = ("calibration", "evaluation", "serving_sample")
# Arguments that may be dataclasses, which JSON holds as objects.
_CLASSES: Mapping[str, type[Any]] = {"normalisation": Normalisation, "quantisation": QuantiseOptions}


def save_recipe(report: ConversionReport | CoreMlReport, path: Path | str) -> None:
    """Write the recipe of a conversion, sorted and indented, so that two of them can be compared line by line.

    Raises:
        OutputError: The file cannot be written.
    """
    text = json.dumps({"format": FORMAT, **asdict(report.recipe)}, indent=2, sort_keys=True, ensure_ascii=False)
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        what = f"cannot write the recipe ({error.strerror or error})"
        raise OutputError(what, where=str(path), cure="Choose a file in a folder that can be written.") from error


def read_recipe(path: Path | str) -> Recipe:
    """A recipe from its file.

    Raises:
        UsageError: It cannot be read, or is none.
    """
    where = str(path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the recipe ({error})", where=where, cure=_CURE) from error
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise UsageError(f"this is no recipe of the format {FORMAT}", where=where, cure=_CURE)
    kinds = {"arguments": dict, "versions": dict, "model_sha256": str, "samples_sha256": dict, "result_sha256": str}
    wrong = sorted(content.keys() ^ kinds.keys())
    wrong += [name for name, kind in kinds.items() if name in content and not isinstance(content[name], kind)]
    if wrong:
        raise UsageError(f"field '{wrong[0]}' of the recipe is missing, unknown or wrong", where=where, cure=_CURE)
    return Recipe(**content)


def convert_again(recipe: Path | str, out: Path | str, **changes: Any) -> ConversionReport | CoreMlReport:
    """Run a recipe.

    Args:
        recipe: Its file.
        out: The .tflite file or the .mlpackage to write, whichever the recipe is of.
        changes: Arguments of `convert` or `convert_coreml` that take the place of the recipe's; what was given as
            values and not as files must be given again.

    Returns:
        The report; its `repeat` says whether the bytes are those of the first time, and what differs.

    Raises:
        UsageError: The recipe cannot be read, is of the other kind of file, or lacks what was given as values.
        AreniteError: As `convert`.
    """
    first = read_recipe(recipe)
    maker = _maker(first, Path(out), str(recipe))
    arguments = {**{name: _argument(name, value) for name, value in first.arguments.items()}, **changes}
    given = (name for name in _SAMPLES if name in first.samples_sha256)
    for name in ("model", *given):
        if arguments.get(name) is None:
            what = f"the recipe's {name} was given as values, which it cannot hold"
            raise UsageError(what, where=str(recipe), cure=f"Give {name} again.")
    report: ConversionReport | CoreMlReport = maker(arguments.pop("model"), out, **arguments)
    differences = tuple(_differences(asdict(first), asdict(report.recipe)))
    return replace(report, repeat=Repeat(report.recipe.result_sha256 == first.result_sha256, differences))


def _maker(recipe: Recipe, out: Path, where: str) -> Callable[..., Any]:
    """The function that takes the recipe's arguments and writes such a file."""
    makers: Mapping[str, Callable[..., Any]] = {".tflite": convert, ".mlpackage": convert_coreml}
    kind = ".mlpackage" if "precision" in recipe.arguments else ".tflite"
    if out.suffix != kind and out.suffix in makers:
        raise UsageError(f"the recipe makes a {kind} file, not a {out.suffix}", where=where, cure=f"Name it *{kind}.")
    unknown = sorted(recipe.arguments.keys() - signature(makers[kind]).parameters.keys())
    if unknown:
        cure = f"It was made by arenite {recipe.versions.get('arenite', 'of another version')}: take that version."
        raise UsageError(f"the recipe has an argument '{unknown[0]}' that is unknown", where=where, cure=cure)
    return makers[kind]


def _argument(name: str, value: Any) -> Any:
    """An argument as it was before it became JSON."""
    if isinstance(value, dict) and name in _CLASSES:
        fields = {key: tuple(field) if isinstance(field, list) else field for key, field in value.items()}
        try:
            return _CLASSES[name](**fields)
        except TypeError as error:
            raise UsageError(f"argument '{name}' of the recipe is malformed ({error})", cure=_CURE) from error
    return value


def _differences(then: Mapping[str, Any], now: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str, str]]:
    for name in sorted(then.keys() | now.keys()):
        a, b = (json.loads(json.dumps(side.get(name))) for side in (then, now))
        if isinstance(a, dict) and isinstance(b, dict):
            yield from _differences(a, b, f"{path}{name}.")
        elif a != b and name != "result_sha256":
            yield f"{path}{name}", str(a), str(b)
