# SPDX-License-Identifier: Apache-2.0
"""Reports on models, contracts and conversions as lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from arenite._text.lines import printable, table

if TYPE_CHECKING:
    from arenite.contract_check import ContractCheck, ContractReport
    from arenite.inspection import InspectReport, TensorSummary
    from arenite.serving_skew import Difference, SkewReport
    from arenite_converters import ConversionReport, ModelComparison, Quantisation, QuantiseOptions
    from arenite_converters.contract_edit import ContractEdit
    from arenite_converters.coreml import CoreMlReport
    from arenite_converters.report import Agreement

__all__ = [
    "contract",
    "contract_check",
    "contract_edit",
    "conversion",
    "coreml",
    "inspection",
    "model_comparison",
    "skew",
]
_MOST_SHOWN = 8
_WIDEST = 160


def inspection(report: InspectReport) -> list[str]:
    """What `arenite inspect` prints."""
    lines = [
        f"model      {printable(report.path)}",
        f"size       {report.file_bytes:,} bytes, {report.weights_bytes:,} of them constants",
        f"sha256     {report.model_sha256}",
        f"arithmetic {report.quantisation}",
    ]
    lines += [f"input      {_tensor(tensor)}" for tensor in report.inputs]
    lines += [f"output     {_tensor(tensor)}" for tensor in report.outputs]
    lines.append(f"operators  {report.operator_count}")
    lines += [f"  {kind:24} {count}" for kind, count in report.operators.items()]
    if report.float_operators:
        lines.append(f"in float   {', '.join(report.float_operators)}")
    lines.append(f"contract   {'none' if report.contract is None else _contract(report.contract)}")
    if report.fast_skew is not None:
        fast = report.fast_skew
        lines.append(f"fast mode  on {printable(fast.picture)}: {_apart(fast.resized)} levels of 255 after the resize")
        lines.append(f"           {_apart(fast.tensor)} in the input tensor, against the exact mode")
    return lines


def _tensor(tensor: TensorSummary) -> str:
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    scale = "" if tensor.scale is None else f", scale {tensor.scale:.6g}, zero point {tensor.zero_point}"
    return f"{printable(tensor.name)}: {tensor.dtype} {shape}{scale}"


def _contract(contract: Mapping[str, Any]) -> str:
    picture = contract["input"].get("picture")
    kind = f"picture, {picture['colour']}" if picture else "numbers, no picture"
    meanings = ", ".join(f"{o['meaning']} ({len(o['labels'])} labels)" for o in contract["outputs"])
    return f"{kind} -> {meanings}"


def contract(report: ContractReport) -> list[str]:
    """What `arenite contract show` prints: each field by the name that `set` takes."""
    if report.contract is None:
        return ["contract   none: arenite contract set gives it one"]
    return table([(printable(name), _value(value)) for name, value in _flat("", report.contract)])


def contract_check(report: ContractCheck) -> list[str]:
    """What `arenite contract check` prints."""
    count = len(report.problems)
    lines = [f"contract   {'valid' if report.valid else f'{count} problem' + ('s' if count > 1 else '')}"]
    lines += [f"problem    {printable(problem)}" for problem in report.problems]
    return [*lines, f"golden     {printable(report.golden)}"]


def contract_edit(report: ContractEdit) -> list[str]:
    """What `arenite contract set` prints."""
    lines = [f"model      {printable(report.path)}"]
    lines += ["contract   new: the model carried none"] if report.created else []
    for field in report.changed:
        lines.append(f"changed    {printable(field.name)}: {_value(field.before)} -> {_value(field.after)}")
    lines += [] if report.changed else ["changed    nothing"]
    return [*lines, f"golden     {printable(report.golden)}"]


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    """The values inside JSON objects by their names, lists of plain values as they are."""
    if isinstance(value, Mapping) and value:
        inside = [(f"{name}.{key}" if name else key, item) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        inside = [(f"{name}[{i}]", item) for i, item in enumerate(value)]
    else:
        return [(name, value)]
    return [pair for key, item in inside for pair in _flat(key, item)]


def _value(value: Any) -> str:
    """A JSON value on one line; of a long list its ends."""
    if isinstance(value, list) and len(value) > _MOST_SHOWN:
        return f"[{', '.join(map(_value, value[:2]))}, ... {len(value)} in all, {_value(value[-1])}]"
    shown = printable(json.dumps(value, ensure_ascii=False))
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 3]}..."


def skew(report: SkewReport) -> list[str]:
    """What `arenite skew` prints."""
    head = ("route", "differs from", "decode", "resize", "tensor", "answer", "its score", "output")
    rows: list[tuple[str, ...]] = [head]
    for route in report.routes:
        apart = (_apart(route.differences[step]) for step in ("decode", "resize", "tensor"))
        sqnr = "identical" if route.output_sqnr_db is None else f"{route.output_sqnr_db:.1f} dB"
        answer = printable(route.best.text) + ("" if route.same_answer else " (DIFFERENT)")
        rows.append((route.name, route.first or "nowhere", *apart, answer, f"{route.score_change:+.4f}", sqnr))
    lines = [
        f"picture    {printable(report.picture)}",
        f"exact mode {printable(report.best.text)}, {report.best.score:.4f}",
        "steps      largest and mean difference from the exact mode; its score: the change of the exact mode's label",
        *table(rows),
    ]
    return lines + ([f"not here   {', '.join(report.missing)}"] if report.missing else [])


def _apart(difference: Difference) -> str:
    if difference.largest is None or difference.mean is None:
        return difference.note
    return "same" if not difference.differs else f"{difference.largest:.3g}, {difference.mean:.2g}"


def conversion(report: ConversionReport) -> list[str]:
    """What `arenite convert` prints."""
    agreement = report.agreement
    held_out = ", held out" if agreement.held_out else ", not held out"
    lines = [
        f"model      {printable(report.path)}",
        f"size       {report.file_bytes:,} bytes, {report.float_bytes:,} in float",
        f"loaded by  {report.loader}",
        *_quantisation(report.quantisation),
        *_agreement(agreement, held_out),
    ]
    lines += [f"worst      {t.label}: {t.sqnr_db:.1f} dB" for t in report.worst_tensors[:3]]
    passed = sum(check.passed for check in report.checks)
    lines.append(f"checks     {passed} of {len(report.checks)} passed, {len(report.tensors)} tensors compared")
    lines.append(f"golden     {_golden(report)}")
    if report.serving is not None:
        drift = report.serving
        cut = f"{drift.clipped:.2%} of values clipped ({drift.calibration_clipped:.2%} in calibration)"
        lines.append(f"serving    drift {drift.drift:.3f} of 0..1 over {drift.samples} samples, {cut}")
    for caution in report.cautions:
        lines += [f"CAUTION    {printable(caution.name)}: {printable(caution.detail)}", f"           {caution.cure}"]
    return lines + _repeat(report)


def coreml(report: CoreMlReport) -> list[str]:
    """What `arenite convert` prints of a Core ML package."""
    agreement = report.check.agreement
    eight = report.layers - len(report.kept_float)
    mixed = f", {eight} of {report.layers} layers read 8 bits" if report.precision == "w8a8" else ""
    lines = [
        f"package    {printable(report.path)}",
        f"size       {report.package_bytes:,} bytes, {report.float16_bytes:,} in float16",
        f"precision  {report.precision}{mixed}",
        f"loaded by  {report.loader}",
        *_agreement(agreement, ", held out" if agreement.held_out else ", not held out"),
        f"checks     {sum(c.passed for c in report.check.checks)} of {len(report.check.checks)} passed",
    ]
    lines += [f"unknown    {text}" for text in report.unknown]
    mac = "" if report.mac_folder is None else f"on a Mac: python {printable(report.mac_folder)}/verify_on_mac.py"
    return [*lines, *([f"next       {mac}"] if mac else []), *_repeat(report)]


def _agreement(agreement: Agreement, held_out: str) -> list[str]:
    noise, share = agreement.sqnr_interval_db, agreement.top1_interval
    lines = [
        f"agreement  top-1 {agreement.top1:.3f} ({share[0]:.3f}..{share[1]:.3f}), {agreement.sqnr_db:.1f} dB "
        f"({noise[0]:.1f}..{noise[1]:.1f}) over {agreement.samples} samples{held_out}"
    ]
    if agreement.top1_confident is not None:
        sure = f"{agreement.top1_confident:.3f} over the {agreement.confident_samples} where float is sure"
        lines.append(f"           top-1 {sure}")
    return lines


def _repeat(report: ConversionReport | CoreMlReport) -> list[str]:
    if report.repeat is None:
        return []
    verdict = "the bytes of the first time" if report.repeat.identical else "OTHER bytes than the first time"
    changed = [f"differs    {name}: {printable(a)} -> {printable(b)}" for name, a, b in report.repeat.differences]
    return [f"recipe     {verdict}", *changed]


def model_comparison(report: ModelComparison) -> list[str]:
    """What `arenite compare-models` prints."""
    lines = [
        f"model      {printable(model.path)}: {model.file_bytes:,} bytes, {model.engine}, {model.kernels} kernels"
        for model in report.models
    ]
    lines += _agreement(report.agreement, "")
    worst = sorted(report.tensors, key=lambda t: t.sqnr_db)[:3]
    lines += [f"worst      {t.label}: {t.sqnr_db:.1f} dB" for t in worst]
    lines += [
        f"picture    {printable(p.name)}: {p.sqnr_db:.1f} dB, {printable(p.expected.text)} -> {printable(p.found.text)}"
        for p in report.worst_pictures[:3]
    ]
    return lines + [f"{'ok' if c.passed else 'NO':11}{c.name}: {c.detail}" for c in report.checks]


def _quantisation(done: Quantisation) -> list[str]:
    options = done.options
    steps = [f"{options.precision}, {options.ends} in and out"]
    if options.is_integer:
        steps.append(f"{options.estimator} ranges")
        switches = ("equalise", "rounding", "bias_correction")
        steps += [name.replace("_", " ") for name in switches if getattr(options, name)]
    lines = [f"quantised  {', '.join(steps)}; by {done.backend}"]
    for trial in done.trials:
        got = f"top-1 {trial.fidelity.top1:.3f}, {trial.fidelity.sqnr_db:.1f} dB"
        lines.append(f"tried      {_setting(trial.options)}: {got}")
    if done.kept_float:
        lines.append(f"float      {len(done.kept_float)} layers: {printable(', '.join(done.kept_float))}")
    return [*lines, f"runs on    {done.runs_on}"]


def _setting(options: QuantiseOptions) -> str:
    switches = ("equalised" if options.equalise else "", "" if options.rounding else "no rounding")
    return ", ".join(filter(None, (options.estimator, *switches)))


def _golden(report: ConversionReport) -> str:
    golden = report.contract.golden
    if golden is None and not report.quantisation.is_full_integer:
        return "none: float operators differ from machine to machine"
    if golden is None:
        return "none: tflite-micro is not installed (pip install 'arenite[firmware]')"
    return f"{golden.count} vectors by {golden.authority}"
