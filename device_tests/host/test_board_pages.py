# SPDX-License-Identifier: Apache-2.0
"""docs/boards/ is what the board files say now."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arenite_codegen.boards import list_boards, load_board

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from board_pages import FOLDER, pages


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_is_current(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == pages()[name], "run device_tests/benchmarks/board_pages.py"


def test_every_board_of_hardware_has_a_page_and_no_other() -> None:
    real = {f"{name}.md" for name in list_boards() if load_board(name).proven != "emulated"}
    assert {path.name for path in FOLDER.glob("*.md")} == real | {"README.md"}


def test_pages_name_the_pins(repository: Path) -> None:
    text = (repository / "docs" / "boards" / "nucleo-h743zi2.md").read_text("utf-8")
    assert "PD8 sends, PD9 receives" in text
    assert "PG14, D2 of the Arduino connector is high while an inference runs" in text
