# SPDX-License-Identifier: Apache-2.0
"""Recipes: the whole choice of a conversion, which gives the same bytes again or says what differs."""

from __future__ import annotations

import hashlib
import json
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import arenite
from arenite import cli
from arenite.contract import Normalisation
from arenite.errors import UsageError
from arenite_converters import convert, save_recipe
from arenite_converters.recipe import make_recipe
from arenite_converters.report import ConversionReport
from support.photograph_network import photographs


@pytest.fixture(scope="module")
def made(keras_photographs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ConversionReport]:
    """A recipe, and the report of the conversion that it is of."""
    folder = tmp_path_factory.mktemp("recipe")
    report = arenite.convert(
        keras_photographs / "model.keras",
        folder / "first.tflite",
        calibration=str(keras_photographs / "calibration"),
        normalisation=Normalisation(1 / 127.5, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
        labels=("a", "b", "c", "d"),
    )
    save_recipe(report, folder / "recipe.json")
    return folder / "recipe.json", report


def test_recipe_is_sorted_and_whole(made: tuple[Path, ConversionReport], keras_photographs: Path) -> None:
    path, report = made
    text = path.read_text()
    content = json.loads(text)
    assert text == json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert content["arguments"].keys() == signature(convert).parameters.keys() - {"out", "progress"}
    assert content["arguments"]["filter"] == "bilinear" and content["arguments"]["min_samples"] == 20
    assert content["model_sha256"] == hashlib.sha256((keras_photographs / "model.keras").read_bytes()).hexdigest()
    assert content["result_sha256"] == hashlib.sha256(Path(report.path).read_bytes()).hexdigest()
    assert report.contract.calibration is not None
    assert content["samples_sha256"] == {"calibration": report.contract.calibration.digest}
    assert {"python", "tensorflow", "ai-edge-litert", "numpy", "loader"} <= content["versions"].keys()


def test_same_versions_give_the_same_bytes(
    made: tuple[Path, ConversionReport], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = made
    words = ("convert", "--recipe", path, "-o", tmp_path / "m.tflite", "--save-recipe", tmp_path / "r")
    assert cli.main([*map(str, words)]) == 0
    assert (tmp_path / "m.tflite").read_bytes() == Path(report.path).read_bytes()
    assert (tmp_path / "r").read_text() == path.read_text()
    assert "recipe     the bytes of the first time" in capsys.readouterr().out


def test_what_differs_is_said(made: tuple[Path, ConversionReport], tmp_path: Path) -> None:
    path, _ = made
    content = json.loads(path.read_text())
    content["versions"]["tensorflow"] = "2.0.0"
    (tmp_path / "old.json").write_text(json.dumps(content))
    again = arenite.reconvert(tmp_path / "old.json", tmp_path / "m.tflite", calibration=photographs(30, seed=4))
    assert again.repeat is not None and not again.repeat.identical
    told = {name: (then, now) for name, then, now in again.repeat.differences}
    assert told["versions.tensorflow"] == ("2.0.0", again.recipe.versions["tensorflow"])
    assert told["samples_sha256.calibration"][1] == again.recipe.samples_sha256["calibration"]
    assert told["arguments.calibration"] == (content["arguments"]["calibration"], "None")
    assert len(told) == 3


def test_other_bytes_for_no_reason_are_a_no(
    made: tuple[Path, ConversionReport], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = made
    content = json.loads(path.read_text())
    content["result_sha256"] = "0" * 64
    (tmp_path / "r.json").write_text(json.dumps(content))
    assert cli.main(["convert", "--recipe", str(tmp_path / "r.json"), "-o", str(tmp_path / "m.tflite")]) == 1
    assert "OTHER bytes than the first time" in capsys.readouterr().out


def test_values_must_be_given_again(made: tuple[Path, ConversionReport], tmp_path: Path) -> None:
    content = json.loads(made[0].read_text())
    content["arguments"]["calibration"] = None
    (tmp_path / "r.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"calibration was given as values.*Give calibration again"):
        arenite.reconvert(tmp_path / "r.json", tmp_path / "m.tflite")
    assert not (tmp_path / "m.tflite").exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"format": "arenite-recipe-9"}, "no recipe of the format"),
        ({"arguments": []}, "field 'arguments'"),
        ({"more": 1}, "field 'more'"),
        ({"arguments": {"zoom": 3}, "versions": {"arenite": "9.0"}}, "'zoom' that is unknown.*arenite 9.0"),
        (None, "cannot read the recipe"),
    ],
)
def test_malformed_recipes(
    made: tuple[Path, ConversionReport], tmp_path: Path, change: dict[str, Any] | None, named: str
) -> None:
    text = "{" if change is None else json.dumps({**json.loads(made[0].read_text()), **change})
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(UsageError, match=rf"r\.json.*{named}"):
        arenite.reconvert(tmp_path / "r.json", tmp_path / "m.tflite")


def test_malformed_argument(made: tuple[Path, ConversionReport], tmp_path: Path) -> None:
    content = json.loads(made[0].read_text())
    content["arguments"]["normalisation"] = {"zoom": 1}
    (tmp_path / "r.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"'normalisation' of the recipe is malformed \(.*zoom"):
        arenite.reconvert(tmp_path / "r.json", tmp_path / "m.tflite")


def test_source_or_recipe_must_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", "-o", str(tmp_path / "m.tflite")]) == 2
    assert "MODEL and --calibration must be given" in capsys.readouterr().err


def test_digest_of_a_folder_holds_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_bytes(b"x")

    def digest() -> str:
        return make_recipe({}, {}, tmp_path, b"", {}, "").model_sha256

    found = [digest()]
    (tmp_path / "sub" / "a").write_bytes(b"y")
    found.append(digest())
    (tmp_path / "sub" / "a").rename(tmp_path / "sub" / "b")
    found.append(digest())
    assert len(set(found)) == 3
