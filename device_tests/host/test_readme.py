# SPDX-License-Identifier: Apache-2.0
"""The README says what the program does today."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def figures(repository: Path) -> ModuleType:
    path = repository / "device_tests" / "benchmarks" / "figures.py"
    spec = importlib.util.spec_from_file_location("figures", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def block(text: str, name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n?(.*?)<!-- /{name} -->", text, re.DOTALL)
    assert found is not None, name
    return found[1].strip()


@pytest.mark.reference
def test_arenas_are_those_of_today(readme: str, figures: ModuleType, shared_data: Path) -> None:
    lines = figures.arena_table(shared_data)
    assert block(readme, "arenas").splitlines() == lines
    # Planning every row takes minutes: one stands for all.
    assert set(figures.factor_table(shared_data, (1.2,))) <= set(block(readme, "factors").splitlines())
    for name, number in figures.promises(shared_data).items():
        assert block(readme, name) == number


@pytest.mark.reference
def test_first_lines_print_what_they_say(readme: str, figures: ModuleType, shared_data: Path) -> None:
    """Run as they stand. Code bytes and instructions belong to the compiler: only the rest is compared."""
    for package in ("ziglang", "unicorn"):
        pytest.importorskip(package)
    numbers = [re.sub(r"[\d,]+ (bytes of code|instructions)", r"# \1", line) for line in _printed(readme)]
    found = figures.snippet_output(readme, shared_data)
    assert [re.sub(r"[\d,]+ (bytes of code|instructions)", r"# \1", line).strip() for line in found] == numbers


def _printed(readme: str) -> list[str]:
    return [line.strip() for line in block(readme, "output").splitlines()]


def test_emulated_boards_are_those_that_exist(readme: str) -> None:
    """Boards of hardware and operators have pages that are made from the code, under tests of their own."""
    from arenite_codegen.boards import list_boards, load_board

    supported = readme[readme.index("## Supported") :]
    for board in list_boards():
        if load_board(board).proven == "emulated":
            assert f"`{board}`" in supported


def test_extras_exist(readme: str, repository: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    extras = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    mentioned = set(re.findall(r"arenite\[([\w,-]+)\]", readme))
    assert {extra for group in mentioned for extra in group.split(",")} <= set(extras)


def test_links_lead_somewhere(readme: str, repository: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (repository / target).exists(), target


def test_nothing_is_left_open(readme: str) -> None:
    assert "TBD" not in readme
