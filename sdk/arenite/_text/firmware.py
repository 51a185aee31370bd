# SPDX-License-Identifier: Apache-2.0
"""Reports on boards, bundles and builds as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arenite._text.lines import printable, table

if TYPE_CHECKING:
    from arenite_codegen import BundleReport, OperatorReport
    from arenite_codegen.board_fit import FitReport
    from arenite_codegen.board_list import AddedBoard, BoardsReport
    from arenite_codegen.build import BuildReport
    from arenite_codegen.model_slot import ModelSlotReport

__all__ = ["added_board", "board_fits", "boards", "build", "bundle", "model_slot"]


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
    ends = [printable(name) for model in report.models for name in model.integer_ends]
    if ends:
        lines.append(f"ends       {', '.join(ends)}: float32 in the file, integers here (--float-ends leaves them)")
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


def model_slot(report: ModelSlotReport) -> list[str]:
    """What `arenite build --model-for` prints."""
    return [
        f"model      {printable(report.elf)}",
        f"slot       {report.slot}, at {report.address:#x}",
        f"payload    {report.payload_bytes:,} bytes, the slot has room for {report.payload_limit_bytes:,}",
        f"firmware   build {report.firmware_digest[:16]}: only a board with this one takes it",
    ]
