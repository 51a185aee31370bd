# SPDX-License-Identifier: Apache-2.0
"""Every board that comes along, with any one field or file of it gone or wrong: the error names which."""

from __future__ import annotations

import copy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arenite.errors import DoesNotFitError, OutputError, UsageError
from arenite_codegen import board_support, bundle
from arenite_codegen.board_schema import read_board
from arenite_codegen.board_table import Table
from arenite_codegen.boards import built_in_boards, load_board
from support.graphs import random_graph

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What a board may leave out, wherever it stands.
OPTIONAL = {
    *("watchdog", "reset_cause", "marker", "unique_id", "power", "hardware", "flash", "update"),
    *("emulators", "qemu", "unicorn"),
    *("word_cycles", "baud", "irq", "plic_base", "clock_hz", "tx_pin", "rx_pin", "base", "offset"),
    *("interrupts", "boot", "qspi_pins", "emulated_by", "family", "arguments"),
    *("caches", "marker_pin", "tick_enable_base", "qspi_divider", "qspi_dual", "qspi_size_bits", "qspi_address_bytes"),
}
# Of those, what only some places may leave out.
NEEDED = {"clock_hz", "unique_id.base", "flash.family", "update.driver"}
# What is there without them tells that they are not.
TOLD_BY = {
    "hardware.family": "hardware.settings",
    "update.slots": "update.slot",
    "update.model_slots": "update.model_slot",
}
Steps = tuple[str | int, ...]


def fields(values: Any, at: Steps = ()) -> Iterator[Steps]:
    """Every field, those of tables inside too."""
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in items:
        yield (*at, key)
        if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            yield from fields(value, (*at, key))


def written(steps: Steps) -> str:
    """A field as an error names it."""
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps).lstrip(".")


def changed(values: dict[str, Any], steps: Steps, *put: Any) -> dict[str, Any]:
    """The same with one field gone, or replaced."""
    made = copy.deepcopy(values)
    parent: Any = made
    for step in steps[:-1]:
        parent = parent[step]
    if put:
        parent[steps[-1]] = put[0]
    else:
        del parent[steps[-1]]
    return made


def values_of(name: str) -> dict[str, Any]:
    return tomllib.loads((load_board(name).directory / "board.toml").read_text("utf-8"))


def read(values: dict[str, Any]) -> None:
    read_board(Table(Path("board.toml"), values), Path())


@pytest.mark.parametrize("name", built_in_boards())
def test_a_field_of_a_wrong_kind_is_named(name: str) -> None:
    values = values_of(name)
    for steps in fields(values):
        for wrong in ({"what": "this"}, -1.5):
            with pytest.raises(UsageError, match=r"field `.*` (must|is missing|is unknown)") as caught:
                read(changed(values, steps, wrong))
            named = caught.value.what.split("`")[1]
            parent = written(steps[:-1]) if isinstance(steps[-1], int) else written(steps)
            assert named.startswith(parent), f"{written(steps)} = {wrong}: {caught.value.what}"


@pytest.mark.parametrize("name", built_in_boards())
def test_a_field_that_is_gone_is_named(name: str) -> None:
    values = values_of(name)
    refused = 0
    for steps in fields(values):
        if isinstance(steps[-1], int):
            continue
        try:
            read(changed(values, steps))
        except UsageError as error:
            refused += 1
            named = TOLD_BY.get(written(steps), written(steps))
            assert f"field `{named}" in error.what, f"{name} without {written(steps)}: {error.what}"
        else:
            assert steps[-1] in OPTIONAL and written(steps) not in NEEDED, f"{name} loads without {written(steps)}"
    assert refused >= 12


@pytest.mark.parametrize("name", built_in_boards())
def test_a_file_that_is_gone_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file that the board's support is made of, one after the other."""
    board = load_board(name)
    templates = tmp_path / "templates"
    for part in ("app", "startup"):
        shutil.copytree(board_support.firmware_folder(part), templates / part)
    monkeypatch.setattr(board_support, "firmware_folder", lambda part: templates / part)
    board_support.copy_support(board, tmp_path / "whole")
    made = {path.name for path in (tmp_path / "whole").rglob("*") if path.is_file()}
    used = [path for path in sorted(templates.rglob("*")) if path.is_file() and path.name.removesuffix(".j2") in made]
    assert used or board.architecture == "esp-idf"
    for path in used:
        path.rename(tmp_path / "away")
        with pytest.raises(OutputError, match=f"No such file or directory: {path.name}"):
            board_support.copy_support(board, tmp_path / "damaged")
        (tmp_path / "away").rename(path)


@pytest.mark.parametrize("name", built_in_boards())
def test_a_board_with_less_ram_than_the_arena_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(random_graph("CONV_2D", 8).model_bytes)
    board = load_board(name)
    text = (board.directory / "board.toml").read_text("utf-8")
    for region in board.rams:
        whole = next(part for part in text.split("[[memory]]") if f'name = "{region.name}"' in part)
        line = next(line for line in whole.splitlines() if line.startswith("length"))
        least = 16 + (board.stack_bytes if region == board.ram else 0)
        text = text.replace(whole, whole.replace(line, f"length = {least}"))
    (tmp_path / "small.toml").write_text(text)
    with pytest.raises(DoesNotFitError, match=r"are needed \(arena .* too few"):
        bundle(tmp_path / "m.tflite", tmp_path / "small.toml", tmp_path / "b")
    assert not (tmp_path / "b").exists()
