# SPDX-License-Identifier: Apache-2.0
"""A conversion, or a comparison of two models, as one HTML page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

from arenite.charts import Bar, Span, bars, columns, spans
from arenite.contract import Contract, Picture, contract_json
from arenite.graph import printable
from arenite.page import facts, folded, grid, note, page
from arenite_converters.model_comparison import ComparedModel, ModelComparison
from arenite_converters.quantisation import Sensitivity
from arenite_converters.report import (
    Agreement,
    Caution,
    Check,
    ConversionReport,
    PictureQuality,
    ServingDrift,
    TensorQuality,
)

__all__ = ["comparison_page", "conversion_page"]

_NAME, _LISTED, _SENSITIVE = 72, 8, 20


def conversion_page(report: ConversionReport) -> str:
    """The page of a conversion."""
    verdict = "" if report.path else ", refused: no file was written"
    title = f"Conversion of {report.contract.name}{verdict}"
    return page(title, f"{report.loader}; model {report.model_sha256[:12]}", _conversion(report))


def comparison_page(report: ModelComparison) -> str:
    """The page of a comparison."""
    first, second = report.models
    title = f"{Path(first.path).name} against {Path(second.path).name}"
    verdict = "they agree as asked" if report.agrees else "they do not agree as asked"
    return page(title, f"{verdict}; {report.agreement.samples} samples", _comparison(report))


def _conversion(report: ConversionReport) -> Iterator[tuple[str, str]]:
    yield "Float against quantised", facts(_agreement(report.agreement))
    if report.cautions:
        yield "Cautions", _cautions(report.cautions)
    yield "Checks", _checks(report.checks)
    yield "Size", _sizes(report)
    yield "Operators", facts(_operators(report.operators))
    yield from _layers(report.tensors)
    if report.serving is not None:
        yield "Serving against calibration", _serving(report.serving)
    if report.sensitivity:
        yield "What each layer costs when it alone is quantised", _sensitivity(report.sensitivity)
    yield from _pictures(report.worst_pictures)
    yield "Contract", facts(_contract(report.contract)) + folded("as JSON", _indented(contract_json(report.contract)))
    recipe = report.recipe
    digests = {f"{name} samples": digest for name, digest in recipe.samples_sha256.items()}
    made = {"Trained model": recipe.model_sha256, **digests, "Result": recipe.result_sha256}
    yield "Recipe", facts(made) + folded("as JSON", _indented(asdict(recipe)))


def _comparison(report: ModelComparison) -> Iterator[tuple[str, str]]:
    yield "Agreement", facts(_agreement(report.agreement))
    yield "Limits", _checks(report.checks)
    for name, model in zip(("First model", "Second model"), report.models, strict=True):
        yield name, facts(_model(model))
    if report.tensors:
        yield from _layers(report.tensors)
    else:
        yield "Layers", note("The two have no activations with a name in common.")
    yield from _pictures(report.worst_pictures)


def _agreement(agreed: Agreement) -> Mapping[str, str]:
    held_out = ", none of them seen by calibration" if agreed.held_out else ""
    rows = {
        "Samples": f"{agreed.samples}{held_out}",
        "Same class": f"{agreed.top1:.3f} (95 %: {agreed.top1_interval[0]:.3f} to {agreed.top1_interval[1]:.3f})",
        "SQNR of the output": f"{_db(agreed.sqnr_db)} (95 %: {_db(agreed.sqnr_interval_db[0])} to "
        f"{_db(agreed.sqnr_interval_db[1])})",
    }
    if agreed.top1_confident is not None:
        sure = f"{agreed.top1_confident:.3f} of {agreed.confident_samples} where the first leads by more than 0.3"
        rows["Same class, where sure"] = sure
    return rows


def _db(value: float) -> str:
    return f"{value:.1f} dB" if math.isfinite(value) else ("equal" if value > 0 else "no signal")


def _cautions(cautions: Sequence[Caution]) -> str:
    return "\n".join(
        f'<p class="caution">{escape(c.name)}<br>{escape(c.detail)}<br>{escape(c.cure)}</p>' for c in cautions
    )


def _checks(checks: Sequence[Check]) -> str:
    return grid(("", "check", "found"), (("✓" if c.passed else "✗ failed", c.name, c.detail) for c in checks))


def _sizes(report: ConversionReport) -> str:
    rows = (("float", report.float_bytes, "idle"), ("quantised", report.file_bytes, "bar"))
    return bars([Bar(name, size, f"{size:,} bytes", kind=kind) for name, size, kind in rows])


def _operators(operators: Mapping[str, int]) -> Mapping[str, str]:
    return {kind: str(count) for kind, count in operators.items()}


def _layers(tensors: Sequence[TensorQuality]) -> Iterator[tuple[str, str]]:
    worst = sorted(range(len(tensors)), key=lambda i: tensors[i].sqnr_db)[:_LISTED]
    kinds = ["rest" if i in worst else "bar" for i in range(len(tensors))]
    noise = [Bar(t.name, t.sqnr_db, _db(t.sqnr_db), kind=kind) for t, kind in zip(tensors, kinds, strict=True)]
    rows = (
        (str(i), t.label, t.operator, _db(t.sqnr_db), f"{t.cosine:.3f}", f"{t.clipped:.2%}")
        for i, t in ((i, tensors[i]) for i in worst)
    )
    listed = grid(("", "noisiest", "made by", "SQNR", "cosine", "clipped"), rows)
    text = f"In the model's order; orange: the {len(worst)} noisiest. A pointer shows names."
    yield f"Noise of {len(tensors)} activations", columns(noise, "dB") + note(text) + listed
    ranges = spans([Span(t.name, (t.low, t.high), t.range) for t in tensors])
    yield "Ranges", ranges + note("Dark: float values seen; pale: what the quantised tensor can hold.")


def _serving(drift: ServingDrift) -> str:
    rows = {
        "Samples": str(drift.samples),
        "Drift": f"{drift.drift:.3f} of 0 (alike) to 1; by chance in {drift.p_value:.3f} of cases",
        "Clipped": f"{drift.clipped:.3%} of values, {drift.calibration_clipped:.3%} in calibration",
    }
    cut = columns([Bar(t.name, 100 * t.clipped, f"{t.clipped:.3%}") for t in drift.tensors], "%")
    apart = columns([Bar(t.name, t.drift, f"{t.drift:.3f}") for t in drift.tensors], "")
    texts = "Values outside the calibrated range, of each activation.", "Drift of each activation."
    return facts(rows) + cut + note(texts[0]) + apart + note(texts[1])


def _sensitivity(rows: Sequence[Sensitivity]) -> str:
    worst = sorted(rows, key=lambda row: row.sqnr_db)[:_SENSITIVE]
    cells = ((printable(row.layer, _NAME), row.kind, _db(row.sqnr_db), f"{row.top1:.3f}") for row in worst)
    return grid(("layer", "operator", "SQNR of the output", "same class"), cells)


def _pictures(rows: Sequence[PictureQuality]) -> Iterator[tuple[str, str]]:
    if not rows:
        return
    if rows[0].thumbnail:
        yield "Worst pictures", '<div class="pictures">\n' + "\n".join(map(_figure, rows)) + "\n</div>"
        return
    cells = ((Path(row.name).name, _db(row.sqnr_db), *_answers(row)) for row in rows)
    yield "Worst samples", grid(("sample", "SQNR", "first", "second"), cells)


def _figure(row: PictureQuality) -> str:
    expected, found = map(escape, _answers(row))
    answer = expected if row.same else f'{expected}, <span class="bad">then {found}</span>'
    caption = f"{escape(Path(row.name).name)}<br>{_db(row.sqnr_db)}<br>{answer}"
    return f'<figure><img src="{escape(row.thumbnail)}" alt=""><figcaption>{caption}</figcaption></figure>'


def _answers(row: PictureQuality) -> tuple[str, str]:
    return f"{row.expected.text} {row.expected.score:.3f}", f"{row.found.text} {row.found.score:.3f}"


def _contract(contract: Contract) -> Mapping[str, str]:
    source, output = contract.input, contract.outputs[0]
    rows = {"Input": f"{source.dtype} {'×'.join(map(str, source.shape))}, {source.layout}"}
    if source.picture is not None:
        rows["Picture"] = _picture(source.picture)
    labels = f", {len(output.labels)} labels" if output.labels else ""
    rows["Output"] = f"{output.dtype} {'×'.join(map(str, output.shape))}, {output.meaning}{labels}"
    if contract.calibration is not None:
        seen = contract.calibration
        rows["Calibrated on"] = f"{seen.samples} samples, {seen.low:.4g} to {seen.high:.4g}, {seen.digest[:12]}"
    if contract.golden is not None:
        rows["Golden vectors"] = f"{contract.golden.count} by {contract.golden.authority}"
    tools = ", ".join(f"{name} {version}" for name, version in contract.tools.items())
    return {**rows, "Tools": tools} if tools else rows


def _picture(picture: Picture) -> str:
    how = picture.normalisation
    crop = "whole" if picture.crop == "none" else f"{picture.crop} crop {picture.crop_fraction:g}"
    mean, std = (", ".join(f"{value:g}" for value in values) for values in (how.mean, how.std))
    return f"{picture.colour}, {crop}, {picture.filter}, (x × {how.scale:.6g} - ({mean})) / ({std})"


def _model(model: ComparedModel) -> Mapping[str, str]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in model.operators.items())
    return {
        "File": Path(model.path).name,
        "Size": f"{model.file_bytes:,} bytes, {model.model_sha256[:12]}",
        "Runs on": f"{model.engine}, {model.kernels} kernels",
        "Operators": kinds,
        **_contract(model.contract),
    }


def _indented(content: object) -> str:
    return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, default=str)
