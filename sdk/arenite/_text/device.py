# SPDX-License-Identifier: Apache-2.0
"""Reports on what a board did, and what goes to it, as lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from arenite._text.lines import printable, table
from arenite._ulps import MOST_ULPS

if TYPE_CHECKING:
    from arenite.device import LayerDifference, ProfileReport, VerifyReport
    from arenite.device.flashing import FlashReport
    from arenite.device.updating import Header, SlotState, UpdateReport
    from arenite_codegen.estimate import Estimate

__all__ = [
    "estimation",
    "flashing",
    "profiling",
    "update_image",
    "update_key",
    "update_report",
    "update_state",
    "verification",
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


def _verdict(report: VerifyReport, several: bool) -> str:
    first = report.first_difference
    if first is None:
        return "identical" if report.identical else "identical, but a layer is DIFFERENT"
    whose = f"{report.models[first.model].symbol}, " if several else ""
    place = f"{whose}vector {first.vector}, output {first.output}, byte {first.index}"
    return f"DIFFERENT, first in {place}: {first.got} instead of {first.expected}"


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
