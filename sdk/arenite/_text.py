# SPDX-License-Identifier: Apache-2.0
"""Reports as lines for a person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from arenite._ulps import MOST_ULPS

if TYPE_CHECKING:
    from arenite.benchmark import BenchReport
    from arenite.comparison import ComparisonReport
    from arenite.contract_check import ContractCheck, ContractReport
    from arenite.device import LayerDifference, ProfileReport, VerifyReport
    from arenite.device.flashing import FlashReport
    from arenite.device.updating import Header, SlotState, UpdateReport
    from arenite.diagnosis import DoctorReport
    from arenite.energy import Energy
    from arenite.energy_report import EnergyReport
    from arenite.engines import EngineReport
    from arenite.inspection import InspectReport, TensorSummary
    from arenite.serving_skew import Difference, SkewReport
    from arenite_codegen import BundleReport, OperatorReport
    from arenite_codegen.board_fit import FitReport
    from arenite_codegen.board_list import AddedBoard, BoardsReport
    from arenite_codegen.build import BuildReport
    from arenite_codegen.estimate import Estimate
    from arenite_codegen.model_slot import ModelSlotReport
    from arenite_converters import ConversionReport, ModelComparison, Quantisation, QuantiseOptions
    from arenite_converters.contract_edit import ContractEdit
    from arenite_converters.coreml import CoreMlReport
    from arenite_converters.report import Agreement

__all__ = [
    "added_board",
    "benchmark",
    "board_fits",
    "boards",
    "build",
    "bundle",
    "comparison",
    "contract",
    "contract_check",
    "contract_edit",
    "conversion",
    "coreml",
    "diagnosis",
    "energy",
    "estimation",
    "inspection",
    "model_comparison",
    "profiling",
    "skew",
    "table",
    "verification",
]


_MOST_SHOWN = 8
_WIDEST = 160


def table(rows: list[tuple[str, ...]], right: frozenset[int] = frozenset()) -> list[str]:
    """Rows as lines of aligned columns; `right` are the columns that align to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return lines


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
    lines.append(
        f"checks     {passed} of {len(report.checks)} passed, {len(report.tensors)} tensors compared"
    )
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


def bundle(report: BundleReport) -> list[str]:
    """What `arenite bundle` prints."""
    bound = f"lower bound {report.arena_lower_bound_bytes:,}"
    lines = [
        f"bundle     {printable(report.out_dir)}",
        f"board      {report.board}",
        f"arena      {report.arena_bytes:,} bytes ({bound})",
        *_regions(report),
        f"weights    {report.weights_bytes:,} bytes of flash",
        f"MACs       {report.macs:,} (x{report.mac_factor:.2f}) in {len(report.operators)} operators",
    ]
    lines += _kernels(report)
    if len(report.models) > 1:
        lines += [
            f"model      {model.symbol}: arena {model.arena_bytes:,} of it, weights {model.weights_bytes:,}, "
            f"MACs {model.macs:,}"
            for model in report.models
        ]
    if report.camera_bytes:
        lines.append(f"camera     {report.camera_bytes:,} bytes of RAM beside the arena")
    if report.guards:
        lines.append("guards     a validation build: larger and slower than firmware to ship")
    return [*lines, f"next       arenite build {printable(report.out_dir)}"]


def _kernels(report: BundleReport) -> list[str]:
    """Which variants the multiply-accumulates run in, and what they cost there."""
    found: dict[tuple[str, str], list[OperatorReport]] = {}
    for operator in report.operators:
        if operator.macs and operator.kernel and operator.variant:
            found.setdefault((operator.kernel, operator.variant), []).append(operator)
    lines = []
    for (kernel, variant), operators in sorted(found.items(), key=lambda pair: -sum(one.macs for one in pair[1])):
        macs = sum(one.macs for one in operators)
        costs = [one.modelled_instructions for one in operators if one.modelled_instructions is not None]
        each = f", {sum(costs) / macs:.2f} instructions a MAC (modelled)" if len(costs) == len(operators) else ""
        share = f"{macs / report.macs:.0%} of the MACs" if report.macs else ""
        lines.append(f"{kernel} {variant}: {len(operators)} operators, {share}{each}")
    return [f"{'kernels' if i == 0 else '':10} {line}" for i, line in enumerate(lines)]


def _regions(report: BundleReport) -> list[str]:
    """Which memories are used, if more than one of RAM and one of flash."""
    if [r.holds for r in report.regions] == ["arena", "weights"]:
        return []
    head = ("", "region", "holds", "bytes", "of", "traffic", "cycles (modelled)")
    rows: list[tuple[str, ...]] = [head]
    for r in report.regions:
        numbers = (r.bytes, r.capacity_bytes, r.traffic_bytes, r.modelled_cycles)
        rows.append(("", r.name, r.holds, *(f"{number:,}" for number in numbers)))
    return table(rows, frozenset(range(3, len(head))))


def boards(report: BoardsReport) -> list[str]:
    """What `arenite boards` prints."""
    head = ("board", "core", "MHz", "memories", "flashed by", "proven")
    rows: list[tuple[str, ...]] = [head]
    for board in report.boards:
        core = f"{board.cpu}{', ' + board.features if board.features else ''}"
        memories = [f"{m.name} {_binary(m.bytes)}: {m.good_for}" for m in board.memories]
        proven = f"{board.proven}{', yours' if board.own else ''}"
        rows.append((printable(board.name), core, f"{board.clock_hz / 1e6:g}", memories[0], board.flashing, proven))
        rows += [("", "", "", memory, "", "") for memory in memories[1:]]
    return table(rows, frozenset({2}))


def added_board(report: AddedBoard) -> list[str]:
    """What `arenite boards add` prints."""
    return [
        f"board      {printable(report.board)}{', replaced' if report.replaced else ''}",
        f"kept in    {printable(report.folder)}: {', '.join(map(printable, report.files))}",
        f"next       arenite bundle MODEL --board {printable(report.board)} -o DIR",
    ]


def board_fits(report: FitReport) -> list[str]:
    """What `arenite fit` prints."""
    head = ("board", "fits", "arena", "weights", "ms", "mJ", "what is missing", "what would fit")
    rows: list[tuple[str, ...]] = [head]
    for board in report.boards:
        missing = "; ".join(f"{short.region} lacks {short.missing_bytes:,}" for short in board.missing)
        costs = (_cost(board.latency_ms), "" if board.energy_mj is None else _cost(board.energy_mj))
        change = "" if board.fits else board.change or "nothing known"
        sizes = (f"{board.arena_bytes:,}", f"{board.weights_bytes:,}")
        rows.append((printable(board.board), "yes" if board.fits else "no", *sizes, *costs, missing, change))
    count = sum(board.fits for board in report.boards)
    return [
        f"{printable(report.model)}: {report.macs:,} multiply-accumulates",
        *table(rows, frozenset({2, 3, 4, 5})),
        f"fits {count} of {len(report.boards)} boards; bytes; time and energy of an inference {report.latency_source}",
    ]


def _cost(value: float) -> str:
    return f"{value:,.{2 if value < 10 else 0}f}"


def _binary(count: int) -> str:
    return f"{count / (1 << 20):.4g} MB" if count >= 1 << 20 else f"{count / 1024:.4g} KB"


def build(report: BuildReport) -> list[str]:
    """What `arenite build` prints."""
    ram_bytes = report.data_bytes + report.bss_bytes
    return [
        f"firmware   {printable(report.elf)}",
        f"toolchain  {report.toolchain}",
        f"flash      {report.code_bytes:,} bytes of code, {report.weights_bytes:,} of weights",
        f"RAM        {ram_bytes:,} bytes of variables and {report.stack_bytes:,} of stack beside the arena",
    ]


def verification(report: VerifyReport) -> list[str]:
    """What `arenite verify` prints."""
    several = len(report.models) > 1
    lines = [f"outputs    {_verdict(report, several)}"]
    lines.append(f"vectors    {report.vectors}, expected by {report.authority}")
    if report.float_ulps is not None:
        lines.append(f"floats     {report.float_ulps} units in the last place apart at most, {MOST_ULPS} are allowed")
    if report.emulator is not None:
        lines.append(f"ran on     {report.board}, {report.emulator}")
    if report.instructions is not None:
        scope = "for one inference of each model" if several else "an inference"
        lines.append(f"cost       {report.instructions:,} instructions {scope}")
    if report.stack_peak_bytes is not None:
        lines.append(f"stack      {report.stack_peak_bytes:,} bytes at the deepest")
    if several:
        for model in report.models:
            cost = "" if model.instructions is None else f", {model.instructions:,} instructions"
            word = "identical" if model.identical else "DIFFERENT"
            lines.append(f"model      {model.symbol}: {word}, {model.vectors} vectors{cost}")
    if report.same_build is False:
        lines.append("build      the board runs another build than this bundle's")
    if report.layers_checked:
        lines.append(f"layers     {report.layers_checked} compared row by row, for the first vector")
    return [*lines, *_wrong_layer(report.first_layer)]


def _wrong_layer(found: LayerDifference | None) -> list[str]:
    if found is None:
        return []
    operators = "operator" if len(found.operators) == 1 else "operators"
    numbers = " to ".join(str(i) for i in dict.fromkeys((found.operators[0], found.operators[-1])))
    lines = [f"layer      {found.layer} is the first wrong one: {found.kind}, {operators} {numbers}, kernel "]
    lines[0] += f"{', '.join(dict.fromkeys(found.variants)) or 'none'}"
    lines.append(f"           makes {printable(found.output)}, {found.rows_made} of {found.rows_expected} rows")
    if found.row is not None:
        place = f"row {found.row}, column {found.column}, channel {found.channel}"
        lines.append(f"           {place}: {found.got} instead of {found.expected}")
    return [*lines, f"           {found.explanation}"]


def profiling(report: ProfileReport) -> list[str]:
    """What `arenite profile` prints."""
    head = ("layer", "operators", "kind", report.unit, "share", "a MAC", "variant", "hint")
    rows: list[tuple[str, ...]] = [head]
    for layer in report.layers:
        numbers = "-".join(str(i) for i in dict.fromkeys((layer.operators[0], layer.operators[-1])))
        per_mac = "" if layer.per_mac is None else f"{layer.per_mac:.2f}"
        variant = ", ".join(layer.variants)
        cells = (f"{layer.layer}", numbers, layer.kind, f"{layer.cost:,}", f"{layer.share:.1%}", per_mac, variant)
        rows.append((*cells, layer.hint))
    lines = [
        f"model      {printable(report.model)} on {report.board}{f', {report.emulator}' if report.emulator else ''}",
        f"total      {report.total:,} {report.unit} an inference, {report.executor:,} of them outside layers",
        *table(rows, right=frozenset({0, 1, 3, 4, 5})),
    ]
    why = {name: reason for layer in report.layers for name, reason in layer.passed_over.items()}
    lines += [f"not {name}: {reason}" for name, reason in sorted(why.items())]
    return lines if report.energy is None else [*lines, f"energy     {report.energy}"]


def estimation(report: Estimate) -> list[str]:
    """What `arenite estimate` prints."""
    low, high = report.latency_band_ms
    least, usual, most = report.cycles_per_instruction
    lines = [
        f"board      {report.board}, {report.cpu} at {report.clock_hz / 1e6:g} MHz",
        f"counted    {report.instructions:,} instructions on {report.emulated_on}, {report.emulator}",
        f"model      {usual:g} cycles an instruction ({least:g} to {most:g}), no memory to wait for",
        f"latency    {report.latency_ms:,.4g} ms ({low:,.4g} to {high:,.4g}), {report.tag}",
    ]
    if report.energy_mj is not None:
        lines.append(f"energy     {report.energy_mj:.3g} mJ, {report.tag} ({printable(report.power_source)})")
    known = report.published
    if known is not None:
        lines.append(f"published  {known.latency_ms:g} ms at {known.clock_mhz} MHz: {known.network}, {known.source}")
        if known.clock_mhz * 10**6 != report.clock_hz:
            lines.append(f"           in proportion {report.published_at_clock_ms:,.4g} ms at this clock")
    return lines


def model_slot(report: ModelSlotReport) -> list[str]:
    """What `arenite build --model-for` prints."""
    return [
        f"model      {printable(report.elf)}",
        f"slot       {report.slot}, at {report.address:#x}",
        f"payload    {report.payload_bytes:,} bytes, the slot has room for {report.payload_limit_bytes:,}",
        f"firmware   build {report.firmware_digest[:16]}: only a board with this one takes it",
    ]


def update_key(made: Mapping[str, Any]) -> list[str]:
    """What `arenite update keygen` prints."""
    return [f"key        {made['key']}", f"public     {made['public_key'].hex()}"]


def update_image(header: Header) -> list[str]:
    """What `arenite update sign` and `show` print."""
    slot = "any" if header.address == 0 else f"the one at {header.address:#x}"
    return [
        f"image      {header.kind.name.lower()}, version {header.version}, for {header.board}",
        f"payload    {header.payload_bytes:,} bytes, for slot: {slot}",
        f"digest     {header.digest.hex()[:32]}…",
    ]


def update_state(state: SlotState) -> list[str]:
    """What `arenite update state` prints."""
    kept = "confirmed" if state.confirmed else "on trial" if state.on_trial else "not confirmed"
    back = "; the newer image did not confirm itself" if state.rolled_back else ""
    runs = "no slot" if state.slot is None else f"slot {state.slot}, version {state.version}, {kept}{back}"
    slots = [f"slot {index}     {status}" for index, status in enumerate(state.statuses)]
    return [f"runs       {runs}", *slots, f"room       {state.payload_limit_bytes:,} bytes of payload"]


def update_report(report: UpdateReport) -> list[str]:
    """What `arenite update send` prints."""
    return [*update_image(report.image), *update_state(report.after)]


def flashing(report: FlashReport) -> list[str]:
    """What `arenite flash` prints."""
    chip = "not asked" if report.chip is None else report.chip
    size = "" if report.flash_bytes is None else f", {report.flash_bytes:,} bytes of flash"
    serial = "" if report.unique_id is None else f", {report.unique_id}"
    verb = "to write" if report.dry_run else "written"
    back = {True: "as written", None: "not possible: run arenite verify"}[report.read_back]
    lines = [
        f"board      {report.board} at {report.port}, by {report.tool}",
        f"chip       {chip}{size}{serial}",
        f"firmware   {report.image_bytes:,} bytes: {report.written_bytes:,} {verb}, "
        f"{report.present_bytes:,} there already",
    ]
    if report.dry_run:
        return lines
    lines.append(f"read back  {back}")
    lines.append(f"started    {'yes' if report.started else 'no: press reset'}")
    return lines + ([] if report.verification is None else verification(report.verification))


def _verdict(report: VerifyReport, several: bool) -> str:
    first = report.first_difference
    if first is None:
        return "identical" if report.identical else "identical, but a layer is DIFFERENT"
    whose = f"{report.models[first.model].symbol}, " if several else ""
    place = f"{whose}vector {first.vector}, output {first.output}, byte {first.index}"
    return f"DIFFERENT, first in {place}: {first.got} instead of {first.expected}"


def benchmark(report: BenchReport) -> list[str]:
    """What `arenite bench` prints."""
    engine, times = report.engine, report.latency
    of = "a sample" if report.scenario == "Offline" else "a query"
    latency = f"p50 {_ms(times.p50_ms)}  p90 {_ms(times.p90_ms)}  p99 {_ms(times.p99_ms)}  p99.9 {_ms(times.p99_9_ms)}"
    lines = [
        f"engine     {engine.engine} {engine.version}, {engine.kernels} kernels, {engine.threads} threads",
        *_placements(engine),
        f"machine    {report.machine.cpu}, governor {report.machine.governor or 'unknown'}",
        f"scenario   {report.scenario}, {_figure(report)}",
        f"valid      {_validity(report)}",
        f"latency    {latency} ms of {of}",
        f"jitter     {_ms(report.jitter_ms)} ms from one to the next; the first took {_ms(report.first_ms)} ms",
        f"rate       {report.samples_per_s:.1f} a second, {times.count} times in {report.duration_s:.1f} s",
        *_conditions(report),
        f"energy     {printable(report.energy)}",
    ]
    return lines + (_stages(report) if report.stages else [])


def _figure(report: BenchReport) -> str:
    outcome = report.outcome
    if outcome.percentile is None:
        return f"{outcome.samples_per_s or 0:.1f} samples a second, by {printable(outcome.judged_by)}"
    figure = "unknown" if outcome.latency_ms is None else f"at most {outcome.latency_ms:.3f} ms"
    return f"p{outcome.percentile * 100:g} {figure}, by {printable(outcome.judged_by)}"


def _validity(report: BenchReport) -> str:
    return "yes" if report.valid else "no, a quick look: " + printable("; ".join(report.outcome.why_not))


def _conditions(report: BenchReport) -> list[str]:
    seen, parts = report.conditions, []
    if seen.frequency_mhz:
        parts.append(f"{min(seen.frequency_mhz):.0f} to {max(seen.frequency_mhz):.0f} MHz")
    if seen.temperature_c:
        parts.append(f"{min(seen.temperature_c):.0f} to {max(seen.temperature_c):.0f} °C")
    return [f"meanwhile  {', '.join(parts)}"] if parts else []


def comparison(report: ComparisonReport) -> list[str]:
    """What `arenite compare` prints."""
    head = ("", "before", "after", "ratio", "95 %", "verdict")
    rows: list[tuple[str, ...]] = [head]
    for row in report.rows:
        interval = f"{row.interval[0]:.3f}..{row.interval[1]:.3f}"
        rows.append((row.name, _ms(row.before_ms), _ms(row.after_ms), f"{row.ratio:.3f}", interval, row.verdict))
    lines = [f"verdict    {report.verdict}, by {report.by}", *table(rows, frozenset({1, 2, 3, 4}))]
    if min(report.runs) < 2:
        lines.append("runs       one of a side: what differs from process to process is not in its interval")
    lines += [f"differs    {printable(name)}: {printable(a)} -> {printable(b)}" for name, a, b in report.differences]
    if not report.within_limit:
        lines.append(f"limit      {report.by} is above {report.max_ratio:g} times the earlier one")
    return lines


def energy(report: EnergyReport) -> list[str]:
    """What `arenite energy` prints."""
    engine, whole = report.engine, report.energy
    lines = [
        f"engine     {engine.engine} {engine.version}, {engine.kernels} kernels, {engine.threads} threads",
        f"machine    {report.machine.cpu}",
        f"meter      {report.meter or 'none'}{', ' + whole.rail if whole.rail else ''}",
        f"energy     {printable(whole)}",
    ]
    if whole.average_w is not None and whole.peak_w is not None:
        idle = "" if whole.idle_w is None else f", idle {whole.idle_w:.3g} W"
        lines.append(f"power      {whole.average_w:.3g} W on average, {whole.peak_w:.3g} W at the peak{idle}")
    if report.battery_wh is not None:
        count = report.battery_inferences
        given = "unknown" if count is None else f"{count:,.0f} inferences, idle power included ({whole.tag})"
        lines.append(f"battery    {report.battery_wh:g} Wh: {given}")
    head = ("stage", "ms", "mJ", "95 %", "share", "")
    rows: list[tuple[str, ...]] = [head]
    for row in report.stages:
        share = "" if row.share is None else f"{row.share:.0%}"
        rows.append((row.stage, _ms(row.time_ms), *_millijoules(row.energy), share, row.energy.tag))
    lines += table(rows, frozenset(range(1, len(head) - 1)))
    return lines if report.against is None else [*lines, *_side_by_side(report, report.against)]


def _side_by_side(report: EnergyReport, other: EnergyReport) -> list[str]:
    """Both columns of time and energy, and what the first takes of the second."""
    names = [f"{e.engine.engine} ({', '.join(p.where for p in e.engine.placements)})" for e in (report, other)]
    rows: list[tuple[str, ...]] = [("stage", "ms", "against ms", "ratio", "mJ", "against mJ", "ratio", "")]
    for a, b in zip(report.stages, other.stages, strict=True):
        joules = (a.energy.energy_mj, b.energy.energy_mj)
        tag = a.energy.tag if a.energy.tag == b.energy.tag else f"{a.energy.tag}, {b.energy.tag}"
        cells = (_ms(a.time_ms), _ms(b.time_ms), _ratio(a.time_ms, b.time_ms))
        rows.append((a.stage, *cells, _millijoules(a.energy)[0], _millijoules(b.energy)[0], _ratio(*joules), tag))
    return [printable(f"{names[0]} against {names[1]}:"), *table(rows, frozenset(range(1, 7)))]


def _ratio(value: float | None, against: float | None) -> str:
    return f"{value / against:.2f}" if value is not None and against else "-"


def _millijoules(energy: Energy) -> tuple[str, str]:
    if energy.energy_mj is None:
        return "-", ""
    figure = f"{'>= ' if energy.lower_bound else ''}{energy.energy_mj:.4g}"
    return figure, "" if energy.interval_mj is None else f"{energy.interval_mj[0]:.3g}..{energy.interval_mj[1]:.3g}"


def diagnosis(report: DoctorReport) -> list[str]:
    """What `arenite doctor` prints."""
    lines = [f"arenite {report.arenite}, Python {report.python}, {report.system}"]
    rows: list[tuple[str, ...]] = []
    for tool in report.tools:
        state = tool.version or ("missing" if tool.needed else "not here")
        rows.append((tool.job, tool.name, state, "" if tool.version else tool.cure))
    lines += table(rows)
    lines += [f"meter {meter.source}: {printable(meter.problem or meter.rail)}" for meter in report.meters]
    if not report.meters:
        lines.append("no meter of this machine was found; attached ones are named with --meter")
    able = [job for job, can in report.jobs.items() if can]
    unable = [job for job, can in report.jobs.items() if not can]
    lines.append(f"can do: {', '.join(able) or 'nothing'}")
    return lines + ([f"cannot do yet: {', '.join(unable)}"] if unable else [])


def printable(value: object) -> str:
    """Text on one line; what cannot be printed is shown as an escape."""
    text = str(value)
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )


def _placements(engine: EngineReport) -> list[str]:
    lines = []
    for place in engine.placements:
        kinds = ", ".join(f"{count} {printable(kind)}" for kind, count in place.operators.items())
        lines.append(f"  runs on  {printable(place.where)}: {kinds or 'not known'}")
    return lines + [f"  refused  {printable(r.what)}: {printable(r.reason)}" for r in engine.refusals]


def _stages(report: BenchReport) -> list[str]:
    head = ("stage", "p50 ms", "p90 ms", "p99 ms", "share", "best gain")
    rows: list[tuple[str, ...]] = [head]
    for row in report.stages:
        times, gain = row.times, f"x{row.best_gain:.2f}" if row.share < 1 else ""
        cells = (_ms(times.p50_ms), _ms(times.p90_ms), _ms(times.p99_ms), f"{row.share:.0%}", gain)
        rows.append((row.stage, *cells))
    return table(rows, frozenset(range(1, len(head))))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _tensor(tensor: TensorSummary) -> str:
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    scale = "" if tensor.scale is None else f", scale {tensor.scale:.6g}, zero point {tensor.zero_point}"
    return f"{printable(tensor.name)}: {tensor.dtype} {shape}{scale}"


def _contract(contract: Mapping[str, Any]) -> str:
    picture = contract["input"].get("picture")
    kind = f"picture, {picture['colour']}" if picture else "numbers, no picture"
    meanings = ", ".join(f"{o['meaning']} ({len(o['labels'])} labels)" for o in contract["outputs"])
    return f"{kind} -> {meanings}"
